//! What a call of `compact()` waits for, when it comes while background work is under way.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use common::{DB, current_thread, tiny_on, wait_until_blocked};
use engine::Database;
use engine::clock::{Clock, ManualClock};
use engine::disk::MemoryDisk;
use engine::executor::Stepped;
use serde_json::json;

/// Calls `compact()` from another thread inside a reading of the clock, `after` readings from when
/// it was armed.
#[derive(Debug, Default)]
struct Trap {
    manual: Arc<ManualClock>,
    armed: Mutex<Option<(Database, usize)>>,
    caller: Mutex<Option<JoinHandle<engine::Result<()>>>>,
    sprung: AtomicBool,
}

impl Trap {
    fn spring(&self, database: Database) {
        self.sprung.store(true, Ordering::SeqCst);
        let (tell, told) = mpsc::channel();
        let caller = std::thread::spawn(move || {
            tell.send(current_thread()).unwrap();
            database.compact()
        });
        // It waits for the job that reads the clock here; where that is another than compaction's,
        // it may run to its end.
        wait_until_blocked(&told.recv().unwrap());
        *self.caller.lock().unwrap() = Some(caller);
    }
}

impl Clock for Trap {
    fn now(&self) -> Duration {
        let mut armed = self.armed.lock().unwrap();
        let is_due = match &mut *armed {
            Some((_, 0)) => true,
            Some((_, left)) => {
                *left -= 1;
                false
            }
            None => false,
        };
        let database = if is_due { armed.take() } else { None };
        drop(armed);
        if let Some((database, _)) = database {
            self.spring(database);
        }
        self.manual.now()
    }

    fn sleep(&self, duration: Duration) {
        self.manual.sleep(duration);
    }
}

/// A job that looked before the call must not answer for it: neither that there is nothing to do,
/// nor by a sweep that leaves out what the call sealed.
#[test]
fn a_job_that_looked_before_the_call_does_not_answer_for_it() {
    let mut sprung = 0;
    for sealed in [0_i64, 200, 2000] {
        for after in 0..12 {
            let trap = Arc::new(Trap::default());
            let stepped = Arc::new(Stepped::new(Arc::clone(&trap.manual)));
            let options = tiny_on(&MemoryDisk::new())
                .clock(Arc::clone(&trap) as _)
                .executor(Arc::clone(&stepped) as _);
            let database = Database::open(DB, options).unwrap();
            let things = database.collection("things").unwrap();
            for id in 0..sealed {
                things.put(id, &json!({ "pad": "x".repeat(100) })).unwrap();
            }
            // These are in no sealed segment yet.
            things.put(5000, &json!({})).unwrap();
            stepped.advance(Duration::from_secs(1));
            *trap.armed.lock().unwrap() = Some((database.clone(), after));
            while !trap.sprung.load(Ordering::SeqCst) {
                if stepped.step().is_none() {
                    break;
                }
            }
            *trap.armed.lock().unwrap() = None;
            let Some(caller) = trap.caller.lock().unwrap().take() else { continue };
            sprung += 1;
            caller.join().unwrap().unwrap();
            let stats = database.stats();
            let what = format!("{sealed} sealed, after {after} readings: {stats:?}");
            assert_eq!((stats.level0_segments, stats.level0_bytes), (0, 0), "{what}");
            assert_eq!(stats.reclaimable_bytes, 0, "{what}");
            assert_eq!(
                i64::try_from(things.scan_ids(..).unwrap().count()),
                Ok(sealed + 1),
                "{what}"
            );
        }
    }
    assert!(sprung > 20, "{sprung} calls met a job");
}

/// What there is to do is known anew with each call, however often there was nothing before.
#[test]
fn a_call_that_had_nothing_to_do_does_not_answer_for_the_next_one() {
    let database = Database::open(DB, tiny_on(&MemoryDisk::new())).unwrap();
    for _ in 0..3 {
        database.compact().unwrap();
    }
    let things = database.collection("things").unwrap();
    things.put(1, &json!({})).unwrap();
    for _ in 0..3 {
        database.compact().unwrap();
        let stats = database.stats();
        assert_eq!((stats.level0_segments, stats.level1_segments), (0, 1), "{stats:?}");
    }
}
