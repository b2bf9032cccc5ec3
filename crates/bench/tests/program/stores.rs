//! Runs over every store that is built in: peers, where their features are on, and the kinds that
//! are no stores.

use crate::common::{bench_in, data_is_gone, rows, run};
use serde_json::Value;

const SMALL: &str = "--records 300 --seconds 0.05 --warmup-seconds 0.02 --operations 50 \
    --digest-operations 300 --repeats 1";

/// Whole stores, but for the variants.
fn stores() -> Vec<&'static str> {
    let peers = [
        (cfg!(feature = "lmdb"), "lmdb"),
        (cfg!(feature = "redb"), "redb"),
        (cfg!(feature = "fjall"), "fjall"),
        (cfg!(feature = "canopydb"), "canopydb"),
        (cfg!(feature = "sqlite"), "sqlite"),
    ];
    let built_in = peers.into_iter().filter_map(|(on, name)| on.then_some(name));
    ["sediment", "rocksdb"].into_iter().chain(built_in).collect()
}

/// The peers with a sync every 250 ms.
fn variants() -> Vec<String> {
    stores()[2..].iter().map(|peer| format!("{peer}-250ms")).collect()
}

fn text<'a>(row: &'a Value, field: &str) -> &'a str {
    row[field].as_str().unwrap_or_default()
}

fn finished(arguments: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(bench_in(folder.path(), arguments));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {errors}");
    assert!(data_is_gone(folder.path()), "{arguments}");
    let rows = rows(folder.path());
    for row in &rows {
        assert_eq!((&row["errors"], &row["not_found"]), (&0.into(), &0.into()), "{row}");
        assert_eq!(row["settled"], true, "{row}");
        assert!(row["options"].as_object().is_some_and(|options| !options.is_empty()), "{row}");
        for event in ["kill", "power_cut"] {
            assert!(row["loses"][event].as_str().is_some_and(|text| !text.is_empty()), "{row}");
        }
    }
    rows
}

fn cells(rows: &[Value], store: &str) -> String {
    let of = |row: &&Value| text(row, "store") == store;
    rows.iter().filter(of).map(|row| text(row, "workload")).collect::<Vec<_>>().join(" ")
}

/// The run itself fails when two digests differ.
fn assert_digests(rows: &[Value], stores: &[impl AsRef<str>]) {
    for row in rows.iter().filter(|row| text(row, "phase") == "run") {
        let verified = stores.iter().any(|store| store.as_ref() == text(row, "store"));
        let digest = &row["digest"];
        let expected =
            if text(row, "store") == "floor" { text(row, "workload") == "c" } else { verified };
        assert_eq!(digest.is_object(), expected, "{row}");
        assert!(!verified || digest["rows"].as_u64() > Some(0), "{row}");
    }
}

#[test]
fn every_store_runs_every_workload_durably_with_the_same_answers() {
    let stores = stores();
    let names = stores.join(",");
    let rows = finished(&format!("table-bound {SMALL} --stores {names},raw,null"));
    for store in &stores {
        assert_eq!(cells(&rows, store), "load a b c f d load e", "{store}");
    }
    assert_eq!(cells(&rows, "raw"), "load a f");
    assert_eq!(cells(&rows, "null"), "load a b c f d load e");
    assert_digests(&rows, &[&stores[..], &["raw"]].concat());
    for row in rows.iter().filter(|row| stores.contains(&text(row, "store"))) {
        assert_eq!(
            (text(&row["loses"], "kill"), text(&row["loses"], "power_cut")),
            ("nothing", "nothing")
        );
    }
}

#[test]
fn every_store_and_variant_runs_buffered_with_several_clients() {
    let mut stores: Vec<String> = stores().into_iter().map(str::to_owned).collect();
    stores.extend(variants());
    let arguments = format!(
        "memtable-bound {SMALL} --durability buffered --threads 1,4 --workloads a,d,e --stores {}",
        stores.join(",")
    );
    let rows = finished(&arguments);
    for store in &stores {
        assert_eq!(cells(&rows, store), "load a d load e load a d load e", "{store}");
    }
    assert_digests(&rows, &stores);
    // A load is durable in buffered runs too.
    for row in rows.iter().filter(|row| text(row, "phase") == "load") {
        assert_eq!(text(&row["loses"], "power_cut"), "nothing", "{row}");
    }
}

#[test]
fn the_floor_reads_and_scans_what_the_stores_hold() {
    let rows = finished(&format!("table-bound {SMALL} --workloads c,e --stores sediment,floor"));
    assert_eq!(cells(&rows, "floor"), "load c load e");
    assert_digests(&rows, &["sediment"]);
    let scanned = rows.iter().find(|row| text(row, "cell").starts_with("floor/e/"));
    assert!(scanned.expect("a row")["scanned_rows"].as_u64() > Some(0));
    let digests = rows.iter().filter(|row| text(row, "workload") == "c");
    let digests: Vec<_> = digests.map(|row| row["digest"].clone()).collect();
    assert_eq!((digests.len(), &digests[0]), (2, &digests[1]));
}

/// What `loses` says of a kill, in every store that says that it loses nothing.
#[test]
fn a_killed_process_loses_nothing_where_the_store_says_so() {
    // The engine has a test of its own, with tails that it does not merge meanwhile.
    let mut stores: Vec<String> = stores()[1..].iter().map(|store| (*store).to_owned()).collect();
    stores.extend(variants());
    stores.retain(|store| !store.starts_with("redb"));
    let arguments = "open-time --records 400 --tails 80 --repeats 1 --field-bytes 20 --stores";
    let rows = finished(&format!("{arguments} {}", stores.join(",")));
    assert_eq!(rows.len(), stores.len() * 3, "a load, a warm and a cold opening each");
    for row in rows.iter().filter(|row| text(row, "phase") == "run") {
        assert_eq!(text(&row["loses"], "kill"), "nothing", "{row}");
        assert_eq!(row["tail_records"], 80, "{row}");
    }
}
