//! A database that compacts all the time and one that never does give the same answers.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use common::{DB, READS, Random, Seed, tiny_on};
use engine::clock::ManualClock;
use engine::disk::MemoryDisk;
use engine::executor::Stepped;
use engine::{Batch, Collection, Compaction, Database, Id, Reads, Snapshot, bson};

const NAMES: [&str; 2] = ["one", "two"];
const ROUNDS: usize = 2;
const OPERATIONS: usize = 1500;
const IDS: usize = 300;

type Row = (Id<'static>, Vec<u8>);

/// One of the two.
struct Twin {
    disk: MemoryDisk,
    compaction: Compaction,
    database: Database,
    stepped: Arc<Stepped>,
    collections: Vec<Collection>,
    snapshots: Vec<(Snapshot, Vec<Collection>)>,
    /// Sweeps, and merges of runs, before the last reopen.
    sweeps: u64,
    merges: u64,
}

impl Twin {
    fn new(compaction: Compaction, reads: Reads) -> Self {
        let disk = MemoryDisk::new();
        let (database, stepped, collections) = open(&disk, compaction, reads);
        let snapshots = Vec::new();
        Self { disk, compaction, database, stepped, collections, snapshots, sweeps: 0, merges: 0 }
    }

    fn reopen(&mut self, reads: Reads) {
        self.snapshots.clear();
        self.database.close().unwrap();
        for did in self.database.stats().compactions {
            match did.reason {
                engine::CompactionReason::Indexes | engine::CompactionReason::Documents => {
                    self.merges += did.count;
                }
                _ => self.sweeps += did.count,
            }
        }
        (self.database, self.stepped, self.collections) = open(&self.disk, self.compaction, reads);
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Put(c, id, document) => self.collections[*c].put(id, document).unwrap(),
            Operation::Delete(c, id) => self.collections[*c].delete(id).unwrap(),
            Operation::Batch(changes) => {
                let mut batch = Batch::new();
                for (c, id, document) in changes {
                    match document {
                        Some(document) => batch.put(&self.collections[*c], id, document).unwrap(),
                        None => batch.delete(&self.collections[*c], id).unwrap(),
                    }
                }
                self.database.write(batch).unwrap();
            }
            Operation::Recreate(c) => {
                assert!(self.database.drop_collection(NAMES[*c]).unwrap());
                self.collections[*c] = self.database.collection(NAMES[*c]).unwrap();
            }
            Operation::Snapshot => {
                let snapshot = self.database.snapshot().unwrap();
                self.snapshots.push((snapshot, self.collections.clone()));
            }
            Operation::Release(at) if !self.snapshots.is_empty() => {
                drop(self.snapshots.remove(at % self.snapshots.len()));
            }
            Operation::Release(_) => {}
        }
    }

    /// Time passes and jobs run; compaction among them or not.
    fn step(&self, passed: Duration, jobs: usize) {
        self.stepped.advance(passed);
        for _ in 0..jobs {
            self.stepped.step();
        }
    }
}

fn open(
    disk: &MemoryDisk,
    compaction: Compaction,
    reads: Reads,
) -> (Database, Arc<Stepped>, Vec<Collection>) {
    let clock = Arc::new(ManualClock::default());
    let stepped = Arc::new(Stepped::new(Arc::clone(&clock)));
    let options = tiny_on(disk)
        .reads(reads)
        .compaction(compaction)
        .level0_runs(3)
        .clock(clock)
        .executor(Arc::clone(&stepped) as _);
    let database = Database::open(DB, options).unwrap();
    let collections = NAMES.map(|name| database.collection(name).unwrap()).to_vec();
    (database, stepped, collections)
}

enum Operation {
    Put(usize, Id<'static>, bson::Document),
    Delete(usize, Id<'static>),
    Batch(Vec<(usize, Id<'static>, Option<bson::Document>)>),
    Recreate(usize),
    Snapshot,
    Release(usize),
}

fn some_id(random: &mut Random) -> Id<'static> {
    // Half of the writes go to a tenth of the ids.
    let ids = if random.percent(50) { IDS / 10 } else { IDS };
    id(random.below(ids))
}

fn id(n: usize) -> Id<'static> {
    match n % 7 {
        0 => Id::from(format!("id {n}")),
        _ => Id::from(i64::try_from(n).unwrap()),
    }
}

fn document(random: &mut Random) -> bson::Document {
    let number = random.next().cast_signed();
    bson::doc! { "number": number, "pad": "x".repeat(random.below(500)) }
}

fn operation(random: &mut Random) -> Operation {
    let collection = random.below(NAMES.len());
    match random.below(1000) {
        0..3 => Operation::Recreate(collection),
        3..11 => Operation::Snapshot,
        11..25 => Operation::Release(random.below(1000)),
        25..200 => Operation::Delete(collection, some_id(random)),
        200..230 => {
            let changes = (0..random.below(20)).map(|_| {
                let document = random.percent(80).then(|| document(random));
                (random.below(NAMES.len()), some_id(random), document)
            });
            Operation::Batch(changes.collect())
        }
        _ => Operation::Put(collection, some_id(random), document(random)),
    }
}

/// Everything that a reader can see of a collection, now or in a snapshot.
struct View<'a> {
    collection: &'a Collection,
    snapshot: Option<&'a Snapshot>,
}

impl View<'_> {
    fn get(&self, id: &Id<'_>) -> Option<Vec<u8>> {
        let found = match self.snapshot {
            Some(snapshot) => snapshot.get(self.collection, id),
            None => self.collection.get(id),
        };
        found.unwrap().map(|document| document.as_bytes().to_vec())
    }

