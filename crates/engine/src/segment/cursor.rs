//! A cursor over a sealed segment's records, in the order of its sorted index.
//!
//! Invariants:
//!
//! 1. The cursor keeps its segment open, and its records keep their bytes: neither needs a version.
//! 2. It stands on an entry by number, so turning round goes back over the very same entries.
//! 3. Records of a sorted segment stand back to back in the order of its index, so that forward the
//!    next one is found behind the one before, whose verified length leads there. Places are then
//!    taken from the index only where a walk begins or turns round.
//! 4. Only a sequential cursor goes on behind a damaged record, and only where the index told which
//!    record that is.

use super::damage::{DamagedEntry, examine};
use super::data::RecordPlace;
use super::file::Regime;
use super::index::BlockBuffer;
use super::reader::SealedSegment;
use super::record::Record;
use super::record_format::RecordFormat;
use super::sorted::{Damage, Target};
use super::window::Window;
use crate::disk::Access;
use crate::error::{Error, Result};
use crate::format::{Direction, FileKind, Position};
use crate::scan::Cursor;
use crate::sync::Arc;

/// How many entries ahead records are fetched into the processor's cache: one more gains nothing.
const AHEAD: usize = 2;
/// How many entries are taken from a block at once.
const TAKEN: usize = 8;

/// A place among a sealed segment's records.
///
/// A step costs the next record, its checksum, and where records do not stand back to back, in one
/// of some 300 a block.
#[derive(Debug)]
pub(crate) struct SegmentCursor {
    segment: Arc<SealedSegment>,
    regime: Regime,
    /// The number of the entry that it stands on, while there is a record, or a damaged one.
    entry: u64,
    record: Option<Record>,
    buffer: BlockBuffer,
    taken: Taken,
    /// The entry that an announced seek will stand on; the inner `None` is no entry.
    approached: Option<Option<u64>>,
    sequential: Option<Box<Sequential>>,
    layout: Layout,
}

/// Where the record of the next entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Behind this one's, in the segment's own file.
    BackToBack,
    /// Where the index says.
    Indexed,
}

/// What a sequential cursor has besides.
#[derive(Debug)]
struct Sequential {
    window: Window,
    /// The entry that it stands on, if its record is damaged.
    damaged: Option<DamagedEntry>,
}

/// The places of the current entry's record and of the next ones.
#[derive(Debug)]
struct Taken {
    direction: Direction,
    places: [u64; TAKEN],
    len: usize,
    /// The current entry's.
    at: usize,
}

impl SegmentCursor {
    pub(super) fn new(segment: Arc<SealedSegment>, regime: Regime) -> Self {
        let direction = Direction::Forward;
        let layout = match segment.meta().file_kind {
            FileKind::Sorted => Layout::BackToBack,
            FileKind::Log | FileKind::Index => Layout::Indexed,
        };
        Self {
            segment,
            regime,
            entry: 0,
            record: None,
            buffer: BlockBuffer::default(),
            taken: Taken { direction, places: [0; TAKEN], len: 0, at: 0 },
            approached: None,
            sequential: None,
            layout,
        }
    }

    /// A cursor for whoever goes through all records forward: without the map, through a window
    /// where the records stand in order. It goes on behind records that are damaged.
    pub(super) fn sequential(segment: Arc<SealedSegment>, access: Access) -> Self {
        let sequential = Sequential { window: Window::new(access), damaged: None };
        Self {
            sequential: Some(Box::new(sequential)),
            // The index tells which record is damaged, and where the next one is.
            layout: Layout::Indexed,
            ..Self::new(segment, Regime::Pread)
        }
    }

    /// After an error of a sequential cursor's seek or step: the entry that it stands on, if what
    /// failed is that entry's record. A step then leads to the next entry. `None` after an error of
    /// any other kind, which the cursor cannot go on from.
    pub(crate) fn damaged(&self) -> Option<&DamagedEntry> {
        self.sequential.as_ref()?.damaged.as_ref()
    }

