//! Numbers that name files and databases: unique, not secret.

use std::hash::{BuildHasher, Hasher, RandomState};

use crate::sync::{AtomicU64, Ordering};

/// A splitmix64 sequence (Steele, Lea and Flood, 2014), seeded by the operating system unless a
/// test fixes the seed.
#[derive(Debug)]
pub(crate) struct Random {
    state: AtomicU64,
}

impl Random {
    pub(crate) fn new(seed: Option<u64>) -> Self {
        let seed = seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        Self { state: AtomicU64::new(seed) }
    }

    /// The next number; never 0.
    pub(crate) fn next(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut h = self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        h = (h ^ (h >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        h = (h ^ (h >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (h ^ (h >> 31)).max(1)
    }
}
