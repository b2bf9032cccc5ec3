//! Every call of the disk fails in turn, once and for good.
//!
//! As SQLite's tests do it: the k-th call of a kind fails, for every k, until a life ends without
//! meeting the fault. The caller is told; what was answered stays readable, and is there after a
//! crash; once the disk works again writes go on without a reopen.

use std::sync::Arc;

use engine::disk::faulty::{Call, Fault, FaultyDisk, Outcome, Repeat};
use engine::disk::{Disk, Gaps, MemoryDisk};

use crate::check::Checker;
use crate::counts::{Counts, is_exhaustive};
use crate::faults::{Random, shared};
use crate::history::{Bounds, History};
use crate::images::{self, Kept};
use crate::script::{Mode, Script, Step, scripted};
use crate::sites::{self, Watch};
use crate::world::World;

/// Every kind of call, each with what can happen to it.
pub(crate) const KINDS: [Call; 13] = [
    Call::Open,
    Call::Read,
    Call::Write,
    Call::SyncData,
    Call::SetLen,
    Call::Allocate,
    Call::Map,
    Call::Rename,
    Call::Remove,
    Call::List,
    Call::CreateDir,
    Call::SyncDir,
    Call::Lock,
];

/// How a call fails.
const FAILURES: [(Outcome, Repeat); 6] = [
    (Outcome::Error(libc::EIO), Repeat::Once),
    (Outcome::Error(libc::ENOSPC), Repeat::Onward),
    (Outcome::ErrorAfter(libc::EIO), Repeat::Once),
    (Outcome::Error(libc::EIO), Repeat::Onward),
    (Outcome::Error(libc::ENOSPC), Repeat::Once),
    // For good it would be a loop, as it would be in any program.
    (Outcome::Error(libc::EINTR), Repeat::Once),
];

/// The same of writes, which can also be short.
const SHORT: [(Outcome, Repeat); 3] = [
    (Outcome::Short(7), Repeat::Once),
    (Outcome::ShortThenError(600, libc::ENOSPC), Repeat::Once),
    (Outcome::Short(100), Repeat::Onward),
];

fn failures(call: Call) -> Vec<(Outcome, Repeat)> {
    let short: &[(Outcome, Repeat)] = if call == Call::Write { &SHORT } else { &[] };
    FAILURES.iter().chain(short).copied().collect()
}

/// A disk that records, one above it that fails, and one above that which sees who calls.
pub(crate) struct Stage {
    pub(crate) memory: MemoryDisk,
    pub(crate) faulty: FaultyDisk,
    pub(crate) watch: Arc<Watch>,
    pub(crate) disk: Arc<dyn Disk>,
}

impl Stage {
    pub(crate) fn new(memory: MemoryDisk) -> Self {
        memory.start_trace();
        let faulty = FaultyDisk::new(shared(&memory));
        let (watch, disk) = sites::watch(Arc::new(faulty.clone()));
        Self { memory, faulty, watch, disk }
    }
}

