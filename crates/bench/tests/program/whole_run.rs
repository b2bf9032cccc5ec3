//! Small benches from end to end over both stores.

use crate::common::{bench, bench_in, data_is_gone, rows, run};
use serde_json::Value;

const SMALL: &str = "--records 300 --seconds 0.05 --warmup-seconds 0.02 --operations 50 \
    --digest-operations 300";

const FIELDS: [&str; 44] = [
    "schema",
    "run",
    "bench",
    "cell",
    "repeat",
    "command",
    "commit",
    "machine",
    "target_cpu",
    "store",
    "store_version",
    "options",
    "workload",
    "phase",
    "folder",
    "request_distribution",
    "insert_order",
    "threads",
    "durability",
    "records",
    "fields",
    "field_bytes",
    "value_bytes",
    "document_bytes",
    "seed",
    "deviations",
    "digest",
    "open_seconds",
    "seconds",
    "window_seconds",
    "operations",
    "ops_per_sec",
    "latency_ns",
    "scanned_rows",
    "rss_anon_idle_bytes",
    "rss_anon_end_bytes",
    "rss_file_end_bytes",
    "settle_seconds",
    "disk_bytes",
    "written_bytes",
    "cpu_seconds",
    "errors",
    "not_found",
    "first_error",
];

fn text<'a>(row: &'a Value, field: &str) -> &'a str {
    row[field].as_str().unwrap_or_default()
}

fn assert_sound(row: &Value) {
    for field in FIELDS {
        assert!(row.get(field).is_some(), "no {field} in {row}");
    }
    assert_eq!((&row["errors"], &row["not_found"]), (&0.into(), &0.into()), "{row}");
    assert_eq!(row["settled"], true, "{row}");
    assert!(row["operations"].as_u64() >= Some(50), "{row}");
    assert!(row["disk_bytes"].as_u64() > Some(0), "{row}");
    let latencies = row["latency_ns"].as_object().expect("latencies");
    for latency in latencies.values() {
        let figure = |name: &str| latency[name].as_u64().expect(name);
        assert!(figure("p50") <= figure("p99") && figure("p9999") <= figure("max"), "{row}");
    }
}

#[test]
fn every_workload_runs_over_both_stores_and_leaves_sound_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(bench_in(folder.path(), &format!("table-bound --repeats 2 {SMALL}")));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(data_is_gone(folder.path()));

    let rows = rows(folder.path());
    assert_eq!(rows.len(), 2 * 2 * 8, "repeats × stores × (six workloads and two loads)");
    rows.iter().for_each(assert_sound);
    for pair in rows.chunks(2) {
        let [first, second] = pair else { unreachable!("chunks of two") };
        assert_eq!(first["workload"], second["workload"], "stores take turns");
        assert_ne!(first["store"], second["store"]);
        assert_eq!(first["digest"], second["digest"]);
        assert_eq!(first["digest"].is_null(), text(first, "workload") == "load");
    }
    assert_eq!((text(&rows[0], "store"), text(&rows[16], "store")), ("sediment", "rocksdb"));

    let f = rows.iter().find(|row| text(row, "workload") == "f").expect("a row of F");
    let count = |kind: &str| f["latency_ns"][kind]["count"].as_u64().expect(kind);
    assert_eq!(count("READ"), f["operations"].as_u64().expect("a count"));
    assert_eq!(count("READ-MODIFY-WRITE"), count("UPDATE"));

    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let file = folder.path().join("results").join(format!("{}.jsonl", text(&rows[0], "run")));
    let mut again = bench("table");
    again.arg(file);
    let again = String::from_utf8_lossy(&run(again).stdout).into_owned();
    assert!(printed.starts_with(again.trim_end()), "{printed}\n{again}");
    for word in ["ratio", "sediment", "READ-MODIFY-WRITE"] {
        assert!(again.contains(word), "{again}");
    }
}

#[test]
fn many_buffered_clients_lose_nothing_and_find_everything() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = "memtable-bound --repeats 1 --durability buffered --threads 1,8 \
        --workloads a,d,e,f --fields 3 --field-bytes 7";
    let output = run(bench_in(folder.path(), &format!("{arguments} {SMALL}")));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = rows(folder.path());
    assert_eq!(rows.len(), 2 * 2 * 6);
    rows.iter().for_each(assert_sound);
    assert!(rows.iter().any(|row| row["threads"] == 8 && text(row, "durability") == "buffered"));
}

#[test]
fn a_planted_wrong_byte_fails_the_run() {
    for store in ["sediment", "rocksdb"] {
        let folder = tempfile::tempdir().expect("a folder");
        let arguments = format!("table-bound {SMALL} --workloads b --plant-wrong-byte {store}");
        let output = run(bench_in(folder.path(), &arguments));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        let line = errors.lines().last().unwrap_or_default();
        for part in ["error: ", "workload b", "sediment has rows", "rocksdb has rows"] {
            assert!(line.contains(part), "{line}");
        }
        assert!(rows(folder.path()).is_empty() && data_is_gone(folder.path()));
    }
}
