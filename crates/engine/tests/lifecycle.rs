//! The lives of databases, collections, snapshots, documents and scans: who outlives whom, and what
//! the others answer then.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

/// Asserts that a call was refused with this kind of error.
macro_rules! refused {
    ($outcome:expr, $kind:ident) => {
        match $outcome {
            Err(Error::$kind { .. }) => {}
            other => panic!(
                "{} must answer {}, not {:?}",
                stringify!($outcome),
                stringify!($kind),
                other.map(drop)
            ),
        }
    };
}

#[path = "lifecycle/closing.rs"]
mod closing;
#[path = "lifecycle/collections.rs"]
mod collections;
#[path = "lifecycle/syncing.rs"]
mod syncing;

use common::{DB, tiny_on};
use engine::disk::MemoryDisk;
use engine::{
    Batch, Collection, Database, Document, Error, Id, Ids, Options, Scan, Snapshot, Stats,
    WriteDurability,
};
use serde_json::{Value, json};

fn open(disk: &MemoryDisk) -> Database {
    Database::open(DB, tiny_on(disk)).unwrap()
}

fn n(document: &Document) -> i64 {
    document.get_i64("n").unwrap().unwrap()
}

/// What is in a collection: integers by id.
fn content(collection: &Collection) -> Vec<(Id<'static>, i64)> {
    rows(collection.scan(..).unwrap())
}

fn rows(scan: Scan) -> Vec<(Id<'static>, i64)> {
    scan.map(|row| row.unwrap()).map(|(id, document)| (id, n(&document))).collect()
}

/// Every call on the handles of a database that can fail, and how each fails.
fn every_call(
    database: &Database,
    things: &Collection,
    snapshot: &Snapshot,
) -> Vec<(&'static str, Option<Error>)> {
    let raw = [5, 0, 0, 0, 0];
    let empty = json!({});
    let batch = || {
        let mut batch = Batch::new();
        batch.put(things, 1, &empty).unwrap();
        batch
    };
    let durable = WriteDurability::Durable;
    vec![
        ("collection, existing", database.collection("things").err()),
        ("collection, new", database.collection("new").err()),
        ("collections", database.collections().err()),
        ("drop_collection, existing", database.drop_collection("things").err()),
        ("drop_collection, missing", database.drop_collection("new").err()),
        ("write", database.write(batch()).err()),
        ("write, empty", database.write(Batch::new()).err()),
        ("write_with", database.write_with(batch(), durable).err()),
        ("write_with, empty", database.write_with(Batch::new(), durable).err()),
        ("snapshot", database.snapshot().err()),
        ("snapshot_at", database.snapshot_at(1).err()),
        ("snapshot_at, of the future", database.snapshot_at(u64::MAX).err()),
        ("compact", database.compact().err()),
        ("sync", database.sync().err()),
        ("wait_idle", database.wait_idle().err()),
        ("get", things.get(1).err()),
        ("get, missing", things.get("missing").err()),
        ("put", things.put(1, &empty).err()),
        ("put_raw", things.put_raw(1, &raw).err()),
        ("insert", things.insert("new", &empty).err()),
        ("insert, existing", things.insert(1, &empty).err()),
        ("insert_raw", things.insert_raw("new", &raw).err()),
        ("update", things.update(1, &empty).err()),
        ("update, missing", things.update("missing", &empty).err()),
        ("update_raw", things.update_raw(1, &raw).err()),
        ("delete", things.delete(1).err()),
        ("scan", things.scan(..).err()),
        ("scan, empty", things.scan("b".."a").err()),
        ("scan_ids", things.scan_ids(..).err()),
        ("snapshot's get", snapshot.get(things, 1).err()),
        ("snapshot's scan", snapshot.scan(things, ..).err()),
        ("snapshot's scan_ids", snapshot.scan_ids(things, ..).err()),
    ]
}

/// Promises to the compiler: what may cross threads, be cloned, be boxed.
#[test]
fn handles_cross_threads_and_are_cheap_to_clone() {
    fn shared<T: Send + Sync + Unpin + std::fmt::Debug + 'static>() {}
    fn cloned<T: Clone>() {}
    shared::<Database>();
    shared::<Collection>();
    shared::<Snapshot>();
    shared::<Batch>();
    shared::<Document>();
    shared::<Options>();
    shared::<Error>();
    shared::<Id<'static>>();
    shared::<Stats>();
    fn sent<T: Send + Unpin + std::fmt::Debug + 'static>() {}
    sent::<Scan>();
    sent::<Ids>();
    cloned::<Database>();
    cloned::<Collection>();
    cloned::<Document>();
    cloned::<Options>();
    cloned::<Error>();
    cloned::<Id<'static>>();
    cloned::<Stats>();
    fn error<T: std::error::Error>() {}
    error::<Error>();
    fn both_ways<T: DoubleEndedIterator + std::iter::FusedIterator>() {}
    both_ways::<Scan>();
    both_ways::<Ids>();
    assert!(size_of::<Result<(), Error>>() <= 128, "an error is returned from every call");

    let disk = MemoryDisk::new();
    let database = open(&disk);
    let things = database.collection("things").unwrap();
    std::thread::scope(|scope| {
        for id in 0..4 {
            let (database, things) = (database.clone(), &things);
            scope.spawn(move || {
                things.put(id, &json!({ "n": id })).unwrap();
                database.collection("things").unwrap().get(id).unwrap().unwrap();
            });
        }
    });
    let mut scan = things.scan(..).unwrap();
    let document = std::thread::spawn(move || scan.next().unwrap().unwrap().1).join().unwrap();
    let value: Value = std::thread::spawn(move || document.to_json().unwrap()).join().unwrap();
    assert_eq!(value, json!({ "n": 0 }));
}
