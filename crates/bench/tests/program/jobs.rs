//! The jobs that are no single grid, small, from end to end.

use crate::common::{bench, bench_in, data_is_gone, rows, run};
use serde_json::Value;

fn text<'a>(row: &'a Value, field: &str) -> &'a str {
    row[field].as_str().unwrap_or_default()
}

fn number(row: &Value, field: &str) -> u64 {
    row[field].as_u64().unwrap_or_else(|| panic!("no {field} in {row}"))
}

/// Runs a job below a folder of its own, and gives its rows and what it printed.
fn finished(arguments: &str) -> (Vec<Value>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(bench_in(folder.path(), arguments));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {errors}");
    assert!(data_is_gone(folder.path()), "{arguments}");
    let rows = rows(folder.path());
    for row in &rows {
        assert_eq!((number(row, "errors"), number(row, "not_found")), (0, 0), "{row}");
        assert_eq!(row["settled"], true, "{row}");
        assert!(number(row, "disk_peak_bytes") >= number(row, "disk_bytes"), "{row}");
        assert!(number(row, "disk_probe_max_ns") > 0, "{row}");
        assert!(number(row, "live_bytes") > 0 && row["cancelled_bytes"].is_u64(), "{row}");
    }
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let file = folder.path().join("results").join(format!("{}.jsonl", text(&rows[0], "run")));
    let mut again = bench("table");
    again.arg(&file);
    let again = String::from_utf8_lossy(&run(again).stdout).into_owned();
    assert!(printed.starts_with(again.trim_end()), "{printed}\n{again}");
    let mut markdown = bench("table --markdown");
    let markdown = run({
        markdown.arg(file);
        markdown
    });
    (rows, printed + &String::from_utf8_lossy(&markdown.stdout))
}

#[test]
fn a_sequence_has_every_part_and_raw_beside_durable_a_and_f() {
    let (rows, _) = finished(
        "sequence --size 200x100 --size 100x300 --stores sediment,rocksdb,raw --repeats 1 \
         --seconds 0.05 --warmup-seconds 0.02 --operations 50 --digest-operations 100",
    );
    let cells = |store: &str, job: &str| {
        let rows = rows.iter().filter(|row| text(row, "store") == store && text(row, "job") == job);
        rows.map(|row| text(row, "workload")).collect::<Vec<_>>().join(" ")
    };
    let all = "load a b c f d e-after load e";
    for size in ["200x1x100", "100x1x300"] {
        for store in ["sediment", "rocksdb"] {
            assert_eq!(cells(store, &format!("{size} buffered")), all);
            assert_eq!(cells(store, &format!("{size} durable")), all);
        }
        assert_eq!(cells("raw", &format!("{size} durable")), "load a f");
        assert_eq!(cells("raw", &format!("{size} buffered")), "");
    }
    for row in &rows {
        assert!(number(row, "writes_above_20ms") <= number(row, "operations") * 2, "{row}");
        let inserted = number(row, "records_end") - number(row, "records");
        let inserts = ["d", "e", "e-after"].contains(&text(row, "workload"));
        assert_eq!(inserted > 0, inserts, "{row}");
        // What D inserted is still there when E comes after it.
        let live = number(row, "live_bytes");
        assert!(live >= number(row, "records") * number(row, "document_bytes"), "{row}");
    }
    let figure = |workload: &str, store: &str| {
        let is = |row: &&Value| text(row, "workload") == workload && text(row, "store") == store;
        number(rows.iter().find(is).expect("a row"), "live_bytes")
    };
    assert!(figure("e-after", "sediment") >= figure("d", "sediment"));
}

#[test]
fn write_amplification_is_measured_for_both_stores_and_distributions() {
    let (rows, printed) = finished("write-amplification --live-gb 0.002 --turnover 1.5");
    assert_eq!(rows.len(), 2 * 2 * 2, "stores × distributions × (load and overwrites)");
    for row in rows.iter().filter(|row| text(row, "phase") == "run") {
        let user = number(row, "user_bytes");
        let live = number(row, "live_bytes");
        // One document more than asked for, at most.
        assert!((3 * live / 2..3 * live / 2 + 2_000).contains(&user), "{row}");
        let figure = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("no {name}"));
        let store = number(row, "store_written_bytes") as f64 / user as f64;
        assert!((figure("write_amplification_store") - store).abs() < 1e-9);
        // The log alone is more than what was handed in; a file system may hold back a write.
        assert!(store > 1.0 && figure("write_amplification_process") > 0.0, "{row}");
        assert!(row["latency_ns"]["OVERWRITE"]["max"].as_u64() > Some(0), "{row}");
    }
    for part in ["| 1.5x uniform | sediment |", "| 1.5x zipfian | rocksdb |", "settled/live"] {
        assert!(printed.contains(part), "no {part} in\n{printed}");
    }
}

#[test]
fn a_folder_beyond_the_disks_limit_ends_its_cell_and_the_run_is_not_valid() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = "write-amplification --live-gb 0.002 --turnover 100 --distributions uniform \
        --stores sediment --disk-limit-gb 0.004";
    let output = run(bench_in(folder.path(), arguments));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("the limit is 4000000"), "{errors}");
    assert!(data_is_gone(folder.path()));
    let rows = rows(folder.path());
    assert_eq!((rows.len(), number(&rows[1], "errors")), (2, 1));
}

/// On a slow machine a tail was sealed before its process was killed: it was a large part of a small
/// store, so that compaction was due. All of these together are no such part, however late a kill is.
#[test]
fn an_opening_recovers_the_tail_of_a_killed_process() {
    let (rows, printed) =
        finished("open-time --records 2000,4000 --tails 0,80 --repeats 2 --field-bytes 20");
    let opened: Vec<_> = rows.iter().filter(|row| row["tail_records"].is_u64()).collect();
    assert_eq!(rows.len(), 2 * 2 * (1 + 2 * 2 * 2), "sizes × stores × (load and openings)");
    assert_eq!(opened.len(), 2 * 2 * 2 * 2 * 2);
    let cold = opened.iter().filter(|row| text(row, "page_cache") == "cold");
    assert_eq!(cold.filter(|row| text(row, "workload").ends_with("-cold")).count(), 2 * 2 * 2 * 2);
    for row in opened {
        assert!(number(row, "open_ns") > 0 && number(row, "first_read_ns") > 0, "{row}");
        match text(row, "store") {
            "sediment" => assert_eq!(row["recovered_records"], row["tail_records"], "{row}"),
            _ => assert!(row["recovered_records"].is_null(), "{row}"),
        }
    }
    assert!(printed.contains("| 4 000 | 80 | cold | sediment |"), "{printed}");
}
