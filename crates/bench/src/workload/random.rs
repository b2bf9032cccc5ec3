//! The random numbers of the workloads: one small, fast, seeded generator a client.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// A client's source of randomness.
#[derive(Clone, Debug)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform in `[0, 1)`.
    pub(crate) fn fraction(&mut self) -> f64 {
        self.0.random()
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0.random()
    }

    /// Uniform in `0..bound`. The bias of the multiplication is below 2^-40 for our bounds.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        let wide = u128::from(self.word()) * u128::from(bound);
        u64::try_from(wide >> 64).expect("the high half of a 128-bit product fits 64 bits")
    }
}

/// Rounds a generator's real number down to an item; negative numbers and NaN give 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and the generators' numbers are below 2^53"
)]
pub(crate) fn floor(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_stays_in_range_and_reaches_both_ends() {
        let mut random = Random::new(7);
        let mut seen = [0_u32; 10];
        for _ in 0..10_000 {
            seen[usize::try_from(random.below(10)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&count| (800..1200).contains(&count)), "{seen:?}");
    }
}
