//! What compaction writes, and what the files take, in bytes: counted, on a configuration so small
//! that level 1 is written anew many times.
//!
//! Segments are 512 KiB, those of level 1 a quarter of that, and documents 1 KiB: large enough for
//! the pages that each file has besides its records to be a small part, which [`LOG_OVERHEAD`] and
//! [`LEVEL1_OVERHEAD`] name.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::{DB, Meanwhile, Random, Seed, Work};
use engine::clock::ManualClock;
use engine::disk::faulty::Call;
use engine::disk::{Disk, MemoryDisk, OpenMode, Operation};
use engine::executor::Stepped;
use engine::{Collection, CompactionReason, Database, Durability, Options, Stats};

const SEGMENT: u64 = 512 << 10;
const LEVEL1_SEGMENT: u64 = SEGMENT / 4;
const PAGE: u64 = 4096;
/// The smallest BSON document with a field of so many bytes, and the id.
const PAD: usize = 1000;
const CONTENT: u64 = 1000 + 15 + 9;
const DOCUMENTS: usize = 4000;
const LIVE: u64 = DOCUMENTS as u64 * CONTENT;

/// Of a log segment, for each byte of content: the header's page, the last page of records, one
/// block each of sorted entries, fingerprints and the trailer (512 records need two, and three, of
/// the first two); a header of 28 bytes and padding of up to 7 a record.
const LOG_OVERHEAD: f64 = (8 * PAGE) as f64 / SEGMENT as f64 + 35.0 / CONTENT as f64;
/// Of a segment of level 1: five pages as before, 128 records; a header of 8 bytes and padding of
/// up to 7.
const LEVEL1_OVERHEAD: f64 = (5 * PAGE) as f64 / LEVEL1_SEGMENT as f64 + 15.0 / CONTENT as f64;

/// What there is whatever the size: the log, which is not sealed; the manifest and its reserve of
/// 64 KiB, twice while it is written anew; what a step has made, two segments and a last piece, before
/// what it was made of is gone.
const CONSTANT: u64 = SEGMENT + (128 << 10) + 3 * LEVEL1_SEGMENT;

struct World {
    disk: MemoryDisk,
    meanwhile: Arc<Meanwhile>,
    clock: Arc<ManualClock>,
    stepped: Arc<Stepped>,
    database: Database,
    things: Collection,
    /// The most that the files took after any step.
    peak: u64,
}

impl World {
    fn new() -> Self {
        Self::with_runs(6)
    }

    fn with_runs(level0_runs: usize) -> Self {
        let disk = MemoryDisk::new();
        // A merge that makes a segment holds no lock of the writers' then.
        let meanwhile = Meanwhile::at(Call::SetLen);
        let clock = Arc::new(ManualClock::default());
        let stepped = Arc::new(Stepped::new(Arc::clone(&clock)));
        let options = Options::default()
            .durability(Durability::BUFFERED)
            .memory_budget(2 << 20)
            .memtable_bytes(256 << 10)
            .segment_bytes(SEGMENT)
            .level0_runs(level0_runs)
            .disk(meanwhile.disk(Arc::new(disk.clone())))
            .clock(Arc::clone(&clock) as _)
            .executor(Arc::clone(&stepped) as _);
        let database = Database::open(DB, options).unwrap();
        let things = database.collection("things").unwrap();
        Self { disk, meanwhile, clock, stepped, database, things, peak: 0 }
    }

    fn put(&mut self, id: usize, version: usize) {
        put(&self.things, id, version);
    }

    /// Some background jobs after a write, as many as it takes to keep up.
    fn keep_up(&mut self) {
        self.clock.advance(Duration::from_micros(100));
        for _ in 0..4 {
            if self.stepped.step().is_none() {
                break;
            }
            self.peak = self.peak.max(self.disk_bytes());
        }
    }

