//! The micro suite, small, from end to end.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{bench, bench_in, data_is_gone, failure_line, run};

/// The only file of the results with this ending, but for the history.
fn result(folder: &Path, ending: &str) -> String {
    let entries = fs::read_dir(folder.join("results")).expect("results");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .filter(|path| !path.ends_with("history.jsonl"))
        .collect();
    assert_eq!(paths.len(), 1, "{paths:?}");
    fs::read_to_string(paths.remove(0)).expect("a text")
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// The records of a rebuild stay below what an idle store merges, however late the kill is.
#[test]
fn every_part_runs_and_enters_the_comparison_and_the_history() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = "micro --records 300 --large-records 10 --rebuild-records 80 --repeats 2";
    let output = run(bench_in(folder.path(), arguments));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(data_is_gone(folder.path()));

    let rows = lines(&result(folder.path(), "jsonl"));
    assert_eq!(rows.len(), 2 * 2 * 9, "repeats × stores × parts");
    let of = |store: &str, part: &str| {
        let found = |row: &&Value| row["store"] == store && row["workload"] == part;
        rows.iter().find(found).unwrap_or_else(|| panic!("{store} {part}"))
    };
    for store in ["sediment", "rocksdb"] {
        assert_eq!(of(store, "micro-scan")["scanned_rows"], 5 * 300);
        assert_eq!(of(store, "micro-delete-half")["operations"], 150);
        assert_eq!(of(store, "micro-delete-rest")["live_bytes"], 0);
        assert_eq!(of(store, "micro-insert-large")["operations"], 10);
        assert!(of(store, "micro-rebuild")["open_ns"].as_u64() > Some(0));
    }
    let oversize = |store| of(store, "micro-oversize");
    assert_eq!(oversize("sediment")["oversize_refused"], true);
    assert!(oversize("sediment")["oversize_error"].as_str().is_some_and(|text| !text.is_empty()));
    assert_eq!(oversize("rocksdb")["oversize_refused"], false);
    assert_eq!(of("sediment", "micro-rebuild")["recovered_records"], 80);

    let comparison = result(folder.path(), "csv");
    assert_eq!(comparison.lines().count(), 1 + 8 * 2, "figures × stores");
    for line in comparison.lines().skip(1) {
        let fields: Vec<_> = line.split(',').collect();
        assert!(fields[3] == "2" && fields[4].parse::<f64>().is_ok_and(|m| m >= 0.0), "{line}");
    }

    let output = run(bench_in(folder.path(), &format!("{arguments} --seed 7 --stores sediment")));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let history = folder.path().join("results/history.jsonl");
    let entries = lines(&fs::read_to_string(&history).expect("a history"));
    assert_eq!(entries.len(), 2);
    let stores = |entry: &Value| entry["figures"].as_object().map_or(0, serde_json::Map::len);
    assert_eq!((stores(&entries[0]), stores(&entries[1])), (2, 1));
    let mut printed = bench("history");
    printed.arg(&history);
    let printed = run(printed);
    let text = String::from_utf8_lossy(&printed.stdout);
    assert!(printed.status.success() && text.contains("insert-small"), "{printed:?}");
    assert_eq!(text.matches(" sediment ").count(), 2, "{text}");
}

#[test]
fn a_history_that_is_not_there_is_named() {
    assert!(failure_line(bench("history missing.jsonl")).contains("missing.jsonl"));
}
