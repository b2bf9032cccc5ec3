//! Fault case B18: a panic in background work, or in a caller's own call, at any step. Calls answer
//! with an error and never hang, reads go on, the database closes, and the next open has all that
//! was answered.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use common::{
    DB, DURABILITIES, Hook, HookDisk, Seed, current_thread, killed, power_lost, tiny, tiny_on,
    wait_until_blocked,
};
use engine::clock::ManualClock;
use engine::disk::MemoryDisk;
use engine::disk::faulty::Call;
use engine::executor::{Executor, Job, Stepped};
use engine::{Batch, Collection, Database, Durability, Error, Options, Snapshot, WriteDurability};
use serde_json::json;

thread_local! {
    /// The background job that this thread runs.
    static JOB: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Runs jobs by hand, and marks the thread while it does.
#[derive(Debug)]
struct Marked(Arc<Stepped>);

fn marked(name: &'static str, job: Job) -> Job {
    Box::new(move || {
        let before = JOB.replace(Some(name));
        job();
        JOB.set(before);
    })
}

impl Executor for Marked {
    fn submit(&self, name: &'static str, job: Job) {
        self.0.submit(name, marked(name, job));
    }

    fn submit_after(&self, delay: Duration, name: &'static str, job: Job) {
        self.0.submit_after(delay, name, marked(name, job));
    }

    fn help(&self) -> bool {
        self.0.help()
    }

    fn shutdown(&self) {
        self.0.shutdown();
    }
}

/// Whose calls panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Background,
    Callers,
}

/// Before a call is made, or after it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Before,
    After,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    Once,
    Onward,
}

/// Panics in the call of one side that comes after so many others.
#[derive(Debug)]
struct Panics {
    side: Side,
    when: When,
    repeat: Repeat,
    plan: Mutex<Plan>,
}

#[derive(Debug, Default)]
struct Plan {
    /// How many calls pass before the first that panics; none does while this is not set.
    skip: Option<u64>,
    calls: u64,
    panics: u64,
    /// The jobs that made calls.
    jobs: BTreeSet<&'static str>,
}

impl Panics {
    fn new(side: Side, when: When, repeat: Repeat) -> Arc<Self> {
        Arc::new(Self { side, when, repeat, plan: Mutex::default() })
    }

    /// From now on.
    fn arm(&self, skip: u64) {
        *self.plan.lock().unwrap() = Plan { skip: Some(skip), ..Plan::default() };
    }

    fn disarm(&self) {
        self.plan.lock().unwrap().skip = None;
    }

    fn has_panicked(&self) -> bool {
        self.plan.lock().unwrap().panics > 0
    }
}

impl Panics {
    fn count(&self, call: Call, path: &Path) {
        let job = JOB.get().or_else(|| {
            let thread = thread::current();
            thread.name().is_some_and(|name| name.starts_with("sediment-")).then_some("a thread")
        });
        if job.is_some() != (self.side == Side::Background) {
            return;
        }
        let mut plan = self.plan.lock().unwrap();
        let Some(skip) = plan.skip else { return };
        let is_due = match self.repeat {
            Repeat::Once => plan.calls == skip,
            Repeat::Onward => plan.calls >= skip,
        };
        plan.calls += 1;
        plan.jobs.extend(job);
        if is_due {
            plan.panics += 1;
            drop(plan);
            panic_quietly(format!("{call:?} of {} on purpose", path.display()));
        }
    }
}

impl Hook for Panics {
    fn begin(&self, call: Call, path: &Path) {
        if self.when == When::Before {
            self.count(call, path);
        }
    }

    fn end(&self, call: Call, path: &Path) {
        if self.when == When::After {
            self.count(call, path);
        }
    }
}

/// A panic that is not reported: hundreds of backtraces take their time.
fn panic_quietly(what: String) -> ! {
    resume_unwind(Box::new(what))
}

type Rows = BTreeMap<i64, i64>;

/// A database with its background stepped by hand, beside what it must answer.
struct Life {
    memory: MemoryDisk,
    clock: Arc<ManualClock>,
    stepped: Arc<Stepped>,
    database: Database,
    collection: Collection,
    rows: Rows,
    /// What the rows are if the last write came through.
    attempted: Rows,
    snapshot: Option<Snapshot>,
}

/// Ids that are written and deleted again and again.
const IDS: i64 = 40;

impl Life {
    fn new(durability: Durability, panics: &Arc<Panics>) -> Self {
        let memory = MemoryDisk::new();
        let clock = Arc::new(ManualClock::default());
        let stepped = Arc::new(Stepped::new(Arc::clone(&clock)));
        let options = tiny()
            .level0_runs(2)
            .durability(durability)
            .disk(Arc::new(HookDisk::new(Arc::new(memory.clone()), panics)))
            .clock(Arc::clone(&clock) as _)
            .executor(Arc::new(Marked(Arc::clone(&stepped))));
        let database = Database::open(DB, options).unwrap();
        let collection = database.collection("c").unwrap();
        let (rows, attempted) = (Rows::new(), Rows::new());
        Self { memory, clock, stepped, database, collection, rows, attempted, snapshot: None }
    }