    /// Goes on until a merge makes a segment, and does something in the middle of it.
    fn during_a_merge(&mut self, work: impl FnOnce() + Send + 'static) {
        let mut work: Option<Work> = Some(Box::new(work));
        while let Some(job) = self.stepped.advance(Duration::ZERO).first() {
            if *job == "compact" {
                work.take().into_iter().for_each(|work| self.meanwhile.set(work));
            }
            self.stepped.step();
            self.peak = self.peak.max(self.disk_bytes());
            work = work.or_else(|| self.meanwhile.take());
            if work.is_none() {
                return;
            }
        }
        panic!("nothing was merged");
    }

    /// Nothing is written any more, and everything that is due is done; in so many jobs.
    fn settle(&mut self) -> usize {
        let mut jobs = 0;
        for _ in 0..10 {
            self.clock.advance(Duration::from_secs(1));
            jobs += self.stepped.run_until_idle();
        }
        self.clock.advance(Duration::from_secs(1));
        let due = self.stepped.advance(Duration::from_secs(60));
        assert!(due.is_empty(), "{due:?} is due without end");
        jobs
    }

    /// What the files take on the disk.
    fn disk_bytes(&self) -> u64 {
        let names = self.disk.list(Path::new(DB)).unwrap();
        let size = |name| {
            let file = self.disk.open(&Path::new(DB).join(name), OpenMode::Read).unwrap();
            file.allocated().unwrap()
        };
        names.into_iter().map(size).sum()
    }

    fn stats(&self) -> Stats {
        self.database.stats()
    }

    fn load(&mut self) {
        for id in 0..DOCUMENTS {
            // In no order, so that level 1 is not written in order of arrival.
            self.put(id * 1663 % DOCUMENTS, 0);
            self.keep_up();
        }
        self.settle();
        let stats = self.stats();
        assert_eq!(stats.live_bytes + unsealed(&stats), LIVE, "{stats:?}");
    }

    /// Overwrites as many documents as there are, so often. What was written for each byte.
    fn overwrite(&mut self, turnovers: usize, mut id: impl FnMut() -> usize) -> f64 {
        let before = self.stats();
        self.peak = 0;
        for n in 0..turnovers * DOCUMENTS {
            self.put(id(), n);
            self.keep_up();
        }
        let after = self.stats();
        let written = after.written_bytes - before.written_bytes;
        let user = after.user_bytes - before.user_bytes;
        assert!(user >= (turnovers as u64) * LIVE, "{user}");
        written as f64 / user as f64
    }

    fn assert_space(&mut self) {
        let constant = CONSTANT as f64 / LIVE as f64;
        let of_live = |bytes: u64| bytes as f64 / LIVE as f64;
        let (peak, limit) =
            (of_live(self.peak), 1.7 + LEVEL1_OVERHEAD + LOG_OVERHEAD / 2.0 + constant);
        println!("at most {peak:.2} times what is live, {limit:.2} allowed");
        assert!(peak <= limit, "{peak} of {limit}");
        let jobs = self.settle();
        // A tenth is in level 0.
        let (settled, limit) =
            (of_live(self.disk_bytes()), 1.15 + LEVEL1_OVERHEAD + LOG_OVERHEAD / 10.0 + constant);
        println!("settled {settled:.2} times after {jobs} jobs, {limit:.2} allowed");
        assert!(settled <= limit, "{settled} of {limit}");
    }
}

fn put(things: &Collection, id: usize, version: usize) {
    let pad = format!("{version:0PAD$}");
    let id = i64::try_from(id).unwrap();
    things.put(id, &engine::bson::doc! { "pad": pad }).unwrap();
}

/// Ids and documents that are not sealed, as far as records are all alike.
fn unsealed(stats: &Stats) -> u64 {
    stats.memtable_records * CONTENT
}

fn sweeps(stats: &Stats) -> u64 {
    let sweeps = stats.compactions.iter().filter(|did| did.reason == CompactionReason::Level0);
    sweeps.map(|did| did.count).sum()
}

/// A log, and level 1 twice, since a sweep begins when level 0 has half of what is live; half a byte
/// for what comes during a sweep; and what the pages of small files add.
const WRITTEN_MAX: f64 = 3.5 + LOG_OVERHEAD + 2.0 * LEVEL1_OVERHEAD;

