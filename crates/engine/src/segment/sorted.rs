//! Finding a place in the sorted index: from the top level down, by heads, then by the records' own
//! keys.
//!
//! Cost of a search: a binary search in one block a level (three levels hold 38 million records),
//! and one record for each halving among entries whose heads equal the target's: usually one or
//! none. Invariants:
//!
//! 1. Entry `i` of a level is the first entry of block `i` of the level below.
//! 2. All blocks of a level but its last are full, so that an entry's number gives its block.

use std::cmp::Ordering;

use super::data::Records;
use super::file::Regime;
use super::index::{BlockBuffer, Index};
use super::record::Record;
use crate::error::{Error, Result};
use crate::format::{CollectionId, Direction, Key, Position, Sequence, Side};

/// A place between entries: what is searched.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'a> {
    /// Before or after all versions of an id.
    Position(Position<'a>),
    /// Before the newest version that a reader at this sequence sees.
    Version(Key<'a>, Sequence),
}

impl Target<'_> {
    fn key(&self) -> (CollectionId, &[u8]) {
        match self {
            Self::Position(position) => (position.collection, position.id),
            Self::Version(key, _) => (key.collection, key.id),
        }
    }

    /// Whether the place is behind a record.
    fn is_after(&self, record: &Record) -> bool {
        match (record.collection(), record.id()).cmp(&self.key()) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => match self {
                Self::Position(position) => position.side == Side::After,
                Self::Version(_, at) => record.sequence() > *at,
            },
        }
    }
}

/// What a search does about a record that does not verify, whose key it would need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// The search fails.
    Fails,
    /// The record counts as before the target exactly if the next one that verifies is: whoever goes
    /// forward from there meets those between a record before the target and one that is not.
    Passes,
}

/// The sorted index of an open segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct SortedIndex<'a> {
    pub(super) index: &'a Index,
    pub(super) records: Records<'a>,
    pub(super) regime: Regime,
}

impl SortedIndex<'_> {
    /// The number of entries.
    pub(super) fn len(&self) -> u64 {
        self.index.levels().first().map_or(0, |level| level.entries)
    }

    /// The number of the first entry that is not before the target.
    pub(super) fn lower_bound(
        &self,
        target: &Target<'_>,
        damage: Damage,
        buffer: &mut BlockBuffer,
    ) -> Result<u64> {
        let mut block = 0;
        for level in (0..self.index.levels().len()).rev() {
            let first = block * self.index.entries_a_block();
            let bound = first + self.bound_in_block((level, block), target, damage, buffer)?;
            if level == 0 {
                return Ok(bound);
            }
            // The bound is behind the last entry that is before the target, so in that entry's
            // block, or the first of the next.
            block = bound.saturating_sub(1);
        }
        Ok(0)
    }

    /// How many entries of a block are before the target.
    fn bound_in_block(
        &self,
        (level, block): (usize, u64),
        target: &Target<'_>,
        damage: Damage,
        buffer: &mut BlockBuffer,
    ) -> Result<u64> {
        let entries = self.index.sorted(self.records.file, level, block, self.regime, buffer)?;
        let (collection, id) = target.key();
        let ties = entries.ties(collection, id);
        let (mut low, mut high) = (ties.start, ties.end);
        while low < high {
            let middle = low + (high - low) / 2;
            let is_after = match self.records.read(entries.offset(middle), self.regime) {
                Ok(record) => target.is_after(&record),
                Err(Error::Corrupt { .. }) if damage == Damage::Passes => {
                    let entry = block * self.index.entries_a_block() + middle as u64;
                    self.is_after_next(level, entry, target)?
                }
                Err(e) => return Err(e),
            };
            if is_after { low = middle + 1 } else { high = middle }
        }
        Ok(low as u64)
    }

    /// Whether the target is behind the next record that verifies, behind that of an entry of a
    /// level.
    #[cold]
    fn is_after_next(&self, level: usize, entry: u64, target: &Target<'_>) -> Result<bool> {
        // The record's own entry, in the level that names all of them.
        let entry = (0..level).fold(entry, |entry, _| entry * self.index.entries_a_block());
        let mut buffer = BlockBuffer::default();
        for next in entry + 1..self.len() {
            match self.records.read(self.place(next, &mut buffer)?, self.regime) {
                Ok(record) => return Ok(target.is_after(&record)),
                Err(Error::Corrupt { .. }) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(false)
    }

    /// The place of an entry's record.
    pub(super) fn place(&self, entry: u64, buffer: &mut BlockBuffer) -> Result<u64> {
        let capacity = self.index.entries_a_block();
        let entries =
            self.index.sorted(self.records.file, 0, entry / capacity, self.regime, buffer)?;
        let in_block = usize::try_from(entry % capacity).expect("below 336");
        debug_assert!(in_block < entries.len());
        Ok(entries.offset(in_block))
    }

    /// The places of an entry's record and of those that follow it in the direction: as many as the
    /// entry's block and `places` hold; their number, at least one.
    pub(super) fn places(
        &self,
        entry: u64,
        direction: Direction,
        places: &mut [u64],
        buffer: &mut BlockBuffer,
    ) -> Result<usize> {
        let capacity = self.index.entries_a_block();
        let entries =
            self.index.sorted(self.records.file, 0, entry / capacity, self.regime, buffer)?;
        let in_block = usize::try_from(entry % capacity).expect("below 336");
        let left = match direction {
            Direction::Forward => entries.len() - in_block,
            Direction::Reverse => in_block + 1,
        };
        let len = left.min(places.len());
        for (i, place) in places[..len].iter_mut().enumerate() {
            *place = entries.offset(match direction {
                Direction::Forward => in_block + i,
                Direction::Reverse => in_block - i,
            });
        }
        Ok(len)
    }
}