    /// A batch that writes most ids and deletes some, and so fills a third of a memtable.
    fn write(&mut self, round: i64) -> Result<(), Error> {
        let mut rows = self.rows.clone();
        let mut batch = Batch::new();
        for id in (0..IDS).filter(|id| (id + round) % 2 == 0) {
            if (id + round) % 7 == 0 {
                batch.delete(&self.collection, id)?;
                rows.remove(&id);
            } else {
                batch.put(&self.collection, id, &json!({ "v": round, "pad": "0123456789" }))?;
                rows.insert(id, round);
            }
        }
        self.attempted = rows;
        self.database.write(batch)?;
        self.rows = self.attempted.clone();
        Ok(())
    }

    /// Everything that gives background work something to do, until a call fails.
    fn live(&mut self, rounds: i64) -> Result<(), Error> {
        for round in 0..rounds {
            self.write(round)?;
            self.stepped.run_until_idle();
            if round % 3 == 1 {
                // Time for the flush; then for the mark behind it, and for idle compaction.
                for _ in 0..2 {
                    self.clock.advance(Duration::from_millis(300));
                    self.stepped.run_until_idle();
                }
            }
            if round == 3 {
                self.snapshot = Some(self.database.snapshot()?);
            }
        }
        self.snapshot = None;
        self.write(100)?;
        self.database.compact()?;
        self.clock.advance(Duration::from_millis(300));
        self.stepped.run_until_idle();
        // It fails if a job of the last moment has.
        self.write(101)
    }

    /// Reads go on, whatever has happened.
    fn check(&self, what: &str) {
        check(&self.collection, &self.rows, what);
        let snapshot = self.database.snapshot().unwrap();
        let count = snapshot.scan_ids(&self.collection, ..).unwrap().map(Result::unwrap).count();
        assert_eq!(count, self.rows.len(), "{what}");
    }
}

fn check(collection: &Collection, rows: &Rows, what: &str) {
    assert_eq!(found(collection), *rows, "{what}: a scan");
    for id in 0..IDS {
        let found = collection.get(id).unwrap().map(|row| row.get_i64("v").unwrap().unwrap());
        assert_eq!(found, rows.get(&id).copied(), "{what}: {id}");
    }
}

fn found(collection: &Collection) -> Rows {
    let row = |row: engine::Result<(engine::Id<'static>, engine::Document)>| {
        let (id, document) = row.unwrap();
        let engine::Id::Integer(id) = id else { panic!("nobody wrote {id}") };
        (id, document.get_i64("v").unwrap().unwrap())
    };
    collection.scan(..).unwrap().map(row).collect()
}

/// Opens what is left, which must have these rows and take a write.
fn reopen(disk: &MemoryDisk, rows: &Rows, what: &str) {
    let database = Database::open(DB, tiny_on(disk)).unwrap_or_else(|e| panic!("{what}: {e}"));
    let collection = database.collection("c").unwrap();
    check(&collection, rows, what);
    collection.put(1000, &json!({ "v": 0 })).unwrap();
}

fn assert_reported(error: &Error, what: &str) {
    let message = error.to_string();
    assert!(matches!(error, Error::Background { .. }), "{what}: {message}");
    assert!(message.contains("the job `") && message.contains("on purpose"), "{what}: {message}");
    assert!(message.contains("close the database and open it again"), "{what}: {message}");
}

#[test]
fn b18_a_panic_at_any_call_of_background_work_is_an_error_and_costs_nothing() {
    for durability in DURABILITIES {
        for when in [When::Before, When::After] {
            let panics = Panics::new(Side::Background, when, Repeat::Once);
            panics.arm(u64::MAX);
            let mut life = Life::new(durability, &panics);
            life.live(7).unwrap();
            life.check("without a panic");
            let plan = panics.plan.lock().unwrap();
            let mut jobs = BTreeSet::from(["seal", "prepare", "mark", "compact", "reap"]);
            jobs.insert(if durability == Durability::Durable { "zero ahead" } else { "flush" });
            assert!(plan.jobs.is_superset(&jobs), "some jobs make no call: {:?}", plan.jobs);
            for k in 0..plan.calls {
                panic_in_the_background(durability, when, Repeat::Once, k);
                // What comes of a panic in every later call is up to the jobs that come next.
                if k % 5 == 0 {
                    panic_in_the_background(durability, when, Repeat::Onward, k);
                }
            }
        }
    }
}

