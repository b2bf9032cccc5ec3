//! Which calls sync, counted, and what survives a power cut then.

use std::sync::Arc;
use std::time::Duration;

use engine::clock::ManualClock;
use engine::disk::MemoryDisk;
use engine::disk::faulty::{Call, FaultyDisk};
use engine::executor::Stepped;
use engine::{Batch, Database, Durability, Options, WriteDurability};
use serde_json::json;

use super::common::{DB, power_lost};
use super::open;

/// A buffered database whose background never runs, and its disk that counts.
fn watched(durability: Durability) -> (MemoryDisk, FaultyDisk, Database) {
    let disk = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(disk.clone()));
    let clock = Arc::new(ManualClock::default());
    let options = Options::default()
        .durability(durability)
        .executor(Arc::new(Stepped::new(Arc::clone(&clock))))
        .clock(clock)
        .disk(Arc::new(faulty.clone()));
    let database = Database::open(DB, options).unwrap();
    (disk, faulty, database)
}

const AN_HOUR: Durability = Durability::Buffered { flush_interval: Duration::from_secs(3600) };

#[test]
fn a_durable_write_to_a_buffered_database_syncs_and_covers_the_earlier_ones() {
    let (disk, faulty, database) = watched(AN_HOUR);
    let things = database.collection("things").unwrap();
    let batch = |id: i64| {
        let mut batch = Batch::new();
        batch.put(&things, id, &json!({ "n": id })).unwrap();
        batch
    };
    let syncs = || faulty.calls_of(&[Call::SyncData, Call::SyncDir]);
    let survives = || {
        let lost = power_lost(&disk);
        let database = open(&lost);
        database.collection("things").unwrap().scan_ids(..).unwrap().count()
    };
    let begin = syncs();
    things.put(1, &json!({ "n": 1 })).unwrap();
    database.write(batch(2)).unwrap();
    database.write_with(batch(3), WriteDurability::AsOpened).unwrap();
    assert_eq!(syncs(), begin, "a buffered write waits for no sync");
    assert_eq!(survives(), 0);

    database.write_with(batch(4), WriteDurability::Durable).unwrap();
    assert_eq!(syncs(), begin + 1);
    assert_eq!(survives(), 4);

    things.put(5, &json!({ "n": 5 })).unwrap();
    database.write_with(Batch::new(), WriteDurability::AsOpened).unwrap();
    assert_eq!((syncs(), survives()), (begin + 1, 4));
    database.write_with(Batch::new(), WriteDurability::Durable).unwrap();
    assert_eq!(
        (syncs(), survives()),
        (begin + 2, 5),
        "an empty durable batch covers what precedes it"
    );

    things.put(6, &json!({ "n": 6 })).unwrap();
    database.sync().unwrap();
    assert_eq!((syncs(), survives()), (begin + 3, 6));
    database.sync().unwrap();
    database.write_with(Batch::new(), WriteDurability::Durable).unwrap();
    assert_eq!(syncs(), begin + 3, "where all is synced, a sync is none");
}

#[test]
fn on_a_durable_database_each_write_is_synced_before_its_answer() {
    let (disk, faulty, database) = watched(Durability::Durable);
    let things = database.collection("things").unwrap();
    for id in 0..5 {
        let before = faulty.calls(Call::SyncData);
        things.put(id, &json!({ "n": id })).unwrap();
        assert_eq!(faulty.calls(Call::SyncData), before + 1);
        let lost = power_lost(&disk);
        assert!(open(&lost).collection("things").unwrap().get(id).unwrap().is_some());
    }
}

#[test]
fn an_empty_batch_touches_neither_the_disk_nor_the_sequence() {
    for durability in [AN_HOUR, Durability::Durable] {
        let (_disk, faulty, database) = watched(durability);
        database.sync().unwrap();
        let calls = || faulty.calls_of(&[Call::Write, Call::SyncData, Call::SyncDir, Call::Open]);
        let before = (calls(), database.stats().visible_sequence, database.stats().groups);
        database.write(Batch::new()).unwrap();
        database.write_with(Batch::default(), WriteDurability::AsOpened).unwrap();
        database.write_with(Batch::new(), WriteDurability::Durable).unwrap();
        let after = (calls(), database.stats().visible_sequence, database.stats().groups);
        assert_eq!(after, before);
    }
}
