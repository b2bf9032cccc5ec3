//! Fault case A10: power cuts while several threads write to a buffered database. What survives is
//! a prefix of the commit order.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use common::{DB, Hook, HookDisk, Random, Seed, power_lost, tiny_on};
use engine::disk::{MemoryDisk, Unsynced};
use engine::{Batch, Collection, Compaction, Database, Durability, Options, WriteDurability};
use serde_json::json;

const WRITERS: i64 = 4;
/// Ids that all writers write and delete.
const HOT: usize = 12;
const LIVES: u64 = 6;
const CUTS: usize = 15;
/// Each writer's writes have numbers of their own.
const SPAN: i64 = 1 << 32;

/// What a write does to one of the hot ids.
#[derive(Clone, Copy, Debug)]
enum Effect {
    Put(i64),
    Delete(i64),
}

/// Write `n` of a writer: a document of its own in `log`, and what it does in `hot`.
fn effects(seed: u64, number: i64) -> Vec<Effect> {
    let mut random = Random::new(Random::new(seed ^ number.cast_unsigned()).next());
    let count = random.below(4);
    let effect = |random: &mut Random| {
        let id = i64::try_from(random.below(HOT)).unwrap();
        if random.percent(30) { Effect::Delete(id) } else { Effect::Put(id) }
    };
    (0..count).map(|_| effect(&mut random)).collect()
}

/// The collections `log` and `hot`.
fn collections(database: &Database) -> [Collection; 2] {
    ["log", "hot"].map(|name| database.collection(name).unwrap())
}

fn write(
    database: &Database,
    [log, hot]: &[Collection; 2],
    (seed, number): (u64, i64),
    durability: WriteDurability,
) {
    let mut batch = Batch::new();
    for effect in effects(seed, number) {
        match effect {
            Effect::Put(id) => batch.put(hot, id, &json!({ "number": number })).unwrap(),
            Effect::Delete(id) => batch.delete(hot, id).unwrap(),
        }
    }
    let pad = usize::try_from(number % 300).unwrap();
    batch.put(log, number, &json!({ "number": number, "pad": "p".repeat(pad) })).unwrap();
    database.write_with(batch, durability).unwrap();
}

/// Lets writers go on up to a number of writes, so that the log does not grow while a cut is
/// looked at.
#[derive(Debug, Default)]
struct Pace {
    /// Begun, allowed, answered.
    counts: Mutex<(u64, u64, u64)>,
    changed: Condvar,
    is_over: AtomicBool,
}

impl Pace {
    /// Waits until one more write is allowed; false when it is over.
    fn begin(&self) -> bool {
        let guard = self.counts.lock().unwrap();
        let is_stopped = |(begun, allowed, _): &mut (u64, u64, u64)| {
            begun >= allowed && !self.is_over.load(Ordering::Relaxed)
        };
        let mut counts = self.changed.wait_while(guard, is_stopped).unwrap();
        counts.0 += 1;
        !self.is_over.load(Ordering::Relaxed)
    }

    fn answered(&self) {
        self.counts.lock().unwrap().2 += 1;
        self.changed.notify_all();
    }

    /// Allows more writes, and waits until so many more are answered; the others go on.
    fn go_on(&self, answered: u64, more: u64) {
        let mut counts = self.counts.lock().unwrap();
        let target = counts.2 + answered;
        counts.1 = target + more;
        self.changed.notify_all();
        let is_short = |counts: &mut (u64, u64, u64)| {
            counts.2 < target && !self.is_over.load(Ordering::Relaxed)
        };
        drop(self.changed.wait_while(counts, is_short).unwrap());
    }

