//! Group commit: who shares a write and a sync, who waits, and who hears of a failure.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use std::{fmt, io};

use common::{
    DB, DURABILITIES, GateDisk, Hook, HookDisk, Meanwhile, Random, Seed, WatchedClock, Work,
    current_thread, killed, power_lost, tiny_on, wait_until_blocked,
};
use engine::clock::ManualClock;
use engine::disk::MemoryDisk;
use engine::disk::faulty::{Call, FaultyDisk};
use engine::executor::Stepped;
use engine::{Batch, Collection, Database, Durability, Error, Options, Result, WriteDurability};
use serde_json::json;

/// A database whose segment files' syncs a test holds up. Nothing runs in the background, so that
/// what is counted is the log's.
struct Bench {
    memory: MemoryDisk,
    faulty: FaultyDisk,
    disk: GateDisk,
    clock: Arc<WatchedClock>,
    database: Database,
    collection: Collection,
}

type Write<'a> = Box<dyn FnOnce() -> Result<()> + Send + 'a>;

impl Bench {
    fn new() -> Self {
        Self::with(Durability::Durable)
    }

    fn with(durability: Durability) -> Self {
        let memory = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        let disk = GateDisk::new(Arc::new(faulty.clone()));
        let clock = Arc::new(WatchedClock::default());
        let options = Options::default()
            .durability(durability)
            .disk(disk.disk())
            .clock(Arc::clone(&clock) as _)
            .executor(Arc::new(Stepped::new(Arc::new(ManualClock::default()))));
        let database = Database::open(DB, options).unwrap();
        let collection = database.collection("c").unwrap();
        Self { memory, faulty, disk, clock, database, collection }
    }

    /// Writes document 0, with so many puts in one group behind it.
    fn group_behind_a_sync(&self, number: i64) -> (Result<()>, Vec<Result<()>>) {
        let put = |n: i64| move || self.collection.put(n, &json!({ "n": n }));
        self.behind_a_sync((1..=number).map(|n| Box::new(put(n)) as Write<'_>).collect())
    }

    /// Writes document 0 and holds up its sync, has more writers come, and lets the sync pass once
    /// they all wait. The answers: that of document 0, then those of the others, in their order.
    fn behind_a_sync(&self, others: Vec<Write<'_>>) -> (Result<()>, Vec<Result<()>>) {
        self.disk.close();
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                let mut batch = Batch::new();
                batch.put(&self.collection, 0, &json!({ "n": 0 }))?;
                self.database.write_with(batch, WriteDurability::Durable)
            });
            self.disk.wait_for_sync();
            let (send, receive) = mpsc::channel();
            let others: Vec<_> = others
                .into_iter()
                .map(|write| {
                    let send = send.clone();
                    scope.spawn(move || {
                        send.send(current_thread()).unwrap();
                        write()
                    })
                })
                .collect();
            for thread in receive.iter().take(others.len()) {
                wait_until_blocked(&thread);
            }
            self.disk.open();
            let first = first.join().unwrap();
            (first, others.into_iter().map(|other| other.join().unwrap()).collect())
        })
    }
}

#[test]
fn writers_that_come_during_a_sync_form_one_group() {
    for number in [1, 2, 8, 30] {
        let bench = Bench::new();
        let (before, writes, syncs) =
            (bench.database.stats(), bench.disk.writes(), bench.disk.syncs());
        let (first, others) = bench.group_behind_a_sync(number);
        first.unwrap();
        others.into_iter().for_each(|outcome| outcome.unwrap());
        let after = bench.database.stats();
        assert_eq!(after.groups - before.groups, 2, "{number} writers");
        assert_eq!(bench.disk.writes() - writes, 2, "{number} writers: one write a group");
        assert_eq!(bench.disk.syncs() - syncs, 2, "{number} writers: one sync a group");
        assert_eq!(after.records_written - before.records_written, number.cast_unsigned() + 1);
        for n in 0..=number {
            assert_eq!(bench.collection.get(n).unwrap().unwrap().get_i64("n").unwrap(), Some(n));
        }
    }
}

