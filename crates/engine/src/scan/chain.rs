//! Sorted segments one behind the other: what level 1 is to a read.
//!
//! Invariants:
//!
//! 1. The entries are in order by key and their ranges do not overlap, so that a key can be in one
//!    segment only. A change makes a new chain: this one never changes.
//! 2. What a segment holds outside of its entry's range is superseded, and never seen through the
//!    chain. An entry says of each bound whether the segment itself ends there: only at others is
//!    anything compared while a cursor moves.

use std::cmp::Ordering;

use super::chain_cursor::ChainCursor;
use crate::error::Result;
use crate::format::{
    Bound, CollectionId, Direction, FullKey, Key, KeyBound, Position, Sequence, Side, full_key_head,
};
use crate::segment::{Record, Regime, SealedSegment, SegmentCursor};
use crate::sync::Arc;

/// Sorted segments in order by key.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    entries: Vec<ChainEntry>,
    /// The heads of the entries' first keys: what a search goes through.
    heads: Vec<u128>,
}

/// The part of a segment that counts.
#[derive(Clone, Debug)]
// One cache line, so that a search that has found the entry waits for no other.
#[repr(align(64))]
pub(crate) struct ChainEntry {
    last_head: u128,
    first: FullKey,
    last: FullKey,
    segment: Arc<SealedSegment>,
    lower: Bound,
    upper: Bound,
}

impl ChainEntry {
    /// The records of a segment from `first` up to and with `last`. Neither needs to be the key of
    /// a record where it clips the segment.
    pub(crate) fn new(
        first: FullKey,
        lower: Bound,
        last: FullKey,
        upper: Bound,
        segment: Arc<SealedSegment>,
    ) -> Self {
        debug_assert!(first <= last, "a range of at least one key");
        debug_assert!(
            lower == Bound::Clipped
                || segment.meta().first_key == KeyBound::lower(first.collection(), first.id()),
            "the segment begins at {first:?}"
        );
        debug_assert!(
            upper == Bound::Clipped
                || segment.meta().last_key == KeyBound::upper(last.collection(), last.id()),
            "the segment ends at {last:?}"
        );
        Self { last_head: last.head(), first, last, segment, lower, upper }
    }

    pub(crate) fn first(&self) -> &FullKey {
        &self.first
    }

    pub(crate) fn last(&self) -> &FullKey {
        &self.last
    }

    pub(crate) fn segment(&self) -> &Arc<SealedSegment> {
        &self.segment
    }

    /// What ends the range at its first key.
    pub(crate) fn lower(&self) -> Bound {
        self.lower
    }

    /// What ends the range at its last key.
    pub(crate) fn upper(&self) -> Bound {
        self.upper
    }

    /// Whether a record of the segment is in the range, if a walk in this direction came to it from
    /// a place in the range or at its other end.
    pub(super) fn holds(&self, record: &Record, direction: Direction) -> bool {
        let (collection, id) = (record.collection(), record.id());
        match direction {
            Direction::Forward => {
                self.upper == Bound::Own || self.last.compare(collection, id) != Ordering::Less
            }
            Direction::Reverse => {
                self.lower == Bound::Own || self.first.compare(collection, id) != Ordering::Greater
            }
        }
    }

    /// Where a walk through all of the range begins.
    pub(super) fn start(&self, direction: Direction) -> Position<'_> {
        match direction {
            Direction::Forward => self.first.position(Side::Before),
            Direction::Reverse => self.last.position(Side::After),
        }
    }

    /// Where a seek to a place that may be outside of the range has to go in the segment.
    fn clip<'a>(&'a self, place: Place<'a>, direction: Direction) -> Position<'a> {
        let is_outside = match direction {
            Direction::Forward => {
                self.lower == Bound::Clipped && !place.is_behind(self.first.head(), &self.first)
            }
            Direction::Reverse => {
                self.upper == Bound::Clipped && place.is_behind(self.last_head, &self.last)
            }
        };
        if is_outside { self.start(direction) } else { place.position }
    }
}

/// A place between keys, with the head of its id's full key.
#[derive(Clone, Copy)]
struct Place<'a> {
    position: Position<'a>,
    head: u128,
}

impl<'a> Place<'a> {
    fn new(position: Position<'a>) -> Self {
        Self { position, head: full_key_head(position.collection, position.id) }
    }

