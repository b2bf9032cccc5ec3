//! Fault cases of compaction's amount: it ends, it begins though nobody pauses, it pays its debts,
//! and what it has not merged yet costs reads and space that are known.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod faults;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::disk::faulty::Call;
use engine::disk::{Disk, MemoryDisk};
use engine::{Collection, CompactionReason, Database, Durability, Options, Reads};
use faults::hook::{Hook, HookDisk};
use faults::life::{Life, both_ways};
use faults::sorted::{FileKind, files_of, find_in};
use faults::*;

/// Counts calls, and remembers the last one.
#[derive(Debug, Default)]
struct Counts {
    all: AtomicU64,
    segment_reads: AtomicU64,
    last: Mutex<String>,
}

impl Hook for Counts {
    fn begin(&self, call: Call, path: &Path) {
        self.all.fetch_add(1, Ordering::Relaxed);
        if call == Call::Read && path.extension().is_some_and(|extension| extension == "seg") {
            self.segment_reads.fetch_add(1, Ordering::Relaxed);
        }
        *self.last.lock().unwrap() = format!("{call:?} {}", path.display());
    }
}

/// A disk in memory whose calls are counted.
struct Counted {
    below: MemoryDisk,
    counts: Arc<Counts>,
    disk: Arc<dyn Disk>,
}

impl Counted {
    fn new() -> Self {
        let below = MemoryDisk::new();
        let counts = Arc::new(Counts::default());
        let disk = Arc::new(HookDisk::new(shared(&below), &counts));
        Self { below, counts, disk }
    }

    fn calls(&self) -> u64 {
        self.counts.all.load(Ordering::Relaxed)
    }

    fn segment_reads(&self) -> u64 {
        self.counts.segment_reads.load(Ordering::Relaxed)
    }
}

/// Lets a minute pass. Each job may make a few others, and then it is over.
fn pass_a_minute(life: &Life, what: &str) {
    for _ in 0..240 {
        life.db.clock.advance(Duration::from_millis(250));
        let mut jobs = 0;
        while let Some(job) = life.db.executor.step() {
            jobs += 1;
            assert!(jobs < 1000, "{what}: {job} follows itself: {:?}", life.stats());
        }
    }
}

/// Some megabyte in level 1.
fn fill(life: &mut Life) {
    for id in 0..300 {
        life.collection.put(id, &large_document(id)).unwrap();
        life.rows.insert(id, id);
        life.ids.insert(id);
        if id % 30 == 0 {
            life.step();
        }
    }
    life.compact();
}

/// What leads to a state.
type Reach = fn(&mut Life, &MemoryDisk);

/// Every state that compaction may rest in, though not all is merged or free.
const STATES: &[(&str, Reach)] = &[
    ("empty", |_, _| {}),
    ("one row", |life, _| life.put(1, 1)),
    ("level 0 below a tenth", |life, _| {
        fill(life);
        for id in 0..200 {
            life.put(id, -id);
        }
    }),
    ("dropped collections, one of them empty", |life, _| {
        let between = ["b", "empty", "e"].map(|name| life.db.database.collection(name).unwrap());
        for id in 0..100 {
            put(&between[0], id, id).unwrap();
            put(&between[2], id, id).unwrap();
        }
        fill(life);
        assert!(life.db.database.drop_collection("b").unwrap());
        assert!(life.db.database.drop_collection("empty").unwrap());
        life.roll();
    }),
    ("everything deleted", |life, _| {
        fill(life);
        for id in 0..300 {
            life.delete(id);
        }
    }),
    ("damaged documents in level 1", |life, below| {
        fill(life);
        for file in files_of(below, FileKind::Sorted).iter().step_by(7) {
            flip(below, file, LOG_START + 2000, 3);
        }
        for id in 0..300 {
            life.put(id, -id);
        }
        life.roll();
    }),
    ("damaged ids in level 0", |life, below| {
        fill(life);
        for round in 0..8 {
            for id in 0..60 {
                life.put(id, id + round);
            }
            life.delete(30);
            life.put(100 + round, 1);
            life.roll();
            let id = u8::try_from(100 + round).unwrap();
            let newest = segments(below).into_iter().rev();
            let found = newest.into_iter().find_map(|p| Some((find_in(below, &p, id)?, p)));
            let (place, path) = found.unwrap();
            flip(below, &path, place.id + 8, 7);
        }
        for id in 100..108 {
            life.delete(id);
        }
    }),
];

