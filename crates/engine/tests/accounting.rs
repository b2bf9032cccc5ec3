//! What stats() counts as live, superseded and pinned, against what the test knows.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::{DB, Random, Seed, tiny_on};
use engine::clock::ManualClock;
use engine::disk::MemoryDisk;
use engine::executor::Stepped;
use engine::{Collection, Compaction, CompactionReason, Database, Options, Stats, bson};

/// A database whose background is stepped by hand, and the bytes of each document that it has.
struct World {
    disk: MemoryDisk,
    options: fn(&MemoryDisk) -> Options,
    stepped: Arc<Stepped>,
    database: Database,
    things: Collection,
    live: BTreeMap<String, u64>,
}

impl World {
    fn new(options: fn(&MemoryDisk) -> Options) -> Self {
        let disk = MemoryDisk::new();
        let (database, stepped) = open(&disk, options);
        let things = database.collection("things").unwrap();
        Self { disk, options, stepped, database, things, live: BTreeMap::new() }
    }

    fn reopen(&mut self) {
        self.database.close().unwrap();
        (self.database, self.stepped) = open(&self.disk, self.options);
        self.things = self.database.collection("things").unwrap();
    }

    fn put(&mut self, id: impl Into<String>, pad: usize) {
        let id = id.into();
        let document = bson::doc! { "pad": "x".repeat(pad) };
        self.things.put(id.as_str(), &document).unwrap();
        // The id has a byte that tells its type.
        let bytes = 1 + id.len() + bson::serialize_to_vec(&document).unwrap().len();
        self.live.insert(id, bytes as u64);
    }

    fn delete(&mut self, id: &str) {
        self.things.delete(id).unwrap();
        self.live.remove(id);
    }

    fn live_bytes(&self) -> u64 {
        self.live.values().sum()
    }

    fn stats(&self) -> Stats {
        self.database.stats()
    }

    /// Seals what is written: a close does, and nothing else is asked for here.
    fn seal(&mut self) {
        self.reopen();
        assert_eq!(self.stats().memtable_records, 0);
    }

    fn assert_settled(&self, when: &str) {
        let stats = self.stats();
        assert_eq!(stats.live_bytes, self.live_bytes(), "{when}: {stats:?}");
        let dead = (stats.superseded_bytes, stats.superseded_estimated_bytes, stats.pinned_bytes);
        assert_eq!(dead, (0, 0, 0), "{when}: {stats:?}");
        assert_eq!((stats.reclaimable_bytes, stats.level0_bytes), (0, 0), "{when}: {stats:?}");
        assert_eq!(stats.level1_bytes, stats.live_bytes, "{when}: {stats:?}");
    }
}

fn open(disk: &MemoryDisk, options: fn(&MemoryDisk) -> Options) -> (Database, Arc<Stepped>) {
    let clock = Arc::new(ManualClock::default());
    let stepped = Arc::new(Stepped::new(Arc::clone(&clock)));
    let options = options(disk).clock(clock).executor(Arc::clone(&stepped) as _);
    (Database::open(DB, options).unwrap(), stepped)
}

/// What does not depend on when the database was opened.
fn figures(stats: &Stats) -> [u64; 9] {
    [
        stats.live_bytes,
        stats.superseded_bytes,
        stats.superseded_estimated_bytes,
        stats.pinned_bytes,
        stats.reclaimable_bytes,
        stats.level0_bytes,
        stats.level1_bytes,
        stats.segments_sealed,
        stats.sealed_bytes,
    ]
}

fn steps(stats: &Stats, reason: CompactionReason) -> u64 {
    stats.compactions.iter().filter(|did| did.reason == reason).map(|did| did.steps).sum()
}

fn manual(disk: &MemoryDisk) -> Options {
    tiny_on(disk).compaction(Compaction::Manual)
}

/// Level 0 has three segments' worth in front of a segment of level 1 and nothing in the rest of
/// it, so that a step ends within that segment and has no reason to come back.
#[test]
fn a_segment_that_a_step_ended_in_is_swept_to_its_end() {
    let mut world = World::new(tiny_on);
    for n in 0..30 {
        world.put(format!("m{n:03}"), 200);
    }
    world.database.compact().unwrap();
    assert_eq!(world.stats().level1_segments, 1);
    world.assert_settled("at first");
    for n in 0..200 {
        world.put(format!("a{n:03}"), 120);
    }
    world.put("m001", 10);
    world.database.compact().unwrap();
    world.assert_settled("after the sweep");
    world.reopen();
    world.assert_settled("after a reopen");
}