#[test]
fn nothing_is_visible_before_its_sync() {
    let bench = Bench::new();
    bench.disk.close();
    thread::scope(|scope| {
        let put = scope.spawn(|| bench.collection.put(0, &json!({})));
        bench.disk.wait_for_sync();
        assert!(bench.collection.get(0).unwrap().is_none());
        assert_eq!(bench.collection.scan(..).unwrap().count(), 0);
        assert_eq!(
            bench.database.snapshot().unwrap().scan(&bench.collection, ..).unwrap().count(),
            0
        );
        bench.disk.open();
        put.join().unwrap().unwrap();
    });
    assert!(bench.collection.get(0).unwrap().is_some());
}

#[test]
fn a_lone_client_never_waits_and_a_group_waits_at_most_twenty_microseconds_for_its_members() {
    let bench = Bench::new();
    let lone = || {
        let (readings, time) = (bench.clock.readings(), bench.clock.manual.peek());
        bench.collection.put(99, &json!({})).unwrap();
        (bench.clock.readings() - readings, bench.clock.manual.peek() - time)
    };
    let (readings, _) = lone();
    // When the log was last written is noted; no deadline is looked at.
    assert!(readings <= 1, "{readings} readings of the clock");
    for _ in 0..10 {
        assert_eq!(lone().0, readings);
    }

    let (first, others) = bench.group_behind_a_sync(8);
    first.unwrap();
    others.into_iter().for_each(|outcome| outcome.unwrap());
    // The last group had eight members, and only one comes back: the clock moves by a microsecond a
    // reading.
    let (_, waited) = lone();
    assert!(waited >= Duration::from_micros(20), "it waited {waited:?}");
    assert!(waited <= Duration::from_micros(24), "it waited {waited:?}");
    // And that was a group of one.
    assert_eq!(lone().0, readings);
    assert_eq!(bench.clock.slept(), Duration::ZERO);
}

#[test]
fn a_failed_sync_is_the_fate_of_its_own_group_only() {
    for crash in [killed, power_lost] {
        let bench = Bench::new();
        bench.collection.put(-1, &json!({ "n": -1 })).unwrap();
        bench.disk.fail_sync_after(0);
        let (first, others) = bench.group_behind_a_sync(8);
        assert!(matches!(first, Err(Error::WriteFailed { .. })), "{first:?}");
        others.into_iter().for_each(|outcome| outcome.unwrap());
        let acknowledged: Vec<i64> = (-1..=8).filter(|n| *n != 0).collect();
        assert_eq!(ids(&bench.collection), acknowledged);
        reopen(&crash(&bench.memory), &acknowledged);
    }
}

/// Fault case B5.
#[test]
fn b5_a_leaders_failed_sync_fails_all_eight_and_the_next_write_succeeds() {
    for crash in [killed, power_lost] {
        let bench = Bench::new();
        bench.collection.put(-1, &json!({ "n": -1 })).unwrap();
        // The first sync is the first writer's alone, the second one that of the eight.
        bench.disk.fail_sync_after(1);
        let (first, others) = bench.group_behind_a_sync(8);
        first.unwrap();
        for outcome in others {
            assert!(matches!(outcome, Err(Error::WriteFailed { .. })), "{outcome:?}");
        }
        assert_eq!(ids(&bench.collection), [-1, 0]);

        // The next write succeeds, and is durable.
        bench.collection.put(50, &json!({ "n": 50 })).unwrap();
        assert_eq!(bench.database.stats().repairs, 1);
        assert_eq!(ids(&bench.collection), [-1, 0, 50]);
        reopen(&crash(&bench.memory), &[-1, 0, 50]);
        bench.database.close().unwrap();
        reopen(&bench.memory, &[-1, 0, 50]);
    }
}