fn panic_in_the_background(durability: Durability, when: When, repeat: Repeat, k: u64) {
    let what = format!("{durability:?}, {when:?} call {k}, {repeat:?}");
    let panics = Panics::new(Side::Background, when, repeat);
    panics.arm(k);
    let mut life = Life::new(durability, &panics);
    let error = life.live(7).expect_err(&what);
    assert!(panics.has_panicked(), "{what}");
    assert_reported(&error, &what);
    refuses_writes_and_goes_on(&life, &what);
    life.check(&what);
    reopen(&killed(&life.memory), &life.rows, &what);
    if life.database.sync().is_ok() {
        reopen(&power_lost(&life.memory), &life.rows, &what);
    } else {
        assert_eq!(durability, Durability::BUFFERED, "{what}: all is synced");
    }
    life.snapshot = None;
    assert_reported(&life.database.close().unwrap_err(), &what);
    assert!(matches!(life.collection.get(1), Err(Error::Closed)), "{what}");
    reopen(&life.memory, &life.rows, &what);
}

/// Every call that writes says why it does not, and those that wait come back.
fn refuses_writes_and_goes_on(life: &Life, what: &str) {
    let (database, c) = (&life.database, &life.collection);
    let mut batch = Batch::new();
    batch.put(c, 1, &json!({ "v": -1 })).unwrap();
    let refused = [
        c.put(1, &json!({ "v": -1 })),
        c.insert(-1, &json!({ "v": -1 })),
        c.delete(1),
        database.write_with(batch, WriteDurability::Durable),
        database.collection("another").map(drop),
        database.drop_collection("c").map(drop),
        database.compact(),
    ];
    for outcome in refused {
        assert_reported(&outcome.unwrap_err(), what);
    }
    life.clock.advance(Duration::from_secs(1));
    life.stepped.run_until_idle();
    database.wait_idle().unwrap();
}

/// A caller's own thread panics in the disk, and goes on: the log must be as after a failed call.
///
/// The header of a segment that a roll was interrupted at says where the log before it ended, and
/// the log went on behind that end.
#[test]
fn b18_a_panic_at_any_call_of_a_caller_costs_nothing_that_was_answered() {
    for durability in DURABILITIES {
        for when in [When::Before, When::After] {
            let panics = Panics::new(Side::Callers, when, Repeat::Once);
            let mut life = Life::new(durability, &panics);
            panics.arm(u64::MAX);
            life.live(12).unwrap();
            let calls = panics.plan.lock().unwrap().calls;
            assert!(calls > 20, "{calls}");
            for k in 0..calls {
                panic_in_a_call(durability, when, k);
            }
        }
    }
}

fn panic_in_a_call(durability: Durability, when: When, k: u64) {
    let what = format!("{durability:?}, {when:?} call {k}");
    let panics = Panics::new(Side::Callers, when, Repeat::Once);
    let mut life = Life::new(durability, &panics);
    panics.arm(k);
    catch_unwind(AssertUnwindSafe(|| life.live(12))).expect_err(&what);
    panics.disarm();
    // Of a write that was cut short all is there, or nothing.
    if found(&life.collection) == life.attempted {
        life.rows = life.attempted.clone();
    }
    life.check(&what);
    for round in 200..205 {
        life.write(round).unwrap_or_else(|e| panic!("{what}: {e}"));
        reopen(&killed(&life.memory), &life.rows, &what);
    }
    life.stepped.run_until_idle();
    life.check(&what);
    life.database.sync().unwrap();
    reopen(&power_lost(&life.memory), &life.rows, &what);
    life.snapshot = None;
    life.database.close().unwrap_or_else(|e| panic!("{what}: {e}"));
    reopen(&life.memory, &life.rows, &what);
}