    /// Where the record of the current entry stands, while there is a record, or a damaged one.
    ///
    /// # Errors
    ///
    /// None but what the seek or step before would have met.
    pub(crate) fn place(&self) -> Result<RecordPlace> {
        debug_assert!(self.stands(), "the cursor stands on an entry");
        if let (Layout::BackToBack, Some(record)) = (self.layout, &self.record) {
            return Ok(RecordPlace { member: 0, offset: record.offset() });
        }
        let sorted = self.segment.sorted(self.regime)?;
        Ok(sorted.records.locate(self.taken.places[self.taken.at]))
    }

    fn stands(&self) -> bool {
        self.record.is_some() || self.damaged().is_some()
    }

    /// The entry that a seek leads to.
    fn find(&mut self, position: Position<'_>, direction: Direction) -> Result<Option<u64>> {
        let sorted = self.segment.sorted(self.regime)?;
        let damage = if self.sequential.is_some() { Damage::Passes } else { Damage::Fails };
        let bound = sorted.lower_bound(&Target::Position(position), damage, &mut self.buffer)?;
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
        taken.len = sorted.places(entry, direction, &mut taken.places, &mut self.buffer)?;
        taken.at = 0;
        taken.direction = direction;
        if self.regime == Regime::Mapped {
            for place in &taken.places[..taken.len.min(AHEAD + 1)] {
                sorted.records.prefetch(*place);
            }
        }
        self.entry = entry;
        Ok(())
    }

    /// Reads the record of the current entry.
    fn read(&mut self) -> Result<()> {
        if self.sequential.is_some() {
            return self.read_sequentially();
        }
        let sorted = self.segment.sorted(self.regime)?;
        let place = self.taken.places[self.taken.at];
        sorted.records.read_into(&mut self.record, place, self.regime)
    }

    fn read_sequentially(&mut self) -> Result<()> {
        self.clear();
        let Some(sequential) = &mut self.sequential else { return Ok(()) };
        let sorted = self.segment.sorted(self.regime)?;
        let place = self.taken.places[self.taken.at];
        // A file that cannot be opened is no damage of one record.
        let (file, offset, end) = sorted.records.at(place)?;
        let in_order = matches!(file.format(), RecordFormat::Sorted { .. })
            && sorted.records.members.is_none()
            && self.taken.direction == Direction::Forward;
        let read = if in_order {
            sequential.window.read(file, offset, end)
        } else {
            file.read(offset, end, self.regime)
        };
        match read {
            Ok(record) => self.record = Some(record),
            Err(error @ Error::Corrupt { .. }) => {
                let damaged = examine(&self.segment, self.entry, place)?;
                sequential.damaged = Some(damaged);
                return Err(error);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Stands on nothing.
    fn clear(&mut self) {
        self.record = None;
        if let Some(sequential) = &mut self.sequential {
            sequential.damaged = None;
        }
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
                self.clear();
                Ok(())
            }
        }
    }

    #[inline]
    fn step(&mut self, direction: Direction) -> Result<()> {
        debug_assert!(self.stands(), "the cursor stands on an entry");
        let next = match direction {
            Direction::Forward => {
                Some(self.entry + 1).filter(|next| *next < self.segment.meta().records)
            }
            Direction::Reverse => self.entry.checked_sub(1),
        };
        let Some(next) = next else {
            self.clear();
            return Ok(());
        };
        if self.layout == Layout::BackToBack && direction == Direction::Forward {
            self.entry = next;
            // The places that were taken are of other entries now.
            self.taken.len = 0;
            let records = self.segment.sorted(self.regime)?.records;
            return records.read_next(&mut self.record, self.regime);
        }
        self.step_by_index(next, direction)
    }

    #[inline]
    fn current(&self) -> Option<&Record> {
        self.record.as_ref()
    }
}

impl SegmentCursor {
    /// Moves on to an entry next to the current one, whose place the index tells.
    #[inline(never)]
    fn step_by_index(&mut self, next: u64, direction: Direction) -> Result<()> {
        let taken = &mut self.taken;
        let ahead = taken.at + 1 + AHEAD;
        if taken.direction == direction && ahead < taken.len {
            taken.at += 1;
            self.entry = next;
            if self.regime == Regime::Mapped {
                let place = taken.places[ahead];
                self.segment.sorted(self.regime)?.records.prefetch(place);
            }
        } else {
            self.take(next, direction)?;
        }
        self.read()
    }
}
