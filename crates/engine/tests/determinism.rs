//! Two runs with one seed do the same to the disk, call by call: what a crash test found can be
//! repeated.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{DB, DURABILITIES, READS, Random, Seed, killed, tiny_on};
use engine::clock::ManualClock;
use engine::disk::{MemoryDisk, Operation};
use engine::executor::Stepped;
use engine::{Batch, CompactionReason, Database, Durability, Reads, Stats};
use serde_json::json;

struct Run {
    trace: Vec<Operation>,
    stats: Vec<Stats>,
}

/// Opens, writes through rolls, seals, time, snapshots and compaction, closes or is killed, three
/// times over.
fn run(seed: u64, durability: Durability, reads: Reads) -> Run {
    let mut random = Random::new(seed);
    let mut disk = MemoryDisk::new();
    let mut run = Run { trace: Vec::new(), stats: Vec::new() };
    for round in 0..3 {
        disk.start_trace();
        let clock = Arc::new(ManualClock::default());
        let stepped = Arc::new(Stepped::new(Arc::clone(&clock)));
        let options = tiny_on(&disk)
            .durability(durability)
            .reads(reads)
            .level0_runs(2)
            .seed(seed + round)
            .clock(clock)
            .executor(Arc::clone(&stepped) as _);
        let database = Database::open(DB, options).unwrap();
        let collections = ["one", "two", "three"].map(|name| database.collection(name).unwrap());
        let mut snapshot = None;
        for n in 0..400_i64 {
            let collection = random.pick(&collections);
            let id = i64::try_from(random.below(100)).unwrap();
            let document = json!({ "n": n, "pad": "x".repeat(random.below(2000)) });
            match random.below(12) {
                0 => collection.delete(id).unwrap(),
                1 => drop(collection.update(id, &document)),
                2 => drop(collection.insert(id, &document)),
                3 => {
                    let mut batch = Batch::new();
                    for collection in &collections {
                        batch.put(collection, id, &document).unwrap();
                    }
                    database.write(batch).unwrap();
                }
                4 if n % 40 == 0 => database.compact().unwrap(),
                4 => drop(stepped.step()),
                5 => {
                    stepped.advance(Duration::from_millis(random.below(300) as u64));
                    for _ in 0..random.below(4) {
                        stepped.step();
                    }
                }
                6 if n % 5 == 0 => snapshot = Some(database.snapshot().unwrap()),
                7 if n % 5 == 0 => database.sync().unwrap(),
                8 if n % 20 == 0 => database.wait_idle().unwrap(),
                _ => collection.put(id, &document).unwrap(),
            }
        }
        drop(snapshot);
        run.stats.push(database.stats());
        let left = (round == 1).then(|| killed(&disk));
        database.close().unwrap();
        run.stats.push(database.stats());
        run.trace.extend(disk.trace());
        disk = left.unwrap_or(disk);
    }
    run
}

#[test]
fn two_runs_with_one_seed_have_one_trace() {
    let seed = Seed::or(3);
    for durability in DURABILITIES {
        for reads in READS {
            let (first, second) = (run(seed.0, durability, reads), run(seed.0, durability, reads));
            for (n, (a, b)) in first.trace.iter().zip(&second.trace).enumerate() {
                assert_eq!(a, b, "call {n}, {durability:?}, {reads:?}");
            }
            assert_eq!(first.trace.len(), second.trace.len());
            assert_eq!(first.stats, second.stats);

            let seals: u64 = first.stats.iter().map(|stats| stats.seals).sum();
            assert!(seals > 10, "{seals} seals prove little");
            assert!(first.stats.iter().any(|stats| stats.recovery.records > 0));
            for reason in [
                CompactionReason::Level0,
                CompactionReason::Idle,
                CompactionReason::Forced,
                CompactionReason::Indexes,
            ] {
                let known = first.stats.iter().flat_map(|stats| &stats.compactions);
                assert!(known.into_iter().any(|did| did.reason == reason), "no {reason:?}");
            }
            assert!(first.trace.iter().any(|call| matches!(call, Operation::Remove { .. })));
            // The test can fail: another seed has another trace.
            assert_ne!(run(seed.0 + 100, durability, reads).trace, first.trace);
        }
    }
}
