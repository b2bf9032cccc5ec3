//! The records of several runs in one order: by key, the newest version of an id first.
//!
//! Reads with `pread`, so that a failing disk is an error; memory is a window a run. Invariants:
//!
//! 1. Runs are given newest first, and a newer run has newer versions of an id only: among equal
//!    keys the first run's records come first, whatever their sequences say.
//! 2. A record that does not verify is an entry like any other where its id is known. Where it is
//!    not, its segment is listed: it must stay, as what reads look into last. An error of the disk,
//!    or of an index, ends the merge.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::disk::Access;
use crate::error::Result;
use crate::format::{
    CollectionId, Direction, FullKey, Kind, Position, SegmentId, Sequence, Side, full_key_head,
};
use crate::scan::{ChainEntry, Cursor};
use crate::segment::{Record, SealedSegment, SegmentCursor};
use crate::sync::Arc;

/// A run to merge.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Segment(Arc<SealedSegment>),
    /// Parts of segments, in order by key.
    Chain(Vec<ChainEntry>),
}

/// What a source stands on.
#[derive(Debug)]
pub(crate) enum Entry {
    Record(Record),
    /// It does not verify; this is its key, and the least sequence that it may have.
    Damaged {
        key: FullKey,
        sequence: Sequence,
    },
}

impl Entry {
    pub(crate) fn collection(&self) -> CollectionId {
        match self {
            Self::Record(record) => record.collection(),
            Self::Damaged { key, .. } => key.collection(),
        }
    }

    pub(crate) fn id(&self) -> &[u8] {
        match self {
            Self::Record(record) => record.id(),
            Self::Damaged { key, .. } => key.id(),
        }
    }

    pub(crate) fn key(&self) -> (CollectionId, &[u8]) {
        (self.collection(), self.id())
    }

    pub(crate) fn sequence(&self) -> Sequence {
        match self {
            Self::Record(record) => record.sequence(),
            Self::Damaged { sequence, .. } => *sequence,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Record(record) => record.kind(),
            Self::Damaged { .. } => Kind::Damaged,
        }
    }

    /// The id and the document, in bytes.
    pub(crate) fn content_len(&self) -> u64 {
        match self {
            Self::Record(record) => record.content_len(),
            Self::Damaged { key, .. } => key.id().len() as u64,
        }
    }
}

/// One run on its way through a merge.
#[derive(Debug)]
struct Source {
    input: Input,
    /// The next part of a chain.
    next: usize,
    cursor: Option<SegmentCursor>,
    entry: Option<Entry>,
    head: u128,
}

/// Runs on their way into one order.
#[derive(Debug)]
pub(crate) struct Merge {
    sources: Vec<Source>,
    access: Access,
    /// The first key that is wanted; kept for parts that are opened later.
    from: Option<FullKey>,
    lost: BTreeSet<SegmentId>,
}

impl Merge {
    /// Stands on the first entry from a key on. Newest run first.
    pub(crate) fn new(inputs: Vec<Input>, from: Option<FullKey>, access: Access) -> Result<Self> {
        let sources = inputs
            .into_iter()
            .map(|input| Source { input, next: 0, cursor: None, entry: None, head: 0 })
            .collect();
        let mut merge = Self { sources, access, from, lost: BTreeSet::new() };
        for i in 0..merge.sources.len() {
            merge.advance(i)?;
        }
        Ok(merge)
    }

    /// The source whose entry comes next; `None` at the end of all.
    pub(crate) fn least(&self) -> Option<usize> {
        let mut least: Option<(usize, &Source, &Entry)> = None;
        for (i, source) in self.sources.iter().enumerate() {
            let Some(entry) = &source.entry else { continue };
            let is_less = least.is_none_or(|(_, best, best_entry)| {
                source.head.cmp(&best.head).then_with(|| entry.key().cmp(&best_entry.key()))
                    == Ordering::Less
            });
            if is_less {
                least = Some((i, source, entry));
            }
        }
        least.map(|(i, ..)| i)
    }

    pub(crate) fn entry(&self, source: usize) -> Option<&Entry> {
        self.sources.get(source)?.entry.as_ref()
    }

