//! Many threads on one database, with values whose stamps give away what was lost, torn or seen too
//! early.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use common::{DB, DURABILITIES, READS, Random, Seed, tiny, tiny_on};
use engine::disk::MemoryDisk;
use engine::{Batch, Collection, Database, Document, Error, Id, Options};
use serde_json::json;

const WRITERS: i64 = 3;
/// Documents of one writer, always written together.
const TOGETHER: i64 = 5;
const BATCHES: i64 = 250;

/// Every durability and read regime, on a disk in memory.
fn everywhere(test: impl Fn(Options)) {
    for durability in DURABILITIES {
        for reads in READS {
            let disk = MemoryDisk::new();
            test(tiny_on(&disk).durability(durability).reads(reads));
        }
    }
}

fn stamp(document: &Document) -> i64 {
    document.get_i64("stamp").unwrap().unwrap()
}

/// Writer `w` gives all its documents, in both collections, one stamp after the other; every fourth
/// batch leaves one out.
fn write_batches(database: &Database, collections: &[Collection; 2], writer: i64) {
    for n in 1..=BATCHES {
        let mut batch = Batch::new();
        for collection in collections {
            for i in 0..TOGETHER {
                let id = writer * TOGETHER + i;
                if n % 4 == 0 && i == 2 {
                    batch.delete(collection, id).unwrap();
                } else {
                    batch
                        .put(collection, id, &json!({ "stamp": n, "pad": "x".repeat(80) }))
                        .unwrap();
                }
            }
        }
        database.write(batch).unwrap();
    }
}

/// The rows of a scan must hold whole batches: of each writer one stamp, and all its documents but
/// the one that is left out.
fn check_rows(
    rows: impl Iterator<Item = engine::Result<(Id<'static>, Document)>>,
) -> HashMap<i64, i64> {
    let mut stamps: HashMap<i64, (i64, i64)> = HashMap::new();
    let mut last = None;
    for row in rows {
        let (id, document) = row.unwrap();
        assert!(last.as_ref().is_none_or(|last| *last < id), "{last:?} before {id}");
        let Id::Integer(number) = id else { panic!("{id}") };
        let (found, count) = stamps.entry(number / TOGETHER).or_insert((stamp(&document), 0));
        assert_eq!(*found, stamp(&document), "a batch of writer {} is torn", number / TOGETHER);
        *count += 1;
        last = Some(id);
    }
    for (writer, (stamp, count)) in &stamps {
        assert_eq!(*count, TOGETHER - i64::from(stamp % 4 == 0), "writer {writer} at {stamp}");
    }
    stamps.into_iter().map(|(writer, (stamp, _))| (writer, stamp)).collect()
}

/// Each look must show each writer at least as far as the last one did.
fn check_progress(seen: &mut HashMap<i64, i64>, now: &HashMap<i64, i64>) {
    for (writer, before) in seen.iter() {
        let now = now.get(writer).unwrap_or_else(|| panic!("writer {writer} is gone"));
        assert!(now >= before, "writer {writer} went back from {before} to {now}");
    }
    seen.extend(now);
}

fn read(
    database: &Database,
    collections: &[Collection; 2],
    random: &mut Random,
    done: &AtomicBool,
) -> u64 {
    let mut seen = HashMap::new();
    let mut points: HashMap<i64, i64> = HashMap::new();
    let mut looks = 0;
    let mut held = Vec::new();
    while !done.load(Ordering::Relaxed) {
        looks += 1;
        match random.below(4) {
            0 => check_progress(&mut seen, &check_rows(collections[0].scan(..).unwrap())),
            1 => {
                // The end that moves backwards sees the same.
                let mut rows: Vec<_> = collections[1].scan(..).unwrap().rev().collect();
                rows.reverse();
                check_progress(&mut seen, &check_rows(rows.into_iter()));
            }
            2 => {
                let id = i64::try_from(random.below(usize::try_from(WRITERS).unwrap())).unwrap()
                    * TOGETHER;
                let found =
                    collections[random.below(2)].get(id).unwrap().map_or(0, |found| stamp(&found));
                let before = points.insert(id, found).unwrap_or(0);
                assert!(found >= before, "document {id} went back from {before} to {found}");
            }
            _ => {
                let snapshot = database.snapshot().unwrap();
                let both =
                    collections.each_ref().map(|c| check_rows(snapshot.scan(c, ..).unwrap()));
                assert_eq!(both[0], both[1], "a batch spans both collections");
                check_progress(&mut seen, &both[0]);
                held.push((snapshot, both));
            }
        }
        if held.len() > 3 {
            let (snapshot, both) = held.swap_remove(random.below(held.len()));
            for (collection, then) in collections.iter().zip(&both) {
                assert_eq!(check_rows(snapshot.scan(collection, ..).unwrap()), *then);
                for (writer, stamp_then) in then {
                    let found = snapshot.get(collection, writer * TOGETHER).unwrap().unwrap();
                    assert_eq!(stamp(&found), *stamp_then);
                }
            }
        }
    }
    looks
}

fn readers_and_writers(options: Options, path: &std::path::Path) {
    let seed = Seed::or(7);
    let database = Database::open(path, options).unwrap();
    let collections = ["left", "right"].map(|name| database.collection(name).unwrap());
    let done = AtomicBool::new(false);
    let looks = AtomicU64::new(0);
    thread::scope(|scope| {
        for reader in 0..2 {
            let mut random = Random::new(seed.0 + reader);
            let (database, collections, done, looks) = (&database, &collections, &done, &looks);
            scope.spawn(move || {
                let made = read(database, collections, &mut random, done);
                looks.fetch_add(made, Ordering::Relaxed);
            });
        }
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (database, collections) = (&database, &collections);
                scope.spawn(move || write_batches(database, collections, writer))
            })
            .collect();
        let outcomes: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
    });
    for collection in &collections {
        let stamps = check_rows(collection.scan(..).unwrap());
        assert_eq!(stamps, (0..WRITERS).map(|writer| (writer, BATCHES)).collect());
    }
    let stats = database.stats();
    assert!(stats.seals > 20, "{stats:?}");
    assert!(looks.into_inner() > 20);
    database.close().unwrap();
}

