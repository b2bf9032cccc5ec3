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

/// How many entries ahead records are fetched into the processor's cache.
const AHEAD: u64 = 2;

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
}

impl SegmentCursor {
    pub(super) fn new(segment: Arc<SealedSegment>, regime: Regime) -> Self {
        Self { segment, regime, entry: 0, record: None, buffer: BlockBuffer::default() }
    }

    /// Stands on an entry, or on none; the next entries are expected in the direction.
    ///
    /// A record is one or two cache misses and a TLB miss away (about 300 ns), and a merge of runs
    /// comes back to each only after some rows: so the records ahead are fetched meanwhile.
    fn stand_on(&mut self, entry: Option<u64>, direction: Direction) -> Result<()> {
        let earlier = self.record.take();
        let Some(entry) = entry else { return Ok(()) };
        self.entry = entry;
        let sorted = self.segment.sorted(self.regime)?;
        let offset = sorted.offset(entry, &mut self.buffer)?;
        let ahead = match direction {
            Direction::Forward => entry.checked_add(AHEAD),
            Direction::Reverse => entry.checked_sub(AHEAD),
        };
        if let Some(ahead) = ahead {
            sorted.prefetch(entry, ahead, &mut self.buffer);
        }
        let record = sorted.file.read_after(earlier, offset, sorted.log_end, self.regime)?;
        self.record = Some(record);
        Ok(())
    }
}

impl Cursor for SegmentCursor {
    fn seek(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        let sorted = self.segment.sorted(self.regime)?;
        let len = sorted.len();
        let bound = sorted.lower_bound(&Target::Position(position), &mut self.buffer)?;
        self.stand_on(
            match direction {
                Direction::Forward => (bound < len).then_some(bound),
                Direction::Reverse => bound.checked_sub(1),
            },
            direction,
        )
    }

    fn step(&mut self, direction: Direction) -> Result<()> {
        debug_assert!(self.record.is_some(), "the cursor stands on an entry");
        let len = self.segment.meta().records;
        self.stand_on(
            match direction {
                Direction::Forward => Some(self.entry + 1).filter(|next| *next < len),
                Direction::Reverse => self.entry.checked_sub(1),
            },
            direction,
        )
    }

    fn current(&self) -> Option<&Record> {
        self.record.as_ref()
    }
}