/// On a full disk a group's deletes go on in the reserve, without the puts among them.
#[test]
fn b8_the_deletes_of_a_group_on_a_full_disk_are_answered_and_its_puts_refused() {
    for crash in [killed, power_lost] {
        let bench = Bench::new();
        (10..18).for_each(|n| bench.collection.put(n, &json!({ "n": n })).unwrap());
        let write = |n: i64| {
            let bench = &bench;
            move || {
                bench.faulty.set_free_space(Some(0));
                match n % 2 {
                    0 => bench.collection.put(n + 100, &json!({ "n": n })),
                    _ => bench.collection.delete(n),
                }
            }
        };
        let writes = (10..18).map(|n| Box::new(write(n)) as Write<'_>).collect();
        let (first, others) = bench.behind_a_sync(writes);
        first.unwrap();
        for (n, outcome) in others.into_iter().enumerate() {
            match n % 2 {
                0 => assert!(matches!(outcome, Err(Error::WriteFailed { .. })), "{outcome:?}"),
                _ => outcome.unwrap(),
            }
        }
        assert!(bench.database.stats().deletes_only);
        let left = [0, 10, 12, 14, 16];
        assert_eq!(ids(&bench.collection), left);
        reopen(&crash(&bench.memory), &left);
        bench.faulty.set_free_space(None);
        bench.collection.put(1, &json!({ "n": 1 })).unwrap();
        reopen(&crash(&bench.memory), &[0, 1, 10, 12, 14, 16]);
    }
}

/// Fault case B5, with every kind of write in the group; in a buffered database one of them asks for
/// the sync.
#[test]
fn b5_a_failed_sync_fails_every_kind_of_write_in_its_group_and_none_is_there() {
    for durability in DURABILITIES {
        for crash in [killed, power_lost] {
            let bench = Bench::with(durability);
            let (database, c) = (&bench.database, &bench.collection);
            for n in -4..0 {
                c.put(n, &json!({ "n": n })).unwrap();
            }
            let kinds = || -> Vec<Write<'_>> {
                vec![
                    Box::new(|| c.put(1, &json!({ "n": 1 }))),
                    Box::new(|| c.put(-4, &json!({ "n": 40 }))),
                    Box::new(|| c.insert(2, &json!({ "n": 2 }))),
                    Box::new(|| c.update(-3, &json!({ "n": 30 }))),
                    Box::new(|| c.delete(-2)),
                    Box::new(|| {
                        let mut batch = Batch::new();
                        batch.put(c, 3, &json!({ "n": 3 }))?;
                        batch.delete(c, -1)?;
                        database.write(batch)
                    }),
                    Box::new(|| {
                        let mut batch = Batch::new();
                        batch.put(c, 4, &json!({ "n": 4 }))?;
                        database.write_with(batch, WriteDurability::Durable)
                    }),
                    Box::new(|| database.collection("another").map(drop)),
                ]
            };
            bench.disk.fail_sync_after(1);
            let (first, others) = bench.behind_a_sync(kinds());
            first.unwrap();
            assert_eq!(others.len(), 8);
            for outcome in others {
                assert!(matches!(outcome, Err(Error::WriteFailed { .. })), "{outcome:?}");
            }
            let before = [-4, -3, -2, -1, 0];
            assert_eq!(ids(c), before, "nothing of it is visible");
            assert_eq!(database.collections().unwrap(), ["c"]);
            reopen(&power_lost(&bench.memory), &before);

            // Each succeeds when it comes again.
            kinds().into_iter().for_each(|write| write().unwrap());
            assert_eq!(database.stats().repairs, 1);
            database.sync().unwrap();
            let after = [40, 30, 0, 1, 2, 3, 4];
            assert_eq!(ids(c), after);
            for when in [crash(&bench.memory), {
                database.close().unwrap();
                bench.memory.clone()
            }] {
                let again = Database::open(DB, tiny_on(&when)).unwrap();
                assert_eq!(ids(&again.collection("c").unwrap()), after);
                assert_eq!(again.collections().unwrap(), ["another", "c"]);
            }
        }
    }
}

fn ids(collection: &Collection) -> Vec<i64> {
    let number = |document: engine::Document| document.get_i64("n").unwrap().unwrap();
    let rows = collection.scan(..).unwrap().map(|row| row.unwrap());
    rows.map(|(_, document)| number(document)).collect()
}

