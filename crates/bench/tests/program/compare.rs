//! Two results files against each other, through the whole program.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::common::{bench, bench_in, rows, run};

fn write(file: &Path, rows: &[Value]) {
    let lines: Vec<_> = rows.iter().map(Value::to_string).collect();
    fs::write(file, lines.join("\n")).expect("a file");
}

fn compare(folder: &Path, arguments: &str) -> Output {
    let mut command = bench("compare");
    command.current_dir(folder).args(arguments.split_whitespace());
    run(command)
}

/// Rows of a real run, whose rates are replaced: a measurement's own noise has no place in a test.
fn measured(folder: &Path) -> Vec<Value> {
    let arguments = "table-bound --records 100 --workloads c --repeats 3 --seconds 0.02 \
        --warmup-seconds 0.01 --operations 20 --digest-operations 20";
    let output = run(bench_in(folder, arguments));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut rows = rows(folder);
    for row in &mut rows {
        let repeat = row["repeat"].as_f64().expect("a repeat");
        row["ops_per_sec"] = (10_000.0 + repeat * 50.0).into();
    }
    rows
}

#[test]
fn a_planted_slowdown_fails_and_equal_files_do_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = measured(folder.path());
    write(&folder.path().join("a.jsonl"), &rows);
    let output = compare(folder.path(), "a.jsonl a.jsonl");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let ratios = text.lines().filter(|line| line.contains("/100x1x100")).count();
    assert_eq!(text.matches(" 1.000 ").count(), ratios, "{text}");
    assert!(ratios >= 2 * 2 * 3, "stores × (load and C) × (ops/s, p50, p99): {text}");

    let mut slower = rows.clone();
    for row in &mut slower {
        if row["store"] == "sediment" && row["workload"] == "c" {
            row["ops_per_sec"] = (row["ops_per_sec"].as_f64().expect("a rate") * 0.8).into();
        }
    }
    write(&folder.path().join("b.jsonl"), &slower);
    let output = compare(folder.path(), "a.jsonl b.jsonl");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.starts_with("error: slower by more than 5 %: table-bound sediment/c/"));
    assert!(!errors.contains("rocksdb") && !errors.contains("load"), "{errors}");
    assert!(compare(folder.path(), "a.jsonl b.jsonl --threshold 25").status.success());

    slower.retain(|row| row["store"] == "sediment");
    slower.iter_mut().for_each(|row| row["command"] = "table-bound --other".into());
    write(&folder.path().join("c.jsonl"), &slower);
    let output = compare(folder.path(), "a.jsonl c.jsonl --threshold 25");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("only a.jsonl has table-bound rocksdb/c/"), "{text}");
    assert!(errors.contains("warning: different commands: "), "{errors}");
}

#[test]
fn bad_input_has_an_exit_code_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut rows = measured(folder.path());
    write(&folder.path().join("good.jsonl"), &rows);
    let rocksdb: Vec<Value> = rows.iter().filter(|r| r["store"] == "rocksdb").cloned().collect();
    write(&folder.path().join("rocksdb.jsonl"), &rocksdb);
    rows.retain(|row| row["store"] == "sediment");
    write(&folder.path().join("sediment.jsonl"), &rows);
    rows[0]["errors"] = 1.into();
    write(&folder.path().join("errors.jsonl"), &rows);
    fs::write(folder.path().join("cut.jsonl"), "{\"schema\":1,").expect("a file");
    let cases = [
        ("good.jsonl missing.jsonl", "missing.jsonl"),
        ("cut.jsonl good.jsonl", "cut.jsonl:1"),
        ("good.jsonl errors.jsonl", "has errors"),
        ("sediment.jsonl rocksdb.jsonl", "no cell in common"),
        ("good.jsonl good.jsonl --threshold 100", "--threshold"),
        ("good.jsonl", "required"),
    ];
    for (arguments, expected) in cases {
        let output = compare(folder.path(), arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {errors}");
        assert!(errors.starts_with("error: ") && errors.contains(expected), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}
