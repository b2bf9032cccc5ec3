//! Random operations on a database and on a `BTreeMap`: every answer must be the same.
//!
//! Each case has a seed of its own, from which come its options and its operations. `SEDIMENT_SEED`
//! runs one case and prints what it does; `SEDIMENT_CASES` changes how many there are.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;
#[path = "model/compaction.rs"]
mod compaction;
#[path = "model/content.rs"]
mod content;
#[path = "model/history.rs"]
mod history;
#[path = "model/life.rs"]
mod life;
#[path = "model/reads.rs"]
mod reads;
#[path = "model/totals.rs"]
mod totals;
#[path = "model/world.rs"]
mod world;
#[path = "model/writes.rs"]
mod writes;

use std::sync::atomic::{AtomicU64, Ordering};

use common::Seed;
use totals::Totals;
use world::World;

const CASES: u64 = 600;
const OPERATIONS: usize = 100;

fn case(seed: u64) -> Totals {
    let _named = Seed(seed);
    let mut world = World::new(seed);
    for _ in 0..OPERATIONS {
        world.operate();
    }
    world.finish()
}

#[test]
fn a_database_answers_as_a_btree_map_does() {
    if let Some(seed) = Seed::asked_for() {
        println!("{}", case(seed));
        return;
    }
    let cases = std::env::var("SEDIMENT_CASES").map_or(CASES, |text| text.parse().unwrap());
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let totals = std::thread::scope(|scope| {
        let work = || {
            let mut totals = Totals::default();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= cases {
                    return totals;
                }
                totals += case(seed);
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut totals = Totals::default();
        for thread in threads {
            match thread.join() {
                Ok(more) => totals += more,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        totals
    });
    println!("{cases} cases: {totals}");
    if cases >= CASES {
        totals.check();
    }
}
