//! What stats() counts as live, superseded and pinned, against what the test knows.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{DB, Seed, accounted, tiny_on};
use engine::clock::ManualClock;
use engine::disk::MemoryDisk;
use engine::executor::Stepped;
use engine::{Batch, Collection, Compaction, CompactionReason, Database, Options, Stats, bson};

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
fn figures(stats: &Stats) -> ([u64; 7], [u64; 2]) {
    (accounted(stats), [stats.segments_sealed, stats.sealed_bytes])
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

/// What was superseded while a sweep ran, below its cursor and above, is dead after the next one.
#[test]
fn c22_rows_superseded_during_a_sweep_are_not_counted_as_live() {
    let seed = Seed::or(22);
    let mut random = seed.random();
    let mut world = World::new(tiny_on);
    let id = |n: usize| format!("{n:04}");
    for n in 0..600 {
        world.put(id(n), 200);
    }
    world.database.compact().unwrap();
    world.assert_settled("before the sweep");

    let (mut during, mut reopened) = (0, 0);
    for round in 0..4 {
        // Two ids in three: more than half of what is live.
        for n in (0..600).filter(|n| n % 3 != round % 3) {
            world.put(id(n), 180 + random.below(40));
        }
        let before = steps(&world.stats(), CompactionReason::Level0);
        let mut writes = 0;
        while world.stepped.step().is_some() {
            let steps = steps(&world.stats(), CompactionReason::Level0);
            if steps > before && writes < 60 {
                writes += 10;
                for _ in 0..10 {
                    let n = random.below(600);
                    match random.below(4) {
                        0 => world.delete(&id(n)),
                        _ => world.put(id(n), 180 + random.below(40)),
                    }
                }
            }
            if steps == before + 3 && round % 2 == 1 {
                // In the middle of the sweep, which goes on then.
                world.reopen();
                reopened += 1;
                break;
            }
        }
        during += writes;
        world.stepped.run_until_idle();
        let stats = world.stats();
        assert!(stats.live_bytes <= stats.level0_bytes + stats.level1_bytes, "{stats:?}");
        world.database.compact().unwrap();
        world.assert_settled(&format!("after round {round}"));
        world.reopen();
        world.assert_settled(&format!("after round {round} and a reopen"));
    }
    assert!(during > 100 && reopened == 2, "{during} writes, {reopened} reopenings");
}

/// Nothing is counted anew when a database is opened, and nothing is forgotten: at any moment, in
/// the middle of a sweep as well.
#[test]
fn the_figures_are_the_same_after_a_reopen_at_any_moment() {
    let seed = Seed::or(5);
    let mut random = seed.random();
    let mut world = World::new(|disk| tiny_on(disk).level0_runs(2));
    let mut seen = [false; 4];
    for moment in 0..120 {
        for _ in 0..random.below(80) {
            let id = format!("{:03}", random.below(300));
            match random.below(5) {
                0 => world.delete(&id),
                _ => world.put(id, random.below(300)),
            }
        }
        for _ in 0..random.below(6) {
            world.stepped.step();
        }
        if moment % 3 != 0 {
            continue;
        }
        // Closing seals what is not sealed.
        world.database.close().unwrap();
        let before = world.stats();
        world.reopen();
        assert_eq!(figures(&world.stats()), figures(&before), "moment {moment}: {before:?}");
        assert_eq!(world.stats().horizon, before.horizon);
        seen[0] |= before.superseded_bytes > 0;
        seen[1] |= before.superseded_estimated_bytes > 0;
        // Both while a sweep is under way, and only then: it began and did not reach its end.
        seen[2] |= before.level0_segments > 0 && before.level1_segments > 0;
        seen[3] |= before.level0_segments > before.level0_runs;
    }
    assert_eq!(seen, [true; 4], "moments of each kind");
}

/// A merge of indexes passes every version that its runs have, so that what is superseded among them
/// is known and not estimated.
#[test]
fn superseded_bytes_are_exact_in_level_0_once_indexes_are_merged() {
    let seed = Seed::or(8);
    let mut random = seed.random();
    let mut world = World::new(|disk| tiny_on(disk).level0_runs(2));
    // While a large segment is in level 0, only twice as much is worth a sweep.
    world.put("large", 200_000);
    let mut written = world.live_bytes();
    for n in 0..1000 {
        let id = format!("{:03}", random.below(100));
        world.put(&id, random.below(100));
        written += world.live[&id];
        if n % 7 == 0 {
            let id = format!("{:03}", random.below(100));
            written += id.len() as u64 + 1;
            world.delete(&id);
        }
    }
    world.seal();
    while world.stats().level0_runs > 2 {
        assert!(world.stepped.step().is_some(), "{:?}", world.stats());
    }
    let stats = world.stats();
    assert_eq!((stats.level1_segments, stats.level0_runs), (0, 2), "{stats:?}");
    assert_eq!(stats.level0_bytes, written, "{stats:?}");
    assert_eq!(stats.live_bytes, world.live_bytes(), "{stats:?}");
    let dead = written - world.live_bytes();
    assert_eq!(stats.reclaimable_bytes, dead, "{stats:?}");
    // The rest: the tombstones that are the newest version of their id, and what fitted into the
    // large one's segment.
    assert!(stats.superseded_bytes > dead * 9 / 10, "{stats:?}");
    assert!(stats.superseded_estimated_bytes < 500, "{stats:?}");
}

/// Of each run up to 512 ids are looked up in older ones. Where a run has no more, that is all of
/// them, and the estimate is exact.
#[test]
fn estimates_of_small_runs_are_exact() {
    let seed = Seed::or(9);
    let mut random = seed.random();
    let mut world = World::new(|disk| manual(disk).memtable_bytes(32 << 10).segment_bytes(1 << 20));
    for round in 0..8 {
        // Each id once in a run, so that nothing is superseded within.
        let ids = 60 + random.below(449);
        for n in (0..ids).map(|n| (n * 7) % 509) {
            let id = format!("{n:04}");
            if round > 0 && random.percent(20) {
                world.delete(&id);
            } else {
                world.put(id, random.below(200));
            }
        }
        world.seal();
        let stats = world.stats();
        assert_eq!(stats.segments_sealed, round + 1);
        assert_eq!(stats.superseded_bytes, 0, "{stats:?}");
        assert_eq!(stats.live_bytes, world.live_bytes(), "{ids} ids: {stats:?}");
    }
}

/// Beyond that they are estimates. Of 2500 ids every eighth is looked up, 313 of them, half of which
/// are there: the standard deviation of their number is 8.8, and four of those are 23 % of 156.
#[test]
fn estimates_of_large_runs_are_within_a_quarter() {
    let seed = Seed::or(10);
    let mut random = seed.random();
    let mut world =
        World::new(|disk| manual(disk).memtable_bytes(256 << 10).segment_bytes(4 << 20));
    for n in 0..2500 {
        world.put(format!("{n:04}"), 100);
    }
    world.database.compact().unwrap();
    world.assert_settled("the first run");
    let one = world.live["0000"];
    let mut superseded = 0;
    let mut ids: Vec<usize> = (0..5000).collect();
    for _ in 0..2500 {
        let n = ids.swap_remove(random.below(ids.len()));
        superseded += if n < 2500 { one } else { 0 };
        world.put(format!("{n:04}"), 100);
    }
    world.seal();
    let stats = world.stats();
    let estimated = stats.superseded_estimated_bytes;
    assert!(estimated.abs_diff(superseded) * 4 < superseded, "{estimated}, {superseded}");
    assert_eq!(stats.live_bytes + estimated, stats.level0_bytes + stats.level1_bytes);
    // A sweep knows.
    world.database.compact().unwrap();
    world.assert_settled("after the sweep");
}

/// What a sweep carries forward, instead of merging it, still supersedes what it did.
#[test]
fn what_is_carried_forward_still_counts_what_it_supersedes() {
    let mut world = World::new(tiny_on);
    for n in 0..200 {
        world.put(format!("{n:03}"), 300);
    }
    world.database.compact().unwrap();
    world.assert_settled("at first");
    // A little in the upper half, and more than half of what is live in the lower one.
    for n in [150, 170, 190] {
        world.put(format!("{n:03}"), 100);
    }
    for round in 0..2 {
        for n in 0..70 {
            world.put(format!("{n:03}"), 290 + round);
        }
    }
    world.seal();
    world.stepped.run_until_idle();
    let stats = world.stats();
    assert!(steps(&stats, CompactionReason::Level0) > 0, "{stats:?}");
    assert_eq!((stats.level0_segments, stats.level0_runs), (1, 1), "{stats:?}");
    assert_eq!(stats.live_bytes, world.live_bytes(), "{stats:?}");
    world.database.compact().unwrap();
    world.assert_settled("after the next sweep");
}

/// While the history pins ten times what is live, all that is written may be little beside the segments
/// of level 1, and yet half of what is live: it is carried forward once, and not for ever.
#[test]
fn what_was_carried_forward_is_not_carried_for_ever() {
    let mut world = World::new(|disk| tiny_on(disk).history(u64::MAX));
    for round in 0..10 {
        for n in 0..200 {
            world.put(format!("{n:03}"), 300 + round);
        }
    }
    world.database.compact().unwrap();
    assert!(world.stats().pinned_bytes > 8 * world.live_bytes(), "{:?}", world.stats());
    for n in 0..200 {
        world.put(format!("{n:03}"), 180);
    }
    world.seal();
    let mut jobs = 0;
    while world.stepped.step().is_some() {
        jobs += 1;
        assert!(jobs < 1000, "compaction goes on for ever: {:?}", world.stats());
    }
    assert!(steps(&world.stats(), CompactionReason::Level0) > 0, "{:?}", world.stats());
}

/// With a snapshot, what it keeps is pinned, and not to be reclaimed; without it, it is.
#[test]
fn what_a_snapshot_keeps_is_pinned_until_it_is_released() {
    let mut world = World::new(tiny_on);
    for n in 0..100 {
        world.put(format!("{n:03}"), 200);
    }
    let pinned = world.live_bytes();
    let snapshot = world.database.snapshot().unwrap();
    for n in 0..100 {
        world.put(format!("{n:03}"), 100);
    }
    for _ in 0..2 {
        world.database.compact().unwrap();
        let stats = world.stats();
        assert_eq!((stats.pinned_bytes, stats.live_bytes), (pinned, world.live_bytes()));
        assert_eq!(stats.reclaimable_bytes, 0, "{stats:?}");
    }
    drop(snapshot);
    world.database.compact().unwrap();
    world.assert_settled("without it");
    // Of what was deleted, too.
    let snapshot = world.database.snapshot().unwrap();
    for n in 0..100 {
        world.delete(&format!("{n:03}"));
    }
    world.database.compact().unwrap();
    assert!(world.stats().pinned_bytes > world.stats().live_bytes);
    drop(snapshot);
    world.database.compact().unwrap();
    world.assert_settled("of nothing");
    assert_eq!(world.stats().segments_sealed, 0);
}

/// Every group that follows a sync begins with a mark, and every batch with its framing: neither is
/// anything that the user wrote.
#[test]
fn user_bytes_are_ids_and_documents_and_nothing_else() {
    let mut world = World::new(tiny_on);
    let before = world.stats().user_bytes;
    for n in 0..5 {
        world.put(format!("single {n}"), 10);
        world.database.sync().unwrap();
    }
    let mut batch = Batch::new();
    for n in 0..5 {
        batch.put(&world.things, n, &bson::doc! {}).unwrap();
    }
    batch.delete(&world.things, "single 0").unwrap();
    world.database.write(batch).unwrap();
    // An integer's id takes 9 bytes, an empty document 5, and of the tombstone the id counts.
    let batched = 5 * (9 + 5) + 1 + "single 0".len() as u64;
    assert_eq!(world.stats().user_bytes - before, world.live_bytes() + batched);
}
