//! YCSB's exponential distribution: by default 95 % of the draws fall on the newest 85.7 % of
//! the keys.

use super::random::{Random, floor};

const PERCENTILE: f64 = 95.0;
/// 6/7, YCSB's `exponential.frac`.
const FRACTION: f64 = 0.857_142_857_1;

/// Draws how far a key lies behind the newest; unbounded, so the caller redraws.
#[derive(Clone, Debug)]
pub(crate) struct Exponential {
    gamma: f64,
}

impl Exponential {
    pub(crate) fn new(items: u64) -> Self {
        let range = (items as f64 * FRACTION).max(1.0);
        Self { gamma: -(1.0 - PERCENTILE / 100.0).ln() / range }
    }

    pub(crate) fn draw(&mut self, random: &mut Random) -> u64 {
        // 1 - u lies in (0, 1], whose logarithm is finite.
        floor(-(1.0 - random.fraction()).ln() / self.gamma)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ninety_five_percent_of_the_draws_fall_within_the_range() {
        let (mut exponential, mut random) = (Exponential::new(7_000), Random::new(4));
        let draws = 100_000_u32;
        let within = (0..draws).filter(|_| exponential.draw(&mut random) < 6_000).count();
        let share = within as f64 / f64::from(draws);
        assert!((share - 0.95).abs() < 0.005, "{share}");
    }
}
