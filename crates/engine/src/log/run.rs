//! A segment that takes log records, and the memtable that finds them.
//!
//! Invariants:
//!
//! 1. Every record below `end` was written whole, is in the memtable (if it is a put or a delete)
//!    and is never written again.
//! 2. `synced` only rises, and only after a sync that began when the log already reached there.
//! 3. Once a sync has failed, none of the segment's bytes above `synced` count as durable, whatever
//!    later syncs answer: the kernel reports a failed writeback once.

use std::fmt;
use std::path::Path;

use crate::disk::Access;
use crate::error::{Error, Result};
use crate::format::{
    CatalogueChange, CollectionId, Direction, Key, Kind, LOG_START, Position, RECORD_HEADER_BYTES,
    RecordHeader, SegmentId, Sequence,
};
use crate::log::ZeroFill;
use crate::memtable::{Entry, Ids, Index, Memtable, NodeRef};
use crate::planted::{self, Bug};
use crate::scan::Cursor;
use crate::segment::{Record, Regime, SegmentFile};
use crate::sync::{Arc, AtomicU64, Mutex, OnceLock, Ordering};

/// A catalogue record of a run's log.
#[derive(Clone, Debug)]
pub(crate) struct CatalogueRecord {
    pub(crate) offset: u64,
    pub(crate) sequence: Sequence,
    pub(crate) change: CatalogueChange,
}

/// An unsealed segment: the active one, or a frozen one on its way to be sealed.
pub(crate) struct Run {
    pub(crate) file: Arc<SegmentFile>,
    pub(crate) memtable: Memtable,
    pub(crate) zeros: Arc<ZeroFill>,
    /// What the log's catalogue records say, with their offsets.
    pub(crate) catalogue: Mutex<Vec<CatalogueRecord>>,
    end: AtomicU64,
    synced: AtomicU64,
    /// The end of everything that was ever written or tried here.
    attempted: AtomicU64,
    last_sequence: AtomicU64,
    /// Held while a sync of the file runs; shared with the runs that are cut from this one.
    gate: Arc<Mutex<()>>,
    /// The sync that failed, if one did. Set while the gate is held.
    failure: OnceLock<Error>,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("segment", &self.id())
            .field("end", &self.end())
            .field("synced", &self.synced())
            .finish_non_exhaustive()
    }
}

impl Ids for SegmentFile {
    fn id_at(&self, offset: u64) -> &[u8] {
        Self::id_at(self, offset)
    }
}

impl Run {
    pub(crate) fn new(file: Arc<SegmentFile>, memtable: Memtable) -> Self {
        let zeros = Arc::new(ZeroFill::new(LOG_START, file.capacity()));
        Self {
            file,
            memtable,
            zeros,
            catalogue: Mutex::default(),
            end: AtomicU64::new(LOG_START),
            synced: AtomicU64::new(LOG_START),
            attempted: AtomicU64::new(LOG_START),
            last_sequence: AtomicU64::new(0),
            gate: Arc::default(),
            failure: OnceLock::new(),
        }
    }

    /// The same segment, cut at an end up to which it is synced: what a failed write or sync leaves
    /// of it.
    pub(crate) fn cut(&self, end: u64, regime: Regime) -> Result<Self> {
        let memtable = Memtable::with_capacity(self.memtable.capacity());
        let mut last = Sequence(0);
        let mut entries = Vec::new();
        self.for_each(|collection, entry| {
            if entry.offset < end {
                entries.push((collection, entry));
            }
        });
        // The memtable takes the versions of an id in rising order.
        entries.sort_unstable_by_key(|(_, entry)| entry.sequence);
        for (collection, entry) in entries {
            // The new memtable will believe what it is told: this one still knows better.
            self.check_id(collection, entry, regime)?;
            let key = Key::new(collection, self.file.id_at(entry.offset));
            memtable.insert(key, entry, &*self.file).map_err(|_| Error::Background {
                what: "a memtable's copy is larger than the memtable".to_owned(),
            })?;
            last = last.max(entry.sequence);
        }
        let catalogue = self.catalogue.lock();
        let catalogue: Vec<_> =
            catalogue.iter().filter(|record| record.offset < end).cloned().collect();
        let last = catalogue.iter().map(|record| record.sequence).fold(last, Sequence::max);
        Ok(Self {
            file: Arc::clone(&self.file),
            memtable,
            zeros: Arc::clone(&self.zeros),
            catalogue: Mutex::new(catalogue),
            end: AtomicU64::new(end),
            synced: AtomicU64::new(end),
            attempted: AtomicU64::new(self.attempted.load(Ordering::Acquire)),
            last_sequence: AtomicU64::new(last.0),
            gate: Arc::clone(&self.gate),
            // What is left is durable already; the index will be written behind everything tried,
            // and synced anew.
            failure: OnceLock::new(),
        })
    }