    fn stop(&self) {
        let _counts = self.counts.lock().unwrap();
        self.is_over.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

/// A writer that panics stops the others, so that nobody waits for its answers.
struct StopAtPanic<'a>(&'a Pace);

impl Drop for StopAtPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

/// What was there after a power cut.
struct Cut {
    /// The last number of each writer that was durable before it.
    durable: Vec<i64>,
    /// The last number of each writer that was answered before it.
    answered: Vec<i64>,
    log: Vec<i64>,
    hot: BTreeMap<i64, i64>,
}

fn rows(collection: &Collection) -> BTreeMap<i64, i64> {
    let row = |row: engine::Result<(engine::Id<'static>, engine::Document)>| {
        let (id, document) = row.unwrap();
        let engine::Id::Integer(id) = id else { panic!("nobody wrote {id}") };
        (id, document.get_i64("number").unwrap().unwrap())
    };
    collection.scan(..).unwrap().map(row).collect()
}

/// Syncs take their time, so that cuts find segments that are full and not yet synced, with the
/// log going on behind them.
#[derive(Debug)]
struct SlowSyncs;

impl Hook for SlowSyncs {
    fn sync(&self, _path: &Path, sync: &dyn Fn() -> io::Result<()>) -> io::Result<()> {
        thread::sleep(Duration::from_millis(2));
        sync()
    }
}

/// Which of the unsynced survive: all of a kind, each for itself, or those before some moment.
fn survival(random: &mut Random) -> impl FnMut(&Unsynced) -> bool + use<> {
    let mut random = Random::new(random.next());
    let percent = *random.pick(&[0, 10, 50, 90, 99]);
    let lost_file = random.below(3) as u64;
    let kind = random.below(4);
    let mut left = random.below(200);
    move |unsynced| match kind {
        0 => {
            left = left.saturating_sub(1);
            left > 0
        }
        // All but some files' sectors: the newest data without the oldest, or the other way round.
        1 => match unsynced {
            Unsynced::Sector { file, .. } => file % 3 != lost_file,
            _ => true,
        },
        2 => !matches!(unsynced, Unsynced::Sector { .. }) || random.percent(percent),
        _ => random.percent(percent),
    }
}

/// Writers on threads, and power cuts among them.
struct Life {
    seed: u64,
    disk: MemoryDisk,
    database: Database,
    collections: [Collection; 2],
    durable: Vec<AtomicI64>,
    answered: Vec<AtomicI64>,
    pace: Pace,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let disk = MemoryDisk::new();
        let flush_interval = *random.pick(&[5, 20, 3_600_000]);
        let options = Self::options(&disk)
            .disk(Arc::new(HookDisk::new(Arc::new(disk.clone()), &Arc::new(SlowSyncs))))
            .durability(Durability::Buffered {
                flush_interval: Duration::from_millis(flush_interval),
            })
            .compaction(*random.pick(&[Compaction::Automatic, Compaction::Manual]));
        let database = Database::open(DB, options).unwrap();
        let collections = collections(&database);
        database.sync().unwrap();
        let none = || (0..WRITERS).map(|writer| AtomicI64::new(writer * SPAN)).collect();
        Self {
            seed,
            disk,
            database,
            collections,
            durable: none(),
            answered: none(),
            pace: Pace::default(),
        }
    }

    /// With a history that keeps every version, which tells the commit order in the end.
    fn options(disk: &MemoryDisk) -> Options {
        tiny_on(disk).history(1 << 40)
    }

    fn write_until_stopped(&self, writer: i64, durable_percent: usize) {
        let _others = StopAtPanic(&self.pace);
        let at = usize::try_from(writer).unwrap();
        let mut random = Random::new(self.seed ^ writer.cast_unsigned());
        for number in writer * SPAN + 1.. {
            if !self.pace.begin() {
                return;
            }
            let is_durable = random.percent(durable_percent);
            let durability =
                if is_durable { WriteDurability::Durable } else { WriteDurability::AsOpened };
            write(&self.database, &self.collections, (self.seed, number), durability);
            self.answered[at].store(number, Ordering::Release);
            if is_durable {
                self.durable[at].store(number, Ordering::Release);
            } else if random.percent(2) {
                // What all others were answered before is durable too.
                let before = numbers(&self.answered);
                self.database.sync().unwrap();
                for (durable, before) in self.durable.iter().zip(before) {
                    durable.fetch_max(before, Ordering::AcqRel);
                }
            }
            self.pace.answered();
        }
    }

