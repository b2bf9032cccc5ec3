//! Compaction, from the outside.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use common::{DB, tiny_on};
use engine::clock::{Clock, ManualClock};
use engine::disk::MemoryDisk;
use engine::executor::{Executor, Job, Stepped};
use engine::{Compaction, CompactionReason, Database, Options};
use serde_json::json;

/// Background work is stepped by hand.
fn stepped(disk: &MemoryDisk) -> (Options, Arc<Stepped>) {
    let clock = Arc::new(ManualClock::default());
    let executor = Arc::new(Stepped::new(Arc::clone(&clock)));
    let options = tiny_on(disk)
        .compaction(Compaction::Manual)
        .clock(clock)
        .executor(Arc::clone(&executor) as _);
    (options, executor)
}

/// A step ends at so many bytes, wherever in a segment that is. When level 0 has nothing for the
/// rest of the segment, the rest must not keep the file, which is dead up to there.
#[test]
fn no_segment_stays_clipped_behind_a_sweep() {
    let document = json!({ "pad": "x".repeat(1000) });
    let mut bytes_each = 0;
    for inserted in 1..40 {
        let (options, _executor) = stepped(&MemoryDisk::new());
        let database = Database::open(DB, options).unwrap();
        let rows = database.collection("c").unwrap();
        for id in [0, 1000, 1001, 1002, 1003] {
            rows.put(id, &document).unwrap();
        }
        database.compact().unwrap();
        let live = database.stats().live_bytes;
        bytes_each = live / 5;
        for id in 1..=inserted {
            rows.put(id, &document).unwrap();
        }
        database.compact().unwrap();
        let count = u64::try_from(rows.scan(..).unwrap().count()).unwrap();
        assert_eq!(database.stats().live_bytes, count * bytes_each, "{inserted} inserted");
    }
    assert!(bytes_each > 1000);
}

/// Tombstones are small, and what they delete is not: an idle store must give it back.
#[test]
fn an_idle_store_frees_what_few_bytes_of_tombstones_deleted() {
    let (options, executor) = stepped(&MemoryDisk::new());
    let options = options.compaction(Compaction::Automatic);
    let database = Database::open(DB, options).unwrap();
    let rows = database.collection("c").unwrap();
    for id in 0..2000 {
        rows.put(id, &json!({ "pad": "x".repeat(1000) })).unwrap();
    }
    database.compact().unwrap();
    for id in 0..2000 {
        if id % 2 == 0 {
            rows.delete(id).unwrap();
        }
    }
    let before = database.stats();
    for _ in 0..4 {
        executor.advance(Duration::from_millis(250));
        executor.run_until_idle();
    }
    let after = database.stats();
    assert!(after.level1_bytes < before.level1_bytes * 6 / 10, "{before:#?} {after:#?}");
    assert_eq!(rows.scan_ids(..).unwrap().count(), 1000);
}

/// The answer that there was nothing to do holds for that call only.
#[test]
fn compact_merges_also_after_a_call_that_found_nothing_to_do() {
    let (options, _executor) = stepped(&MemoryDisk::new());
    let database = Database::open(DB, options).unwrap();
    let rows = database.collection("c").unwrap();
    for id in 0..3 {
        database.compact().unwrap();
        database.compact().unwrap();
        rows.put(id, &json!({})).unwrap();
        database.compact().unwrap();
        assert_eq!(database.stats().level0_runs, 0, "{id}");
    }
}

/// The job of a call to `compact()` must not go on to what nobody asked for.
#[test]
fn manual_compaction_ends_with_what_was_asked_for() {
    let (options, executor) = stepped(&MemoryDisk::new());
    let database = Database::open(DB, options.level0_runs(2)).unwrap();
    let rows = database.collection("c").unwrap();
    let put = |ids: std::ops::Range<i64>| ids.for_each(|id| rows.put(id, &json!({})).unwrap());
    put(0..10);
    database.compact().unwrap();
    put(0..1000);
    executor.run_until_idle();
    let reasons: Vec<_> = database.stats().compactions.iter().map(|done| done.reason).collect();
    assert_eq!(reasons, [CompactionReason::Forced]);
}

/// Has another thread call `compact()` at a certain reading, and goes on once that waits.
#[derive(Debug, Default)]
struct Interrupting {
    clock: Arc<ManualClock>,
    /// Readings until then, the database, and where the executor tells of a waiter.
    at: Mutex<Option<(usize, Database, Receiver<()>)>>,
    caller: Mutex<Option<JoinHandle<Result<(), engine::Error>>>>,
}

impl Clock for Interrupting {
    fn now(&self) -> Duration {
        let due = match &mut *self.at.lock().unwrap() {
            Some((0, ..)) | None => None,
            Some((left, database, waits)) => {
                *left -= 1;
                (*left == 0).then(|| (database.clone(), std::mem::replace(waits, channel().1)))
            }
        };
        if let Some((database, waits)) = due {
            *self.caller.lock().unwrap() = Some(thread::spawn(move || database.compact()));
            waits.recv().unwrap();
        }
        self.clock.now()
    }

    fn sleep(&self, duration: Duration) {
        self.clock.sleep(duration);
    }
}

/// Tells of a thread that waits for background work, and leaves the work to the test.
#[derive(Debug)]
struct Telling {
    stepped: Arc<Stepped>,
    waits: Mutex<Sender<()>>,
}

impl Executor for Telling {
    fn submit(&self, name: &'static str, job: Job) {
        self.stepped.submit(name, job);
    }

    fn submit_after(&self, delay: Duration, name: &'static str, job: Job) {
        self.stepped.submit_after(delay, name, job);
    }

    fn help(&self) -> bool {
        // Nobody listens any more once the first was told of.
        let _ = self.waits.lock().unwrap().send(());
        false
    }

    fn shutdown(&self) {
        self.stepped.shutdown();
    }
}

/// Whoever calls `compact()` while a job finds nothing to do must not be answered by that job.
#[test]
fn compact_waits_for_what_a_job_under_way_did_not_see() {
    for reading in 1..=4 {
        let clock = Arc::new(Interrupting::default());
        let stepped = Arc::new(Stepped::new(Arc::clone(&clock.clock)));
        let (sender, waits) = channel();
        let telling = Telling { stepped: Arc::clone(&stepped), waits: Mutex::new(sender) };
        let options =
            tiny_on(&MemoryDisk::new()).clock(Arc::clone(&clock) as _).executor(Arc::new(telling));
        let database = Database::open(DB, options).unwrap();
        let rows = database.collection("c").unwrap();
        rows.put(1, &json!({})).unwrap();
        stepped.run_until_idle();
        stepped.advance(Duration::from_millis(250));
        while !stepped.advance(Duration::ZERO).starts_with(&["compact"]) {
            assert!(stepped.step().is_some(), "the idle store is looked at");
        }
        *clock.at.lock().unwrap() = Some((reading, database.clone(), waits));
        stepped.step();
        let caller = clock.caller.lock().unwrap().take();
        *clock.at.lock().unwrap() = None;
        let Some(caller) = caller else {
            assert!(reading > 2, "a job that looks whether the store is idle reads the clock");
            continue;
        };
        while !caller.is_finished() {
            stepped.run_until_idle();
            thread::yield_now();
        }
        caller.join().unwrap().unwrap();
        let stats = database.stats();
        assert_eq!((stats.level0_runs, stats.level1_segments), (0, 1), "reading {reading}");
    }
}