/// After a failure, and while it lasts: a crash loses nothing that was answered. Once the disk
/// works: nor does the database, which goes on without a reopen.
pub(crate) fn aftermath(
    world: &mut World,
    faulty: &FaultyDisk,
    (checker, random): (&mut Checker, &mut Random),
    what: &str,
) {
    let now = world.memory().trace_len();
    let toss = Kept::Random(random.next(), 1 + random.below(7));
    let crashes = [Kept::Nothing, Kept::All, toss];
    let kept = crashes[usize::try_from(random.below(3)).unwrap()];
    let gaps = Gaps::Garbage(random.next());
    let image = images::build(world.memory(), kept, gaps);
    let bounds = world.history.bounds(now, kept == Kept::All);
    let crash = format!("{what}; then a crash, {kept:?}");
    checker.check((&image, gaps), &world.history, bounds, &crash);
    faulty.heal();
    if world.db().is_none() {
        assert!(world.open(), "{what}; healed: {:?}", world.errors.last());
    }
    let errors = world.errors.len();
    world.step(Step::Put(2));
    world.step(Step::DurableBatch(3));
    assert_eq!(world.errors.len(), errors, "{what}; healed: {:?}", world.errors.last());
    assert!(world.history.unsure.is_none(), "{what}");
    world.check_live(&format!("{what}; healed"));
    let image = images::build(world.memory(), Kept::Nothing, Gaps::Zeros);
    let last = world.history.len() - 1;
    let bounds = Bounds { at_least: last, at_most: last };
    checker.check(
        (&image, Gaps::Zeros),
        &world.history,
        bounds,
        &format!("{what}; healed, then a power cut"),
    );
    world.step(Step::Compact);
    world.step(Step::Reopen);
    world.step(Step::Put(1));
    assert_eq!(world.errors.len(), errors, "{what}; healed: {:?}", world.errors.last());
    world.check_live(&format!("{what}; opened again"));
}

/// One life with one fault; false when the life ended without meeting it.
fn live_with_fault(
    script: &Script,
    (call, skip, outcome, repeat): (Call, u64, Outcome, Repeat),
    (checker, random): (&mut Checker, &mut Random),
) -> bool {
    let stage = Stage::new(MemoryDisk::new());
    stage.faulty.inject(Fault { calls: vec![call], skip, outcome, repeat });
    let mut world = World::faulty(script, &stage.memory, Arc::clone(&stage.disk));
    let what = format!("{}: {outcome:?} {repeat:?} of {call:?} {skip}", script.name);
    world.live(script);
    if stage.faulty.calls(call) <= skip {
        assert!(world.errors.is_empty(), "{what}: {:?}", world.errors);
        return false;
    }
    checker.counts.add("fault points", 1);
    checker.counts.add("reported", u64::from(!world.errors.is_empty()));
    aftermath(&mut world, &stage.faulty, (checker, random), &what);
    true
}

/// Fails each call of a script: every one in some way, in every way with SEDIMENT_EXHAUSTIVE. Without
/// it, one in `stride`.
fn fail_every_call(script: &Script, stride: u64) -> Checker {
    let stride = if is_exhaustive() { 1 } else { stride };
    let mut checker = Checker::new(script);
    let mut random = Random::seeded(script.seed);
    for call in KINDS {
        let failures = failures(call);
        let mut skip = 0;
        'calls: loop {
            let first = usize::try_from(skip / stride).unwrap() + script.name.len();
            let ways = if is_exhaustive() { failures.len() } else { 1 };
            for way in 0..ways {
                let (outcome, repeat) = failures[(first + way) % failures.len()];
                let fault = (call, skip, outcome, repeat);
                if !live_with_fault(script, fault, (&mut checker, &mut random)) {
                    break 'calls;
                }
            }
            skip += stride;
        }
        checker.counts.add("kinds of calls", u64::from(skip > 0));
    }
    checker
}

fn scripted_at(number: usize, mode: Mode) {
    fail_some_calls(number, mode, 1);
}

fn fail_some_calls(number: usize, mode: Mode, stride: u64) {
    let script = &scripted(mode)[number];
    let checker = fail_every_call(script, stride);
    checker.counts.at_least("fault points", 150);
    checker.counts.at_least("kinds of calls", 11);
    checker.counts.at_least("reported", checker.counts.get("fault points") / 4);
    checker.counts.report(&format!("failing, {}", script.name));
}

#[test]
fn any_call_of_a_durable_log_fails() {
    scripted_at(0, Mode::Durable);
}

#[test]
fn any_call_of_a_buffered_log_fails() {
    scripted_at(0, Mode::Buffered);
}

#[test]
fn any_call_of_durable_merges_in_level_0_fails() {
    scripted_at(1, Mode::Durable);
}