/// Writers, a compaction and a sync on threads, and jobs on the database's own: nobody hangs.
#[test]
fn b18_threads_that_meet_a_panic_in_the_background_all_come_back() {
    const WRITERS: i64 = 3;
    const WRITES_MAX: i64 = 3000;
    let seed = Seed::or(18);
    let mut random = seed.random();
    let mut panicked = 0;
    for case in 0..40 {
        let durability = DURABILITIES[case % 2];
        let repeat = [Repeat::Once, Repeat::Onward][random.below(2)];
        let when = [When::Before, When::After][random.below(2)];
        let panics = Panics::new(Side::Background, when, repeat);
        let memory = MemoryDisk::new();
        let options = tiny()
            .durability(durability)
            .disk(Arc::new(HookDisk::new(Arc::new(memory.clone()), &panics)));
        let database = Database::open(DB, options).unwrap();
        let collection = database.collection("c").unwrap();
        panics.arm(random.below(150) as u64);
        let answered: Vec<i64> = thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let collection = &collection;
                    scope.spawn(move || {
                        let id = |n: i64| writer * WRITES_MAX + n;
                        let failed = (0..WRITES_MAX).find_map(|n| {
                            let outcome = collection.put(id(n), &json!({ "v": n }));
                            outcome.err().map(|error| (n, error))
                        });
                        let (end, error) = failed.map_or((WRITES_MAX, None), |(n, e)| (n, Some(e)));
                        if let Some(error) = error {
                            assert!(matches!(error, Error::Background { .. }), "{error}");
                        }
                        end
                    })
                })
                .collect();
            let compact =
                scope.spawn(|| while database.compact().is_ok() && !panics.has_panicked() {});
            let sync = scope.spawn(|| while database.sync().is_ok() && !panics.has_panicked() {});
            let answered = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
            // Those that wait for it end with it.
            panics.plan.lock().unwrap().panics += 1;
            compact.join().unwrap();
            sync.join().unwrap();
            answered
        });
        panicked += usize::from(panics.plan.lock().unwrap().panics > 1);
        let expected: Rows = (0..)
            .zip(&answered)
            .flat_map(|(writer, end)| (0..*end).map(move |n| (writer * WRITES_MAX + n, n)))
            .collect();
        let rows = found(&collection);
        assert!(rows == expected, "case {case}: reads differ from what was answered");
        let left = killed(&memory);
        drop(database.close());
        for disk in [left, memory] {
            let again = Database::open(DB, tiny_on(&disk)).unwrap();
            let rows = found(&again.collection("c").unwrap());
            for (id, n) in &expected {
                assert_eq!(rows.get(id), Some(n), "case {case}: {id} was answered");
            }
            // One write of each writer may have been cut short behind its last answer.
            assert!(
                rows.len() - expected.len() <= usize::try_from(WRITERS).unwrap(),
                "case {case}"
            );
        }
    }
    assert!(panicked > 20, "{panicked} cases met their panic");
}

/// A thread that is told to wait in its writes, and to panic there.
#[derive(Debug, Default)]
struct Trap {
    stage: Mutex<Stage>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    #[default]
    Armed,
    Waits,
    Panics,
}

impl Trap {
    fn reach(&self, stage: Stage) {
        *self.stage.lock().unwrap() = stage;
        self.changed.notify_all();
    }

    fn wait_for(&self, stage: Stage) {
        let guard = self.stage.lock().unwrap();
        drop(self.changed.wait_while(guard, |now| *now < stage).unwrap());
    }
}

impl Hook for Trap {
    fn begin(&self, call: Call, _path: &Path) {
        if call == Call::Write && JOB.get() == Some("zero ahead") {
            self.reach(Stage::Waits);
            self.wait_for(Stage::Panics);
            panic_quietly("on purpose".to_owned());
        }
    }
}

/// The job that writes zeros ahead of the log claims a step, and the writer whose record overlaps it
/// waits until the claim is given back. A panic kept it for good: that writer hung, all others
/// behind it, and so did the close.
#[test]
fn b18_a_writer_that_waits_for_zeros_goes_on_when_their_job_panics() {
    let trap = Arc::new(Trap::default());
    let memory = MemoryDisk::new();
    let stepped = Arc::new(Stepped::new(Arc::new(ManualClock::default())));
    let options = Options::default()
        .disk(Arc::new(HookDisk::new(Arc::new(memory.clone()), &trap)))
        .executor(Arc::new(Marked(Arc::clone(&stepped))));
    let database = Database::open(DB, options).unwrap();
    let collection = database.collection("c").unwrap();
    collection.put(1, &json!({ "v": 1 })).unwrap();
    let background = thread::spawn(move || stepped.run_until_idle());
    trap.wait_for(Stage::Waits);
    let (send, receive) = std::sync::mpsc::channel();
    let writer = {
        // Not in a scope: without an answer it would never end.
        let collection = collection.clone();
        thread::spawn(move || {
            send.send(current_thread()).unwrap();
            collection.put(2, &json!({ "v": 2, "pad": "0".repeat(8192) }))
        })
    };
    let thread = receive.recv().unwrap();
    wait_until_blocked(&thread);
    assert!(!writer.is_finished(), "its record overlaps the zeros");
    trap.reach(Stage::Panics);
    background.join().unwrap();
    wait_until_blocked(&thread);
    assert!(writer.is_finished(), "it waits for a job that is gone");
    // It was let through before the panic was known.
    writer.join().unwrap().unwrap();
    assert_reported(&collection.put(3, &json!({ "v": 3 })).unwrap_err(), "after the panic");
    let rows = Rows::from([(1, 1), (2, 2)]);
    assert_eq!(found(&collection), rows);
    reopen(&power_lost(&memory), &rows, "a power cut");
    assert_reported(&database.close().unwrap_err(), "the close");
    reopen(&memory, &rows, "after the close");
}