#[test]
fn uniform_overwrites_stay_within_their_bounds() {
    let seed = Seed::or(61);
    let mut random = seed.random();
    let mut world = World::new();
    world.load();
    let written = world.overwrite(5, || random.below(DOCUMENTS));
    println!("{written:.2} bytes written for one, {WRITTEN_MAX:.2} allowed");
    assert!(written <= WRITTEN_MAX, "{written}");
    assert!(written > 2.0, "{written}: nothing was merged");
    assert!(sweeps(&world.stats()) >= 5, "{:?}", world.stats());
    world.assert_space();
}

#[test]
fn skewed_overwrites_stay_within_their_bounds() {
    let seed = Seed::or(62);
    let mut random = seed.random();
    let mut world = World::new();
    world.load();
    let skewed = |random: &mut Random| {
        // Four in five go to a fifth of the documents, which lie all over the ids.
        let hot = random.below(DOCUMENTS / 5) * 5;
        if random.percent(80) { hot } else { random.below(DOCUMENTS) }
    };
    let written = world.overwrite(5, || skewed(&mut random));
    println!("{written:.2} bytes written for one, {WRITTEN_MAX:.2} allowed");
    assert!(written <= WRITTEN_MAX, "{written}");
    assert!(sweeps(&world.stats()) >= 3, "{:?}", world.stats());
    world.assert_space();
}

/// Four sweeps for twice what is live, or five, by where the writes ended: what was left of them,
/// counted twice, asked an idle store for one more, and each cut left an unsealed segment to the
/// next. The last of these windows would have been enough for that.
#[test]
fn overwrites_need_no_sweep_too_many_wherever_they_end() {
    for percent in [200, 205, 212, 230] {
        let seed = Seed::or(65);
        let mut random = seed.random();
        let mut world = World::new();
        world.load();
        let before = world.stats();
        for n in 0..percent * DOCUMENTS / 100 {
            world.put(random.below(DOCUMENTS), n);
            world.keep_up();
        }
        world.settle();
        let after = world.stats();
        let written = (after.written_bytes - before.written_bytes) as f64
            / (after.user_bytes - before.user_bytes) as f64;
        let all = |stats: &Stats| {
            let whole = |reason| reason != CompactionReason::Indexes;
            let sweeps = stats.compactions.iter().filter(|did| whole(did.reason));
            sweeps.map(|did| did.count).sum::<u64>()
        };
        let sweeps = all(&after) - all(&before);
        println!("{percent} %: {written:.2} bytes for one, {sweeps} sweeps");
        assert!(written <= WRITTEN_MAX, "{percent} %: {written}, {sweeps} sweeps");
    }
}

/// The pace of writers was set when a job began, and a merge of indexes that began shortly before a
/// sweep was due took seconds of writes that nothing slowed down: files took twice what was live.
#[test]
fn what_comes_in_during_a_long_merge_is_slowed_down() {
    let seed = Seed::or(63);
    let mut random = seed.random();
    let mut world = World::with_runs(2);
    world.load();
    let merges = |stats: &Stats| {
        let all = stats.compactions.iter().filter(|did| did.reason == CompactionReason::Indexes);
        all.map(|did| did.count).sum::<u64>()
    };
    let (mut n, before) = (0, world.stats());
    // The third run of level 0 is sealed; with its indexes merged there would be one.
    while world.stats().rolls < before.rolls + 3 {
        n += 1;
        world.put(random.below(DOCUMENTS), n);
        if world.stats().rolls < before.rolls + 3 {
            world.keep_up();
        }
    }
    assert_eq!(sweeps(&world.stats()), sweeps(&before), "a sweep is not due yet");
    world.peak = 0;
    let (things, clock, stepped) =
        (world.things.clone(), Arc::clone(&world.clock), Arc::clone(&world.stepped));
    world.during_a_merge(move || {
        let end = clock.peek() + Duration::from_millis(500);
        let mut written = 0;
        // A hundred megabytes a second, if nothing slows it down.
        while clock.peek() < end && written < 3 * DOCUMENTS {
            put(&things, random.below(DOCUMENTS), written);
            clock.advance(Duration::from_micros(10));
            stepped.run_until_idle();
            written += 1;
        }
        println!("{written} documents came in meanwhile");
        assert!(written > DOCUMENTS / 10, "{written}: writers were stopped");
    });
    assert_eq!(merges(&world.stats()), merges(&before) + 1, "it was a merge of indexes");
    world.assert_space();
}