#[test]
fn c19_once_nothing_is_written_compaction_ends_in_every_state() {
    for base in [DURABLE, BUFFERED] {
        for (name, state) in STATES {
            for (variant, setup) in [
                ("automatic", base.tiny()),
                ("manual", base.tiny().manual()),
                ("with history", Setup { history: 500, ..base.tiny() }),
                ("with a snapshot", base.tiny()),
                ("reopened", base.tiny()),
            ] {
                let what = format!("{:?} {name}, {variant}", base.durability);
                let stage = Counted::new();
                let mut life = Life::new(setup, &stage.disk);
                life.put(1, 1);
                life.put(2, 2);
                let snapshot =
                    (variant == "with a snapshot").then(|| life.db.database.snapshot().unwrap());
                state(&mut life, &stage.below);
                if variant == "reopened" {
                    life.db.database.close().unwrap();
                    life = life.again(setup, &stage.disk).unwrap();
                }
                pass_a_minute(&life, &what);
                let before = stage.calls();
                pass_a_minute(&life, &what);
                let last = stage.counts.last.lock().unwrap().clone();
                assert_eq!(stage.calls() - before, 0, "{what}: {last}\n{:?}", life.stats());
                assert_eq!(life.stats().compaction_failures, 0, "{what}");
                // What only the snapshot saw goes, and that ends too.
                if snapshot.is_some() {
                    drop(snapshot);
                    pass_a_minute(&life, &what);
                    let before = stage.calls();
                    pass_a_minute(&life, &what);
                    assert_eq!(stage.calls() - before, 0, "{what}, released: {:?}", life.stats());
                }
            }
        }
    }
}

#[test]
fn c21_writers_that_never_pause_do_not_keep_compaction_from_beginning_and_ending() {
    const WRITERS: i64 = 2;
    for durability in [Durability::Durable, Durability::BUFFERED] {
        let disk = MemoryDisk::new();
        let options = Options::default()
            .memory_budget(1 << 20)
            .memtable_bytes(4 << 10)
            .segment_bytes(16 << 10)
            .durability(durability)
            .disk(shared(&disk));
        let database = Database::open(DIR, options).unwrap();
        let collection = database.collection("c").unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        let (mut shrunk, mut largest) = (0, 0);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (collection, done): (&Collection, _) = (&collection, &done);
                    scope.spawn(move || {
                        let mut written = 0;
                        while !done.load(Ordering::Relaxed) {
                            put(collection, writer * 1000 + written % 500, written).unwrap();
                            written += 1;
                            // Each of them would be in level 0 if nothing were ever merged.
                            assert!(written < 1_000_000, "compaction does not get its turn");
                        }
                        written
                    })
                })
                .collect();
            let mut before = 0;
            loop {
                let stats = database.stats();
                if stats.level0_bytes < before / 2 {
                    shrunk += 1;
                }
                before = stats.level0_bytes;
                largest = largest.max(stats.level0_runs);
                let began = |reason| {
                    let of = stats.compactions.iter().find(|entry| entry.reason == reason);
                    of.map_or(0, |entry| entry.count)
                };
                if began(CompactionReason::Level0) > 20 && shrunk > 5 {
                    break;
                }
                if writers.iter().any(|writer| writer.is_finished()) {
                    break;
                }
                std::thread::yield_now();
            }
            done.store(true, Ordering::Relaxed);
            let written: i64 = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
            println!("{written} writes, shrunk {shrunk} times, {largest} runs at most");
        });
        assert!(shrunk > 5, "{:?}", database.stats());
        assert_eq!(collection.scan(..).unwrap().filter(Result::is_ok).count(), 1000);
        database.close().unwrap();
    }
}

#[test]
fn e7_debt_drains_once_the_writers_that_it_slowed_down_stop() {
    for setup in [DURABLE.tiny(), BUFFERED.tiny()] {
        let below = MemoryDisk::new();
        let mut life = Life::new(setup, &shared(&below));
        let mut id = 0;
        // A job now and then, which is too few: writers pay.
        while life.stats().stalls < 200 {
            life.put(id % 3000, id);
            id += 1;
            if id % 100 == 0 {
                life.db.executor.step();
            }
            assert!(id < 200_000, "writers are never slowed down: {:?}", life.stats());
        }
        let before = life.stats();
        assert!(before.level0_runs > 2, "{before:?}");
        life.idle();
        let after = life.stats();
        let due = (after.live_bytes / 10).max(64 << 10);
        assert!(after.level0_bytes + after.reclaimable_bytes <= due, "{after:?}");
        assert!(after.level0_runs <= 2, "{after:?}");
        life.check("drained");
        for id in 0..30 {
            life.put(id, -id);
        }
        assert_eq!(life.stats().stalls, after.stalls, "nobody pays any more");
    }
}

