//! Segments whose records were merged, but for those whose ids are damaged.
//!
//! Such a record cannot be copied to where its id belongs, and it must not vanish: its id would read
//! as absent. So its segment stays, and is looked into when nothing else has the id: its own index
//! still leads from the right id to the damaged record. Invariants:
//!
//! 1. What verifies in it is never an answer: it was merged, and may have been deleted since.
//! 2. A lookup that leads to a damaged record fails, and so does a scan that passes its place.

use crate::disk::Access;
use crate::error::Result;
use crate::format::{CollectionId, Direction, Key, Position, SegmentId, Side};
use crate::scan::Cursor;
use crate::segment::{Record, Regime, SealedSegment};
use crate::sync::{Arc, OnceLock};

/// A segment that is kept for its damaged records.
#[derive(Debug)]
pub(crate) struct Quarantine {
    segment: Arc<SealedSegment>,
    /// For each damaged record a marker in its place: the least id behind the record before.
    gaps: OnceLock<Arc<[Record]>>,
}

impl Quarantine {
    pub(crate) fn new(segment: Arc<SealedSegment>) -> Arc<Self> {
        Arc::new(Self { segment, gaps: OnceLock::new() })
    }

    pub(crate) fn id(&self) -> SegmentId {
        self.segment.meta().id
    }

    /// Fails when the segment's index leads to a damaged record.
    pub(crate) fn check(&self, key: Key<'_>, regime: Regime) -> Result<()> {
        self.segment.find_newest(key, regime).map(|_| ())
    }

    pub(crate) fn cursor(self: &Arc<Self>) -> QuarantineCursor {
        QuarantineCursor { quarantine: Arc::clone(self), gaps: None, at: 0 }
    }

    /// Reads the whole segment once.
    fn gaps(&self) -> Result<Arc<[Record]>> {
        if let Some(gaps) = self.gaps.get() {
            return Ok(Arc::clone(gaps));
        }
        let mut gaps = Vec::new();
        let mut before: (CollectionId, Vec<u8>) = (CollectionId(0), Vec::new());
        let mut cursor = self.segment.sequential(Access::Once);
        let start = Position { collection: CollectionId(0), id: &[], side: Side::Before };
        let mut outcome = cursor.seek(start, Direction::Forward);
        loop {
            match outcome {
                Ok(()) => match cursor.current() {
                    Some(record) => {
                        before.0 = record.collection();
                        before.1.clear();
                        before.1.extend_from_slice(record.id());
                    }
                    None => break,
                },
                Err(error) => match cursor.damaged() {
                    Some(damaged) if damaged.key.is_none() => {
                        let id = [&before.1[..], &[0]].concat();
                        gaps.push(Record::damaged(before.0, &id));
                    }
                    // The sweep knew the id, and left a marker with it.
                    Some(_) => {}
                    None => return Err(error),
                },
            }
            outcome = cursor.step(Direction::Forward);
        }
        Ok(Arc::clone(self.gaps.get_or_init(|| gaps.into())))
    }
}

/// Stands in gaps only: to come to one is an error.
#[derive(Debug)]
pub(crate) struct QuarantineCursor {
    quarantine: Arc<Quarantine>,
    gaps: Option<Arc<[Record]>>,
    /// The number of the gap, one too high, so that 0 is none.
    at: usize,
}

impl Cursor for QuarantineCursor {
    fn seek(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        let gaps = self.quarantine.gaps()?;
        let bound = gaps.partition_point(|marker| {
            let order = (marker.collection(), marker.id()).cmp(&(position.collection, position.id));
            order.is_lt() || order.is_eq() && position.side == Side::After
        });
        self.at = match direction {
            Direction::Forward => bound + 1,
            Direction::Reverse => bound,
        };
        self.gaps = Some(gaps);
        Ok(())
    }

    fn step(&mut self, direction: Direction) -> Result<()> {
        match direction {
            Direction::Forward => self.at += 1,
            Direction::Reverse => self.at -= 1,
        }
        Ok(())
    }

    fn current(&self) -> Option<&Record> {
        self.gaps.as_ref()?.get(self.at.checked_sub(1)?)
    }
}
