//! What the engine's own structures take, counted by the allocator: within the memory budget also
//! where a segment is sealed in the middle of a merge.
//!
//! Memtables are mapped, not allocated: the budget less two of them is what the allocator may hand
//! out.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use common::Meanwhile;
use engine::clock::ManualClock;
use engine::disk::RealDisk;
use engine::disk::faulty::Call;
use engine::executor::Stepped;
use engine::{Batch, Collection, Database, Options};

const MEMTABLE: u64 = 4 << 20;
const BUDGET: u64 = 12 << 20;
/// Records that a memtable holds.
const RECORDS: u64 = MEMTABLE / 64;
const BATCH: u64 = 500;
/// A batch and what is made of it, tables of segments, samples of ids, names.
const OTHERS: u64 = 384 << 10;

/// Bytes that are allocated, and the most that were.
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Held by each test: the allocator counts for all.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(unsafe_code, reason = "an allocator is unsafe by its interface")]
// SAFETY: every call goes to the system's allocator as it came; the counts beside it touch no memory
// that was handed out. (`realloc` is by default an `alloc`, a copy and a `dealloc`.)
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let bytes = ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(bytes, Ordering::Relaxed);
        // SAFETY: the caller's promises are the ones that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(block, layout) };
    }
}

/// The next batch of small documents, in no order by id.
fn write(database: &Database, things: &Collection, next: &mut i64) {
    let mut batch = Batch::new();
    for _ in 0..BATCH {
        let id = next.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64.cast_signed());
        batch.put(things, id, &engine::bson::doc! { "n": *next }).unwrap();
        *next += 1;
    }
    database.write(batch).unwrap();
}

/// A seal held 32 bytes a record, which no budget knew of, and a merge a vector of hashes that
/// doubled as it grew: together 5 MiB where 4 were left.
#[test]
fn a_seal_during_a_merge_stays_within_the_budget() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    // The second such call of a merge is at the end of a segment's index: it holds most then.
    let meanwhile = Meanwhile::at(Call::SetLen);
    let clock = Arc::new(ManualClock::default());
    let stepped = Arc::new(Stepped::new(Arc::clone(&clock)));
    let options = Options::default()
        .memory_budget(BUDGET)
        .memtable_bytes(MEMTABLE)
        .disk(meanwhile.disk(Arc::new(RealDisk::new())))
        .clock(Arc::clone(&clock) as _)
        .executor(Arc::clone(&stepped) as _);
    let before = ALLOCATED.load(Ordering::Relaxed);
    let database = Database::open(folder.path(), options).unwrap();
    let things = database.collection("things").unwrap();
    let mut next = 0;
    // Two runs, of which a sweep is to be made, and half a memtable.
    while next < i64::try_from(5 * RECORDS / 2).unwrap() {
        write(&database, &things, &mut next);
        while stepped.advance(Duration::ZERO).first().is_some_and(|job| *job != "compact") {
            stepped.step();
        }
    }
    // The sweep begins, with what is not sealed.
    while database.stats().compactions.iter().all(|did| did.count == 0) {
        stepped.step().unwrap();
    }
    while stepped.advance(Duration::ZERO).first().is_some_and(|job| *job != "compact") {
        stepped.step().unwrap();
    }
    let rolls = database.stats().rolls;
    let (sealed, all) = (database.stats().seals, database.clone());
    let writes = {
        let (things, stepped) = (things.clone(), Arc::clone(&stepped));
        move || {
            while all.stats().rolls == rolls {
                write(&all, &things, &mut next);
            }
            let merging = all.stats().compaction_memory_bytes;
            assert!(merging > 0, "a merge is under way");
            while stepped.advance(Duration::ZERO).first().is_some_and(|job| *job != "compact") {
                stepped.step().unwrap();
            }
        }
    };
    let again = Arc::clone(&meanwhile);
    meanwhile.set(Box::new(move || again.set(Box::new(writes))));
    PEAK.store(ALLOCATED.load(Ordering::Relaxed), Ordering::Relaxed);
    stepped.step().unwrap();
    assert!(meanwhile.take().is_none(), "nothing was merged");
    let stats = database.stats();
    assert!(stats.seals == sealed + 1 && stats.level1_bytes > 0, "{stats:?}");
    let peak = (PEAK.load(Ordering::Relaxed) - before) as u64;
    let allowed = BUDGET - 2 * MEMTABLE;
    println!("{} KiB at most, {} KiB allowed", peak >> 10, allowed >> 10);
    assert!(peak <= BUDGET / 4 + OTHERS && BUDGET / 4 + OTHERS <= allowed, "{peak}: {stats:?}");
}

/// What a seal holds is told while it does, and no longer.
#[test]
fn what_a_seal_holds_is_told_while_it_does() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let meanwhile = Meanwhile::at(Call::SetLen);
    let clock = Arc::new(ManualClock::default());
    let stepped = Arc::new(Stepped::new(Arc::clone(&clock)));
    let options = Options::default()
        .memory_budget(BUDGET)
        .memtable_bytes(MEMTABLE / 64)
        .disk(meanwhile.disk(Arc::new(RealDisk::new())))
        .clock(clock as _)
        .executor(Arc::clone(&stepped) as _);
    let database = Database::open(folder.path(), options).unwrap();
    let things = database.collection("things").unwrap();
    stepped.run_until_idle();
    let mut next = 0;
    while database.stats().rolls == 0 {
        write(&database, &things, &mut next);
    }
    let held = Arc::new(AtomicUsize::new(0));
    assert_eq!(database.stats().sealing_memory_bytes, 0);
    let (told, all) = (Arc::clone(&held), database.clone());
    meanwhile.set(Box::new(move || {
        let stats = all.stats();
        assert!(stats.memory_bytes() >= stats.memtable_bytes + stats.sealing_memory_bytes);
        told.store(stats.sealing_memory_bytes.try_into().unwrap(), Ordering::Relaxed);
    }));
    while database.stats().seals == 0 {
        stepped.step().unwrap();
    }
    let held = held.load(Ordering::Relaxed) as u64;
    assert!(held >= 8 * RECORDS / 64, "{held}");
    assert_eq!(database.stats().sealing_memory_bytes, 0);
}
