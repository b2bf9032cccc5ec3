//! Databases, snapshots and batches: paths, names, and handles of others.

use std::fs;
use std::path::Path;

use engine::{
    Batch, Collection, Database, Error, Id, Options, Row, Scan, Snapshot, Stats, WriteDurability,
};
use serde_json::json;

use super::Calls;
use super::calls::{database, database_at};

pub(crate) fn table(calls: &Calls) {
    paths(calls);
    names(calls);
    handles(calls);
    history(calls);
    figures(calls);
}

fn paths(calls: &Calls) {
    let dir = tempfile::tempdir().unwrap();
    let open = |path: &Path| call!(calls, Database::open(path, Options::default()));
    let existing = || Options::default().create_if_missing(false);

    // Regular files in the place of the folder, of its parent, of the lock.
    let file = dir.path().join("file");
    fs::write(&file, "mine").unwrap();
    refused!(open(&file), Io, "a regular file");
    refused!(open(&file.join("db")), Io, "a folder in a regular file");
    refused!(Database::open(&file, existing()), Io, "a regular file, to be opened only");
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    let blocked = dir.path().join("blocked");
    fs::create_dir_all(blocked.join("LOCK")).unwrap();
    refused!(open(&blocked), NotADatabase, "a folder in the place of the lock");
    let blocked = dir.path().join("blocked too");
    fs::create_dir_all(blocked.join("MANIFEST")).unwrap();
    refused!(open(&blocked), Io, "a folder in the place of the manifest");

    // Paths that the operating system refuses to read, whoever asks.
    refused!(open(Path::new("/proc/self/attr/db")), Io, "a folder that cannot be made");
    refused!(open(&dir.path().join("x".repeat(256))), Io, "a name that is too long");
    // Not judged as a message: paths are shown as they are.
    assert!(matches!(open(Path::new("nul\0byte")), Err(Error::Io { .. })), "a NUL in the path");
    refused!(open(Path::new("")), InvalidOptions, "an empty path");
    assert!(!Path::new("LOCK").exists(), "an empty path is not the working folder");

    // Folders of others.
    let foreign = dir.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("notes.txt"), "mine").unwrap();
    refused!(open(&foreign), NotADatabase, "a folder of other files");
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 1, "a refused folder is not touched");

    // None where none may be made.
    let missing = dir.path().join("missing");
    refused!(Database::open(&missing, existing()), NoDatabase, "a missing folder");
    assert!(!missing.exists());
    fs::create_dir(&missing).unwrap();
    refused!(Database::open(&missing, existing()), NoDatabase, "an empty folder");
    assert_eq!(fs::read_dir(&missing).unwrap().count(), 0);

    // Missing parents are made; an existing database opens without leave to create one.
    let nested = dir.path().join("a/b/c");
    let database = open(&nested).unwrap();
    assert_eq!(call!(calls, Database::path(&database)), nested);
    refused!(open(&nested), Locked, "a folder that is open");
    refused!(
        Database::open(nested.join("../c"), existing()),
        Locked,
        "the same folder, spelt otherwise"
    );
    call!(calls, Database::close(&database)).unwrap();
    Database::open(&nested, existing()).unwrap();
    // A parent that is missing until the path goes through it.
    open(&dir.path().join("x/../y/z")).unwrap();
    assert!(dir.path().join("y/z/MANIFEST").exists());
}

fn names(calls: &Calls) {
    let (database, _) = database();
    let longest = "n".repeat(255);
    let wide = "ÿ".repeat(127);
    for name in
        ["x", longest.as_str(), wide.as_str(), " ", "a/b", "..", "line\nbreak", "\u{10FFFF}"]
    {
        let collection = call!(calls, Database::collection(&database, name)).unwrap();
        assert_eq!(call!(calls, Collection::name(&collection)), name);
        collection.put(1, &json!({})).unwrap();
        let names = call!(calls, Database::collections(&database)).unwrap();
        assert!(names.is_sorted() && names.iter().any(|other| other == name), "{names:?}");
        assert!(call!(calls, Database::drop_collection(&database, name)).unwrap());
        assert!(!Database::drop_collection(&database, name).unwrap(), "{name:?} is gone already");
        refused!(collection.get(1), CollectionDropped, name);
        assert_eq!(Database::collections(&database).unwrap(), ["things"]);
    }
    let too_long = "n".repeat(256);
    let too_wide = "ÿ".repeat(128);
    for name in ["", too_long.as_str(), too_wide.as_str(), "\0", "a\0b"] {
        refused!(database.collection(name), InvalidCollectionName, name.len());
        refused!(database.drop_collection(name), InvalidCollectionName, name.len());
    }
}