/// Reads of records, index blocks included, that the first row of a scan costs.
fn cost_of_a_seek(stage: &Counted, collection: &Collection, expected: Option<i64>) -> u64 {
    let seek = || {
        let first = collection.scan(..).unwrap().next().map(|row| row.unwrap().0);
        assert_eq!(first, expected.map(engine::Id::Integer));
    };
    // What is read once and kept.
    seek();
    let before = stage.segment_reads();
    seek();
    stage.segment_reads() - before
}

#[test]
fn f1_a_seek_over_many_deletes_costs_the_unmerged_ones_and_then_next_to_nothing() {
    const IDS: i64 = 20_000;
    let setup =
        Setup { reads: Reads::Pread, segment_bytes: 1 << 20, level0_runs: 64, ..BUFFERED.manual() };
    let stage = Counted::new();
    let life = Life::new(setup, &stage.disk);
    let collection = &life.collection;
    put(collection, IDS, 0).unwrap();
    let fill = |write: &dyn Fn(i64)| {
        for id in 0..IDS {
            write(id);
            if id % 500 == 0 {
                life.step();
            }
        }
    };
    let alone = cost_of_a_seek(&stage, collection, Some(IDS));
    fill(&|id| put(collection, id, id).unwrap());
    fill(&|id| collection.delete(id).unwrap());
    life.db.database.close().unwrap();
    // The last record of the log may be read besides.
    let life = life.again(setup, &stage.disk).unwrap();
    assert_eq!(life.stats().sealed_records, u64::try_from(2 * IDS).unwrap() + 1);
    let unmerged = cost_of_a_seek(&stage, &life.collection, Some(IDS));
    // A tombstone and what it deletes are stepped over, each with one read, and a block of the index
    // is read for some 300 of them, two for each level of a run.
    let tombstones = u64::try_from(IDS).unwrap();
    let bound = 2 * tombstones + 2 * tombstones / 100;
    assert!(unmerged <= bound, "{unmerged} reads over {tombstones} tombstones");
    assert!(unmerged > tombstones, "{unmerged} reads: nothing was stepped over");
    life.db.database.close().unwrap();
    // The indexes are merged, and nothing else is.
    let merging = Setup { level0_runs: 2, compaction: engine::Compaction::Automatic, ..setup };
    let life = life.again(merging, &stage.disk).unwrap();
    while life.count(CompactionReason::Indexes) == 0 {
        life.db.executor.step().expect("a merge is due");
    }
    let stats = life.stats();
    assert_eq!((stats.level0_runs, stats.level1_segments), (1, 0), "{stats:?}");
    let merged = cost_of_a_seek(&stage, &life.collection, Some(IDS));
    let empty = {
        let stage = Counted::new();
        let life = Life::new(setup, &stage.disk);
        put(&life.collection, IDS, 0).unwrap();
        life.db.database.close().unwrap();
        let life = life.again(setup, &stage.disk).unwrap();
        cost_of_a_seek(&stage, &life.collection, Some(IDS))
    };
    assert!(empty >= alone && empty > 0, "{empty}, {alone}");
    assert!(merged <= 5 * empty, "{merged} reads, {empty} in a database with this one row");
}

#[test]
fn f8_what_a_snapshot_pins_is_reported_and_freed_after_it() {
    for base in [DURABLE.tiny(), BUFFERED.tiny()] {
        let below = MemoryDisk::new();
        let mut life = Life::new(base, &shared(&below));
        let rows = |life: &mut Life, value: i64| {
            for id in 0..500 {
                life.put(id, value + id);
            }
        };
        rows(&mut life, 0);
        life.compact();
        let alone = life.stats();
        assert_eq!(alone.pinned_bytes, 0);
        let snapshot = life.db.database.snapshot().unwrap();
        let then = life.rows.clone();
        for round in 1..4 {
            rows(&mut life, 1000 * round);
            life.compact();
        }
        let held = life.stats();
        // All that was written since and superseded is above the horizon, and kept as well.
        assert_eq!(held.pinned_bytes, 3 * alone.live_bytes, "{held:?}");
        assert_eq!(held.live_bytes, alone.live_bytes);
        assert!(both_ways(|| snapshot.scan(&life.collection, ..).unwrap()) == then);
        drop(snapshot);
        // Nobody asks for it: what is pinned is more than a tenth of what is live.
        life.idle();
        let after = life.stats();
        assert_eq!((after.pinned_bytes, after.reclaimable_bytes), (0, 0), "{after:?}");
        assert_eq!(after.level1_bytes, alone.live_bytes);
        life.check("released");
    }
}
