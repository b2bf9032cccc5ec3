//! A cursor over a sealed segment's records, in the order of its sorted index.
//!
//! Invariants:
//!
//! 1. The cursor keeps its segment open, and its records keep their bytes: neither needs a version.
//! 2. It stands on an entry by number, so turning round goes back over the very same entries.

use super::file::Regime;
use super::index::BlockBuffer;
use super::reader::SealedSegment;
use super::record::Record;
use super::sorted::Target;
use crate::error::Result;
use crate::format::{Direction, Position};
use crate::scan::Cursor;
use crate::sync::Arc;

/// How many entries ahead records are fetched into the processor's cache: one more gains nothing.
const AHEAD: usize = 2;
/// How many entries are taken from a block at once.
const TAKEN: usize = 8;

/// A place among a sealed segment's records.
///
/// A step costs the next record, its checksum, and in one of some 300 a block.
#[derive(Debug)]
pub(crate) struct SegmentCursor {
    segment: Arc<SealedSegment>,
    regime: Regime,
    /// The number of the entry that it stands on, while there is a record.
    entry: u64,
    record: Option<Record>,
    buffer: BlockBuffer,
    taken: Taken,
    /// The entry that an announced seek will stand on; the inner `None` is no entry.
    approached: Option<Option<u64>>,
}

/// Where the records of the current entry and the next ones stand.
#[derive(Debug)]
struct Taken {
    direction: Direction,
    offsets: [u64; TAKEN],
    len: usize,
    /// The current entry's.
    at: usize,
}

impl SegmentCursor {
    pub(super) fn new(segment: Arc<SealedSegment>, regime: Regime) -> Self {
        let direction = Direction::Forward;
        Self {
            segment,
            regime,
            entry: 0,
            record: None,
            buffer: BlockBuffer::default(),
            taken: Taken { direction, offsets: [0; TAKEN], len: 0, at: 0 },
            approached: None,
        }
    }

    /// The entry that a seek leads to.
    fn find(&mut self, position: Position<'_>, direction: Direction) -> Result<Option<u64>> {
        let sorted = self.segment.sorted(self.regime)?;
        let bound = sorted.lower_bound(&Target::Position(position), &mut self.buffer)?;
        Ok(match direction {
            Direction::Forward => (bound < sorted.len()).then_some(bound),
            Direction::Reverse => bound.checked_sub(1),
        })
    }

    /// Takes an entry and the next ones from their block.
    ///
    /// A record is one or two cache misses and a TLB miss away (about 300 ns), and a merge of runs
    /// comes back to each only after some rows: so the records ahead are fetched meanwhile.
    fn take(&mut self, entry: u64, direction: Direction) -> Result<()> {
        let sorted = self.segment.sorted(self.regime)?;
        let taken = &mut self.taken;
        taken.len = sorted.offsets(entry, direction, &mut taken.offsets, &mut self.buffer)?;
        taken.at = 0;
        taken.direction = direction;
        if self.regime == Regime::Mapped {
            for offset in &taken.offsets[..taken.len.min(AHEAD + 1)] {
                sorted.file.prefetch(*offset);
            }
        }
        self.entry = entry;
        Ok(())
    }

    /// Reads the record of the current entry.
    fn read(&mut self) -> Result<()> {
        let sorted = self.segment.sorted(self.regime)?;
        let offset = self.taken.offsets[self.taken.at];
        sorted.file.read_into(&mut self.record, offset, sorted.log_end, self.regime)
    }
}

impl Cursor for SegmentCursor {
    fn approach(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        let entry = self.find(position, direction)?;
        if let Some(entry) = entry {
            self.take(entry, direction)?;
        }
        self.approached = Some(entry);
        Ok(())
    }

    fn seek(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        if self.approached.is_none() {
            self.approach(position, direction)?;
        }
        match self.approached.take().flatten() {
            Some(_) => self.read(),
            None => {
                self.record = None;
                Ok(())
            }
        }
    }

    fn step(&mut self, direction: Direction) -> Result<()> {
        debug_assert!(self.record.is_some(), "the cursor stands on an entry");
        let next = match direction {
            Direction::Forward => {
                Some(self.entry + 1).filter(|next| *next < self.segment.meta().records)
            }
            Direction::Reverse => self.entry.checked_sub(1),
        };
        let Some(next) = next else {
            self.record = None;
            return Ok(());
        };
        let taken = &mut self.taken;
        let ahead = taken.at + 1 + AHEAD;
        if taken.direction == direction && ahead < taken.len {
            taken.at += 1;
            self.entry = next;
            if self.regime == Regime::Mapped {
                let offset = taken.offsets[ahead];
                self.segment.sorted(self.regime)?.file.prefetch(offset);
            }
        } else {
            self.take(next, direction)?;
        }
        self.read()
    }

    fn current(&self) -> Option<&Record> {
        self.record.as_ref()
    }
}
