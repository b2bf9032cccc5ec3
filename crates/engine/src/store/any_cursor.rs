//! A cursor over a run of any kind, as a scan's merge takes them.
//!
//! One type in place of a trait object: which cursor it is costs a step one branch, which the
//! processor foresees as long as the rows come from one run, and what is behind the branch is
//! inlined. Each is in a box of its own, so that the merge goes through runs of one cache line.

use super::quarantine::QuarantineCursor;
use crate::error::Result;
use crate::format::{Direction, Position};
use crate::log::RunCursor;
use crate::scan::{ChainCursor, Clipped, Cursor};
use crate::segment::{Record, SegmentCursor};

/// A place in a run, whatever it is made of.
pub(crate) enum AnyCursor {
    Unsealed(Box<RunCursor>),
    Segment(Box<SegmentCursor>),
    ClippedSegment(Box<Clipped<SegmentCursor>>),
    Chain(Box<ChainCursor<SegmentCursor>>),
    ClippedChain(Box<Clipped<ChainCursor<SegmentCursor>>>),
    Quarantine(Box<QuarantineCursor>),
}

/// Calls a method of whichever cursor it is.
macro_rules! each {
    ($self:expr, $cursor:ident => $call:expr) => {
        match $self {
            AnyCursor::Unsealed($cursor) => $call,
            AnyCursor::Segment($cursor) => $call,
            AnyCursor::ClippedSegment($cursor) => $call,
            AnyCursor::Chain($cursor) => $call,
            AnyCursor::ClippedChain($cursor) => $call,
            AnyCursor::Quarantine($cursor) => $call,
        }
    };
}

impl Cursor for AnyCursor {
    fn approach(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        each!(self, cursor => cursor.approach(position, direction))
    }

    fn seek(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        each!(self, cursor => cursor.seek(position, direction))
    }

    #[inline]
    fn step(&mut self, direction: Direction) -> Result<()> {
        each!(self, cursor => cursor.step(direction))
    }

    #[inline]
    fn advance(&mut self, direction: Direction) -> Result<Option<&Record>> {
        each!(self, cursor => cursor.advance(direction))
    }

    #[inline]
    fn current(&self) -> Option<&Record> {
        each!(self, cursor => cursor.current())
    }
}