    fn scan(&self, range: &(Bound<Id<'static>>, Bound<Id<'static>>)) -> [Vec<Row>; 2] {
        let scan = || match self.snapshot {
            Some(snapshot) => snapshot.scan(self.collection, range.clone()).unwrap(),
            None => self.collection.scan(range.clone()).unwrap(),
        };
        let row = |row: engine::Result<(Id<'static>, engine::Document)>| {
            let (id, document) = row.unwrap();
            (id, document.as_bytes().to_vec())
        };
        [scan().map(row).collect(), scan().rev().map(row).collect()]
    }
}

/// Compares all that can be read; the number of rows.
fn compare(random: &mut Random, twins: &[Twin; 2]) -> usize {
    let mut rows = 0;
    let live = twins[0].collections.iter().zip(&twins[1].collections);
    let mut views: Vec<[View<'_>; 2]> =
        live.map(|(a, b)| [a, b].map(|collection| View { collection, snapshot: None })).collect();
    for (a, b) in twins[0].snapshots.iter().zip(&twins[1].snapshots) {
        assert_eq!(a.0.sequence(), b.0.sequence());
        for (of_a, of_b) in a.1.iter().zip(&b.1) {
            views.push([
                View { collection: of_a, snapshot: Some(&a.0) },
                View { collection: of_b, snapshot: Some(&b.0) },
            ]);
        }
    }
    for [a, b] in &views {
        let bound = |random: &mut Random| match random.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(some_id(random)),
            _ => Bound::Excluded(some_id(random)),
        };
        let some = (bound(random), bound(random));
        for range in [(Bound::Unbounded, Bound::Unbounded), some] {
            let (from_a, from_b) = (a.scan(&range), b.scan(&range));
            assert_eq!(from_a, from_b, "{range:?}");
            assert!(from_a[0].iter().eq(from_a[1].iter().rev()), "{range:?}");
            rows += from_a[0].len();
        }
        for n in (random.below(5)..IDS).step_by(5) {
            let id = id(n);
            assert_eq!(a.get(&id), b.get(&id), "{id}");
        }
    }
    rows
}

#[test]
fn a_twin_that_never_compacts_gives_the_same_answers() {
    let seed = Seed::or(0x7_1717);
    let mut random = seed.random();
    for reads in READS {
        let mut twins = [Compaction::Automatic, Compaction::Manual].map(|c| Twin::new(c, reads));
        let (mut rows, mut in_the_middle) = (0, 0);
        for _ in 0..ROUNDS {
            for n in 0..OPERATIONS {
                let operation = operation(&mut random);
                twins.iter_mut().for_each(|twin| twin.apply(&operation));
                let (passed, jobs) = (random.below(20), usize::from(random.percent(20)));
                let passed = Duration::from_millis(passed as u64);
                twins.iter().for_each(|twin| twin.step(passed, jobs));
                if random.below(400) == 0 {
                    twins[0].database.compact().unwrap();
                }
                if n % 150 == 149 {
                    let steps = |twin: &Twin| {
                        twin.database.stats().compactions.iter().map(|did| did.steps).sum::<u64>()
                    };
                    rows += compare(&mut random, &twins);
                    // A few steps on, in the middle of a sweep perhaps.
                    for _ in 0..3 {
                        let before = steps(&twins[0]);
                        twins[0].step(Duration::from_millis(300), 2);
                        in_the_middle += steps(&twins[0]) - before;
                        rows += compare(&mut random, &twins);
                    }
                }
            }
            let reads = *random.pick(&READS);
            twins.iter_mut().for_each(|twin| twin.reopen(reads));
            rows += compare(&mut random, &twins);
        }
        let [compacting, never] = &twins;
        println!(
            "{rows} rows compared, {} sweeps, {} merges, {in_the_middle} steps between comparisons",
            compacting.sweeps, compacting.merges
        );
        assert!(rows > 10_000 && in_the_middle > 5, "{rows} rows, {in_the_middle} steps");
        let (sweeps, merges) = (compacting.sweeps, compacting.merges);
        assert!(sweeps > 10 && merges > 0, "{sweeps} sweeps, {merges} merges");
        assert_eq!((never.sweeps, never.merges), (0, 0));
        let (small, large) = (compacting.database.stats(), never.database.stats());
        // A sweep may just have become due: level 0 has half of what is live, in pages of its own.
        assert!(small.sealed_bytes < large.sealed_bytes / 2, "{small:?} {large:?}");
        assert_eq!(small.visible_sequence, large.visible_sequence);
    }
}
