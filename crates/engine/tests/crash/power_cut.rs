//! Power cuts and kills at every step of a life.
//!
//! Between two syncs each sector of 512 bytes, each file's length and each name survives or not by
//! itself, whatever the order (as Pebble's and SQLite's tests have it, and stricter than a file
//! system is); what was never synced may show zeros or garbage.

use engine::disk::{Gaps, MemoryDisk, Replay, Unsynced};

use crate::cases::expected;
use crate::check::Checker;
use crate::counts::is_exhaustive;
use crate::faults::Random;
use crate::images::{self, Kept};
use crate::script::{Mode, Script, Step, full_disk, generated, scripted};
use crate::world::World;

/// Of the images that are neither everything nor nothing, one in so many is opened, another one at
/// each step; all with SEDIMENT_EXHAUSTIVE.
const THINNED: usize = 96;

/// Of the images that are opened, one in so many is crashed again.
const CRASHED_AGAIN: u64 = 16;

/// Does a script, and crashes it at each operation of its recording.
fn crash_at_every_step(script: &Script) -> Checker {
    let mut world = World::new(script);
    world.live(script);
    world.close();
    let (trace, history) = (world.memory().trace(), &world.history);
    let mut checker = Checker::new(script);
    checker.reached.clone_from(&world.reached);
    let mut random = Random::seeded(script.seed);
    let mut replay = Replay::new(MemoryDisk::new());
    let mut turn = 0;
    for at in 0..=trace.len() {
        if at > 0 {
            replay.apply(&trace[at - 1]).unwrap();
        }
        checker.counts.add("crash points", 1);
        let unsynced = replay.disk().unsynced();
        for kept in images::all(&unsynced, random.next()) {
            let is_extreme = matches!(kept, Kept::Nothing | Kept::All);
            turn += 1;
            if !is_extreme && !is_exhaustive() && turn % THINNED != at % THINNED {
                continue;
            }
            for gaps in [Gaps::Zeros, Gaps::Garbage(script.seed)] {
                let image = images::build(replay.disk(), kept, gaps);
                let bounds = history.bounds(at, kept == Kept::All);
                if !checker.is_new(&image, bounds) {
                    continue;
                }
                let what = format!(
                    "{}, step {at} of {} ({:?}), {kept:?} of {}, {gaps:?}",
                    script.name,
                    trace.len(),
                    at.checked_sub(1).map(|last| brief(&trace[last])),
                    unsynced.len()
                );
                let number = checker.check((&image, gaps), history, bounds, &what);
                if checker.counts.get("opened").is_multiple_of(CRASHED_AGAIN) {
                    let known = (history, number);
                    checker.next_generations((&image, gaps), known, &mut random, &what);
                }
            }
        }
    }
    checker
}

/// An operation, without the bytes.
fn brief(operation: &engine::disk::Operation) -> String {
    let mut text = format!("{operation:?}");
    if let Some(bytes) = text.find("bytes: [") {
        text.truncate(bytes);
    }
    text
}

fn scripted_at(number: usize, mode: Mode) {
    crash_and_count(&scripted(mode)[number]);
}

fn crash_and_count(script: &Script) {
    let checker = crash_at_every_step(script);
    checker.counts.at_least("distinct images", 250);
    checker.counts.at_least("generations", 40);
    let missing: Vec<_> = expected(&script.name).difference(&checker.reached).copied().collect();
    assert!(missing.is_empty(), "{} has not reached {missing:?}", script.name);
    checker.counts.report(&script.name);
}

#[test]
fn a_power_cut_at_any_step_of_a_durable_log() {
    scripted_at(0, Mode::Durable);
}

#[test]
fn a_power_cut_at_any_step_of_a_buffered_log() {
    scripted_at(0, Mode::Buffered);
}

#[test]
fn a_power_cut_at_any_step_of_durable_merges_in_level_0() {
    scripted_at(1, Mode::Durable);
}

