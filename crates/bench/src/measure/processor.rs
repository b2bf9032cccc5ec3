//! Is a processor ours? A shared machine gives a cell what the neighbours leave, so a fixed amount of
//! work is timed before each cell and compared with the shortest time that it ever took.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Steps of the work: about 10 ms.
const STEPS: u64 = 8_000_000;
/// To find the shortest time at the start of a run.
const FIRST_PROBES: u32 = 20;
/// Longer than the shortest time by this factor, and the processor is not ours.
const QUIET: f64 = 1.04;
const TRIES: u32 = 3;
/// Between the tries, at most.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// What was found before a cell, as its row has it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Quietness {
    /// The last try's time by the shortest one.
    pub(crate) processor_probe: f64,
    /// Whether that was at most 1.04, in one of three tries.
    pub(crate) processor_quiet: bool,
}

/// The shortest time of the work so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processor {
    idle: Duration,
}

impl Processor {
    /// Takes 20 times 10 ms.
    pub(crate) fn calibrate() -> Self {
        let idle = (0..FIRST_PROBES).map(|_| work()).min().unwrap_or_default();
        Self { idle }
    }

    /// Waits for a quiet moment, at most three tries and two pauses. A pause is no longer than the
    /// window that it is for.
    pub(crate) fn wait_until_quiet(&mut self, window: Duration) -> Quietness {
        self.wait(work, || thread::sleep(window.min(PAUSE_MAX)))
    }

    fn wait(&mut self, mut work: impl FnMut() -> Duration, mut pause: impl FnMut()) -> Quietness {
        let mut tries = 0;
        loop {
            let time = work();
            tries += 1;
            // A shorter time shows that the start was not quiet.
            self.idle = self.idle.min(time);
            let ratio = time.as_secs_f64() / self.idle.as_secs_f64().max(1e-9);
            let quiet = ratio <= QUIET;
            if quiet || tries == TRIES {
                return Quietness { processor_probe: ratio, processor_quiet: quiet };
            }
            pause();
        }
    }
}

/// Steps that depend on each other, in registers: memory and caches play no part.
fn work() -> Duration {
    let start = Instant::now();
    let mut state = black_box(0x9E37_79B9_7F4A_7C15_u64);
    for _ in 0..STEPS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
    start.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What three tries of these lengths, in milliseconds, give for a work of 100 ms.
    fn found(tries: [u64; 3]) -> (Quietness, u32) {
        let mut processor = Processor { idle: Duration::from_millis(100) };
        let (mut tries, mut pauses) = (tries.into_iter(), 0);
        let work = || Duration::from_millis(tries.next().unwrap());
        let quietness = processor.wait(work, || pauses += 1);
        (quietness, pauses)
    }

    #[test]
    fn a_cell_waits_for_a_quiet_moment_and_is_marked_without_one() {
        for (tries, ratio, is_quiet, pauses) in [
            ([103, 0, 0], 1.03, true, 0),
            ([105, 200, 102], 1.02, true, 2),
            ([300, 110, 150], 1.5, false, 2),
        ] {
            let (quietness, paused) = found(tries);
            assert!((quietness.processor_probe - ratio).abs() < 1e-9, "{quietness:?}");
            assert_eq!((quietness.processor_quiet, paused), (is_quiet, pauses), "{tries:?}");
        }
    }

    #[test]
    fn a_shorter_time_is_the_idle_one_from_then_on() {
        let mut processor = Processor { idle: Duration::from_millis(100) };
        let mut wait = |ms| processor.wait(|| Duration::from_millis(ms), || ()).processor_quiet;
        assert!(wait(90));
        assert!(!wait(94));
    }

    #[test]
    fn the_work_takes_time() {
        assert!(Processor::calibrate().idle > Duration::from_millis(1));
    }
}
