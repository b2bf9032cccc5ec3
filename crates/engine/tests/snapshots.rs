//! A snapshot shows one moment, whatever happens to the database afterwards.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{DB, DURABILITIES, READS, tiny_on};
use engine::disk::MemoryDisk;
use engine::{Collection, Database, Durability, Error, Id, Reads, Snapshot};
use serde_json::json;

type Rows = Vec<(Id<'static>, i64)>;

struct Fixture {
    database: Database,
    collection: Collection,
}

fn fixture(durability: Durability, reads: Reads) -> Fixture {
    let disk = MemoryDisk::new();
    let database = Database::open(DB, tiny_on(&disk).durability(durability).reads(reads)).unwrap();
    let collection = database.collection("c").unwrap();
    Fixture { database, collection }
}

fn everywhere(test: impl Fn(Fixture)) {
    for durability in DURABILITIES {
        for reads in READS {
            test(fixture(durability, reads));
        }
    }
}

fn put(collection: &Collection, ids: impl Iterator<Item = i64>, version: i64) {
    for id in ids {
        collection.put(id, &json!({ "version": version, "pad": "x".repeat(60) })).unwrap();
    }
}

/// All rows of a snapshot, by a scan, by a scan from the back, by ids, and by points: all ways must
/// agree.
fn rows(snapshot: &Snapshot, collection: &Collection) -> Rows {
    let version = |document: &engine::Document| document.get_i64("version").unwrap().unwrap();
    let forward: Rows = snapshot
        .scan(collection, ..)
        .unwrap()
        .map(|row| row.map(|(id, document)| (id, version(&document))).unwrap())
        .collect();
    let mut back: Rows = snapshot
        .scan(collection, ..)
        .unwrap()
        .rev()
        .map(|row| row.map(|(id, document)| (id, version(&document))).unwrap())
        .collect();
    back.reverse();
    assert_eq!(forward, back);
    let ids: Vec<_> = snapshot.scan_ids(collection, ..).unwrap().map(|id| id.unwrap()).collect();
    assert_eq!(ids, forward.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>());
    for id in -1..200 {
        let found = snapshot.get(collection, id).unwrap().map(|document| version(&document));
        let row = forward.iter().find(|row| row.0 == Id::from(id)).map(|row| row.1);
        assert_eq!(found, row, "document {id}");
    }
    forward
}

#[test]
fn snapshots_do_not_see_overwrites_deletes_or_seals() {
    everywhere(|Fixture { database, collection }| {
        put(&collection, 0..100, 0);
        let mut snapshots = Vec::new();
        for version in 1..20 {
            let snapshot = database.snapshot().unwrap();
            let seen = rows(&snapshot, &collection);
            snapshots.push((snapshot, seen));
            // Overwrites some, deletes some, brings some back, adds one.
            put(&collection, (0..100).filter(|id| id % 7 == version % 7), version);
            for id in (0..100).filter(|id| id % 11 == version % 11) {
                collection.delete(id).unwrap();
            }
            put(&collection, 100 + version..101 + version, version);
            // Several versions of one id in one segment, each seen by a snapshot of its own.
            put(&collection, 3..4, 1000 + version);
            if version % 3 == 0 {
                database.wait_idle().unwrap();
            }
            for (snapshot, seen) in &snapshots {
                assert_eq!(rows(snapshot, &collection), *seen);
            }
        }
        assert!(database.stats().seals > 5, "{:?}", database.stats());
        assert_eq!(database.stats().snapshots, 19);
        // They go in any order; those that stay do not mind.
        while !snapshots.is_empty() {
            drop(snapshots.swap_remove(snapshots.len() / 2));
            put(&collection, 0..70, 2000);
            database.wait_idle().unwrap();
            for (snapshot, seen) in &snapshots {
                assert_eq!(rows(snapshot, &collection), *seen);
            }
        }
        assert_eq!(database.stats().snapshots, 0);
    });
}

#[test]
fn a_seal_drops_the_versions_that_no_snapshot_sees() {
    let Fixture { database, collection } = fixture(Durability::Durable, Reads::Mapped);
    put(&collection, std::iter::repeat_n(1, 60), 1);
    let snapshot = database.snapshot().unwrap();
    put(&collection, std::iter::repeat_n(1, 60), 2);
    database.close().unwrap();
    // 120 records, and a segment has room for 64: of those before the snapshot the one that it sees
    // is kept, and all that are newer.
    let stats = database.stats();
    assert_eq!(stats.seals, 2, "{stats:?}");
    assert_eq!((stats.sealed_records, stats.horizon), (61, snapshot.sequence()), "{stats:?}");
    // The newest is live; the first 59 are superseded; a snapshot of any moment since may see the
    // others.
    let bytes = stats.level0_bytes / 120;
    assert_eq!(stats.live_bytes, bytes, "{stats:?}");
    assert_eq!(stats.superseded_bytes, 59 * bytes, "{stats:?}");
    assert_eq!(stats.pinned_bytes + stats.superseded_estimated_bytes, 60 * bytes, "{stats:?}");
    drop(snapshot);
}

#[test]
fn snapshots_still_see_a_dropped_collection_and_not_the_next_one_of_its_name() {
    everywhere(|Fixture { database, collection }| {
        put(&collection, 0..80, 1);
        let before = database.snapshot().unwrap();
        let seen = rows(&before, &collection);
        assert_eq!(seen.len(), 80);
        assert!(database.drop_collection("c").unwrap());
        assert!(!database.drop_collection("c").unwrap());
        let after = database.snapshot().unwrap();
        assert!(matches!(collection.get(1), Err(Error::CollectionDropped { .. })));
        assert!(matches!(collection.scan(..).map(drop), Err(Error::CollectionDropped { .. })));
        assert!(matches!(after.get(&collection, 1), Err(Error::CollectionDropped { .. })));
        let again = database.collection("c").unwrap();
        assert_eq!(rows(&before, &again), []);
        put(&again, 0..40, 2);
        put(&database.collection("other").unwrap(), 0..150, 3);
        database.wait_idle().unwrap();
        assert_eq!(rows(&before, &collection), seen);
        assert_eq!(rows(&before, &again), []);
        assert_eq!(rows(&after, &again), []);
        assert_eq!(rows(&database.snapshot().unwrap(), &again).len(), 40);
    });
}

#[test]
fn documents_and_scans_outlive_snapshots_seals_and_the_close() {
    everywhere(|Fixture { database, collection }| {
        put(&collection, 0..150, 1);
        let snapshot = database.snapshot().unwrap();
        let documents: Vec<_> =
            (0..150).map(|id| snapshot.get(&collection, id).unwrap().unwrap()).collect();
        let mut scan = snapshot.scan(&collection, ..).unwrap();
        assert_eq!(scan.next().unwrap().unwrap().0, Id::from(0));
        drop(snapshot);
        put(&collection, 0..150, 2);
        database.close().unwrap();
        assert!(matches!(collection.get(0), Err(Error::Closed)));
        drop((database, collection));
        for document in &documents {
            assert_eq!(document.get_i64("version").unwrap(), Some(1));
        }
        let rest: Vec<_> = scan.map(|row| row.unwrap()).collect();
        assert_eq!(rest.len(), 149);
        assert!(rest.iter().all(|(_, document)| document.get_i64("version").unwrap() == Some(1)));
    });
}

#[test]
fn sequences_of_snapshots_rise_with_writes() {
    let Fixture { database, collection } = fixture(Durability::BUFFERED, Reads::Automatic);
    let first = database.snapshot().unwrap();
    let same = database.snapshot().unwrap();
    assert_eq!(first.sequence(), same.sequence());
    assert_eq!(database.stats().snapshots, 2);
    put(&collection, 0..1, 1);
    assert!(database.snapshot().unwrap().sequence() > first.sequence());
    drop(first);
    put(&collection, 0..100, 2);
    // The other one at the same sequence still counts.
    assert_eq!(rows(&same, &collection), []);
}
