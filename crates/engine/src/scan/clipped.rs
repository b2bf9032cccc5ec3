//! The part of a run that compaction has not passed yet.
//!
//! Invariants:
//!
//! 1. No record below the bound is ever shown. One may be read: the first one below it, where a
//!    walk in reverse ends.
//! 2. A seek that can find nothing touches nothing.

use std::cmp::Ordering;

use super::cursor::Cursor;
use crate::error::Result;
use crate::format::{Direction, FullKey, Position, Side};
use crate::segment::Record;

/// Shows only the records of a cursor from a key on.
///
/// A step costs what the inner cursor's does, in reverse also the comparison of a key.
pub(crate) struct Clipped<C> {
    inner: C,
    lower: FullKey,
    stand: Stand,
}

/// Where the inner cursor stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stand {
    /// On a record at or above the bound, or past the upper end.
    Within,
    /// Anywhere else: its record is none of this cursor's.
    Below,
}

impl<C: Cursor> Clipped<C> {
    /// Shows the records whose keys are `lower` or greater. Not yet on an entry: seek first.
    pub(crate) fn new(inner: C, lower: FullKey) -> Self {
        Self { inner, lower, stand: Stand::Below }
    }
}

/// The place to seek for what lies behind or before a position and not below a bound. `None` where
/// there can be nothing.
fn clip<'a>(
    lower: &'a FullKey,
    position: Position<'a>,
    direction: Direction,
) -> Option<Position<'a>> {
    let is_behind = match lower.compare(position.collection, position.id) {
        Ordering::Less => true,
        Ordering::Equal => position.side == Side::After,
        Ordering::Greater => false,
    };
    match direction {
        _ if is_behind => Some(position),
        Direction::Forward => Some(lower.position(Side::Before)),
        Direction::Reverse => None,
    }
}

impl<C: Cursor> Cursor for Clipped<C> {
    fn approach(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        match clip(&self.lower, position, direction) {
            Some(position) => self.inner.approach(position, direction),
            None => Ok(()),
        }
    }

    fn seek(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        self.stand = Stand::Below;
        if let Some(position) = clip(&self.lower, position, direction) {
            self.inner.seek(position, direction)?;
            self.look(direction);
        }
        Ok(())
    }

    fn step(&mut self, direction: Direction) -> Result<()> {
        debug_assert!(self.current().is_some(), "the cursor stands on an entry");
        self.inner.step(direction)?;
        self.look(direction);
        Ok(())
    }

    fn current(&self) -> Option<&Record> {
        match self.stand {
            Stand::Within => self.inner.current(),
            Stand::Below => None,
        }
    }
}

impl<C: Cursor> Clipped<C> {
    /// Sees where the inner cursor came to. Forward it came from a place within.
    fn look(&mut self, direction: Direction) {
        let is_below = |record: &Record| {
            self.lower.compare(record.collection(), record.id()) == Ordering::Greater
        };
        self.stand = match direction {
            Direction::Reverse if self.inner.current().is_some_and(is_below) => Stand::Below,
            Direction::Forward | Direction::Reverse => Stand::Within,
        };
    }
}