/// What a load adds is live, and sealing tells how much of it, in the middle of a job as well.
#[test]
fn new_ids_are_not_slowed_down_during_a_long_merge() {
    // Runs are not to be merged: the clock stands still in merges, and their speed would count.
    let mut world = World::with_runs(64);
    world.load();
    let (mut next, before) = (DOCUMENTS, sweeps(&world.stats()));
    while sweeps(&world.stats()) == before {
        world.put(next, 0);
        world.keep_up();
        next += 1;
    }
    let stalls = world.stats().stalls;
    let (things, clock, stepped) =
        (world.things.clone(), Arc::clone(&world.clock), Arc::clone(&world.stepped));
    world.during_a_merge(move || {
        for id in next..next + 2 * DOCUMENTS {
            put(&things, id, 0);
            clock.advance(Duration::from_micros(10));
            stepped.run_until_idle();
        }
    });
    assert_eq!(world.stats().stalls, stalls, "{:?}", world.stats());
    world.settle();
    let stats = world.stats();
    let total = (next + 2 * DOCUMENTS) as u64;
    assert_eq!(stats.live_bytes + unsealed(&stats), total * CONTENT, "{stats:?}");
}

/// What a snapshot keeps was counted as debt, which no sweep pays: writers went on at the slowest
/// pace for as long as the snapshot lived.
#[test]
fn what_a_snapshot_keeps_slows_nobody_down() {
    let seed = Seed::or(64);
    let mut random = seed.random();
    let mut world = World::new();
    world.load();
    let snapshot = world.database.snapshot().unwrap();
    world.overwrite(2, || random.below(DOCUMENTS));
    world.settle();
    let stats = world.stats();
    assert!(stats.pinned_bytes * 10 > LIVE * 7, "{stats:?}");
    for n in 0..DOCUMENTS / 4 {
        world.put(n, n);
        world.keep_up();
    }
    assert_eq!(world.stats().stalls, stats.stalls, "a quarter is less than a sweep takes");
    drop(snapshot);
}

/// Where hardly anything is live, a share of it is soon exceeded by what is not even sealed: to wait
/// would not make it less.
#[test]
fn a_small_store_is_not_slowed_down_before_there_is_something_to_merge() {
    const FEW: usize = 50;
    let mut world = World::new();
    for id in 0..FEW {
        world.put(id, 0);
    }
    world.database.compact().unwrap();
    for n in 0..8 * FEW {
        world.put(n % FEW, n);
        world.keep_up();
        if n == 2 * FEW {
            // A small segment, which tells nothing of the next one.
            world.settle();
        }
    }
    let stats = world.stats();
    assert!(stats.level1_bytes > 0 && stats.rolls <= 2, "{stats:?}");
    assert_eq!(stats.stalls, 0, "{stats:?}");
}

/// Ids that only rise are written to the log, and once to level 1.
#[test]
fn rising_ids_are_merged_once() {
    let mut world = World::new();
    for id in 0..2 * DOCUMENTS {
        world.put(id, 0);
        world.keep_up();
    }
    world.settle();
    let stats = world.stats();
    let written = stats.write_amplification();
    let limit = 2.0 + LOG_OVERHEAD + LEVEL1_OVERHEAD + 0.1;
    println!("{written:.2} bytes written for one, {limit:.2} allowed");
    assert!(written <= limit, "{written}: {stats:?}");
    // Merges of indexes read records for their ids, and write none.
    let sweeps = stats.compactions.iter().filter(|did| did.reason != CompactionReason::Indexes);
    let merged: u64 = sweeps.map(|did| did.read_bytes).sum();
    assert!(merged <= stats.user_bytes * 11 / 10, "{merged} bytes read: {stats:?}");
    assert!(stats.level1_bytes * 10 > 2 * LIVE * 9, "{stats:?}");
}

