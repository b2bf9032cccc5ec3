//! Random numbers from a seed that a failure names.

use std::fmt::Debug;

/// A splitmix64 sequence.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut h = self.0;
        h = (h ^ (h >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        h = (h ^ (h >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        h ^ (h >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// True `percent` times out of a hundred.
    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// A test's seed: `SEDIMENT_SEED`, or the given one. Says which it was when the test panics.
#[derive(Debug)]
pub(crate) struct Seed(pub(crate) u64);

impl Seed {
    pub(crate) fn or(otherwise: u64) -> Self {
        Self(Self::asked_for().unwrap_or(otherwise))
    }

    /// The seed that the environment asks for.
    pub(crate) fn asked_for() -> Option<u64> {
        let text = std::env::var("SEDIMENT_SEED").ok()?;
        let seed = match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => text.parse(),
        };
        Some(seed.unwrap_or_else(|e| panic!("SEDIMENT_SEED={text}: {e}")))
    }

    pub(crate) fn random(&self) -> Random {
        Random::new(self.0)
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to repeat this: SEDIMENT_SEED={}", self.0);
        }
    }
}
