//! Closing, by call and by dropping the last handle, and the handles of others.

use std::fs;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;

use engine::disk::MemoryDisk;
use engine::{Batch, Database, Document, Durability, Error, Id, Options};
use serde_json::json;

use super::common::{
    DB, DURABILITIES, GateDisk, READS, current_thread, tiny, tiny_on, wait_until_blocked,
};
use super::{content, every_call, n, open, rows};

#[test]
fn after_a_close_every_call_on_every_handle_answers_closed() {
    for durability in DURABILITIES {
        let disk = MemoryDisk::new();
        let database = Database::open(DB, tiny_on(&disk).durability(durability)).unwrap();
        let things = database.collection("things").unwrap();
        things.put(1, &json!({ "n": 1 })).unwrap();
        let (clone, things_clone) = (database.clone(), things.clone());
        let snapshot = database.snapshot().unwrap();
        let mut batch = Batch::new();
        batch.put(&things, 2, &json!({ "n": 2 })).unwrap();
        let before = database.stats();

        clone.close().unwrap();
        let batch = std::mem::take(&mut batch);
        refused!(database.write(batch), Closed);
        for (database, things) in [(&database, &things), (&clone, &things_clone)] {
            for (call, error) in every_call(database, things, &snapshot) {
                assert!(matches!(error, Some(Error::Closed)), "{call}: {error:?}");
            }
            // What asks nothing of the disk goes on.
            database.close().unwrap();
            assert_eq!(database.path(), Path::new(DB));
            assert_eq!(things.name(), "things");
            assert_eq!(snapshot.sequence(), before.visible_sequence);
            let after = database.stats();
            assert_eq!(after.visible_sequence, before.visible_sequence);
            assert_eq!(after.records_written, before.records_written);
            assert_eq!((after.snapshots, after.sealed_records), (1, 1));
        }
        drop(snapshot);
        assert_eq!(database.stats().snapshots, 0);

        // Handles of the closed one do not come back to life with the folder.
        let again = open(&disk);
        let things_again = again.collection("things").unwrap();
        assert_eq!(content(&things_again), [(Id::from(1), 1)], "a refused write left something");
        refused!(things.get(1), Closed);
        let mut batch = Batch::new();
        batch.put(&things, 9, &json!({})).unwrap();
        refused!(again.write(batch), ForeignHandle);
        refused!(again.snapshot().unwrap().get(&things, 1), ForeignHandle);
    }
}

#[test]
fn a_close_during_another_one_returns_when_the_folder_is_free() {
    let disk = MemoryDisk::new();
    let gate = GateDisk::new(Arc::new(disk.clone()));
    let options = tiny().durability(Durability::BUFFERED).disk(gate.disk());
    let database = Database::open(DB, options).unwrap();
    database.collection("things").unwrap().put(1, &json!({ "n": 1 })).unwrap();
    gate.close();
    thread::scope(|scope| {
        let first = scope.spawn(|| database.close());
        gate.wait_for_sync();
        let (to_test, from_second) = mpsc::channel();
        let (done, may_end) = mpsc::channel();
        let clone = database.clone();
        scope.spawn(move || {
            to_test.send(current_thread()).unwrap();
            clone.close().unwrap();
            to_test.send("closed".into()).unwrap();
            may_end.recv().unwrap();
        });
        // It sleeps once it waits for the first, or at `done` after returning too early.
        wait_until_blocked(&from_second.recv().unwrap());
        let early = from_second.try_recv();
        done.send(()).unwrap();
        gate.open();
        first.join().unwrap().unwrap();
        assert!(early.is_err(), "the second close returned while the first one was at work");
        assert_eq!(from_second.recv().unwrap(), Path::new("closed"));
    });
    open(&disk);
}

#[test]
fn documents_and_open_scans_outlive_the_close_and_every_handle() {
    for reads in READS {
        let disk = MemoryDisk::new();
        let database = Database::open(DB, tiny_on(&disk).reads(reads)).unwrap();
        let things = database.collection("things").unwrap();
        // More than a memtable: most are sealed, some are not.
        for id in 0..150 {
            things.put(id, &json!({ "n": id })).unwrap();
        }
        let (sealed, fresh) = (things.get(0).unwrap().unwrap(), things.get(149).unwrap().unwrap());
        let mut begun = things.scan(..).unwrap();
        assert_eq!(begun.next().unwrap().unwrap().0, Id::from(0));
        let untouched = things.scan(..).unwrap();
        let ids = database.snapshot().unwrap().scan_ids(&things, 10..).unwrap();
        things.put(5, &json!({ "n": -1 })).unwrap();

        database.close().unwrap();
        assert_eq!((n(&sealed), n(&fresh)), (0, 149));
        drop((database, things));
        // The folder is free, and another database writes to it.
        let again = open(&disk);
        let things = again.collection("things").unwrap();
        for id in 0..150 {
            things.delete(id).unwrap();
        }
        // All files of then are gone, those included that a scan has not come to.
        again.compact().unwrap();
        assert_eq!(again.stats().segments_sealed, 0);
        again.close().unwrap();

        assert_eq!((n(&sealed), n(&fresh)), (0, 149));
        let expected: Vec<_> = (0..150).map(|id| (Id::from(id), i64::from(id))).collect();
        assert_eq!(rows(untouched), expected, "{reads:?}");
        assert_eq!(rows(begun), expected[1..], "{reads:?}");
        assert_eq!(ids.rev().map(Result::unwrap).next(), Some(Id::from(149)), "{reads:?}");
    }
}