    /// How a key compares to the place's own.
    fn compare(&self, head: u128, key: &FullKey) -> Ordering {
        head.cmp(&self.head).then_with(|| key.compare(self.position.collection, self.position.id))
    }

    /// Whether a key is before the place.
    fn is_behind(&self, head: u128, key: &FullKey) -> bool {
        match self.compare(head, key) {
            Ordering::Less => true,
            Ordering::Equal => self.position.side == Side::After,
            Ordering::Greater => false,
        }
    }
}

impl Chain {
    /// Costs 16 bytes an entry besides the entries' own 64.
    pub(crate) fn new(entries: Vec<ChainEntry>) -> Self {
        debug_assert!(Self::is_ordered(&entries), "a chain's ranges rise");
        let heads = entries.iter().map(|entry| entry.first.head()).collect();
        Self { entries, heads }
    }

    /// Whether entries are in order and apart, as those of a chain must be.
    pub(crate) fn is_ordered(entries: &[ChainEntry]) -> bool {
        entries.iter().all(|entry| entry.first <= entry.last)
            && entries.is_sorted_by(|entry, next| entry.last < next.first)
    }

    pub(crate) fn entries(&self) -> &[ChainEntry] {
        &self.entries
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The only entry that may hold a key. Costs a binary search over 16 bytes an entry and the
    /// entry's cache line; full keys are compared only where heads are equal.
    #[inline]
    pub(crate) fn find(&self, collection: CollectionId, id: &[u8]) -> Option<&ChainEntry> {
        let place = Place::new(Position { collection, id, side: Side::After });
        let entry = &self.entries[self.begun(&place).checked_sub(1)?];
        (place.compare(entry.last_head, &entry.last) != Ordering::Less).then_some(entry)
    }

    /// The newest version of a key at or before `at`: a put, or a tombstone.
    ///
    /// # Errors
    ///
    /// See [`SealedSegment::get`].
    #[inline]
    pub(crate) fn get(&self, key: Key<'_>, at: Sequence, regime: Regime) -> Result<Option<Record>> {
        match self.find(key.collection, key.id) {
            Some(entry) => entry.segment.get(key, at, regime),
            None => Ok(None),
        }
    }

    /// The newest version of a key, of any kind, not judged. Costs [`Chain::find`], and in an entry
    /// [`SealedSegment::find_newest`].
    pub(crate) fn find_newest(&self, key: Key<'_>, regime: Regime) -> Result<Option<Record>> {
        match self.find(key.collection, key.id) {
            Some(entry) => entry.segment.find_newest(key, regime),
            None => Ok(None),
        }
    }

    /// A cursor over all records of the chain. Touches no file before its first seek.
    pub(crate) fn cursor(self: &Arc<Self>, regime: Regime) -> ChainCursor<SegmentCursor> {
        ChainCursor::new(Arc::clone(self), regime, SealedSegment::cursor)
    }

    /// The number of the entry in which a seek begins, and the place to seek there.
    pub(super) fn entrance<'a>(
        &'a self,
        position: Position<'a>,
        direction: Direction,
    ) -> Option<(usize, Position<'a>)> {
        let place = Place::new(position);
        let number = match direction {
            Direction::Forward => self.first_behind(&place),
            Direction::Reverse => self.begun(&place).checked_sub(1)?,
        };
        let entry = self.entries.get(number)?;
        Some((number, entry.clip(place, direction)))
    }

    /// The number of the first entry that ends behind a place.
    fn first_behind(&self, place: &Place<'_>) -> usize {
        let begun = self.begun(place);
        match self.entries[..begun].last() {
            Some(entry) if !place.is_behind(entry.last_head, &entry.last) => begun - 1,
            _ => begun,
        }
    }

    /// How many entries begin before a place.
    #[inline]
    fn begun(&self, place: &Place<'_>) -> usize {
        let begun = self.heads.partition_point(|first| *first <= place.head);
        match self.heads[..begun].last() {
            Some(first) if *first == place.head => self.begun_of_ties(place, begun),
            _ => begun,
        }
    }

    /// The same, where the last ones of `end` entries have the place's head.
    #[cold]
    fn begun_of_ties(&self, place: &Place<'_>, end: usize) -> usize {
        let start = self.heads[..end].partition_point(|first| *first < place.head);
        let ties = &self.entries[start..end];
        start + ties.partition_point(|entry| place.is_behind(place.head, &entry.first))
    }
}
