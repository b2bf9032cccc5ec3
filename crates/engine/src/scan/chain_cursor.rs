//! A cursor over a chain of segments.
//!
//! Invariants:
//!
//! 1. It has one segment's cursor at a time, of the entry that it stands in; a segment is opened
//!    when a walk or a seek comes to it.
//! 2. It shows no record outside of its entry's range. One may be read: the first one beyond, where
//!    a walk meets a bound that clips the segment.
//! 3. Turning round goes back over the same records, into the entry before as well.

use super::chain::{Chain, ChainEntry};
use super::cursor::Cursor;
use crate::error::Result;
use crate::format::{Bound, Direction, Position};
use crate::segment::{Record, Regime, SealedSegment};
use crate::sync::Arc;

/// A place among the records of a chain.
///
/// A step costs that of the segment's cursor and a branch; in entries that are clipped the
/// comparison of a key, and from one entry to the next a seek.
pub(crate) struct ChainCursor<C> {
    chain: Arc<Chain>,
    regime: Regime,
    open: Open<C>,
    /// `None` past either end.
    inner: Option<Inner<C>>,
}

/// Makes a segment's cursor.
type Open<C> = fn(&Arc<SealedSegment>, Regime) -> C;

struct Inner<C> {
    cursor: C,
    /// The entry's number.
    number: usize,
    /// Whether any bound clips the entry.
    bounds: Bound,
}

impl<C> Inner<C> {
    fn new(entry: &ChainEntry, number: usize, open: Open<C>, regime: Regime) -> Self {
        let bounds = match (entry.lower(), entry.upper()) {
            (Bound::Own, Bound::Own) => Bound::Own,
            _ => Bound::Clipped,
        };
        Self { cursor: open(entry.segment(), regime), number, bounds }
    }
}

impl<C: Cursor> ChainCursor<C> {
    /// Not yet on an entry, and no segment is opened: seek first.
    pub(super) fn new(chain: Arc<Chain>, regime: Regime, open: Open<C>) -> Self {
        Self { chain, regime, open, inner: None }
    }

    /// The place in a segment that a seek leads to, and that segment's cursor: the present one if
    /// it is its.
    fn enter<'a>(
        &'a mut self,
        position: Position<'a>,
        direction: Direction,
    ) -> Option<(&'a mut C, Position<'a>)> {
        let Some((number, position)) = self.chain.entrance(position, direction) else {
            self.inner = None;
            return None;
        };
        let present = self.inner.take().filter(|inner| inner.number == number);
        let inner = present.unwrap_or_else(|| {
            Inner::new(&self.chain.entries()[number], number, self.open, self.regime)
        });
        Some((&mut self.inner.insert(inner).cursor, position))
    }

    /// Moves on to the next entry that has a record, unless there is one here.
    fn settle(&mut self, direction: Direction) -> Result<()> {
        let entries = self.chain.entries();
        while let Some(inner) = &self.inner {
            let entry = &entries[inner.number];
            if inner.cursor.current().is_some_and(|record| entry.holds(record, direction)) {
                return Ok(());
            }
            let next = match direction {
                Direction::Forward => Some(inner.number + 1),
                Direction::Reverse => inner.number.checked_sub(1),
            };
            self.inner = match next.and_then(|number| Some((number, entries.get(number)?))) {
                Some((number, entry)) => {
                    let mut inner = Inner::new(entry, number, self.open, self.regime);
                    inner.cursor.seek(entry.start(direction), direction)?;
                    Some(inner)
                }
                None => None,
            };
        }
        Ok(())
    }
}

impl<C: Cursor> Cursor for ChainCursor<C> {
    fn approach(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        match self.enter(position, direction) {
            Some((cursor, position)) => cursor.approach(position, direction),
            None => Ok(()),
        }
    }

    fn seek(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        match self.enter(position, direction) {
            Some((cursor, position)) => cursor.seek(position, direction)?,
            None => return Ok(()),
        }
        self.settle(direction)
    }

    fn step(&mut self, direction: Direction) -> Result<()> {
        debug_assert!(self.current().is_some(), "the cursor stands on an entry");
        let Some(inner) = &mut self.inner else { return Ok(()) };
        inner.cursor.step(direction)?;
        if inner.bounds == Bound::Own && inner.cursor.current().is_some() {
            return Ok(());
        }
        self.settle(direction)
    }

    fn current(&self) -> Option<&Record> {
        self.inner.as_ref()?.cursor.current()
    }
}
