//! One run in a merge: a cursor, and the head of the id that it stands on.

use std::cmp::Ordering;

use super::cursor::Cursor;
use crate::error::Result;
use crate::format::{CollectionId, Direction, Position, Sequence, Side};
use crate::segment::Record;

const HEAD_BYTES: usize = 16;

/// After this many versions of one id a seek is cheaper than further steps.
const STEPS_MAX: usize = 8;

/// An id's first 16 bytes, zeros appended, as a big-endian integer: decides most comparisons
/// without a call to the cursor.
fn head(id: &[u8]) -> u128 {
    match id.first_chunk::<HEAD_BYTES>() {
        Some(bytes) => u128::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; HEAD_BYTES];
            bytes[..id.len()].copy_from_slice(id);
            u128::from_be_bytes(bytes)
        }
    }
}

pub(super) struct Run {
    cursor: Box<dyn Cursor>,
    collection: CollectionId,
    /// `None`: the cursor has left the collection.
    head: Option<u128>,
}

impl Run {
    /// Not yet on an entry: seek first.
    pub(super) fn new(cursor: Box<dyn Cursor>, collection: CollectionId) -> Self {
        Self { cursor, collection, head: None }
    }

    pub(super) fn seek(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        self.cursor.seek(position, direction)?;
        self.look();
        Ok(())
    }

    fn step(&mut self, direction: Direction) -> Result<()> {
        self.cursor.step(direction)?;
        self.look();
        Ok(())
    }

    fn look(&mut self) {
        self.head = match self.cursor.current() {
            Some(record) if record.collection() == self.collection => Some(head(record.id())),
            _ => None,
        };
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.head.is_none()
    }

    pub(super) fn current(&self) -> Option<&Record> {
        self.cursor.current().filter(|_| self.head.is_some())
    }

    /// Compares the ids under two cursors.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        self.head.cmp(&other.head).then_with(|| self.id().cmp(&other.id()))
    }

    fn id(&self) -> Option<&[u8]> {
        self.current().map(Record::id)
    }

    /// The record under the cursor if it is a version of `id`.
    fn version(&self, id: &[u8]) -> Option<&Record> {
        self.current().filter(|record| record.id() == id)
    }

    /// Of the versions of `id` from the cursor on, the newest with a sequence of at most `at`. The
    /// cursor stands on a version of `id`, and stays on one or moves behind all of them.
    pub(super) fn newest(
        &mut self,
        id: &[u8],
        at: Sequence,
        direction: Direction,
    ) -> Result<Option<Record>> {
        match direction {
            Direction::Forward => self.first_visible(id, at),
            Direction::Reverse => self.last_visible(id, at),
        }
    }

    /// Forward, the versions come newest first.
    fn first_visible(&mut self, id: &[u8], at: Sequence) -> Result<Option<Record>> {
        while let Some(record) = self.version(id) {
            if record.sequence() <= at {
                return Ok(Some(record.clone()));
            }
            self.step(Direction::Forward)?;
        }
        Ok(None)
    }

    /// In reverse they come oldest first, so that only the next one tells whether this one is the
    /// answer.
    fn last_visible(&mut self, id: &[u8], at: Sequence) -> Result<Option<Record>> {
        let mut visible = None;
        for _ in 0..STEPS_MAX {
            match self.version(id) {
                Some(record) if record.sequence() <= at => visible = Some(record.clone()),
                _ => return Ok(visible),
            }
            self.step(Direction::Reverse)?;
        }
        let before = Position { collection: self.collection, id, side: Side::Before };
        self.seek(before, Direction::Forward)?;
        self.first_visible(id, at)
    }

    /// Moves past the versions of `id` that lie ahead.
    pub(super) fn leave(&mut self, id: &[u8], direction: Direction) -> Result<()> {
        for _ in 0..STEPS_MAX {
            if self.version(id).is_none() {
                return Ok(());
            }
            self.step(direction)?;
        }
        let side = match direction {
            Direction::Forward => Side::After,
            Direction::Reverse => Side::Before,
        };
        self.seek(Position { collection: self.collection, id, side }, direction)
    }
}
