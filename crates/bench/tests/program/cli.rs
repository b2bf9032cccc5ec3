//! Bad input, given to the program: a one-line error and a non-zero exit.

use std::fs;

use crate::common::{bench, bench_in, failure_line, run};

/// Each case has arguments and what the line must contain.
fn assert_refused(cases: &[(&str, &str)]) {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, expected) in cases {
        let line = failure_line(bench_in(folder.path(), arguments));
        assert!(line.contains(expected), "{arguments}: {line}");
        assert!(!folder.path().join("results").exists(), "{arguments}: created a file");
    }
}

#[test]
fn an_unknown_workload_is_refused() {
    assert_refused(&[
        ("table-bound --workloads g", "unknown workload"),
        ("table-bound --workloads a,,b", "unknown workload"),
        ("memtable-bound --workloads ab", "unknown workload"),
    ]);
}

#[test]
fn a_store_that_is_not_built_in_is_refused() {
    assert_refused(&[("table-bound --stores sediment,tree", "there are sediment, rocksdb")]);
    #[cfg(not(feature = "lmdb"))]
    assert_refused(&[("table-bound --stores sediment,lmdb", "--features lmdb")]);
}

#[test]
fn a_store_is_refused_where_it_takes_part_in_nothing() {
    assert_refused(&[
        ("table-bound --stores floor --workloads a,b,d,f", "floor takes part in C and E alone"),
        ("table-bound --stores raw --durability buffered", "durable A and F alone"),
        ("open-time --stores null", "null takes part in A to F alone"),
    ]);
    #[cfg(feature = "redb")]
    assert_refused(&[
        ("table-bound --stores redb-250ms", "redb-250ms takes part in buffered cells alone"),
        ("open-time --stores redb", "a killed process loses"),
    ]);
}

#[test]
fn absurd_numbers_are_refused() {
    assert_refused(&[
        ("table-bound --threads 0", "--threads"),
        ("table-bound --threads 1,100000", "--threads"),
        ("table-bound --records 0", "--records"),
        ("table-bound --records 1000000000000", "--records"),
        ("table-bound --records 99999999999999999999999", "--records"),
        ("table-bound --records -5", "-5"),
        ("table-bound --field-bytes 0", "--field-bytes"),
        ("table-bound --fields 0", "--fields"),
        ("table-bound --fields 10000 --field-bytes 10000", "16 MiB"),
        ("table-bound --repeats 0", "--repeats"),
        ("table-bound --operations 0", "--operations"),
        ("table-bound --seconds 0", "--seconds"),
        ("table-bound --seconds -1", "-1"),
        ("table-bound --seconds 1e300", "--seconds"),
        ("table-bound --seconds NaN", "--seconds"),
        ("table-bound --memtable-bytes 0", "--memtable-bytes"),
        ("table-bound --cache-bytes 18446744073709551616", "--cache-bytes"),
        ("table-bound --seed -1", "-1"),
    ]);
}

#[test]
fn unknown_commands_and_options_are_refused() {
    for arguments in ["", "page-bound", "table", "table-bound --no-such-option"] {
        failure_line(bench(arguments));
    }
}

#[test]
fn an_unwritable_folder_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("a file");
    let below = file.join("below");
    for (option, expected) in [("--data", "data folder"), ("--results", "results file")] {
        let mut command = bench("table-bound --records 10");
        command.current_dir(folder.path()).args([option]).arg(&below);
        let line = failure_line(command);
        assert!(line.contains(expected) && line.contains("file/below"), "{line}");
    }
}

#[test]
fn a_corrupt_line_is_named_with_its_file_and_number() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.jsonl");
    let cases: [(&[u8], &str); 5] = [
        (b"\n{\"schema\":1,\"run\":\"cu", "run.jsonl:2"),
        (b"{\"schema\":1}\n", "run.jsonl:1"),
        (b"{\"schema\":999}\n", "schema 999"),
        (b"\xff\xfe\n", "run.jsonl:1"),
        (b"", "no rows"),
    ];
    for (bytes, expected) in cases {
        fs::write(&file, bytes).expect("a file");
        let mut command = bench("table");
        command.arg(&file);
        let line = failure_line(command);
        assert!(line.contains(expected), "{line}");
    }
    let line = failure_line(bench("table /nonexistent.jsonl"));
    assert!(line.contains("/nonexistent.jsonl"), "{line}");
}

#[test]
fn help_is_no_failure() {
    let output = run(bench("--help"));
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("table-bound"));
}