#[test]
fn a_power_cut_at_any_step_of_buffered_merges_in_level_0() {
    scripted_at(1, Mode::Buffered);
}

#[test]
fn a_power_cut_at_any_step_of_durable_sweeps() {
    scripted_at(2, Mode::Durable);
}

#[test]
fn a_power_cut_at_any_step_of_buffered_sweeps() {
    scripted_at(2, Mode::Buffered);
}

#[test]
fn a_power_cut_at_any_step_under_durable_snapshots() {
    scripted_at(3, Mode::Durable);
}

#[test]
fn a_power_cut_at_any_step_under_buffered_snapshots() {
    scripted_at(3, Mode::Buffered);
}

#[test]
fn a_power_cut_at_any_step_of_durable_collections() {
    scripted_at(4, Mode::Durable);
}

#[test]
fn a_power_cut_at_any_step_of_buffered_collections() {
    scripted_at(4, Mode::Buffered);
}

#[test]
fn a_power_cut_at_any_step_of_durable_rounds() {
    scripted_at(5, Mode::Durable);
}

#[test]
fn a_power_cut_at_any_step_of_buffered_rounds() {
    scripted_at(5, Mode::Buffered);
}

#[test]
fn a_power_cut_at_any_step_of_a_durable_full_disk() {
    crash_and_count(&full_disk(Mode::Durable));
}

#[test]
fn a_power_cut_at_any_step_of_a_buffered_full_disk() {
    crash_and_count(&full_disk(Mode::Buffered));
}

/// Lives that nobody thought of.
#[test]
fn a_power_cut_at_any_step_of_generated_lives() {
    let cases = std::env::var("SEDIMENT_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2);
    let mut seeds = Random::new(0xc4a5);
    let mut counts = crate::counts::Counts::default();
    for _ in 0..cases {
        let seed = seeds.next() >> 20;
        for mode in Mode::ALL {
            let checker = crash_at_every_step(&generated(mode, seed));
            for name in ["crash points", "images", "distinct images", "opened", "generations"] {
                counts.add(name, checker.counts.get(name));
            }
        }
        counts.add("seeds", 1);
    }
    counts.at_least("distinct images", 1000);
    counts.report("generated");
}

/// A file system may write a length ahead of the bytes: the last records' pages then show zeros, or
/// what the blocks held before.
#[test]
fn a9_a_length_that_survives_without_its_bytes_is_a_torn_tail() {
    let script = &scripted(Mode::Buffered)[0];
    let mut world = World::new(script);
    let mut checker = Checker::new(script);
    let mut random = Random::new(0xa9);
    world.step(Step::Batch(3));
    world.step(Step::Sync);
    for step in [Step::Put(4), Step::Batch(20), Step::Roll, Step::Put(3), Step::Delete(1)] {
        world.step(step);
        let now = world.memory().trace_len();
        let unsynced = world.memory().unsynced();
        let is_sector = |piece: &Unsynced| matches!(piece, Unsynced::Sector { .. });
        let sectors = unsynced.iter().filter(|(_, piece)| is_sector(piece)).count();
        assert!(sectors > 0, "{unsynced:?}");
        for lost in 1..=sectors {
            for gaps in [Gaps::Zeros, Gaps::Garbage(random.next())] {
                // Names and lengths are kept, the last sectors are not.
                let mut sector = 0;
                let image = world.memory().crash_image(gaps, |_, piece| {
                    sector += usize::from(is_sector(piece));
                    !is_sector(piece) || sector <= sectors - lost
                });
                let bounds = world.history.bounds(now, false);
                if checker.is_new(&image, bounds) {
                    let what = format!("{step:?}, {lost} of {sectors} sectors lost, {gaps:?}");
                    checker.check((&image, gaps), &world.history, bounds, &what);
                }
            }
        }
    }
    checker.counts.at_least("distinct images", 40);
}