#[test]
fn a_document_outlives_its_database_and_its_files() {
    let dir = tempfile::tempdir().unwrap();
    for reads in READS {
        let path = dir.path().join(format!("{reads:?}"));
        let documents: Vec<Document> = {
            let database = Database::open(&path, Options::default().reads(reads)).unwrap();
            let things = database.collection("things").unwrap();
            for id in 0..100 {
                things.put(id, &json!({ "n": id, "text": "x".repeat(5000) })).unwrap();
            }
            (0..100).map(|id| things.get(id).unwrap().unwrap()).collect()
        };
        fs::remove_dir_all(&path).unwrap();
        for (id, document) in (0..).zip(&documents) {
            assert_eq!(n(document), id);
            assert!(document.get_str("text").unwrap().unwrap().bytes().all(|byte| byte == b'x'));
        }
    }
}

#[test]
fn the_last_handle_releases_the_folder_and_no_other_does() {
    let disk = MemoryDisk::new();
    let locked = || matches!(Database::open(DB, tiny_on(&disk)), Err(Error::Locked { .. }));
    for _ in 0..3 {
        let database = open(&disk);
        let things = database.collection("things").unwrap();
        things.put(1, &json!({ "n": 1 })).unwrap();
        let clone = database.clone();
        let snapshot = database.snapshot().unwrap();
        // These keep what they need, not the database.
        let document = things.get(1).unwrap();
        let scan = things.scan(..).unwrap();
        let mut batch = Batch::new();
        batch.put(&things, 1, &json!({})).unwrap();

        drop(database);
        assert!(locked(), "a clone keeps the database open");
        drop(clone);
        assert!(locked(), "a collection keeps the database open");
        drop(things);
        assert!(locked(), "a snapshot keeps the database open");
        drop(snapshot);
        let again = open(&disk);
        assert_eq!(again.stats().recovery.records, 0, "dropping the last handle closes cleanly");
        refused!(again.write(batch), ForeignHandle);
        drop((document, scan));
        assert!(locked(), "what belongs to the database before releases nothing");
    }
}

#[test]
fn two_databases_on_one_folder_are_refused_however_it_is_spelt() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let link = dir.path().join("link");
    let database = Database::open(&path, Options::default()).unwrap();
    database.collection("things").unwrap().put(1, &json!({ "n": 1 })).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for other in [&path, &dir.path().join("db/../db/."), &link] {
        for _ in 0..3 {
            refused!(Database::open(other, Options::default()), Locked);
        }
    }
    // Neither the refusal nor what it opened for it took anything from the first one.
    database.collection("things").unwrap().put(2, &json!({ "n": 2 })).unwrap();
    assert_eq!(content(&database.collection("things").unwrap()).len(), 2);
    database.close().unwrap();
    let database = Database::open(&link, Options::default()).unwrap();
    assert_eq!(content(&database.collection("things").unwrap()).len(), 2);
}

#[test]
fn handles_of_another_database_are_refused() {
    let (disk, other_disk) = (MemoryDisk::new(), MemoryDisk::new());
    // The same seed, the same names: only the handles tell them apart.
    let open = |disk| Database::open(DB, tiny_on(disk).seed(1)).unwrap();
    let (database, other) = (open(&disk), open(&other_disk));
    let things = database.collection("things").unwrap();
    let others = other.collection("things").unwrap();
    let snapshot = database.snapshot().unwrap();
    refused!(snapshot.get(&others, 1), ForeignHandle);
    refused!(snapshot.scan(&others, ..), ForeignHandle);
    refused!(snapshot.scan_ids(&others, ..), ForeignHandle);
    let mut batch = Batch::new();
    batch.put(&things, 1, &json!({ "n": 1 })).unwrap();
    refused!(batch.delete(&others, 1), ForeignHandle);
    refused!(other.write(batch), ForeignHandle);
    assert!(content(&things).is_empty() && content(&others).is_empty());
    // A refused collection does not decide whose batch it is.
    let mut batch = Batch::new();
    refused!(batch.delete(&others, "x".repeat(65_535)), InvalidId);
    batch.put(&things, 1, &json!({ "n": 1 })).unwrap();
    database.clone().write(batch).unwrap();
    assert_eq!(content(&things), [(Id::from(1), 1)]);
}
