//! Which parts of what is not synced a crash may leave.

use std::collections::BTreeSet;

use engine::disk::{CrashImage, Gaps, MemoryDisk, Unsynced};

use crate::faults::Random;

/// What a crash leaves of what is not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Nothing,
    /// All of it: a killed process.
    All,
    /// The first so many pieces: sectors, lengths and names in the order in which they changed. A
    /// write whose sectors it divides is torn.
    Prefix(usize),
    /// One piece alone.
    Only(usize),
    /// All but one piece.
    Without(usize),
    /// One call alone: all sectors of a write, and its length.
    OnlyCall(u64),
    /// All but one call.
    WithoutCall(u64),
    /// Each piece by the toss of a coin that falls on its head this often in eight.
    Random(u64, u64),
}

/// Every single loss and survival of this kind there is, and two tosses.
pub(crate) fn all(unsynced: &[(u64, Unsynced)], seed: u64) -> Vec<Kept> {
    let mut kept = vec![Kept::Nothing, Kept::All];
    if unsynced.len() > 1 {
        kept.extend((1..unsynced.len()).map(Kept::Prefix));
        kept.extend((0..unsynced.len()).map(Kept::Only));
        kept.extend((0..unsynced.len()).map(Kept::Without));
        let calls: BTreeSet<u64> = unsynced.iter().map(|(call, _)| *call).collect();
        kept.extend(calls.iter().map(|call| Kept::OnlyCall(*call)));
        kept.extend(calls.iter().map(|call| Kept::WithoutCall(*call)));
        kept.extend([2, 6].map(|of_eight| Kept::Random(seed ^ of_eight, of_eight)));
    }
    kept
}

/// The image of a crash now.
pub(crate) fn build(disk: &MemoryDisk, kept: Kept, gaps: Gaps) -> CrashImage {
    let mut number = 0;
    let mut random = Random::seeded(match kept {
        Kept::Random(seed, _) => seed,
        _ => 0,
    });
    disk.crash_image(gaps, |call, _| {
        let this = number;
        number += 1;
        match kept {
            Kept::Nothing => false,
            Kept::All => true,
            Kept::Prefix(pieces) => this < pieces,
            Kept::Only(piece) => this == piece,
            Kept::Without(piece) => this != piece,
            Kept::OnlyCall(only) => call == only,
            Kept::WithoutCall(lost) => call != lost,
            Kept::Random(_, of_eight) => random.below(8) < of_eight,
        }
    })
}
