//! Guards for read-modify-writes in stores without an atomic update of their own: one lock for
//! each of a fixed number of stripes of the key space.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// More than any number of clients, so that two of them seldom meet by accident.
const STRIPES: usize = 1024;

/// Holding the guard of a key excludes every other writer of that key.
#[derive(Debug)]
pub(crate) struct Stripes {
    locks: Box<[Mutex<()>]>,
}

impl Stripes {
    pub(crate) fn new() -> Self {
        Self { locks: (0..STRIPES).map(|_| Mutex::new(())).collect() }
    }

    pub(crate) fn lock(&self, key: &[u8]) -> MutexGuard<'_, ()> {
        self.locks[stripe(key)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// From the last eight bytes: keys are hashed numbers, so their last digits are spread.
fn stripe(key: &[u8]) -> usize {
    let mut tail = [0; 8];
    for (to, from) in tail.iter_mut().zip(key.iter().rev()) {
        *to = *from;
    }
    let mixed = u64::from_le_bytes(tail).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    usize::try_from(mixed >> 54).expect("ten bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stripe_is_in_use() {
        let used: std::collections::BTreeSet<usize> =
            (0..100_000_u64).map(|n| stripe(format!("user{}", n * 7_919).as_bytes())).collect();
        assert_eq!(used.len(), STRIPES);
    }

    #[test]
    fn short_keys_have_a_stripe() {
        assert!(stripe(b"") < STRIPES && stripe(b"u") < STRIPES);
    }
}