    /// The file that has the record of a source's entry, and its offset there. The source must have
    /// one.
    pub(crate) fn place(&self, source: usize) -> Result<(SegmentId, u64)> {
        let source = &self.sources[source];
        let segment = match &source.input {
            Input::Segment(segment) => segment,
            Input::Chain(parts) => parts[source.next - 1].segment(),
        };
        let cursor = source.cursor.as_ref().expect("a source with an entry has a cursor");
        let place = cursor.place()?;
        Ok((segment.members()[place.member].meta().id, place.offset))
    }

    /// Moves a source to its next entry.
    pub(crate) fn advance(&mut self, source: usize) -> Result<()> {
        let is_open = self.sources[source].cursor.is_some();
        let mut found = if is_open { self.step(source)? } else { None };
        while found.is_none() && self.open_next(source)? {
            found = self.seek(source)?;
        }
        let source = &mut self.sources[source];
        source.head = found.as_ref().map_or(0, |e| full_key_head(e.collection(), e.id()));
        source.entry = found;
        Ok(())
    }

    /// Segments in which the merge has met records whose ids are not known.
    pub(crate) fn lost(&self) -> &BTreeSet<SegmentId> {
        &self.lost
    }

    /// All segments with records whose ids are not known.
    pub(crate) fn into_lost(self) -> BTreeSet<SegmentId> {
        self.lost
    }

    /// Opens a cursor on the source's next part. False when there is none.
    fn open_next(&mut self, source: usize) -> Result<bool> {
        let source = &mut self.sources[source];
        let segment = match &source.input {
            Input::Segment(segment) if source.next == 0 => segment,
            Input::Segment(_) => return Ok(false),
            Input::Chain(parts) => {
                let from = &self.from;
                // Parts that end before the first key that is wanted.
                while parts
                    .get(source.next)
                    .is_some_and(|part| from.as_ref().is_some_and(|from| part.last() < from))
                {
                    source.next += 1;
                }
                match parts.get(source.next) {
                    Some(part) => part.segment(),
                    None => return Ok(false),
                }
            }
        };
        source.cursor = Some(segment.sequential(self.access));
        source.next += 1;
        Ok(true)
    }

    /// The first entry of the part that was just opened.
    fn seek(&mut self, source: usize) -> Result<Option<Entry>> {
        let at = &mut self.sources[source];
        let first = match &at.input {
            Input::Segment(_) => None,
            Input::Chain(parts) => parts.get(at.next - 1).map(ChainEntry::first),
        };
        // No key is below the empty id of the engine's own collection.
        let start = Position { collection: CollectionId(0), id: &[], side: Side::Before };
        let position =
            first.max(self.from.as_ref()).map_or(start, |key| key.position(Side::Before));
        let Some(cursor) = &mut at.cursor else { return Ok(None) };
        let outcome = cursor.seek(position, Direction::Forward);
        self.settle(source, outcome)
    }

    fn step(&mut self, source: usize) -> Result<Option<Entry>> {
        let Some(cursor) = &mut self.sources[source].cursor else { return Ok(None) };
        let outcome = cursor.step(Direction::Forward);
        self.settle(source, outcome)
    }

    /// The entry that a cursor has come to, or the next one whose id is known.
    fn settle(&mut self, source: usize, mut outcome: Result<()>) -> Result<Option<Entry>> {
        let at = &mut self.sources[source];
        let Some(cursor) = &mut at.cursor else { return Ok(None) };
        let part = match &at.input {
            Input::Segment(segment) => (segment, None),
            Input::Chain(parts) => {
                let part = &parts[at.next - 1];
                (part.segment(), Some(part.last()))
            }
        };
        let (segment, last) = part;
        let entry = loop {
            let Err(error) = outcome else {
                break cursor.current().cloned().map(Entry::Record);
            };
            let Some(damaged) = cursor.damaged() else { return Err(error) };
            if let Some((collection, id)) = &damaged.key {
                let key = FullKey::new(*collection, id);
                break Some(Entry::Damaged { key, sequence: damaged.sequence });
            }
            self.lost.insert(segment.members()[damaged.place.member].meta().id);
            outcome = cursor.step(Direction::Forward);
        };
        // What a part has behind its last key is superseded.
        let is_within = |entry: &Entry| {
            last.is_none_or(|last| last.compare(entry.collection(), entry.id()) != Ordering::Less)
        };
        Ok(entry.filter(is_within))
    }
}
