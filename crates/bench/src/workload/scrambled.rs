//! The scrambled zipfian of YCSB's A, B, C, E and F: a zipfian over ten billion items whose
//! draws are hashed onto the key range, so that the popular keys lie scattered.

use super::keys::fnv1a64;
use super::random::Random;
use super::zipfian::Zipfian;

const ITEMS_MAX: u64 = 10_000_000_000;
/// zeta(10^10, 0.99), which YCSB gives as a constant; η counts the 10^10 + 1 items of the range.
const ZETA: f64 = 26.469_028_201_783_02;

/// Draws from `min..=min + span - 1`.
#[derive(Clone, Debug)]
pub(crate) struct ScrambledZipfian {
    inner: Zipfian,
    min: u64,
    span: u64,
}

impl ScrambledZipfian {
    pub(crate) fn new(min: u64, max: u64) -> Self {
        Self { inner: Zipfian::with_zeta(0, ITEMS_MAX, ZETA), min, span: max - min + 1 }
    }

    pub(crate) fn draw(&mut self, random: &mut Random) -> u64 {
        self.min + fnv1a64(self.inner.draw(random)) % self.span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eta_has_its_golden_value() {
        let scrambled = ScrambledZipfian::new(0, 999_999);
        assert!((scrambled.inner.eta() - 0.212_200_033_8).abs() < 1e-10);
    }

    /// Share of the draws below `rank`, from the generator's own formula.
    fn expected_percent(rank: f64) -> f64 {
        let power = (rank / (ITEMS_MAX + 1) as f64).powf(1.0 - super::super::zipfian::THETA);
        100.0 * (1.0 - (1.0 - power) / 0.212_200_033_8)
    }

    #[test]
    fn the_popular_ranks_get_their_golden_shares() {
        let (mut scrambled, mut random) = (ScrambledZipfian::new(0, 9_999_999), Random::new(42));
        let draws = 2_000_000_u32;
        let mut counts = std::collections::HashMap::<u64, u32>::new();
        for _ in 0..draws {
            *counts.entry(scrambled.draw(&mut random)).or_default() += 1;
        }
        let mut ranks: Vec<u32> = counts.into_values().collect();
        ranks.sort_unstable_by(|a, b| b.cmp(a));
        let percent =
            |top: usize| 100.0 * f64::from(ranks[..top].iter().sum::<u32>()) / f64::from(draws);
        assert!((percent(1) - 3.78).abs() < 0.1, "top item {}", percent(1));
        // The exact shares are 11.2 % and 29.2 %. Gray's formula, which YCSB uses, draws the
        // ranks after the second a little more often, and this must do the same.
        for (top, rank, exact) in [(10, 10.0, 11.2), (1_000, 1_000.0, 29.2)] {
            let (drawn, expected) = (percent(top), expected_percent(rank));
            assert!((drawn - expected).abs() < 0.15, "top {top}: {drawn}, expected {expected}");
            assert!((drawn - exact).abs() < 0.8, "top {top}: {drawn}, exact {exact}");
        }
    }

    #[test]
    fn draws_stay_in_the_key_range() {
        let (mut scrambled, mut random) = (ScrambledZipfian::new(5, 14), Random::new(3));
        for _ in 0..10_000 {
            assert!((5..15).contains(&scrambled.draw(&mut random)));
        }
    }
}
