//! Damaged records that compaction comes by: it goes on, and nobody is told anything wrong.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod faults;

use std::path::PathBuf;
use std::sync::Arc;

use engine::clock::ManualClock;
use engine::disk::MemoryDisk;
use engine::executor::Stepped;
use engine::{Compaction, Database, Error, Options, Snapshot};
use faults::{DIR, PUT, Record, flip, kill, read, records, segments};
use serde_json::json;

/// More than the heads of index entries tell apart.
fn id(n: u64) -> String {
    format!("common-to-all-of-them-{n:04}")
}

fn open(disk: &MemoryDisk) -> Database {
    let clock = Arc::new(ManualClock::default());
    let options = Options::default()
        .memory_budget(1 << 20)
        .memtable_bytes(4 << 10)
        .segment_bytes(16 << 10)
        .compaction(Compaction::Manual)
        .history(1 << 20)
        .disk(Arc::new(disk.clone()))
        .executor(Arc::new(Stepped::new(Arc::clone(&clock))))
        .clock(clock);
    Database::open(DIR, options).unwrap()
}

fn value(snapshot: &Snapshot, database: &Database, id: &str) -> Result<Option<i64>, Error> {
    let document = snapshot.get(&database.collection("c")?, id)?;
    document.map(|document| Ok(document.get_i64("v")?.unwrap())).transpose()
}

/// The log segments' records of an id.
fn records_of(disk: &MemoryDisk, id: &str) -> Vec<(PathBuf, Record)> {
    let mut found = Vec::new();
    for path in segments(disk) {
        let bytes = read(disk, &path);
        for record in records(&bytes) {
            let content = bytes.get(record.offset + 29..record.offset + 29 + id.len());
            if record.kind == PUT && content == Some(id.as_bytes()) {
                found.push((path.clone(), record));
            }
        }
    }
    found
}

/// Every record of level 0 in turn, also those at which a step of the sweep ends.
#[test]
fn a_damaged_document_becomes_a_marker_wherever_steps_end() {
    const IDS: u64 = 60;
    let disk = MemoryDisk::new();
    let database = open(&disk);
    let rows = database.collection("c").unwrap();
    let put_all = |v: u64| {
        for n in 0..IDS {
            rows.put(id(n).as_str(), &json!({ "v": v, "pad": "x".repeat(1000) })).unwrap();
            // Index blocks leave out what all their ids begin with.
            rows.put("a", &json!({ "v": v })).unwrap();
            rows.put("z", &json!({ "v": v })).unwrap();
        }
    };
    put_all(1);
    database.compact().unwrap();
    put_all(2);
    database.close().unwrap();
    for damaged in 0..IDS {
        let disk = kill(&disk);
        let (path, record) = records_of(&disk, &id(damaged)).pop().unwrap();
        flip(&disk, &path, record.end() - 100, 0);
        let database = open(&disk);
        database.compact().unwrap_or_else(|e| panic!("{damaged}: {e}"));
        let now = database.snapshot().unwrap();
        for n in 0..IDS {
            match value(&now, &database, &id(n)) {
                Err(Error::Corrupt { .. }) if n == damaged => {}
                Ok(Some(2)) if n != damaged => {}
                other => panic!("{damaged} is damaged: {n} is {other:?}"),
            }
        }
    }
}

/// A snapshot that saw the damaged version must not be given an older one instead.
#[test]
fn a_damaged_version_is_never_answered_with_an_older_one() {
    let disk = MemoryDisk::new();
    let database = open(&disk);
    let rows = database.collection("c").unwrap();
    let put = |n: u64, v: u64| rows.put(id(n).as_str(), &json!({ "v": v })).unwrap();
    put(5, 1);
    database.close().unwrap();
    let database = open(&disk);
    let rows = database.collection("c").unwrap();
    let put = |n: u64, v: u64| rows.put(id(n).as_str(), &json!({ "v": v })).unwrap();
    put(5, 2);
    let then = database.stats().visible_sequence;
    for n in 0..20 {
        if n != 5 {
            put(n, 3);
        }
    }
    database.close().unwrap();
    let (path, record) = records_of(&disk, &id(5)).pop().unwrap();
    let mut missed = Vec::new();
    for bit in record.offset * 8..(record.offset + record.used) * 8 {
        let disk = kill(&disk);
        flip(&disk, &path, bit / 8, (bit % 8) as u32);
        let database = open(&disk);
        for compactions in 0..3 {
            for (what, snapshot) in [
                ("now", database.snapshot().unwrap()),
                ("then", database.snapshot_at(then).unwrap()),
            ] {
                match value(&snapshot, &database, &id(5)) {
                    Err(Error::Corrupt { .. } | Error::UnsupportedFormat { .. }) => {}
                    // The header's own check is none of the content's.
                    Ok(Some(2)) => {}
                    other => missed.push(format!(
                        "byte {} {what} {compactions}: {other:?}",
                        bit / 8 - record.offset
                    )),
                }
            }
            database.compact().unwrap();
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
