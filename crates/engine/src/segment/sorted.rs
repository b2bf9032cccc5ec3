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

use super::file::{Regime, SegmentFile};
use super::index::{BlockBuffer, Index};
use super::record::Record;
use crate::error::Result;
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

/// The sorted index of an open segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct SortedIndex<'a> {
    pub(super) index: &'a Index,
    pub(super) file: &'a SegmentFile,
    pub(super) log_end: u64,
    pub(super) regime: Regime,
}

impl SortedIndex<'_> {
    /// The number of entries.
    pub(super) fn len(&self) -> u64 {
        self.index.levels().first().map_or(0, |level| level.entries)
    }

    /// The number of the first entry that is not before the target.
    pub(super) fn lower_bound(&self, target: &Target<'_>, buffer: &mut BlockBuffer) -> Result<u64> {
        let mut block = 0;
        for level in (0..self.index.levels().len()).rev() {
            let first = block * self.index.entries_a_block();
            let bound = first + self.bound_in_block(level, block, target, buffer)?;
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
        level: usize,
        block: u64,
        target: &Target<'_>,
        buffer: &mut BlockBuffer,
    ) -> Result<u64> {
        let entries = self.index.sorted(self.file, level, block, self.regime, buffer)?;
        let (collection, id) = target.key();
        let ties = entries.ties(collection, id);
        let (mut low, mut high) = (ties.start, ties.end);
        while low < high {
            let middle = low + (high - low) / 2;
            let record = self.file.read(entries.offset(middle), self.log_end, self.regime)?;
            if target.is_after(&record) { low = middle + 1 } else { high = middle }
        }
        Ok(low as u64)
    }

    /// Where the record of an entry stands in the file, in bytes.
    pub(super) fn offset(&self, entry: u64, buffer: &mut BlockBuffer) -> Result<u64> {
        let capacity = self.index.entries_a_block();
        let entries = self.index.sorted(self.file, 0, entry / capacity, self.regime, buffer)?;
        let in_block = usize::try_from(entry % capacity).expect("below 336");
        debug_assert!(in_block < entries.len());
        Ok(entries.offset(in_block))
    }

    /// Where the records of an entry and of those that follow it in the direction stand, in bytes:
    /// as many as the entry's block and `offsets` hold; their number, at least one.
    pub(super) fn offsets(
        &self,
        entry: u64,
        direction: Direction,
        offsets: &mut [u64],
        buffer: &mut BlockBuffer,
    ) -> Result<usize> {
        let capacity = self.index.entries_a_block();
        let entries = self.index.sorted(self.file, 0, entry / capacity, self.regime, buffer)?;
        let in_block = usize::try_from(entry % capacity).expect("below 336");
        let left = match direction {
            Direction::Forward => entries.len() - in_block,
            Direction::Reverse => in_block + 1,
        };
        let len = left.min(offsets.len());
        for (i, offset) in offsets[..len].iter_mut().enumerate() {
            *offset = entries.offset(match direction {
                Direction::Forward => in_block + i,
                Direction::Reverse => in_block - i,
            });
        }
        Ok(len)
    }
}