#[test]
fn batches_are_seen_whole_and_stamps_only_rise_while_segments_are_sealed() {
    everywhere(|options| readers_and_writers(options, DB.as_ref()));
}

#[test]
fn the_same_on_the_real_disk() {
    let folder = tempfile::tempdir().unwrap();
    for (n, reads) in READS.into_iter().enumerate() {
        let options = tiny().durability(DURABILITIES[1]).reads(reads);
        readers_and_writers(options, &folder.path().join(n.to_string()));
    }
}

/// A reader that is held up between its two loads (the version, what is visible) must not miss what
/// a seal dropped meanwhile. More readers than processors, so that they are held up at any point.
#[test]
fn a_document_that_is_always_there_is_never_missed() {
    let disk = MemoryDisk::new();
    let options = tiny_on(&disk).durability(DURABILITIES[1]);
    let database = Database::open(DB, options).unwrap();
    let collection = database.collection("c").unwrap();
    collection.put(1, &json!({ "stamp": 0 })).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    let found = collection.get(1).unwrap();
                    let found = found.unwrap_or_else(|| panic!("a get missed it after {last}"));
                    assert!(stamp(&found) >= last, "it went back from {last}");
                    last = stamp(&found);
                    if last % 16 == 0 {
                        assert_eq!(collection.scan(..).unwrap().count(), 1, "a scan missed it");
                    }
                }
            });
        }
        for n in 1..=8_000 {
            collection.put(1, &json!({ "stamp": n })).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(database.stats().seals > 50);
}

/// Each thread counts in a field of its own of a document that all update, and rolls the log on the
/// side.
#[test]
fn no_update_is_lost() {
    const THREADS: i64 = 4;
    const UPDATES: i64 = 300;
    everywhere(|options| {
        let database = Database::open(DB, options).unwrap();
        let collection = database.collection("counters").unwrap();
        collection.put("shared", &json!({ "first": true })).unwrap();
        let start = Barrier::new(usize::try_from(THREADS).unwrap());
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (collection, start) = (&collection, &start);
                scope.spawn(move || {
                    let field = format!("thread {thread}");
                    start.wait();
                    for n in 1..=UPDATES {
                        collection.update("shared", &json!({ field.as_str(): n })).unwrap();
                        let found = collection.get("shared").unwrap().unwrap();
                        assert_eq!(
                            found.get_i64(&field).unwrap(),
                            Some(n),
                            "{field}: an update was lost"
                        );
                        collection.put(thread, &json!({ "pad": "x".repeat(100) })).unwrap();
                    }
                });
            }
        });
        let shared = collection.get("shared").unwrap().unwrap();
        assert_eq!(shared.get_bool("first").unwrap(), Some(true));
        for thread in 0..THREADS {
            assert_eq!(shared.get_i64(&format!("thread {thread}")).unwrap(), Some(UPDATES));
        }
        assert!(database.stats().seals > 10);
    });
}

