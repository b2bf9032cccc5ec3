//! Threads that read and write while sweeps and merges run without a pause: what is read was
//! written, and never goes back in time.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;

use common::{DB, DURABILITIES, READS, Random, Seed, tiny_on};
use engine::disk::MemoryDisk;
use engine::{Collection, CompactionReason, Database, Document, Options, Snapshot};
use serde_json::json;

const WRITERS: i64 = 2;
/// Documents of one writer.
const IDS: i64 = 150;
/// Times that a writer goes through its documents.
const ROUNDS: i64 = 20;

/// What each document has come to: a counter that its writer raises, and deletes at every seventh.
struct Counters {
    /// The last value that was answered, by id.
    answered: Vec<AtomicI64>,
    /// The last value that a write began with.
    begun: Vec<AtomicI64>,
}

impl Counters {
    fn new() -> Self {
        let zeros = || (0..WRITERS * IDS).map(|_| AtomicI64::new(0)).collect();
        Self { answered: zeros(), begun: zeros() }
    }

    fn bounds(counters: &[AtomicI64]) -> Vec<i64> {
        counters.iter().map(|counter| counter.load(Ordering::SeqCst)).collect()
    }
}

fn is_deleted(count: i64) -> bool {
    count % 7 == 0
}

fn count_of(document: &Document) -> i64 {
    document.get_i64("count").unwrap().unwrap()
}

fn write(collection: &Collection, counters: &Counters, writer: i64) {
    for count in 1..=ROUNDS {
        for id in writer * IDS..(writer + 1) * IDS {
            let at = usize::try_from(id).unwrap();
            counters.begun[at].store(count, Ordering::SeqCst);
            if is_deleted(count) {
                collection.delete(id).unwrap();
            } else {
                let pad = "x".repeat(usize::try_from(30 + id % 90).unwrap());
                collection.put(id, &json!({ "count": count, "pad": pad })).unwrap();
            }
            counters.answered[at].store(count, Ordering::SeqCst);
        }
    }
}

/// Whether a read that found this may have come between two looks at the counters: at least what
/// was answered before, at most what was begun by the end. Absence is a value that is deleted.
fn check(id: i64, found: Option<i64>, answered: i64, begun: i64) {
    let is_explained = match found {
        Some(count) => (answered..=begun).contains(&count) && !is_deleted(count),
        None => (answered..=begun).any(is_deleted),
    };
    assert!(is_explained, "{id}: {found:?} between {answered} and {begun}");
}

fn check_rows(
    rows: impl Iterator<Item = engine::Result<(engine::Id<'static>, Document)>>,
    answered: &[i64],
    begun: impl FnOnce() -> Vec<i64>,
) -> Vec<Option<i64>> {
    let mut found = vec![None; answered.len()];
    for row in rows {
        let (id, document) = row.unwrap();
        let engine::Id::Integer(id) = id else { panic!("{id}") };
        let at = &mut found[usize::try_from(id).unwrap()];
        assert!(at.replace(count_of(&document)).is_none(), "{id} twice");
    }
    let begun = begun();
    for (id, found) in (0..).zip(&found) {
        let at = usize::try_from(id).unwrap();
        check(id, *found, answered[at], begun[at]);
    }
    found
}

/// A snapshot, and what it saw when it was taken.
struct View {
    snapshot: Snapshot,
    rows: Vec<Option<i64>>,
}

fn read(
    database: &Database,
    collection: &Collection,
    counters: &Counters,
    random: &mut Random,
    done: &AtomicBool,
) -> u64 {
    let begun = || Counters::bounds(&counters.begun);
    let mut views: Vec<View> = Vec::new();
    let mut looks = 0;
    while !done.load(Ordering::Relaxed) {
        looks += 1;
        match random.below(4) {
            0 => {
                for _ in 0..100 {
                    let at = random.below(counters.answered.len());
                    let id = i64::try_from(at).unwrap();
                    let answered = counters.answered[at].load(Ordering::SeqCst);
                    let found = collection.get(id).unwrap().map(|found| count_of(&found));
                    check(id, found, answered, counters.begun[at].load(Ordering::SeqCst));
                }
            }
            1 => {
                let answered = Counters::bounds(&counters.answered);
                check_rows(collection.scan(..).unwrap(), &answered, begun);
            }
            2 => {
                let answered = Counters::bounds(&counters.answered);
                check_rows(collection.scan(..).unwrap().rev(), &answered, begun);
            }
            _ => {
                let answered = Counters::bounds(&counters.answered);
                let snapshot = database.snapshot().unwrap();
                let rows = check_rows(snapshot.scan(collection, ..).unwrap(), &answered, begun);
                views.push(View { snapshot, rows });
            }
        }
        // Long enough for sweeps to come between.
        if views.len() > 4 {
            let View { snapshot, rows } = views.swap_remove(random.below(views.len()));
            let mut again = vec![None; rows.len()];
            for row in snapshot.scan(collection, ..).unwrap().rev() {
                let (id, document) = row.unwrap();
                let engine::Id::Integer(id) = id else { panic!("{id}") };
                again[usize::try_from(id).unwrap()] = Some(count_of(&document));
            }
            assert_eq!(again, rows, "the snapshot at {} changed", snapshot.sequence());
            let at = random.below(rows.len());
            let found = snapshot.get(collection, i64::try_from(at).unwrap()).unwrap();
            assert_eq!(found.map(|found| count_of(&found)), rows[at]);
        }
    }
    looks
}

fn run(options: Options, seed: &Seed) {
    let database = Database::open(DB, options.level0_runs(2)).unwrap();
    let collection = database.collection("c").unwrap();
    let counters = Counters::new();
    let (done, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for reader in 0..2 {
            let mut random = Random::new(seed.0 + reader);
            let (database, collection) = (&database, &collection);
            let (counters, done, looks) = (&counters, &done, &looks);
            scope.spawn(move || {
                let made = read(database, collection, counters, &mut random, done);
                looks.fetch_add(made, Ordering::Relaxed);
            });
        }
        // One sweep after the other, also where there is little to merge.
        let compactions = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                database.compact().unwrap();
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (collection, counters) = (&collection, &counters);
                scope.spawn(move || write(collection, counters, writer))
            })
            .collect();
        let outcomes: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        compactions.join().unwrap();
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
    });
    let last = vec![ROUNDS; counters.answered.len()];
    check_rows(collection.scan(..).unwrap(), &last, || last.clone());
    let stats = database.stats();
    let count = |reason| {
        let of = stats.compactions.iter().find(|entry| entry.reason == reason);
        of.map_or(0, |entry| entry.count)
    };
    assert!(count(CompactionReason::Forced) > 10, "{stats:?}");
    assert!(looks.into_inner() > 20);
    assert_eq!(stats.compaction_failures, 0, "{stats:?}");
    database.close().unwrap();
}

#[test]
fn reads_are_explained_while_sweeps_follow_each_other() {
    let seed = Seed::or(0xc0);
    for durability in DURABILITIES {
        for reads in READS {
            let disk = MemoryDisk::new();
            run(tiny_on(&disk).durability(durability).reads(reads), &seed);
            // What was answered is there after a reopen, and nothing else.
            let database = Database::open(DB, tiny_on(&disk)).unwrap();
            let collection = database.collection("c").unwrap();
            let last = vec![ROUNDS; usize::try_from(WRITERS * IDS).unwrap()];
            check_rows(collection.scan(..).unwrap(), &last, || last.clone());
        }
    }
}
