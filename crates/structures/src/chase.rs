//! A walk through memory in which every step waits for the one before: what a cache miss costs.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const LINE_WORDS: usize = 16;

/// Cache lines of which each names the next, in one random cycle through all of them.
#[derive(Debug)]
pub struct Chase {
    words: Vec<u32>,
}

impl Chase {
    /// Over `bytes` of memory, in whole lines of 64 bytes, at least one.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let lines = (bytes / (LINE_WORDS * 4)).max(1);
        let mut words = vec![0; lines * LINE_WORDS];
        let mut random = Xoshiro256PlusPlus::seed_from_u64(bytes as u64);
        // Sattolo's shuffle: a single cycle.
        let mut next: Vec<u32> = (0..lines as u32).collect();
        for i in (1..lines).rev() {
            next.swap(i, random.random_range(0..i));
        }
        for (line, next) in next.into_iter().enumerate() {
            words[line * LINE_WORDS] = next;
        }
        Self { words }
    }

    /// Takes `steps` steps from a line on; the line where it ends.
    #[must_use]
    #[inline]
    pub fn walk(&self, mut line: u32, steps: usize) -> u32 {
        for _ in 0..steps {
            line = self.words[line as usize * LINE_WORDS];
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_visits_every_line_before_it_returns() {
        for lines in [1, 2, 3, 100] {
            let chase = Chase::new(lines * 64);
            let steps = (1..=lines).find(|steps| chase.walk(0, *steps) == 0);
            assert_eq!(steps, Some(lines));
        }
    }
}
