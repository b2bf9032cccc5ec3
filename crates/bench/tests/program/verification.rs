//! The verification of concurrent runs: silent over stores without a fault, and loud about each
//! fault that is planted.

use crate::common::{bench_in, data_is_gone, rows, run};
use serde_json::Value;

const CLIENTS: u64 = 8;
const OPERATIONS: u64 = 20_000;
const RECORDS: u64 = 300;

/// The rows and what was printed on standard error, with the exit code.
fn verify(records: u64, arguments: &str) -> (Vec<Value>, String, Option<i32>) {
    let folder = tempfile::tempdir().expect("a folder");
    let sizes = format!("--threads {CLIENTS} --operations {OPERATIONS} --records {records}");
    let output = run(bench_in(folder.path(), &format!("verify {sizes} {arguments}")));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(data_is_gone(folder.path()), "{arguments}");
    (rows(folder.path()), errors, output.status.code())
}

#[test]
fn eight_clients_of_a_store_without_faults_get_no_wrong_answer() {
    for durability in ["buffered", "durable"] {
        let (rows, errors, code) = verify(RECORDS, &format!("--durability {durability}"));
        assert_eq!(code, Some(0), "{errors}");
        assert_eq!(rows.len(), 2 * 6, "stores × workloads");
        for row in &rows {
            let verify = &row["verify"];
            let number = |field: &str| verify[field].as_u64().unwrap_or_else(|| panic!("{row}"));
            let workload = row["workload"].as_str().unwrap_or_default();
            assert_eq!(row["operations"], OPERATIONS, "{row}");
            assert_eq!(verify["mismatches"], serde_json::json!({}), "{row}");
            assert!(verify["first_mismatch"].is_null(), "{row}");
            let inserted = row["records_end"].as_u64().unwrap_or_default() - RECORDS;
            let (scans, writes) = (number("scans"), number("writes"));
            assert_eq!(inserted > 0, ["d", "e"].contains(&workload), "{row}");
            // The scan of everything, before and after the store was opened again.
            assert!(number("rows") >= 2 * (RECORDS + inserted), "{row}");
            let updates = match workload {
                "a" | "b" | "f" => writes - RECORDS,
                _ => 0,
            };
            assert_eq!(writes, RECORDS + inserted + updates, "{row}");
            match workload {
                "e" => assert_eq!(scans + inserted, OPERATIONS + 2, "{row}"),
                // The read of a read-modify-write counts too.
                "f" => assert_eq!((scans, number("reads")), (2, OPERATIONS), "{row}"),
                _ => assert_eq!(number("reads") + updates + inserted, OPERATIONS, "{row}"),
            }
        }
    }
}

struct Planted {
    fault: &'static str,
    workload: &'static str,
    kind: &'static str,
    records: u64,
}

impl Planted {
    /// Runs a store with the fault, and gives the counts of the mismatches.
    fn mismatches(&self, store: &str, seed: u64) -> Value {
        let &Self { fault, workload, kind, records } = self;
        let arguments =
            format!("--stores {store} --workloads {workload} --plant-fault {fault} --seed {seed}");
        let (rows, errors, code) = verify(records, &arguments);
        assert_eq!(code, Some(1), "{arguments}: {errors}");
        let line = errors.lines().last().unwrap_or_default();
        assert!(line.starts_with("error: wrong answers: "), "{arguments}: {line}");
        let [row] = &rows[..] else { panic!("{arguments}: {rows:?}") };
        let first = row["verify"]["first_mismatch"].as_str().unwrap_or_default();
        assert!(line.ends_with(first) && first.starts_with(&format!("{kind}: ")), "{line}");
        row["verify"]["mismatches"].clone()
    }
}

#[test]
fn each_planted_fault_is_found_and_named_and_nothing_else() {
    for (fault, workload, kind) in [
        ("stale-read", "a", "stale"),
        ("skipped-row", "e", "skipped"),
        ("repeated-row", "e", "repeated"),
        ("torn-document", "b", "torn"),
        ("missing-insert", "d", "lost-record"),
        ("unwritten-value", "c", "unwritten"),
        ("future-value", "a", "future"),
    ] {
        for (store, seed) in [("sediment", 42), ("rocksdb", 7)] {
            let planted = Planted { fault, workload, kind, records: RECORDS };
            let mismatches = planted.mismatches(store, seed);
            assert_eq!(mismatches, serde_json::json!({ kind: 1 }), "{fault} {store} {seed}");
        }
    }
}

/// Several reads may miss it. The records are many, so that few are updated by two clients.
#[test]
fn an_update_that_does_nothing_is_found() {
    for (store, seed) in [("sediment", 42), ("rocksdb", 7)] {
        let (fault, kind) = ("lost-update", "lost-update");
        let planted = Planted { fault, workload: "a", kind, records: 10 * RECORDS };
        let mismatches = planted.mismatches(store, seed);
        let kinds = mismatches.as_object().expect("counts");
        assert!(kinds[kind].as_u64() > Some(0) && kinds.len() == 1, "{mismatches}");
    }
}

#[test]
fn a_fault_without_an_occasion_fails_the_run() {
    let arguments = "--workloads c --stores rocksdb --plant-fault lost-update";
    let (rows, errors, code) = verify(RECORDS, arguments);
    assert_eq!((rows.len(), code), (0, Some(1)), "{errors}");
    assert!(errors.contains("no occasion"), "{errors}");
}
