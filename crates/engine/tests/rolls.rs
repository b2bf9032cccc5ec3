//! Beginning a new segment: what goes wrong there is the fate of one write, and never of an
//! answered one.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use common::{DB, DURABILITIES, killed, power_lost, tiny, tiny_on};
use engine::clock::ManualClock;
use engine::disk::MemoryDisk;
use engine::disk::faulty::{Call, Fault, FaultyDisk, Outcome, Repeat};
use engine::executor::Stepped;
use engine::{Collection, Database, Durability};
use serde_json::json;

const EIO: i32 = 5;

/// A writer that has to make room runs the seal, and no other job: a flush that is due wants the
/// log, which the writer holds.
#[test]
fn a_roll_with_a_due_flush_ahead_of_the_seal_does_not_wait_for_itself() {
    let disk = MemoryDisk::new();
    let clock = Arc::new(ManualClock::default());
    let stepped = Arc::new(Stepped::new(Arc::clone(&clock)));
    let options = tiny_on(&disk)
        .durability(Durability::BUFFERED)
        .clock(clock)
        .executor(Arc::clone(&stepped) as _);
    let database = Database::open(DB, options).unwrap();
    let collection = database.collection("c").unwrap();
    for n in 0..1000_i64 {
        collection.put(n, &json!({})).unwrap();
        if n % 50 == 0 {
            // The flush and the mark of an idle log become due, and nobody runs them.
            assert!(!stepped.advance(Duration::from_secs(1)).is_empty());
        }
    }
    let stats = database.stats();
    assert!(stats.rolls > 10 && stats.seals > 10, "{stats:?}");
    assert_eq!(collection.scan_ids(..).unwrap().count(), 1000);
}

struct Outcomes {
    answered: BTreeSet<i64>,
    failed: BTreeSet<i64>,
}

/// Puts of changing sizes, small ones after a failure: they may fit where the failed one did not.
fn write(collection: &Collection, stepped: &Stepped) -> Outcomes {
    let mut outcomes = Outcomes { answered: BTreeSet::new(), failed: BTreeSet::new() };
    let mut put = |id: i64, pad: usize| {
        let answer = collection.put(id, &json!({ "n": id, "pad": "x".repeat(pad) }));
        let set = if answer.is_ok() { &mut outcomes.answered } else { &mut outcomes.failed };
        set.insert(id);
        answer.is_ok()
    };
    for n in 0..12_i64 {
        if !put(n, 5000) {
            put(100 + n, 0);
        }
        if n % 4 == 3 {
            stepped.run_until_idle();
        }
    }
    // The disk has only one fault: writes resume, at the second attempt at the latest.
    assert!(put(900, 0) || put(901, 0) || put(902, 0), "writes do not resume");
    outcomes
}

fn ids(collection: &Collection) -> BTreeSet<i64> {
    let rows = collection.scan(..).unwrap().map(|row| row.unwrap().1);
    rows.map(|document| document.get_i64("n").unwrap().unwrap()).collect()
}

fn check(disk: &MemoryDisk, outcomes: &Outcomes, what: &str) {
    let database = Database::open(DB, tiny_on(disk)).unwrap_or_else(|e| panic!("{what}: {e}"));
    let found = ids(&database.collection("c").unwrap());
    assert_eq!(found, outcomes.answered, "{what}; failed: {:?}", outcomes.failed);
}

/// One fault at each call in turn, through several rolls: answered writes stay, failed ones are
/// gone once another one succeeded.
#[test]
fn one_fault_at_any_call_of_a_roll_costs_no_answered_write_and_writes_resume() {
    let outcomes = [Outcome::Error(EIO), Outcome::ErrorAfter(EIO), Outcome::Short(10)];
    let calls = [
        Call::Write,
        Call::SyncData,
        Call::SyncDir,
        Call::Open,
        Call::Allocate,
        Call::SetLen,
        Call::Map,
    ];
    let mut hits = 0;
    for durability in DURABILITIES {
        for outcome in outcomes {
            for call in calls {
                if matches!(outcome, Outcome::Short(_)) && call != Call::Write {
                    continue;
                }
                for skip in 0.. {
                    let memory = MemoryDisk::new();
                    let disk = FaultyDisk::new(Arc::new(memory.clone()));
                    let clock = Arc::new(ManualClock::default());
                    let stepped = Arc::new(Stepped::new(Arc::clone(&clock)));
                    let options = tiny()
                        .durability(durability)
                        .disk(Arc::new(disk.clone()))
                        .clock(clock)
                        .executor(Arc::clone(&stepped) as _);
                    let database = Database::open(DB, options).unwrap();
                    let collection = database.collection("c").unwrap();
                    let before = disk.calls(call);
                    disk.inject(Fault { calls: vec![call], skip, outcome, repeat: Repeat::Once });
                    let what = format!("{durability:?}, {outcome:?} at {call:?} {skip}");
                    let outcomes = write(&collection, &stepped);
                    if disk.calls(call) - before <= skip {
                        break;
                    }
                    hits += 1;
                    assert_eq!(ids(&collection), outcomes.answered, "{what}, live");
                    check(&killed(&memory), &outcomes, &format!("{what}, killed"));
                    database.sync().unwrap();
                    check(&power_lost(&memory), &outcomes, &format!("{what}, power cut"));
                    database.close().unwrap_or_else(|e| panic!("{what}: {e}"));
                    check(&memory, &outcomes, &format!("{what}, closed"));
                }
            }
        }
    }
    assert!(hits > 100, "{hits} faults");
}
