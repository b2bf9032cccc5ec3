//! The disk is full at every boundary of a write, and some bytes before and behind it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use engine::disk::faulty::{Call, FaultyDisk};
use engine::disk::{Disk, MemoryDisk};

use crate::check::Checker;
use crate::counts::is_exhaustive;
use crate::failing::{Stage, aftermath};
use crate::faults::hook::{Hook, HookDisk};
use crate::faults::{Random, is_disk_full, shared};
use crate::script::{Mode, Script, scripted};
use crate::world::World;

/// More than any script takes.
const PLENTY: u64 = 1 << 40;

/// Notes how much space is taken before each call that may take some.
#[derive(Debug)]
struct Boundaries {
    faulty: FaultyDisk,
    taken: Mutex<BTreeSet<u64>>,
}

impl Hook for Boundaries {
    fn begin(&self, call: Call, _: &Path) {
        if matches!(call, Call::Write | Call::Allocate) {
            let taken = PLENTY - self.faulty.free_space().unwrap();
            self.taken.lock().unwrap().insert(taken);
        }
    }
}

/// How much is taken at each boundary of a life.
fn boundaries(script: &Script) -> Vec<u64> {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(shared(&memory));
    faulty.set_free_space(Some(PLENTY));
    let boundaries = Arc::new(Boundaries { faulty: faulty.clone(), taken: Mutex::default() });
    let disk: Arc<dyn Disk> = Arc::new(HookDisk::new(Arc::new(faulty), &boundaries));
    let mut world = World::faulty(script, &memory, disk);
    world.live(script);
    assert!(world.errors.is_empty(), "{:?}", world.errors);
    let taken = boundaries.taken.lock().unwrap();
    taken.iter().copied().collect()
}

#[test]
fn b8_a_disk_that_is_full_at_any_boundary_loses_nothing_and_writes_resume() {
    let mut counts = crate::counts::Counts::default();
    for mode in Mode::ALL {
        for script in scripted(mode) {
            let mut checker = Checker::new(&script);
            let mut random = Random::seeded(script.seed);
            let boundaries = boundaries(&script);
            for (number, boundary) in boundaries.iter().enumerate() {
                let mut spaces = vec![*boundary, boundary + 1, boundary.saturating_sub(1)];
                if !is_exhaustive() {
                    spaces = vec![spaces[number % 3]];
                }
                for space in spaces {
                    let stage = Stage::new(MemoryDisk::new());
                    stage.faulty.set_free_space(Some(space));
                    let mut world = World::faulty(&script, &stage.memory, Arc::clone(&stage.disk));
                    world.live(&script);
                    let what = format!("{}: full after {space} bytes", script.name);
                    let named = world.errors.iter().filter(|e| is_disk_full(e)).count();
                    checker.counts.add("full disks", 1);
                    checker.counts.add("reported", u64::from(named > 0));
                    aftermath(&mut world, &stage.faulty, (&mut checker, &mut random), &what);
                }
            }
            for name in ["full disks", "reported", "opened"] {
                counts.add(name, checker.counts.get(name));
            }
        }
    }
    counts.at_least("full disks", 300);
    counts.at_least("reported", counts.get("full disks") / 2);
    counts.report("full disk");
}
