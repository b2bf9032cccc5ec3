//! A process that is killed with SIGKILL at any moment loses no write that it was answered, in
//! any durability.
//!
//! The test runs its own program again as the *victim*, in which several writers work through
//! operations that follow from a seed, and which reports each answer on a pipe. The parent keeps
//! the *oracle*: what each writer's answered operations add up to, to the byte. It kills the victim
//! after some answers, some time after them, or while it opens the database; it opens the folder,
//! or a copy of it, with other options, and compares everything.
//!
//! `just soak` runs the same for as long as it is told, with fresh seeds.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;
mod counts;
mod operations;
mod oracle;
mod rounds;
mod setup;
mod victim;

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use common::{Random, Seed};
use counts::Counts;
use rounds::Rounds;
use setup::MODES;

const ROUNDS: u32 = 20;

/// One mode after the other: several victims at once would only wait for each other's syncs.
fn kill_in_every_mode(seed: u64, totals: &mut Counts) {
    let mut seeds = Random::new(seed);
    for mode in MODES {
        let mut rounds = Rounds::new(mode, seeds.next());
        for _ in 0..ROUNDS {
            rounds.round(totals);
        }
    }
}

#[test]
fn a_killed_process_loses_no_answered_write() {
    let seed = Seed::or(9);
    let mut totals = Counts::default();
    kill_in_every_mode(seed.0, &mut totals);
    println!("{totals:?}");
    totals.check();
    totals.report("kill", seed.0);
}

/// The process that is killed. Does nothing without the environment that the parent gives it.
#[test]
#[ignore = "the other tests start it"]
fn victim() {
    victim::run();
}

/// Rounds for `SEDIMENT_SOAK_MINUTES`, from `SEDIMENT_SEED` or a fresh seed on.
#[test]
#[ignore = "runs for as long as it is told: `just soak`"]
fn soak() {
    let minutes = std::env::var("SEDIMENT_SOAK_MINUTES").map_or(30.0, |text| text.parse().unwrap());
    let seed = Seed(Seed::asked_for().unwrap_or_else(|| RandomState::new().hash_one(0)));
    println!("soaking for {minutes} minutes from SEDIMENT_SEED={}", seed.0);
    let (start, time) = (Instant::now(), Duration::from_secs_f64(60.0 * minutes));
    let mut seeds = Random::new(seed.0);
    let mut totals = Counts::default();
    let mut told = start;
    // At least once, so that a run without time still kills something.
    loop {
        kill_in_every_mode(seeds.next(), &mut totals);
        if start.elapsed() >= time {
            break;
        }
        if told.elapsed() >= Duration::from_secs(30) {
            told = Instant::now();
            println!("{} s: {totals:?}", start.elapsed().as_secs());
        }
    }
    totals.check();
    println!("{}", totals.json(seed.0));
    totals.report("soak", seed.0);
}