fn handles(calls: &Calls) {
    let (database, things) = database();
    let (other, others) = database_at("/other");

    let mut batch = call!(calls, Batch::new());
    assert!(call!(calls, Batch::is_empty(&batch)));
    assert_eq!((call!(calls, Batch::len(&batch)), call!(calls, Batch::bytes(&batch))), (0, 0));
    batch.put(&things, 1, &json!({ "n": 1 })).unwrap();
    let bytes = batch.bytes();
    refused!(batch.put(&others, 1, &json!({})), ForeignHandle, "a batch");
    refused!(batch.put_raw(&others, 1, &[5, 0, 0, 0, 0]), ForeignHandle, "a batch");
    refused!(batch.delete(&others, 1), ForeignHandle, "a batch");
    assert_eq!(
        (batch.len(), batch.bytes()),
        (1, bytes),
        "a refused call leaves the batch as it was"
    );
    assert!(format!("{batch:?}").len() < 100, "{batch:?}");
    call!(calls, Database::write(&database, batch)).unwrap();

    for durability in [WriteDurability::AsOpened, WriteDurability::Durable] {
        let before = database.stats().visible_sequence;
        call!(calls, Database::write_with(&database, Batch::new(), durability)).unwrap();
        assert_eq!(database.stats().visible_sequence, before, "an empty batch writes nothing");
        let mut batch = Batch::new();
        batch.delete(&things, 1).unwrap();
        refused!(other.write_with(batch, durability), ForeignHandle, "another database's batch");
        let mut batch = Batch::default();
        batch.put(&things, 2, &json!({})).unwrap();
        Database::write_with(&database, batch, durability).unwrap();
    }

    let snapshot = call!(calls, Database::snapshot(&database)).unwrap();
    assert_eq!(call!(calls, Snapshot::sequence(&snapshot)), database.stats().visible_sequence);
    assert!(call!(calls, Snapshot::get(&snapshot, &things, 1)).unwrap().is_some());
    assert_eq!(call!(calls, Snapshot::scan(&snapshot, &things, ..)).unwrap().count(), 2);
    assert_eq!(call!(calls, Snapshot::scan_ids(&snapshot, &things, ..)).unwrap().count(), 2);
    let mut scan = things.scan(..).unwrap();
    let row = call!(calls, Scan::next_row(&mut scan)).unwrap().unwrap();
    assert_eq!(call!(calls, Row::id(&row)).unwrap(), Id::from(1));
    let len = call!(calls, Row::document(&row)).len();
    assert_eq!(call!(calls, Row::to_document(&row)).len(), len);
    let row = call!(calls, Scan::next_row_back(&mut scan)).unwrap().unwrap();
    assert_eq!(row.id().unwrap(), Id::from(2));
    assert!(scan.next_row().is_none() && scan.next_row_back().is_none());
    refused!(snapshot.get(&others, 1), ForeignHandle, "a snapshot");
    refused!(snapshot.scan(&others, ..), ForeignHandle, "a snapshot");
    refused!(snapshot.scan_ids(&others, ..), ForeignHandle, "a snapshot");

    call!(calls, Database::sync(&database)).unwrap();
    call!(calls, Database::wait_idle(&database)).unwrap();
    let stats = call!(calls, Database::stats(&database));
    assert_eq!((stats.snapshots, stats.stalls), (1, 0));
    drop(snapshot);
    assert_eq!(database.stats().snapshots, 0);
}

/// Sequences at, below and above what can be read.
fn history(calls: &Calls) {
    let (database, things) = database();
    let at = |sequence| call!(calls, Database::snapshot_at(&database, sequence));
    assert_eq!(at(0).unwrap().scan(&things, ..).unwrap().count(), 0, "before anything was written");
    for n in 0..5 {
        things.put(1, &json!({ "n": n })).unwrap();
    }
    // The collection's creation is the first record.
    for (n, sequence) in (0..5).zip(2..) {
        let snapshot = at(sequence).unwrap();
        assert_eq!(snapshot.sequence(), sequence);
        let document = snapshot.get(&things, 1).unwrap().unwrap();
        assert_eq!(document.get_i64("n").unwrap(), Some(n));
    }
    refused!(at(7), HistoryGone, "above the newest");
    refused!(at(u64::MAX), HistoryGone, "above any");
    let held = at(4).unwrap();
    call!(calls, Database::compact(&database)).unwrap();
    assert_eq!(database.stats().horizon, 4, "what a snapshot sees is kept");
    assert_eq!(at(4).unwrap().sequence(), 4);
    refused!(at(3), HistoryGone, "below a snapshot");
    refused!(at(0), HistoryGone, "below a snapshot");
    assert_eq!(database.stats().snapshots, 1, "one that was refused holds nothing");
    drop(held);
    Database::compact(&database).unwrap();
    assert_eq!(database.stats().horizon, 6);
    refused!(at(5), HistoryGone, "without history");
    assert_eq!(at(6).unwrap().scan(&things, ..).unwrap().count(), 1);
    database.close().unwrap();
    refused!(at(6), Closed, "a closed database");
    refused!(database.compact(), Closed, "a closed database");
}

/// What stats() computes, before the first write and after some.
fn figures(calls: &Calls) {
    let (database, things) = database_at("/figures");
    let options = || Options::default().disk(std::sync::Arc::new(engine::disk::MemoryDisk::new()));
    let empty = Database::open("/empty", options()).unwrap();
    Database::compact(&empty).unwrap();
    let stats = empty.stats();
    assert_eq!(call!(calls, Stats::write_amplification(&stats)), 0.0, "nothing was written");
    assert_eq!((stats.live_bytes, stats.segments_sealed), (0, 0), "{stats:?}");

    for id in 0..100 {
        things.put(id, &json!({ "pad": "x".repeat(1000) })).unwrap();
    }
    let stats = database.stats();
    let written = call!(calls, Stats::write_amplification(&stats));
    assert!((1.0..100.0).contains(&written), "{written} of {stats:?}");
    let memory = call!(calls, Stats::memory_bytes(&stats));
    assert!(memory >= stats.memtable_bytes && memory <= stats.memory_budget, "{memory}: {stats:?}");
    database.compact().unwrap();
    let more = database.stats();
    assert!(Stats::write_amplification(&more) > written, "compaction writes: {more:?}");
}