fn reopen(disk: &MemoryDisk, expected: &[i64]) {
    let database = Database::open(DB, tiny_on(disk)).unwrap();
    let collection = database.collection("c").unwrap();
    assert_eq!(ids(&collection), expected);
    for n in expected {
        assert_eq!(collection.get(*n).unwrap().unwrap().get_i64("n").unwrap(), Some(*n));
    }
}

/// An update that waits behind a put of its id, in one group, must build on that put: whether the
/// put is still in the group's buffer, or the group had to roll and it is in a frozen or sealed
/// segment by then.
#[test]
fn an_update_behind_a_put_in_its_group_builds_on_it() {
    for fillers in 0..4_usize {
        for insert in [false, true] {
            let memory = MemoryDisk::new();
            let disk = GateDisk::new(Arc::new(memory.clone()));
            let options = tiny_on(&memory)
                .disk(disk.disk())
                .executor(Arc::new(Stepped::new(Arc::new(ManualClock::default()))));
            let database = Database::open(DB, options).unwrap();
            let collection = database.collection("c").unwrap();
            if !insert {
                collection.put("id", &json!({ "old": 1 })).unwrap();
            }
            disk.close();
            thread::scope(|scope| {
                let (database, collection) = (&database, &collection);
                let (send, receive) = mpsc::channel();
                let waits = |write: Box<dyn FnOnce() -> Result<()> + Send>| {
                    let send = send.clone();
                    let thread = scope.spawn(move || {
                        send.send(current_thread()).unwrap();
                        write()
                    });
                    wait_until_blocked(&receive.recv().unwrap());
                    thread
                };
                let leader = waits(Box::new(|| collection.put("leader", &json!({}))));
                disk.wait_for_sync();
                let mut others =
                    vec![waits(Box::new(|| collection.put("id", &json!({ "new": 2 }))))];
                for filler in 0..fillers {
                    // As many records as a memtable holds: a segment for each.
                    let mut batch = Batch::new();
                    for n in 0..64 {
                        let id = format!("filler {filler} {n}");
                        batch.put(collection, id, &json!({})).unwrap();
                    }
                    others.push(waits(Box::new(move || database.write(batch))));
                }
                let last = waits(Box::new(move || {
                    if insert {
                        collection.insert("id", &json!({ "inserted": 3 }))
                    } else {
                        collection.update("id", &json!({ "updated": 3 }))
                    }
                }));
                disk.open();
                leader.join().unwrap().unwrap();
                others.into_iter().for_each(|other| other.join().unwrap().unwrap());
                let answer = last.join().unwrap();
                if insert {
                    assert!(matches!(answer, Err(Error::AlreadyExists { .. })), "{answer:?}");
                } else {
                    answer.unwrap();
                }
            });
            let stats = database.stats();
            assert!(stats.rolls >= fillers as u64, "{stats:?}");
            let found = collection.get("id").unwrap().unwrap().to_json().unwrap();
            let expected =
                if insert { json!({ "new": 2 }) } else { json!({ "new": 2, "updated": 3 }) };
            assert_eq!(found, expected, "{fillers} fillers");
        }
    }
}

#[test]
fn a_write_that_asks_for_it_is_durable_in_a_buffered_database() {
    let disk = MemoryDisk::new();
    let database = Database::open(DB, tiny_on(&disk).durability(Durability::BUFFERED)).unwrap();
    let collection = database.collection("c").unwrap();
    collection.put(1, &json!({ "n": 1 })).unwrap();
    let mut batch = Batch::new();
    batch.put(&collection, 2, &json!({ "n": 2 })).unwrap();
    database.write_with(batch, WriteDurability::Durable).unwrap();
    reopen(&power_lost(&disk), &[1, 2]);

    collection.put(3, &json!({ "n": 3 })).unwrap();
    // An empty batch still covers what came before.
    database.write_with(Batch::new(), WriteDurability::Durable).unwrap();
    reopen(&power_lost(&disk), &[1, 2, 3]);
}

