//! The whole grid: its rows, a target rate, and going on after a stop.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{bench_in, data_is_gone, failure_line, rows, run};

const SMALL: &str = "--size 300x50 --seconds 0.05 --warmup-seconds 0.02 --operations 50 \
    --digest-operations 100";

fn text<'a>(row: &'a Value, field: &str) -> &'a str {
    row[field].as_str().unwrap_or_default()
}

fn finished(folder: &Path, arguments: &str) -> Vec<Value> {
    let output = run(bench_in(folder, arguments));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(data_is_gone(folder));
    rows(folder)
}

fn sum(figures: &Value) -> u64 {
    figures.as_array().expect("a series").iter().filter_map(Value::as_u64).sum()
}

#[test]
fn every_row_has_its_series_its_histograms_and_what_the_kernel_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments =
        format!("ycsb {SMALL} --repeats 1 --threads 1,4 --durability buffered --workloads a,f,e");
    let rows = finished(folder.path(), &arguments);
    assert_eq!(rows.len(), 2 * 2 * 5, "stores × clients × (three workloads and two loads)");
    for row in &rows {
        assert_eq!(text(row, "page_cache"), "warm", "{row}");
        assert!(row["processor_probe"].as_f64() >= Some(1.0), "{row}");
        assert!(row["processor_quiet"].is_boolean() && row["minor_faults"].is_u64(), "{row}");
        let latencies = row["latency_ns"].as_object().expect("latencies");
        let histograms = row["histograms"].as_object().expect("histograms");
        assert_eq!(latencies.keys().collect::<Vec<_>>(), histograms.keys().collect::<Vec<_>>());
        for latency in latencies.values() {
            let figures = ["min", "p50", "p90", "p95", "max"];
            let figures = figures.map(|name| latency[name].as_u64().expect(name));
            assert!(figures.is_sorted(), "{row}");
        }
        if text(row, "phase") == "run" {
            assert_eq!(
                sum(&row["second_operations"]),
                row["operations"].as_u64().expect("a count")
            );
            let longest = row["second_max_ns"].as_array().expect("a series").iter();
            let whole = latencies
                .iter()
                .filter(|(kind, _)| *kind != "UPDATE" || text(row, "workload") == "a");
            assert_eq!(
                longest.filter_map(Value::as_u64).max(),
                whole.filter_map(|(_, latency)| latency["max"].as_u64()).max(),
                "{row}"
            );
        }
    }
}

#[test]
fn a_target_rate_is_kept_and_latencies_are_taken_from_the_intended_moment() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = "ycsb --size 300x50 --seconds 0.2 --warmup-seconds 0.02 --operations 1 \
        --digest-operations 50 --repeats 1 --threads 4 --durability buffered --workloads a \
        --target 1000 --stores sediment";
    let rows = finished(folder.path(), arguments);
    let row = rows.iter().find(|row| text(row, "workload") == "a").expect("a row of A");
    assert_eq!(row["target_ops_per_sec"], 1000.0);
    // A slow machine may do fewer, and none does more: the clients wait for each moment.
    let most = row["window_seconds"].as_f64().expect("seconds") * 1000.0 + 4.0;
    assert!(row["operations"].as_f64().expect("a count") <= most, "{row}");
    for kind in ["READ", "UPDATE"] {
        let figure = |table: &str, name: &str| row[table][kind][name].as_u64().expect(name);
        assert_eq!(figure("latency_ns", "count"), figure("intended_latency_ns", "count"));
        assert!(figure("latency_ns", "min") <= figure("intended_latency_ns", "min"), "{row}");
        assert!(figure("latency_ns", "max") <= figure("intended_latency_ns", "max"), "{row}");
    }
}

/// Cuts the results file behind so many rows, as a stop leaves it.
fn stop_after(folder: &Path, count: usize) -> String {
    let entries = fs::read_dir(folder.join("results")).expect("results");
    let file = entries.map(|entry| entry.expect("an entry").path()).next().expect("a file");
    let text = fs::read_to_string(&file).expect("a text file");
    let lines: Vec<&str> = text.lines().take(count).collect();
    fs::write(&file, lines.join("\n") + "\n").expect("a shorter file");
    file.strip_prefix(folder).expect("a file below").display().to_string()
}

#[test]
fn a_stopped_run_goes_on_and_leaves_out_what_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = format!("ycsb {SMALL} --repeats 2 --threads 1 --durability buffered");
    let whole = finished(folder.path(), &arguments);
    assert_eq!(whole.len(), 2 * 2 * 8);
    // In the middle of the second repeat: the stores' E of the first is there, all of the second
    // repeat's cells are not.
    let file = stop_after(folder.path(), 16 + 5);
    let mut again = crate::common::bench(&format!("ycsb --resume {file}"));
    again.current_dir(folder.path());
    let output = run(again);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("[1/16]"), "{errors}");
    let rows = rows(folder.path());
    assert_eq!(rows.len(), 16 + 5 + 16, "the second repeat's folder begins anew with its load");
    assert!(rows.iter().all(|row| row["run"] == rows[0]["run"]));
    assert!(rows.iter().all(|row| text(row, "command") == text(&rows[0], "command")));
    assert_eq!((&rows[21]["repeat"], text(&rows[21], "workload")), (&2.into(), "load"));

    let mut done = crate::common::bench(&format!("ycsb --resume {file}"));
    done.current_dir(folder.path());
    assert!(run(done).status.success());
    assert_eq!(crate::common::rows(folder.path()).len(), 37, "there is nothing left to do");
}

#[test]
fn a_run_of_another_commit_does_not_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = format!(
        "ycsb {SMALL} --repeats 1 --threads 1 --durability buffered --workloads c --stores sediment"
    );
    finished(folder.path(), &arguments);
    let file = stop_after(folder.path(), 1);
    let path = folder.path().join(&file);
    let text = fs::read_to_string(&path).expect("a text file");
    let other = text.replace("\"commit\":\"", "\"commit\":\"other-");
    assert_ne!(other, text);
    fs::write(&path, other).expect("a file");
    let mut again = crate::common::bench(&format!("ycsb --resume {file}"));
    again.current_dir(folder.path());
    let line = failure_line(again);
    assert!(line.contains("is of the commit other-"), "{line}");
}