#[test]
fn any_call_of_buffered_merges_in_level_0_fails() {
    scripted_at(1, Mode::Buffered);
}

#[test]
fn any_call_of_durable_sweeps_fails() {
    scripted_at(2, Mode::Durable);
}

#[test]
fn any_call_of_buffered_sweeps_fails() {
    scripted_at(2, Mode::Buffered);
}

#[test]
fn any_call_under_durable_snapshots_fails() {
    scripted_at(3, Mode::Durable);
}

#[test]
fn any_call_under_buffered_snapshots_fails() {
    scripted_at(3, Mode::Buffered);
}

#[test]
fn any_call_of_durable_collections_fails() {
    scripted_at(4, Mode::Durable);
}

#[test]
fn any_call_of_buffered_collections_fails() {
    scripted_at(4, Mode::Buffered);
}

/// Of the rounds every fourth one: they do what other lists do, only more often.
const OF_ROUNDS: u64 = 4;

#[test]
fn any_call_of_durable_rounds_fails() {
    fail_some_calls(5, Mode::Durable, OF_ROUNDS);
}

#[test]
fn any_call_of_buffered_rounds_fails() {
    fail_some_calls(5, Mode::Buffered, OF_ROUNDS);
}

/// Points of a life in so many whose recovery is failed.
const RECOVERIES: usize = 150;

/// A recovery that fails changes nothing that the next one needs.
#[test]
fn any_call_of_recovery_fails() {
    let mut counts = Counts::default();
    for mode in Mode::ALL {
        for script in scripted(mode) {
            let mut world = World::new(&script);
            world.live(&script);
            let (trace, history) = (world.memory().trace(), &world.history);
            let mut checker = Checker::new(&script);
            let mut random = Random::seeded(script.seed);
            for at in (20..trace.len()).step_by(RECOVERIES) {
                let disk = MemoryDisk::replay(&trace[..at]).unwrap();
                let image = images::build(&disk, Kept::All, Gaps::Zeros);
                let what = format!("{}, killed at {at} of {}", script.name, trace.len());
                let bounds = history.bounds(at, true);
                let number = checker.check((&image, Gaps::Zeros), history, bounds, &what);
                for call in KINDS {
                    let mut skip = 0;
                    while fail_recovery(
                        &script,
                        (&image, history, number),
                        (call, skip),
                        (&mut checker, &mut random),
                        &what,
                    ) {
                        skip += 1;
                    }
                }
            }
            for name in ["fault points", "refused", "opened"] {
                counts.add(name, checker.counts.get(name));
            }
        }
    }
    counts.at_least("fault points", 1000);
    counts.at_least("refused", counts.get("fault points") / 4);
    counts.report("failing, recovery");
}

fn fail_recovery(
    script: &Script,
    (image, history, number): (&engine::disk::CrashImage, &History, usize),
    (call, skip): (Call, u64),
    (checker, random): (&mut Checker, &mut Random),
    what: &str,
) -> bool {
    let stage = Stage::new(image.disk().unwrap());
    let failures = failures(call);
    let (outcome, repeat) = failures[usize::try_from(random.below(64)).unwrap() % failures.len()];
    stage.faulty.inject(Fault { calls: vec![call], skip, outcome, repeat });
    let what = format!("{what}; {outcome:?} {repeat:?} of {call:?} {skip} in recovery");
    let sequence = history.sequence(number);
    let known = History::starting_with(history.state(number).clone(), sequence);
    let mut world = World::again_faulty(script, &stage.memory, Arc::clone(&stage.disk), known);
    let opened = world.open();
    if opened {
        world.step(Step::Work);
    }
    if stage.faulty.calls(call) <= skip {
        assert!(opened, "{what}: {:?}", world.errors);
        return false;
    }
    checker.counts.add("fault points", 1);
    checker.counts.add("refused", u64::from(!opened));
    aftermath(&mut world, &stage.faulty, (checker, random), &what);
    true
}