    pub(crate) fn id(&self) -> SegmentId {
        self.file.id()
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Whether anything is in it besides marks.
    pub(crate) fn has_records(&self) -> bool {
        self.memtable.len() > 0 || !self.catalogue.lock().is_empty()
    }

    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    pub(crate) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    pub(crate) fn attempted(&self) -> u64 {
        self.attempted.load(Ordering::Acquire)
    }

    pub(crate) fn last_sequence(&self) -> Sequence {
        Sequence(self.last_sequence.load(Ordering::Acquire))
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.synced() >= self.end()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    /// Notes that bytes up to `end` are about to be written, so that no later write touches them.
    pub(crate) fn attempt(&self, end: u64) {
        self.attempted.fetch_max(end, Ordering::AcqRel);
    }

    /// The records below `end` are in the memtable.
    pub(crate) fn publish(&self, end: u64, last: Sequence) {
        self.last_sequence.store(last.0, Ordering::Release);
        self.end.store(end, Ordering::Release);
    }

    /// Makes records findable that were written at `offset`: puts and deletes go into the memtable,
    /// catalogue records into the run's list and to `on_change`. They are seen once published.
    pub(crate) fn index(
        &self,
        bytes: &[u8],
        offset: u64,
        mut on_change: impl FnMut(&CatalogueChange),
    ) -> Result<()> {
        for (at, header) in records(bytes) {
            let id = &bytes[at + RECORD_HEADER_BYTES..at + header.document_start()];
            let (offset, sequence) = (offset + at as u64, header.sequence);
            match header.kind {
                Kind::Put | Kind::Delete => {
                    let entry = Entry { offset, sequence, kind: header.kind };
                    let key = Key::new(header.collection, id);
                    self.memtable.insert(key, entry, &*self.file).map_err(|_| {
                        let what = "the memtable is fuller than it was counted".to_owned();
                        Error::Background { what }
                    })?;
                }
                Kind::Catalogue => {
                    let action = &bytes[at + header.document_start()..at + header.used_len()];
                    let change =
                        CatalogueChange::from_record(header.collection, sequence, id, action);
                    if let Some(change) = change {
                        on_change(&change);
                        let record = CatalogueRecord { offset, sequence, change };
                        self.catalogue.lock().push(record);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Syncs everything written so far. One sync at a time, because the kernel tells only one of
    /// two that a writeback failed.
    pub(crate) fn sync(&self) -> Result<()> {
        self.sync_up_to(self.end())
    }

    /// As [`Run::sync`], when the log was written up to `end` but is not yet published.
    pub(crate) fn sync_up_to(&self, end: u64) -> Result<()> {
        let _gate = self.gate.lock();
        self.check_syncs()?;
        if self.synced() >= end {
            return Ok(());
        }
        self.sync_log(end)
    }

    /// Syncs the file whatever is known to be synced: after the index was written. A failure
    /// concerns the log only if some of it was not synced before; the index is written anew
    /// elsewhere.
    pub(crate) fn sync_index(&self) -> Result<()> {
        let _gate = self.gate.lock();
        self.check_syncs()?;
        let end = self.end();
        if self.synced() >= end { self.sync_file() } else { self.sync_log(end) }
    }

    fn check_syncs(&self) -> Result<()> {
        match self.failure.get() {
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        }
    }

    fn sync_log(&self, end: u64) -> Result<()> {
        self.sync_file().inspect_err(|e| {
            if planted::is(Bug::OldTailAppendedTo) {
                return;
            }
            // Only the holder of the gate comes here, and only while there is no failure.
            drop(self.failure.set(e.clone()));
        })?;
        self.synced.fetch_max(end, Ordering::AcqRel);
        Ok(())
    }

    fn sync_file(&self) -> Result<()> {
        self.file.disk_file().sync_data().map_err(|e| Error::io("sync", self.path(), e))
    }

    pub(crate) fn get(&self, key: Key<'_>, at: Sequence, regime: Regime) -> Result<Option<Record>> {
        match self.memtable.get(key, at, &*self.file) {
            // The memtable compares the end of a long id in the log: there it may be damaged.
            None => match self.memtable.suspect(key) {
                None => Ok(None),
                Some(entry) => self.read(entry, regime).map(|_| None),
            },
            Some(entry) => {
                let record = self.read(entry, regime)?;
                // The memtable compares short ids by what it remembers, not by the record.
                if record.is_of(&key) {
                    Ok(Some(record))
                } else {
                    let what = "the record there is of another id";
                    Err(Error::corrupt(self.path(), entry.offset, what))
                }
            }
        }
    }

    fn read(&self, entry: Entry, regime: Regime) -> Result<Record> {
        self.file.read(entry.offset, self.readable(), regime)
    }

    /// Behind everything that was written; the file may be cut there.
    fn readable(&self) -> u64 {
        self.attempted().min(self.file.capacity())
    }

    /// Fails with `Corrupt` when an entry's record is damaged so that its id may be another one. Of
    /// damage to its document alone, readers are told.
    pub(crate) fn check_id(
        &self,
        collection: CollectionId,
        entry: Entry,
        regime: Regime,
    ) -> Result<()> {
        let Err(damage) = self.read(entry, regime) else { return Ok(()) };
        // The memtable remembers a part of the hash and the id's first bytes: a damaged id does not
        // lead back to the entry.
        let key = Key::new(collection, self.file.id_at(entry.offset));
        let found = self.memtable.get(key, entry.sequence, &*self.file);
        if found == Some(entry) { Ok(()) } else { Err(damage) }
    }

    /// The sequence of the newest record of a key.
    pub(crate) fn newest(&self, key: Key<'_>) -> Option<Sequence> {
        self.memtable.newest(key, &*self.file).map(|entry| entry.sequence)
    }

    /// Every entry, in order.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(CollectionId, Entry)) {
        for node in self.nodes() {
            let (collection, entry) = self.memtable.entry(node);
            visit(collection, entry);
        }
    }

    /// Where the memtable has each record, in order.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeRef> {
        let first =
            Position { collection: CollectionId(0), id: &[], side: crate::format::Side::Before };
        let first = self.memtable.seek(first, Direction::Forward, &*self.file);
        std::iter::successors(first, |node| {
            self.memtable.step(*node, Direction::Forward, &*self.file)
        })
    }

    pub(crate) fn cursor(self: &Arc<Self>, regime: Regime) -> RunCursor {
        let (node, next, record, approached) = (None, None, None, None);
        RunCursor { run: Arc::clone(self), regime, node, next, record, approached }
    }

    /// Writes the next step of zeros. True when there may be another.
    pub(crate) fn zero_step(&self, zeros: &[u8]) -> bool {
        let Some(step) = self.zeros.claim() else { return false };
        let end = step.offset + step.len;
        let mut at = step.offset;
        while at < end {
            let chunk = zeros.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
            let bufs = [std::io::IoSlice::new(&zeros[..chunk])];
            match self.file.disk_file().write_at(&bufs, at, Access::Keep) {
                Ok(written) if written > 0 => at += written as u64,
                _ => return false,
            }
        }
        true
    }
}

/// A cursor over a run's memtable.
#[derive(Debug)]
pub(crate) struct RunCursor {
    run: Arc<Run>,
    regime: Regime,
    node: Option<NodeRef>,
    /// Forward, the node behind it.
    next: Option<NodeRef>,
    record: Option<Record>,
    /// What an announced seek will stand on; the inner `None` is no node.
    approached: Option<Option<NodeRef>>,
}

impl RunCursor {
    /// Forward, three cache misses lie between one row and the next: the node behind, its record, and
    /// in a merge the rows of other runs come first. So a node is on its way from memory two rows
    /// ahead, and a record one.
    fn settle(&mut self, node: Option<NodeRef>, direction: Direction) -> Result<()> {
        self.node = node;
        self.next = None;
        let Some(node) = node else {
            self.record = None;
            return Ok(());
        };
        let (memtable, file) = (&self.run.memtable, &self.run.file);
        let (_, entry) = memtable.entry(node);
        if direction == Direction::Forward {
            // A record that is inserted between the two is newer than every scan that runs now can
            // see.
            self.next = memtable.step(node, direction, &**file);
            if let Some(next) = self.next {
                memtable.prefetch_next(next);
                if self.regime == Regime::Mapped {
                    file.prefetch(memtable.entry(next).1.offset);
                }
            }
        }
        file.read_into(&mut self.record, entry.offset, self.run.readable(), self.regime)
    }
}

impl Cursor for RunCursor {
    fn approach(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        let (memtable, file) = (&self.run.memtable, &self.run.file);
        let node = memtable.seek(position, direction, &**file);
        if let Some(node) = node {
            memtable.prefetch_next(node);
            if self.regime == Regime::Mapped {
                file.prefetch(memtable.entry(node).1.offset);
            }
        }
        self.approached = Some(node);
        Ok(())
    }

    fn seek(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        if self.approached.is_none() {
            self.approach(position, direction)?;
        }
        let node = self.approached.take().flatten();
        self.settle(node, direction)
    }

    fn step(&mut self, direction: Direction) -> Result<()> {
        let next = match (direction, self.next, self.node) {
            (Direction::Forward, Some(next), _) => Some(next),
            (_, _, Some(node)) => self.run.memtable.step(node, direction, &*self.run.file),
            (_, _, None) => None,
        };
        self.settle(next, direction)
    }

    fn current(&self) -> Option<&Record> {
        self.record.as_ref()
    }
}

/// The records in bytes that the engine itself encoded, with their positions: each header, and
/// where it begins.
pub(crate) fn records(bytes: &[u8]) -> impl Iterator<Item = (usize, RecordHeader)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let header = RecordHeader::parse_unchecked(bytes.get(at..)?).ok()?;
        let start = at;
        at += header.record_len();
        Some((start, header))
    })
}

impl RecordHeader {
    /// Whether the record takes a sequence of its own.
    pub(crate) fn is_counted(&self) -> bool {
        !matches!(self.kind, Kind::Mark | Kind::Batch)
    }
}
