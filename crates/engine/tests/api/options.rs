//! Every option at and beyond its limits.

use std::sync::Arc;
use std::time::Duration;

use engine::clock::ManualClock;
use engine::disk::MemoryDisk;
use engine::executor::Stepped;
use engine::{Compaction, Database, Durability, Options, Reads, Recovery};

use super::Calls;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

pub(crate) fn table(calls: &Calls) {
    limits(calls);
    combinations(calls);
    compaction(calls);
    largest_memtable();
}

/// Its memory is taken as it fills, so opening takes next to none; and all that was asked for can
/// be used.
fn largest_memtable() {
    let options = Options::default().disk(Arc::new(MemoryDisk::new()));
    let options = options.memtable_bytes(512 * MIB).memory_budget(GIB);
    let database = Database::open("/db", options).unwrap();
    let bytes = database.stats().memtable_bytes;
    assert!((400 * MIB..=512 * MIB).contains(&bytes), "{bytes}");
}

/// Options are checked before the folder is looked at: those that pass then meet a folder without a
/// database, so that the largest allowed ones take no memory here.
fn limits(calls: &Calls) {
    let base = || {
        let options = Options::default().disk(Arc::new(MemoryDisk::new()));
        call!(calls, Options::create_if_missing(options, false))
    };
    let memtable = |bytes| {
        let options = call!(calls, Options::memtable_bytes(base(), bytes));
        call!(calls, Options::memory_budget(options, u64::MAX))
    };
    let segment = |bytes| call!(calls, Options::segment_bytes(base(), bytes));
    let budget = |memtable, bytes| {
        let options = Options::memtable_bytes(base(), memtable);
        call!(calls, Options::memory_budget(options, bytes))
    };
    let flush = |flush_interval| {
        call!(calls, Options::durability(base(), Durability::Buffered { flush_interval }))
    };
    let runs = |runs| call!(calls, Options::level0_runs(base(), runs));
    let history = |sequences| call!(calls, Options::history(base(), sequences));
    let hour = Duration::from_secs(3600);
    let allowed = [
        base(),
        memtable(4 * KIB),
        memtable(512 * MIB),
        segment(16 * KIB),
        segment(4 * GIB),
        budget(4 * KIB, 8 * KIB),
        budget(512 * MIB, GIB),
        budget(4 * KIB, u64::MAX),
        flush(Duration::from_nanos(1)),
        flush(hour),
        Options::durability(base(), Durability::BUFFERED),
        Options::durability(base(), Durability::Durable),
        runs(2),
        runs(64),
        history(0),
        history(u64::MAX),
    ];
    for (row, options) in allowed.into_iter().enumerate() {
        refused!(Database::open("/db", options), NoDatabase, row);
    }
    let refused = [
        (memtable(0), "memtable_bytes"),
        (memtable(4 * KIB - 1), "memtable_bytes"),
        (memtable(512 * MIB + 1), "memtable_bytes"),
        (memtable(u64::MAX), "memtable_bytes"),
        (segment(0), "segment_bytes"),
        (segment(16 * KIB - 1), "segment_bytes"),
        (segment(4 * GIB + 1), "segment_bytes"),
        (segment(u64::MAX), "segment_bytes"),
        (budget(4 * KIB, 8 * KIB - 1), "memory_budget"),
        (budget(512 * MIB, GIB - 1), "memory_budget"),
        (Options::memory_budget(base(), 0), "memory_budget"),
        (flush(Duration::ZERO), "flush_interval"),
        (flush(hour + Duration::from_nanos(1)), "flush_interval"),
        (flush(Duration::MAX), "flush_interval"),
        (runs(0), "level0_runs"),
        (runs(1), "level0_runs"),
        (runs(65), "level0_runs"),
        (runs(usize::MAX), "level0_runs"),
    ];
    for (options, named) in refused {
        let outcome = Database::open("/db", options);
        let message = outcome.as_ref().map(drop).unwrap_err().to_string();
        assert!(message.contains(named), "{message}");
        refused!(outcome, InvalidOptions, named);
    }
}

/// What compaction may do, with the shortest and the longest history.
fn compaction(calls: &Calls) {
    for mode in [Compaction::Automatic, Compaction::Manual] {
        for history in [0, u64::MAX] {
            let clock = Arc::new(ManualClock::default());
            let stepped = Arc::new(Stepped::new(Arc::clone(&clock)));
            let options = Options::default().memtable_bytes(4 * KIB).memory_budget(8 * KIB);
            let options = options.segment_bytes(16 * KIB).disk(Arc::new(MemoryDisk::new()));
            let options = options.clock(clock).executor(Arc::clone(&stepped) as _);
            let options = call!(calls, Options::compaction(options, mode));
            let options = call!(calls, Options::history(options, history));
            let options = call!(calls, Options::level0_runs(options, 2));
            let database = Database::open("/db", options).unwrap();
            let things = database.collection("things").unwrap();
            for n in 0..1000 {
                things.put(n % 100, &serde_json::json!({ "n": n })).unwrap();
            }
            stepped.run_until_idle();
            let stats = database.stats();
            let is_automatic = mode == Compaction::Automatic;
            assert_eq!(stats.compactions.is_empty(), !is_automatic, "{mode:?}: {stats:?}");
            assert_eq!(stats.level0_runs <= 2, is_automatic, "{mode:?}: {stats:?}");
            database.compact().unwrap();
            let stats = database.stats();
            assert_eq!((stats.level0_runs, stats.level0_bytes), (0, 0), "{mode:?}: {stats:?}");
            // The creation of the collection is the first record.
            assert_eq!(stats.visible_sequence, 1001);
            let horizon = if history == 0 { 1001 } else { 0 };
            assert_eq!(stats.horizon, horizon, "history {history}");
            assert_eq!(stats.pinned_bytes > 0, history > 0, "history {history}: {stats:?}");
        }
    }
}

/// Settings without a range, each in a database that works; and the smallest of those with one.
fn combinations(calls: &Calls) {
    let clock = Arc::new(ManualClock::default());
    for reads in [Reads::Automatic, Reads::Mapped, Reads::Pread] {
        for recovery in [Recovery::Strict, Recovery::CutAtDamage] {
            for seed in [0, u64::MAX] {
                let executor = Arc::new(Stepped::new(Arc::clone(&clock)));
                let options = Options::default().memtable_bytes(4 * KIB).memory_budget(8 * KIB);
                let options = options.segment_bytes(16 * KIB);
                let options = call!(calls, Options::reads(options, reads));
                let options = call!(calls, Options::recovery(options, recovery));
                let options = call!(calls, Options::seed(options, seed));
                let options = call!(calls, Options::clock(options, Arc::clone(&clock) as _));
                let options = call!(calls, Options::executor(options, executor));
                let options = call!(calls, Options::disk(options, Arc::new(MemoryDisk::new())));
                let options = call!(calls, Options::create_if_missing(options, true));
                let database = Database::open("/db", options).unwrap();
                let things = database.collection("things").unwrap();
                for id in 0..100 {
                    things.put(id, &serde_json::json!({ "n": id })).unwrap();
                }
                assert_eq!(things.scan(..).unwrap().count(), 100);
                assert_eq!(database.stats().reads_mapped, reads != Reads::Pread);
                database.close().unwrap();
            }
        }
    }
}