#[test]
fn thirty_two_threads_get_all_their_answers() {
    let seed = Seed::or(32);
    for durability in DURABILITIES {
        let disk = MemoryDisk::new();
        let database = Database::open(DB, tiny_on(&disk).durability(durability)).unwrap();
        let collection = database.collection("c").unwrap();
        let start = Barrier::new(32);
        let failed = AtomicBool::new(false);
        thread::scope(|scope| {
            for thread in 0..32_i64 {
                let mut random = Random::new(seed.0 ^ thread.cast_unsigned());
                let (collection, start, failed) = (&collection, &start, &failed);
                scope.spawn(move || {
                    start.wait();
                    for n in 0..60 {
                        let id = thread * 1000 + n;
                        if collection.put(id, &json!({ "n": id })).is_err() {
                            failed.store(true, Ordering::Relaxed);
                        }
                        if random.percent(20) {
                            // A write that was answered is seen by its writer.
                            assert!(collection.get(id).unwrap().is_some());
                        }
                    }
                });
            }
        });
        assert!(!failed.into_inner());
        let expected: Vec<i64> =
            (0..32).flat_map(|thread| (0..60).map(move |n| thread * 1000 + n)).collect();
        assert_eq!(ids(&collection), expected);
        let stats = database.stats();
        assert_eq!(stats.records_written, 32 * 60 + 1, "{stats:?}");
        assert!(stats.groups <= stats.records_written, "{stats:?}");
        reopen(&killed(&disk), &expected);
        database.close().unwrap();
        reopen(&disk, &expected);
    }
}

/// A flush that did not keep up was not noticed until twice as much was kept as starts one: then a
/// writer synced by itself, all of it, behind the sync that was under way.
#[test]
fn writers_slow_down_while_a_flush_does_not_keep_up() {
    let clock = Arc::new(WatchedClock::default());
    let options = Options::default()
        .durability(Durability::BUFFERED)
        .memory_budget(8 << 20)
        .memtable_bytes(1 << 20)
        .disk(Arc::new(MemoryDisk::new()))
        .clock(Arc::clone(&clock) as _)
        // The flush does not even begin.
        .executor(Arc::new(Stepped::new(Arc::new(ManualClock::default()))));
    let database = Database::open(DB, options).unwrap();
    let collection = database.collection("c").unwrap();
    let document = json!({ "pad": "x".repeat(1000) });
    let (mut kept, mut slept) = (vec![0], vec![Duration::ZERO]);
    for n in 0.. {
        collection.put(n, &document).unwrap();
        let tail = database.stats().tail_bytes;
        if tail < kept[kept.len() - 1] {
            break;
        }
        kept.push(tail);
        slept.push(clock.slept());
    }
    let most = kept[kept.len() - 1];
    let up_to = |percent: u64| slept[kept.partition_point(|tail| tail * 100 <= most * percent) - 1];
    assert_eq!(up_to(74), Duration::ZERO, "a flush may take a while");
    assert!(up_to(85) > Duration::ZERO);
    let quarter = u32::try_from(kept.len() / 4).unwrap();
    let millis = Duration::from_millis(1);
    assert!(up_to(100) > quarter * millis / 4, "{:?} for {quarter} documents", up_to(100));
    let longest = slept.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(longest <= millis, "{longest:?}");
}

