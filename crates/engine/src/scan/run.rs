//! One run in a merge: a cursor, and the head of the id that it stands on.

use std::cmp::Ordering;

use super::cursor::Cursor;
use super::met_id::MetId;
use crate::error::Result;
use crate::format::{CollectionId, Direction, Kind, Position, Sequence, Side};
use crate::segment::Record;

const HEAD_BYTES: usize = 16;

/// After this many versions of one id a seek is cheaper than further steps.
const STEPS_MAX: usize = 8;

/// An id's first 16 bytes, zeros appended, as a big-endian integer: decides most comparisons
/// without a call to the cursor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Head(u128);

impl Head {
    #[inline]
    pub(super) fn of(id: &[u8]) -> Self {
        Self(match id.first_chunk::<HEAD_BYTES>() {
            Some(bytes) => u128::from_be_bytes(*bytes),
            None => {
                let mut bytes = [0; HEAD_BYTES];
                bytes[..id.len()].copy_from_slice(id);
                u128::from_be_bytes(bytes)
            }
        })
    }
}

pub(super) struct Run<C> {
    cursor: C,
    collection: CollectionId,
    /// Of the record that the cursor stands on, if it is within the collection.
    head: Head,
    sequence: Sequence,
    kind: Kind,
    stand: Stand,
}

/// Where the cursor stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stand {
    /// On a version of the id that the scan has met.
    Met,
    /// On another id of the collection.
    Ahead,
    /// Outside of the collection, or on nothing.
    Beyond,
}

impl<C: Cursor> Run<C> {
    /// Not yet on an entry: seek first.
    pub(super) fn new(cursor: C, collection: CollectionId) -> Self {
        let (head, sequence, kind) = (Head(0), Sequence(0), Kind::Put);
        Self { cursor, collection, head, sequence, kind, stand: Stand::Beyond }
    }

    /// See [`Cursor::approach`].
    pub(super) fn approach(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        self.cursor.approach(position, direction)
    }

    pub(super) fn seek(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        self.cursor.seek(position, direction)?;
        self.look();
        Ok(())
    }

    /// Moves on from a version of `id`.
    #[inline]
    fn step(&mut self, id: &[u8], direction: Direction) -> Result<()> {
        self.cursor.step(direction)?;
        let met = self.head;
        self.look();
        if self.head == met {
            self.meet_again(id);
        }
        Ok(())
    }

    /// Forward: moves on from the record of the id that was met. If it comes to a document of another
    /// id, which a snapshot sees and whose head is before the fence, that id is the one that is met
    /// now.
    ///
    /// What [`Self::step`], [`Self::is_before`] and [`Self::meet`] do, in one look at the record.
    #[inline]
    pub(super) fn run_on(
        &mut self,
        id: &mut MetId,
        at: Sequence,
        fence: Option<Head>,
    ) -> Result<bool> {
        if self.stand != Stand::Met {
            return Ok(false);
        }
        let record = match self.cursor.advance(Direction::Forward)? {
            Some(record) if record.collection() == self.collection => record,
            _ => {
                self.stand = Stand::Beyond;
                return Ok(false);
            }
        };
        let (next, head) = (record.id(), Head::of(record.id()));
        let is_same = head == self.head && next == id.as_bytes();
        (self.head, self.sequence, self.kind) = (head, record.sequence(), record.kind());
        if is_same {
            return Ok(false);
        }
        let is_row = self.sequence <= at && self.kind == Kind::Put;
        if is_row && fence.is_none_or(|fence| head < fence) {
            id.set(next);
            return Ok(true);
        }
        self.stand = Stand::Ahead;
        Ok(false)
    }

    #[inline]
    fn look(&mut self) {
        match self.cursor.current() {
            Some(record) if record.collection() == self.collection => {
                self.head = Head::of(record.id());
                self.sequence = record.sequence();
                self.kind = record.kind();
                self.stand = Stand::Ahead;
            }
            _ => self.stand = Stand::Beyond,
        }
    }

    fn meet_again(&mut self, id: &[u8]) {
        if self.current().is_some_and(|record| record.id() == id) {
            self.stand = Stand::Met;
        }
    }

    /// The id under the cursor is the one that the scan meets next.
    #[inline]
    pub(super) fn meet(&mut self) {
        self.stand = Stand::Met;
    }

    /// The head of the id under the cursor.
    #[inline]
    pub(super) fn head(&self) -> Option<Head> {
        (self.stand != Stand::Beyond).then_some(self.head)
    }

    /// Whether there is an id under the cursor, before all ids with the fence's head.
    #[inline]
    pub(super) fn is_before(&self, fence: Option<Head>, direction: Direction) -> bool {
        self.stand != Stand::Beyond
            && fence.is_none_or(|fence| match direction {
                Direction::Forward => self.head < fence,
                Direction::Reverse => self.head > fence,
            })
    }

    #[inline]
    pub(super) fn current(&self) -> Option<&Record> {
        self.cursor.current().filter(|_| self.stand != Stand::Beyond)
    }

    /// The kind of the record under the cursor.
    #[inline]
    pub(super) fn kind(&self) -> Option<Kind> {
        (self.stand != Stand::Beyond).then_some(self.kind)
    }

    /// Compares the ids under two cursors.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        self.head.cmp(&other.head).then_with(|| self.id().cmp(&other.id()))
    }

    fn id(&self) -> Option<&[u8]> {
        self.current().map(Record::id)
    }

    /// The record under the cursor if it is a version of the id that was met.
    fn version(&self) -> Option<&Record> {
        if self.stand == Stand::Met { self.cursor.current() } else { None }
    }

    /// Forward, the versions come newest first: stands on the newest version of `id` with a
    /// sequence of at most `at` and returns its sequence, or moves behind all of them.
    #[inline]
    pub(super) fn first_visible(&mut self, id: &[u8], at: Sequence) -> Result<Option<Sequence>> {
        while self.stand == Stand::Met {
            if self.sequence <= at {
                return Ok(Some(self.sequence));
            }
            self.step(id, Direction::Forward)?;
        }
        Ok(None)
    }

    /// In reverse they come oldest first, so that only the next one tells whether this one is the
    /// answer. The cursor stays on one of them, or moves behind all.
    pub(super) fn last_visible(&mut self, id: &[u8], at: Sequence) -> Result<Option<Record>> {
        let mut visible = None;
        for _ in 0..STEPS_MAX {
            match self.version() {
                Some(record) if record.sequence() <= at => visible = Some(record.clone()),
                _ => return Ok(visible),
            }
            self.step(id, Direction::Reverse)?;
        }
        let before = Position { collection: self.collection, id, side: Side::Before };
        self.seek(before, Direction::Forward)?;
        self.meet_again(id);
        self.first_visible(id, at)?;
        Ok(self.version().cloned())
    }

    /// Moves past the versions of `id` that lie ahead.
    #[inline]
    pub(super) fn leave(&mut self, id: &[u8], direction: Direction) -> Result<()> {
        for _ in 0..STEPS_MAX {
            if self.stand != Stand::Met {
                return Ok(());
            }
            self.step(id, direction)?;
        }
        let side = match direction {
            Direction::Forward => Side::After,
            Direction::Reverse => Side::Before,
        };
        self.seek(Position { collection: self.collection, id, side }, direction)
    }
}