    /// Cuts the power while writers go on, and looks at what is left, twice: recovery itself must
    /// leave something durable.
    fn cut(&self, random: &mut Random) -> Cut {
        let (durable, answered) = (numbers(&self.durable), numbers(&self.answered));
        let left = self.disk.power_cut(survival(random)).unwrap();
        let read = |disk: &MemoryDisk| {
            let database = Database::open(DB, Self::options(disk)).unwrap();
            assert_eq!(database.stats().recovery.damage, None);
            let [log, hot] = collections(&database);
            let (log, hot) = (rows(&log), rows(&hot));
            // Before it is closed, which would sync.
            (log, hot, power_lost(disk))
        };
        let (log, hot, again) = read(&left);
        assert!(log.iter().all(|(id, number)| id == number));
        let (log_again, hot_again, _) = read(&again);
        assert!((&log, &hot) == (&log_again, &hot_again), "what was recovered is not durable");
        Cut { durable, answered, log: log.into_keys().collect(), hot }
    }

    /// The sequence of each write: the first whose snapshot sees it.
    fn commit_order(&self) -> Vec<(u64, i64)> {
        let [log, _] = &self.collections;
        let end = self.database.stats().visible_sequence;
        let sees = |sequence: u64, number: i64| {
            let snapshot = self.database.snapshot_at(sequence).unwrap();
            snapshot.get(log, number).unwrap().is_some()
        };
        let first = |number: i64| {
            let (mut without, mut with) = (0, end);
            while with - without > 1 {
                let middle = without.midpoint(with);
                if sees(middle, number) { with = middle } else { without = middle }
            }
            (with, number)
        };
        let mut order: Vec<(u64, i64)> = rows(log).into_keys().map(first).collect();
        order.sort_unstable();
        order
    }
}

fn numbers(counters: &[AtomicI64]) -> Vec<i64> {
    counters.iter().map(|counter| counter.load(Ordering::Acquire)).collect()
}

#[test]
fn a10_a_power_cut_under_several_buffered_writers_leaves_a_prefix_of_the_commit_order() {
    let seed = Seed::or(10);
    let mut random = seed.random();
    let (mut lost_some, mut in_the_middle, mut between_writers) = (0, 0, 0);
    for _ in 0..LIVES {
        let life_seed = random.next();
        let durable_percent = *random.pick(&[0, 0, 3]);
        let life = Life::new(life_seed);
        let cuts: Vec<Cut> = thread::scope(|scope| {
            for writer in 0..WRITERS {
                let life = &life;
                scope.spawn(move || life.write_until_stopped(writer, durable_percent));
            }
            let cuts = (0..CUTS).map(|_| {
                life.pace.go_on(1 + random.below(60) as u64, 40);
                life.cut(&mut random)
            });
            let cuts = cuts.collect();
            life.pace.stop();
            cuts
        });
        let order = life.commit_order();
        for cut in &cuts {
            let survived = cut.log.len();
            let mut expected: Vec<i64> =
                order[..survived].iter().map(|(_, number)| *number).collect();
            expected.sort_unstable();
            assert!(
                cut.log == expected,
                "life {life_seed}: no prefix of the commit order survived"
            );
            // What the writes before that point add up to, and nothing else.
            let mut hot = BTreeMap::new();
            for (_, number) in &order[..survived] {
                for effect in effects(life_seed, *number) {
                    match effect {
                        Effect::Put(id) => drop(hot.insert(id, *number)),
                        Effect::Delete(id) => drop(hot.remove(&id)),
                    }
                }
            }
            assert!(cut.hot == hot, "life {life_seed}: batches are not whole");
            let last = |writer: i64| {
                let own = writer * SPAN..(writer + 1) * SPAN;
                cut.log.iter().copied().filter(|number| own.contains(number)).max()
            };
            let lasts: Vec<i64> =
                (0..WRITERS).map(|writer| last(writer).unwrap_or(writer * SPAN)).collect();
            for (last, durable) in lasts.iter().zip(&cut.durable) {
                assert!(last >= durable, "life {life_seed}: {durable} was durable, {last} is left");
            }
            let lost = lasts.iter().zip(&cut.answered).filter(|(last, answered)| last < answered);
            let writers_that_lost = lost.count();
            lost_some += usize::from(writers_that_lost > 0);
            in_the_middle += usize::from(writers_that_lost > 0 && survived > 0);
            between_writers += usize::from(writers_that_lost > 1);
        }
        life.database.close().unwrap();
    }
    println!(
        "{lost_some} cuts lost something, {in_the_middle} not all, {between_writers} of several"
    );
    assert!(lost_some > 15 && in_the_middle > 10 && between_writers > 10);
}