/// A flush called for another one each time that enough was written meanwhile. They waited for its
/// sync, one a thread, and no thread was left for a seal.
#[test]
fn one_flush_at_a_time_is_called_for() {
    let meanwhile = Meanwhile::at(Call::SyncData);
    let clock = Arc::new(ManualClock::default());
    let stepped = Arc::new(Stepped::new(Arc::clone(&clock)));
    let options = Options::default()
        .durability(Durability::BUFFERED)
        .memory_budget(8 << 20)
        .memtable_bytes(1 << 20)
        .disk(meanwhile.disk(Arc::new(MemoryDisk::new())))
        .clock(clock)
        .executor(Arc::clone(&stepped) as _);
    let database = Database::open(DB, options).unwrap();
    let collection = database.collection("c").unwrap();
    stepped.run_until_idle();
    let put = |collection: &Collection| {
        collection.put(1, &json!({ "pad": "x".repeat(1000) })).unwrap();
    };
    let flushes = |stepped: &Stepped| {
        let due = stepped.advance(Duration::ZERO);
        due.into_iter().filter(|job| *job == "flush").count()
    };
    let mut written = 0;
    while flushes(&stepped) == 0 {
        put(&collection);
        written += 1;
    }
    let (done, came) = mpsc::channel();
    let (inside, jobs) = (collection.clone(), Arc::clone(&stepped));
    meanwhile.set(Box::new(move || {
        // Less than would have the writer sync by itself.
        for _ in 0..written / 2 {
            put(&inside);
        }
        done.send(flushes(&jobs)).unwrap();
    }));
    stepped.step();
    assert_eq!(came.try_recv(), Ok(0), "{written} documents call for a flush");
    for _ in 0..written {
        put(&collection);
    }
    assert_eq!(flushes(&stepped), 1, "the next one");
}

/// Does something, once, while the manifest is synced.
#[derive(Default)]
struct AtManifestSync(Mutex<Option<Work>>);

impl fmt::Debug for AtManifestSync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AtManifestSync")
    }
}

impl Hook for AtManifestSync {
    fn sync(&self, path: &Path, sync: &dyn Fn() -> io::Result<()>) -> io::Result<()> {
        let is_manifest = path.file_stem().is_some_and(|name| name == "MANIFEST");
        let work = if is_manifest { self.0.lock().unwrap().take() } else { None };
        work.into_iter().for_each(|work| work());
        sync()
    }
}

/// A writer whose segment was full waited, with the log's lock, for the sync of a sweep's step: up to
/// a fifth of a second on a busy disk, and everybody behind it.
#[test]
fn a_roll_does_not_wait_for_a_sync_of_the_manifest() {
    const MEMTABLE: u64 = 64 << 10;
    /// More than a memtable holds.
    const RECORDS: i64 = 1100;
    let hook = Arc::new(AtManifestSync::default());
    let clock = Arc::new(ManualClock::default());
    let stepped = Arc::new(Stepped::new(Arc::clone(&clock)));
    let options = Options::default()
        .durability(Durability::BUFFERED)
        .memory_budget(8 << 20)
        .memtable_bytes(MEMTABLE)
        .disk(Arc::new(HookDisk::new(Arc::new(MemoryDisk::new()), &hook)))
        .clock(clock)
        .executor(Arc::clone(&stepped) as _);
    let database = Database::open(DB, options).unwrap();
    let collection = database.collection("c").unwrap();
    let put = |collection: &Collection, id: i64| collection.put(id, &json!({ "n": id })).unwrap();
    let (done, came) = mpsc::channel();
    let mut id = 0;
    loop {
        match stepped.advance(Duration::ZERO).first().copied() {
            None => {
                put(&collection, id % 3000);
                id += 1;
            }
            // Nothing else is to be done: the next segment is prepared, and none waits for its seal.
            Some("compact") => {
                let (collection, done) = (collection.clone(), done.clone());
                let write = move || (0..RECORDS).for_each(|id| put(&collection, id));
                *hook.0.lock().unwrap() = Some(Box::new(move || {
                    let (written, is_written) = mpsc::channel();
                    thread::spawn(move || {
                        write();
                        // Nobody listens if it took too long.
                        written.send(()).unwrap_or(());
                    });
                    // When the writer waits for this very sync, for ever.
                    done.send(is_written.recv_timeout(Duration::from_secs(60)).is_ok()).unwrap();
                }));
                stepped.step();
                if hook.0.lock().unwrap().take().is_none() {
                    break;
                }
            }
            Some(_) => drop(stepped.step()),
        }
    }
    assert_eq!(came.try_recv(), Ok(true), "the writer waited for the sync");
    assert!(database.stats().rolls > 1, "{:?}", database.stats());
}