#[test]
fn of_inserts_of_one_id_exactly_one_wins() {
    const THREADS: i64 = 4;
    const IDS: i64 = 400;
    everywhere(|options| {
        let database = Database::open(DB, options).unwrap();
        let collection = database.collection("c").unwrap();
        let start = Barrier::new(usize::try_from(THREADS).unwrap());
        let wins: Vec<Vec<i64>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (collection, start) = (&collection, &start);
                    scope.spawn(move || {
                        start.wait();
                        let won = (0..IDS).filter(|id| {
                            match collection.insert(*id, &json!({ "thread": thread })) {
                                Ok(()) => true,
                                Err(Error::AlreadyExists { .. }) => false,
                                Err(e) => panic!("{e}"),
                            }
                        });
                        won.collect()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut all: Vec<i64> = wins.concat();
        all.sort_unstable();
        assert_eq!(all, (0..IDS).collect::<Vec<_>>());
        for (thread, won) in (0_i64..).zip(wins) {
            for id in won {
                let found = collection.get(id).unwrap().unwrap();
                assert_eq!(found.get_i64("thread").unwrap(), Some(thread));
            }
        }
    });
}

#[test]
fn of_collections_created_at_once_there_is_one() {
    let disk = MemoryDisk::new();
    let database = Database::open(DB, tiny_on(&disk)).unwrap();
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for thread in 0..8_i64 {
            let (database, start) = (&database, &start);
            scope.spawn(move || {
                start.wait();
                for n in 0..20 {
                    let collection = database.collection(&format!("c{n}")).unwrap();
                    collection.put(thread, &json!({})).unwrap();
                }
            });
        }
    });
    assert_eq!(database.collections().unwrap().len(), 20);
    for n in 0..20 {
        let collection = database.collection(&format!("c{n}")).unwrap();
        assert_eq!(collection.scan_ids(..).unwrap().count(), 8);
    }
}

/// Closing while others read and write: each call is answered, by what it asked for or by `Closed`,
/// and what was answered stays.
#[test]
fn a_close_among_writers_and_readers_loses_nothing_and_hangs_nobody() {
    for durability in DURABILITIES {
        for round in 0..10 {
            let disk = MemoryDisk::new();
            let database = Database::open(DB, tiny_on(&disk).durability(durability)).unwrap();
            let collection = database.collection("c").unwrap();
            let answered: Vec<i64> = thread::scope(|scope| {
                let (database, collection) = (&database, &collection);
                let writers: Vec<_> = (0..3_i64)
                    .map(|thread| {
                        scope.spawn(move || {
                            for n in 0.. {
                                match collection.put(thread * 1_000_000 + n, &json!({ "n": n })) {
                                    Ok(()) => {}
                                    Err(Error::Closed) => return n,
                                    Err(e) => panic!("{e}"),
                                }
                            }
                            unreachable!("the loop has no end")
                        })
                    })
                    .collect();
                scope.spawn(move || {
                    loop {
                        match collection.scan(..) {
                            Ok(rows) => rows.for_each(|row| drop(row.unwrap())),
                            Err(Error::Closed) => break,
                            Err(e) => panic!("{e}"),
                        }
                    }
                });
                while database.stats().records_written < 40 * round {
                    thread::yield_now();
                }
                database.close().unwrap();
                writers.into_iter().map(|writer| writer.join().unwrap()).collect()
            });
            let database = Database::open(DB, tiny_on(&disk)).unwrap();
            let collection = database.collection("c").unwrap();
            for (thread, count) in (0_i64..).zip(answered) {
                let from = thread * 1_000_000;
                let found = collection.scan_ids(from..from + 1_000_000).unwrap().count();
                assert_eq!(i64::try_from(found).unwrap(), count, "thread {thread}");
            }
        }
    }
}

#[test]
fn handles_are_for_all_threads() {
    fn check<T: Send + Sync>() {}
    check::<Database>();
    check::<Collection>();
    check::<Document>();
    check::<engine::Snapshot>();
    check::<Arc<Batch>>();
    check::<Error>();
}
