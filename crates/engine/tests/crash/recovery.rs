//! Crashes inside of recovery, at each of its own operations.

use engine::disk::{CrashImage, Gaps, MemoryDisk, Replay};

use crate::check::Checker;
use crate::counts::Counts;
use crate::faults::{Random, Setup, shared};
use crate::history::{Bounds, History};
use crate::images::{self, Kept};
use crate::script::{Mode, scripted};
use crate::world::World;

/// A point of a life in so many is crashed at, and its recoveries cut short.
const THINNED: usize = 97;

/// The operations that opening an image takes, with the background work that follows at once.
fn recovery_of(image: &CrashImage, setup: Setup) -> Vec<engine::disk::Operation> {
    let disk = image.disk().unwrap();
    disk.start_trace();
    let db = setup.open(&shared(&disk)).unwrap();
    db.step();
    disk.trace()
}

/// Cuts the recovery of an image short at each of its operations: what it would have recovered is
/// recovered then.
fn crash_in_recovery(
    image: &CrashImage,
    (history, number): (&History, usize),
    checker: &mut Checker,
    (setup, random): (Setup, &mut Random),
    what: &str,
) {
    let trace = recovery_of(image, setup);
    let mut replay = Replay::new(image.disk().unwrap());
    for (at, operation) in trace.iter().enumerate() {
        replay.apply(operation).unwrap();
        checker.counts.add("recoveries cut short", 1);
        for kept in [Kept::Nothing, Kept::All, Kept::Random(random.next(), 4)] {
            let gaps = [Gaps::Zeros, Gaps::Garbage(random.next())][at % 2];
            let next = images::build(replay.disk(), kept, gaps);
            let bounds = Bounds { at_least: number, at_most: number };
            if checker.is_new(&next, bounds) {
                let what = format!("{what}; step {at} of {} of recovery, {kept:?}", trace.len());
                checker.check((&next, gaps), history, bounds, &what);
            }
        }
    }
}

#[test]
fn a20_recovery_cut_short_at_any_step_recovers_the_same_the_next_time() {
    let mut counts = Counts::default();
    for mode in Mode::ALL {
        for script in scripted(mode) {
            let mut world = World::new(&script);
            world.live(&script);
            let (trace, history) = (world.memory().trace(), &world.history);
            let mut checker = Checker::new(&script);
            let mut random = Random::seeded(script.seed);
            let mut replay = Replay::new(MemoryDisk::new());
            for (at, operation) in trace.iter().enumerate() {
                replay.apply(operation).unwrap();
                if at % THINNED != 0 {
                    continue;
                }
                for kept in [Kept::All, Kept::Random(random.next(), 4)] {
                    let image = images::build(replay.disk(), kept, Gaps::Zeros);
                    let bounds = history.bounds(at + 1, kept == Kept::All);
                    if !checker.is_new(&image, bounds) {
                        continue;
                    }
                    let what = format!("{}, step {at} of {}, {kept:?}", script.name, trace.len());
                    let number = checker.check((&image, Gaps::Zeros), history, bounds, &what);
                    crash_in_recovery(
                        &image,
                        (history, number),
                        &mut checker,
                        (script.setup, &mut random),
                        &what,
                    );
                }
            }
            for name in ["recoveries cut short", "images", "distinct images", "opened"] {
                counts.add(name, checker.counts.get(name));
            }
        }
    }
    counts.at_least("recoveries cut short", 1000);
    counts.report("recovery");
}