/// Deletes of everything, merged on demand, or by themselves once nothing is written.
#[test]
fn c5_tombstones_are_reclaimed() {
    for on_demand in [true, false] {
        let mut world = World::new();
        world.load();
        for id in 0..DOCUMENTS {
            world.things.delete(i64::try_from(id).unwrap()).unwrap();
            world.keep_up();
        }
        if on_demand {
            world.database.compact().unwrap();
        }
        world.settle();
        let stats = world.stats();
        assert_eq!(world.things.scan_ids(..).unwrap().count(), 0);
        assert_eq!((stats.level1_bytes, stats.live_bytes), (0, 0), "{on_demand}: {stats:?}");
        // Tombstones of less than is worth a sweep may be left where nobody asked for one.
        let left = if on_demand { 0 } else { 64 << 10 };
        assert!(stats.level0_bytes + unsealed(&stats) / 100 <= left, "{on_demand}: {stats:?}");
        // The log, not yet written, the manifest, and those tombstones.
        let disk = world.disk_bytes();
        assert!(disk <= (256 << 10) + left, "{on_demand}: {disk} bytes: {stats:?}");
        world.database.close().unwrap();
    }
}

/// What tombstones delete is worth a sweep, however small they are themselves and although others
/// go on writing.
#[test]
fn what_was_deleted_goes_while_others_write() {
    let mut world = World::new();
    world.load();
    for id in 0..DOCUMENTS {
        world.things.delete(i64::try_from(id).unwrap()).unwrap();
        world.keep_up();
    }
    const OTHERS: usize = 1000;
    for id in 0..OTHERS {
        world.put(DOCUMENTS + id, 0);
        world.keep_up();
    }
    let stats = world.stats();
    let garbage = stats.compactions.iter().find(|did| did.reason == CompactionReason::Garbage);
    assert!(garbage.is_some_and(|did| did.count > 0), "{stats:?}");
    assert!(stats.level1_bytes <= OTHERS as u64 * CONTENT, "{stats:?}");
    assert!(world.disk_bytes() <= 3 * OTHERS as u64 * CONTENT, "{stats:?}");
}

/// The counter of the bounds above is what the disk is asked to write, up to a part of a page for
/// each file: the headers of log segments are not counted, and of what compaction makes the length
/// is, with the hole between the last record and the index.
#[test]
fn written_bytes_are_those_that_the_disk_was_given() {
    let mut world = World::new();
    let before = world.stats().written_bytes;
    world.disk.start_trace();
    for n in 0..2 * DOCUMENTS {
        world.put(n * 1663 % 1000, n);
        world.keep_up();
    }
    world.settle();
    let given = world.disk.trace().into_iter().map(|operation| match operation {
        Operation::Write { bytes, .. } => bytes.len() as u64,
        _ => 0,
    });
    let (given, stats) = (given.sum::<u64>(), world.stats());
    let counted = stats.written_bytes - before;
    let steps: u64 = stats.compactions.iter().map(|did| did.steps).sum();
    // A step makes two segments and a last piece.
    let files = stats.rolls + 3 * steps;
    assert!(given.abs_diff(counted) <= files * PAGE, "{given} given, {counted} counted");
    assert!(given.abs_diff(counted) <= given / 50, "{given} given, {counted} counted");
}

/// The same documents over and over, then none.
#[test]
fn c16_overwriting_the_same_data_stays_within_bounds_and_comes_back_when_idle() {
    let mut world = World::new();
    let mut n = 0;
    world.load();
    let written = world.overwrite(5, || {
        n += 1;
        n % DOCUMENTS
    });
    println!("{written:.2} bytes written for one, {WRITTEN_MAX:.2} allowed");
    assert!(written <= WRITTEN_MAX, "{written}");
    world.assert_space();
    let stats = world.stats();
    let dead = stats.level0_bytes.max(stats.reclaimable_bytes);
    assert!(dead <= stats.live_bytes / 10, "{stats:?}");
}
