//! Rows that a scan lends are those that it yields.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod faults;

use engine::disk::MemoryDisk;
use engine::{
    Collection, Compaction, Database, Document, Durability, Error, Id, Options, Row, Scan,
};
use faults::*;
use serde_json::json;

type Kept = (Id<'static>, Document);

fn open(disk: &MemoryDisk) -> (Database, Collection) {
    let options = Options::default()
        .durability(Durability::BUFFERED)
        .compaction(Compaction::Manual)
        .disk(shared(disk));
    let database = Database::open(DIR, options).unwrap();
    let collection = database.collection("c").unwrap();
    (database, collection)
}

/// The next row, by any of the four ways.
fn take(scan: &mut Scan, way: u64) -> Option<Result<Kept, Error>> {
    let keep = |row: Result<Row<'_>, Error>| {
        let row = row?;
        assert_eq!(row.document().as_bytes(), row.to_document().as_bytes());
        Ok((row.id()?.into_owned(), row.to_document()))
    };
    match way {
        0 => scan.next(),
        1 => scan.next_row().map(keep),
        2 => scan.next_back(),
        _ => scan.next_row_back().map(keep),
    }
}

/// Level 1, a run of level 0 and a memtable, each with some of the ids; some are deleted.
fn three_runs(disk: &MemoryDisk) -> (Database, Collection) {
    let mut random = Random::new(7);
    for part in 0..3 {
        let (database, collection) = open(disk);
        for id in 0..300_i64 {
            match (part, random.below(10)) {
                (0, _) => collection.put(id, &json!({ "part": 0, "id": id })).unwrap(),
                (_, 0) => collection.put(id, &json!({ "part": part, "id": id })).unwrap(),
                (_, 1) => collection.delete(id).unwrap(),
                _ => {}
            }
        }
        match part {
            0 => database.compact().unwrap(),
            1 => {}
            _ => return (database, collection),
        }
        database.close().unwrap();
    }
    unreachable!("the last part returns");
}

#[test]
fn rows_lent_and_rows_kept_from_either_end_are_the_same() {
    let disk = MemoryDisk::new();
    let (database, collection) = three_runs(&disk);
    let stats = database.stats();
    assert!(stats.level1_segments > 0 && stats.level0_runs > 0 && stats.memtable_records > 0);
    let expected: Vec<Kept> = collection.scan(..).unwrap().map(Result::unwrap).collect();
    assert!((150..300).contains(&expected.len()), "{} rows", expected.len());
    let snapshot = database.snapshot().unwrap();
    for seed in 0..50 {
        let mut random = Random::new(seed);
        let mut scan = match seed % 2 {
            0 => collection.scan(..).unwrap(),
            _ => snapshot.scan(&collection, ..).unwrap(),
        };
        let ways = [1, 2, 4][usize::try_from(seed % 3).unwrap()];
        let (mut front, mut back) = (Vec::new(), Vec::new());
        loop {
            // Only lent rows, those and the iterator's from the front, and everything.
            let way = if ways == 1 { 1 } else { random.below(ways) };
            let Some(row) = take(&mut scan, way) else { break };
            if way < 2 { front.push(row.unwrap()) } else { back.push(row.unwrap()) }
        }
        for way in 0..4 {
            assert!(take(&mut scan, way).is_none(), "seed {seed}: an ended scan goes on");
        }
        front.extend(back.into_iter().rev());
        assert_eq!(front.len(), expected.len(), "seed {seed}");
        for ((id, document), (expected_id, expected)) in front.iter().zip(&expected) {
            assert_eq!(id, expected_id, "seed {seed}");
            assert_eq!(document.as_bytes(), expected.as_bytes(), "seed {seed}, {id}");
        }
    }
}

#[test]
fn documents_kept_from_lent_rows_outlive_the_scan_and_the_database() {
    let disk = MemoryDisk::new();
    let (database, collection) = three_runs(&disk);
    let mut scan = collection.scan(..).unwrap();
    let mut kept = Vec::new();
    while let Some(row) = scan.next_row() {
        let row = row.unwrap();
        assert!(format!("{row:?}").contains("part"), "{row:?}");
        kept.push((row.id().unwrap().into_owned(), row.to_document()));
    }
    drop(scan);
    database.compact().unwrap();
    drop((collection, database));
    assert!(kept.len() > 150);
    for (id, document) in kept {
        assert_eq!(Id::from(document.get_i64("id").unwrap().unwrap()), id);
    }
}

#[test]
fn a_lent_row_that_is_damaged_is_an_error_once_and_the_end() {
    for sealed in [false, true] {
        let disk = MemoryDisk::new();
        let (mut database, mut collection) = open(&disk);
        for id in 1..=24 {
            put(&collection, id, 10 * id).unwrap();
        }
        let mut file = log_segment(&disk);
        if sealed {
            database.compact().unwrap();
            database.close().unwrap();
            drop((collection, database));
            (database, collection) = open(&disk);
            assert_eq!(database.stats().level1_segments, 1);
            file = segments(&disk).remove(0);
        }
        // The value of document 12, as BSON holds it: an integer of 64 bits.
        let bytes = read(&disk, &file);
        let value = bytes.windows(8).position(|window| window == 120_i64.to_le_bytes()).unwrap();
        flip(&disk, &file, value, 0);
        for errors_from in [0, 1, 2, 3] {
            let mut scan = collection.scan(..).unwrap();
            for id in 1..=11 {
                assert_eq!(scan.next_row().unwrap().unwrap().id().unwrap(), Id::from(id));
            }
            let error = loop {
                match take(&mut scan, errors_from).expect("the error comes before the end") {
                    Ok(_) => {}
                    Err(error) => break error,
                }
            };
            assert_eq!(corrupt_file(&error), file, "sealed: {sealed}");
            for way in [1, 0, 3, 2, 1] {
                assert!(take(&mut scan, way).is_none(), "sealed: {sealed}, {errors_from}");
            }
        }
    }
}
