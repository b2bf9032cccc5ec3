//! Segments whose records were merged, but for those whose ids are damaged.
//!
//! Such a record cannot be copied to where its id belongs, and it must not vanish: its id would read
//! as absent, or as an older version says. So its segment stays, and is looked into besides: its own
//! index still leads from the right id to the damaged record. Invariants:
//!
//! 1. What verifies in it is never an answer: it was merged, and may have been deleted since.
//! 2. A lookup that leads to a damaged record fails, unless what it found elsewhere is newer.
//!    Compaction leaves such ids their sequences and tombstones, which tell: see `suspects`.
//! 3. A scan fails if its range has a place where a damaged record may belong: somewhere between
//!    the ids before and behind it in the segment. It does so before it yields what is there.

use std::cmp::Ordering;

use crate::disk::Access;
use crate::error::{Error, Result};
use crate::format::{CollectionId, Direction, FullKey, Key, Position, SegmentId, Sequence, Side};
use crate::scan::Cursor;
use crate::segment::{Record, Regime, SealedSegment};
use crate::sync::{Arc, OnceLock};

/// A segment that is kept for its damaged records.
#[derive(Debug)]
pub(crate) struct Quarantine {
    segment: Arc<SealedSegment>,
    gaps: OnceLock<Arc<[Gap]>>,
}

/// Where a damaged record belongs: behind one key and before another, both of them excluded.
#[derive(Debug)]
struct Gap {
    low: FullKey,
    high: FullKey,
    /// At the least key of the gap, and at about the greatest.
    first: Record,
    last: Record,
}

impl Gap {
    fn new(low: FullKey, high: FullKey) -> Self {
        let first = Record::damaged(low.collection(), &[low.id(), &[0]].concat());
        let before = before(&high);
        let last = Record::damaged(before.collection(), before.id());
        Self { low, high, first, last }
    }
}

/// More of them than any id has at its end.
const FILL: [u8; 64] = [0xFF; 64];

/// About the greatest key before a key.
fn before(key: &FullKey) -> FullKey {
    match key.id().split_last() {
        Some((0, rest)) => FullKey::new(key.collection(), rest),
        Some((&last, rest)) => FullKey::new(key.collection(), &[rest, &[last - 1], &FILL].concat()),
        None => FullKey::new(CollectionId(key.collection().0.saturating_sub(1)), &FILL),
    }
}

impl Quarantine {
    pub(crate) fn new(segment: Arc<SealedSegment>) -> Arc<Self> {
        Arc::new(Self { segment, gaps: OnceLock::new() })
    }

    pub(crate) fn id(&self) -> SegmentId {
        self.segment.meta().id
    }

    /// Fails when the segment's index leads to a damaged record that a reader at `at` may see, and
    /// that is not older than what was `found` elsewhere.
    pub(crate) fn check(
        &self,
        key: Key<'_>,
        at: Sequence,
        found: Option<Sequence>,
        regime: Regime,
    ) -> Result<()> {
        let meta = self.segment.meta();
        if meta.sequence_min > at || found.is_some_and(|found| found > meta.sequence_max) {
            return Ok(());
        }
        self.segment.get(key, at, regime).map(|_| ())
    }

    pub(crate) fn segment(&self) -> &Arc<SealedSegment> {
        &self.segment
    }

    pub(crate) fn cursor(self: &Arc<Self>) -> QuarantineCursor {
        QuarantineCursor { quarantine: Arc::clone(self), gaps: None, stand: None }
    }

    /// Reads the whole segment once.
    fn gaps(&self) -> Result<Arc<[Gap]>> {
        if let Some(gaps) = self.gaps.get() {
            return Ok(Arc::clone(gaps));
        }
        let mut gaps: Vec<Gap> = Vec::new();
        let (least, greatest) = self.bounds();
        let mut low = least;
        let mut is_open = false;
        let mut cursor = self.segment.sequential(Access::Once);
        let start = Position { collection: CollectionId(0), id: &[], side: Side::Before };
        let mut outcome = cursor.seek(start, Direction::Forward);
        loop {
            match outcome {
                Ok(()) => {
                    let Some(record) = cursor.current() else { break };
                    let high = FullKey::new(record.collection(), record.id());
                    if is_open {
                        gaps.push(Gap::new(low, high.clone()));
                    }
                    (low, is_open) = (high, false);
                }
                Err(error) => match cursor.damaged() {
                    Some(damaged) => is_open |= damaged.key.is_none(),
                    None => return Err(error),
                },
            }
            outcome = cursor.step(Direction::Forward);
        }
        if is_open {
            gaps.push(Gap::new(low, greatest));
        }
        Ok(Arc::clone(self.gaps.get_or_init(|| gaps.into())))
    }

    /// Keys before and behind all of the segment's.
    fn bounds(&self) -> (FullKey, FullKey) {
        let meta = self.segment.meta();
        let least = FullKey::parse(meta.first_key.as_bytes());
        let greatest = FullKey::parse(meta.last_key.as_bytes());
        (
            least.map_or(FullKey::new(CollectionId(0), &[]), |least| before(&least)),
            greatest.map_or(FullKey::new(CollectionId(u32::MAX), &[]), |greatest| {
                FullKey::new(greatest.collection(), &[greatest.id(), &[0]].concat())
            }),
        )
    }
}

/// Stands in gaps only: to come to one is an error.
#[derive(Debug)]
pub(crate) struct QuarantineCursor {
    quarantine: Arc<Quarantine>,
    gaps: Option<Arc<[Gap]>>,
    /// The number of the gap, and from where the cursor came.
    stand: Option<(usize, Direction)>,
}

impl Cursor for QuarantineCursor {
    fn seek(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        let gaps = self.quarantine.gaps()?;
        let is_before = |key: &FullKey| is_before(key, position);
        // The first one that does not end before the position.
        let next = gaps.partition_point(|gap| is_before(&gap.high));
        // Whether the position lies in it, behind its least key.
        let is_inside = gaps.get(next).is_some_and(|gap| is_before(&gap.low));
        if is_inside {
            let segment = &self.quarantine.segment;
            let what =
                "the id of a record is damaged, and it may be one of those that are asked for";
            let path = segment.path();
            return Err(Error::corrupt(&path, 0, what));
        }
        let number = match direction {
            Direction::Forward => Some(next).filter(|next| *next < gaps.len()),
            Direction::Reverse => next.checked_sub(1),
        };
        self.stand = number.map(|number| (number, direction));
        self.gaps = Some(gaps);
        Ok(())
    }

    fn step(&mut self, direction: Direction) -> Result<()> {
        let count = self.gaps.as_ref().map_or(0, |gaps| gaps.len());
        let next = self.stand.and_then(|(number, _)| match direction {
            Direction::Forward => Some(number + 1).filter(|next| *next < count),
            Direction::Reverse => number.checked_sub(1),
        });
        self.stand = next.map(|number| (number, direction));
        Ok(())
    }

    fn current(&self) -> Option<&Record> {
        let (number, direction) = self.stand?;
        let gap = self.gaps.as_ref()?.get(number)?;
        Some(match direction {
            Direction::Forward => &gap.first,
            Direction::Reverse => &gap.last,
        })
    }
}

/// Whether a key is before a position.
fn is_before(key: &FullKey, position: Position<'_>) -> bool {
    match key.compare(position.collection, position.id) {
        Ordering::Less => true,
        Ordering::Equal => position.side == Side::After,
        Ordering::Greater => false,
    }
}
