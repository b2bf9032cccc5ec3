//! The ids that everything is measured with: YCSB's hashed keys, as the engine encodes them.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The length of an encoded id: the tag of strings, `user`, and 20 digits.
pub const ID_BYTES: usize = 25;
/// An encoded id.
pub type Id = [u8; ID_BYTES];

/// Numbers from here on are of ids that no structure holds.
pub const ABSENT: u64 = 1 << 32;

const PREFIX: &[u8; 5] = b"\x20user";

/// What stands in the id of a number: FNV-1a over its octets, without the sign, as in YCSB. Ids
/// are in the order of these.
#[must_use]
pub fn hashed(number: u64) -> u64 {
    const BASIS: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01B3;
    let hash = number
        .to_le_bytes()
        .iter()
        .fold(BASIS, |hash, &octet| (hash ^ u64::from(octet)).wrapping_mul(PRIME));
    hash.cast_signed().unsigned_abs()
}

/// The encoded id with this in it.
#[must_use]
pub fn spelt(hashed: u64) -> Id {
    let mut id = [b'0'; ID_BYTES];
    id[..PREFIX.len()].copy_from_slice(PREFIX);
    let mut rest = hashed;
    for digit in id[PREFIX.len()..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    id
}

/// The encoded id of a number.
#[must_use]
pub fn encoded(number: u64) -> Id {
    spelt(hashed(number))
}

/// The same id as the engine's interface takes it.
#[must_use]
pub fn text(number: u64) -> String {
    format!("user{:020}", hashed(number))
}

/// Ids to look up, in random order, one behind the other in memory: reading them costs next to
/// nothing, since the processor sees them coming.
#[derive(Clone, Copy, Debug)]
pub struct Probes {
    ids: &'static [Id],
}

impl Probes {
    /// `count` different numbers below `numbers`, or all if there are fewer. They stay in memory
    /// for good.
    #[must_use]
    pub fn present(numbers: usize, count: usize, seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut all: Vec<u64> = (0..numbers as u64).collect();
        let (chosen, _) = all.partial_shuffle(&mut random, count.min(numbers));
        Self { ids: chosen.iter().map(|n| encoded(*n)).collect::<Vec<_>>().leak() }
    }

    /// Ids that no structure holds.
    #[must_use]
    pub fn absent(count: usize, seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let numbers = (0..count).map(|_| ABSENT + random.random_range(0..1u64 << 40));
        Self { ids: numbers.map(encoded).collect::<Vec<_>>().leak() }
    }

    /// The ids.
    #[must_use]
    pub fn ids(&self) -> &'static [Id] {
        self.ids
    }

    /// Calls `lookup` for `count` ids from the `first` on, around and around. None begins before
    /// the one before has ended.
    #[inline]
    pub fn each(&self, first: usize, count: usize, mut lookup: impl FnMut(&'static [u8]) -> u64) {
        let mut at = first % self.ids.len();
        for _ in 0..count {
            std::hint::black_box(lookup(&self.ids[at]));
            wait();
            at += 1;
            if at == self.ids.len() {
                at = 0;
            }
        }
    }
}

/// Waits for all that was begun. Without it a processor overlaps lookups, those of absent ids above
/// all, whose outcome it guesses. Does nothing where the processor is no x86-64.
#[inline]
#[expect(unsafe_code, reason = "the instruction is offered as one that a processor may lack")]
pub fn wait() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the fence is of SSE2, which every x86-64 has, and touches no memory.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_ycsbs_and_in_the_order_of_their_hashes() {
        assert_eq!(text(0), "user06284781860667377211");
        assert_eq!(text(999_999), "user02744965632448235251");
        assert_eq!(encoded(0)[1..], *text(0).as_bytes());
        let hashes: Vec<u64> = (0..1000).map(hashed).collect();
        let mut by_hash = hashes.clone();
        by_hash.sort_unstable();
        let mut by_id = hashes;
        by_id.sort_unstable_by_key(|hash| spelt(*hash));
        assert_eq!(by_hash, by_id);
    }

    #[test]
    fn probes_are_repeatable_and_each_visits_them_in_turn() {
        let probes = Probes::present(100, 64, 7);
        assert_eq!(probes.ids(), Probes::present(100, 64, 7).ids());
        assert!(probes.ids().iter().all(|id| (0..100).any(|n| encoded(n) == *id)));
        let mut seen = Vec::new();
        probes.each(60, 8, |id| {
            seen.push(id);
            id.len() as u64
        });
        let expected: Vec<_> = (60..68).map(|i| &probes.ids()[i % 64][..]).collect();
        assert_eq!(seen, expected);
    }
}
