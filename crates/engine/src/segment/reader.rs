//! A sealed segment: cheap to have, opened at its first use.
//!
//! What a get costs here, where the file is mapped: one cache line of the fingerprint table, and
//! for an id that is present its record and the record's checksum; 1.3 lines and nothing else for
//! an id that is absent, but for false positives (0.8 % in a log of 11 MB, see `fingerprints`),
//! each of which costs a record. Nothing is allocated, no lock is taken, and the only write is to
//! the thread's pin. An index segment looks its records up in its members, at the price of a search
//! among at most 64 numbers. Invariants:
//!
//! 1. Opening a database touches no sealed segment: bounds and counts come from the manifest, and
//!    must be those of the trailer when the file is opened.
//! 2. Damage in the index or in a record that a lookup meets is `Corrupt`, with file and offset;
//!    never an answer.

use std::slice;

use super::cursor::SegmentCursor;
use super::data::{DataSegment, Members, Records};
use super::file::{Regime, SegmentFile};
use super::index::{BlockBuffer, Index};
use super::record::Record;
use super::sorted::{Damage, SortedIndex, Target};
use crate::disk::Access;
use crate::error::{Error, Result};
use crate::format::{BLOCK_BYTES, IndexLayout, Key, Position, SealedMeta, Sequence};
use crate::sync::{Arc, OnceLock};

/// Reads and verifies the trailer that stands at `offset`, the last block of a file.
pub(super) fn read_layout(file: &SegmentFile, offset: u64) -> Result<(SealedMeta, IndexLayout)> {
    let mut block = vec![0; BLOCK_BYTES];
    file.pread(&mut block, offset)?;
    IndexLayout::decode_trailer(&block, file.incarnation(), offset)
        .map_err(|fault| fault.into_error(file.path(), offset))
}

/// A sealed segment.
#[derive(Debug)]
pub(crate) struct SealedSegment {
    meta: SealedMeta,
    opened: OnceLock<Opened>,
    /// The segment's own file, which has the index.
    data: Arc<DataSegment>,
    /// Of an index segment, where the records are.
    members: Option<Members>,
}

#[derive(Debug)]
pub(super) struct Opened {
    file: Arc<SegmentFile>,
    index: Index,
}

impl SealedSegment {
    /// The segment of a file that has its records and their index.
    pub(crate) fn of(data: Arc<DataSegment>) -> Arc<Self> {
        Arc::new(Self { meta: data.meta().clone(), opened: OnceLock::new(), data, members: None })
    }

    /// The segment of a file that has only an index, over the records of the members: those that it
    /// was written for, in the same order.
    pub(crate) fn over(index: Arc<DataSegment>, members: Vec<Arc<DataSegment>>) -> Arc<Self> {
        debug_assert!(!members.is_empty(), "an index segment has members");
        let members = Some(Members::new(members)).filter(|members| !members.data().is_empty());
        Arc::new(Self { meta: index.meta().clone(), opened: OnceLock::new(), data: index, members })
    }

    pub(crate) fn meta(&self) -> &SealedMeta {
        &self.meta
    }

    /// The files that have the records: the members of an index segment, else its own.
    pub(crate) fn members(&self) -> &[Arc<DataSegment>] {
        match &self.members {
            Some(members) => members.data(),
            None => slice::from_ref(&self.data),
        }
    }

    #[cfg(test)]
    /// Whether the file is open, so that a use costs no system call for that.
    pub(crate) fn is_open(&self) -> bool {
        self.data.opened().is_some()
    }

    #[cfg(test)]
    /// Space that the file takes on the disk, in bytes: asked where it is open, else its length.
    ///
    /// # Errors
    ///
    /// When the operating system does not say.
    pub(crate) fn allocated_bytes(&self) -> Result<u64> {
        match self.data.opened() {
            Some(file) => {
                file.disk_file().allocated().map_err(|e| Error::io("measure", file.path(), e))
            }
            None => Ok(self.meta.file_bytes()),
        }
    }

    /// The segment's own file.
    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.data.path()
    }

    /// Memory that the segment holds, maps and members not counted, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + size_of::<DataSegment>()
            + self.opened.get().map_or(0, |opened| opened.index.heap_bytes())
    }

    #[cfg(test)]
    /// Has the segment's own file unlinked once the segment and its last record are gone; members
    /// are doomed by themselves.
    pub(crate) fn doom(&self) {
        self.data.doom();
    }

    /// The newest version of the key at or before `at`: a put, or a tombstone. `None` when the
    /// segment has none.
    ///
    /// # Errors
    ///
    /// `Corrupt` when damage stands in the way, `UnsupportedFormat` when the version found is of a
    /// kind that this library does not read, `Io` when the file cannot be opened or read.
    pub(crate) fn get(&self, key: Key<'_>, at: Sequence, regime: Regime) -> Result<Option<Record>> {
        if at < self.meta.sequence_min || !self.meta.may_hold(&key) {
            return Ok(None);
        }
        let opened = self.opened()?;
        let found = match self.newest(opened, &key, regime)? {
            Some((newest, _)) if newest.sequence() > at => self.version(opened, key, at, regime)?,
            found => found,
        };
        let Some((record, place)) = found else { return Ok(None) };
        if !record.is_servable() {
            record.check_servable(self.records(opened).at(place)?.0.path())?;
        }
        Ok(Some(record))
    }

    /// The newest version of the key, of whatever kind, for accounting: nothing is said of what a
    /// reader would be told.
    ///
    /// # Errors
    ///
    /// As [`SealedSegment::get`], but for kinds.
    pub(crate) fn find_newest(&self, key: Key<'_>, regime: Regime) -> Result<Option<Record>> {
        if !self.meta.may_hold(&key) {
            return Ok(None);
        }
        Ok(self.newest(self.opened()?, &key, regime)?.map(|(record, _)| record))
    }

    /// How many records are before a place in the order. Reads some index blocks, and records whose
    /// heads tie with the place.
    pub(crate) fn rank(&self, position: Position<'_>) -> Result<u64> {
        let sorted = self.sorted(Regime::Pread)?;
        let target = Target::Position(position);
        sorted.lower_bound(&target, Damage::Passes, &mut BlockBuffer::default())
    }

    /// A cursor over all records. Touches no file before its first seek.
    pub(crate) fn cursor(self: &Arc<Self>, regime: Regime) -> SegmentCursor {
        SegmentCursor::new(Arc::clone(self), regime)
    }

    /// A cursor for whoever goes through all records and past damaged ones: see
    /// [`SegmentCursor::sequential`].
    pub(crate) fn sequential(self: &Arc<Self>, access: Access) -> SegmentCursor {
        SegmentCursor::sequential(Arc::clone(self), access)
    }

    /// The sorted index; opens the file.
    #[inline(always)]
    pub(super) fn sorted(&self, regime: Regime) -> Result<SortedIndex<'_>> {
        Ok(self.sorted_of(self.opened()?, regime))
    }

    #[inline(always)]
    fn sorted_of<'a>(&'a self, opened: &'a Opened, regime: Regime) -> SortedIndex<'a> {
        SortedIndex { index: &opened.index, records: self.records(opened), regime }
    }

    #[inline]
    fn records<'a>(&'a self, opened: &'a Opened) -> Records<'a> {
        Records { file: &opened.file, log_end: self.meta.log_end, members: self.members.as_ref() }
    }

    /// The newest version of the key, and its place.
    fn newest(
        &self,
        opened: &Opened,
        key: &Key<'_>,
        regime: Regime,
    ) -> Result<Option<(Record, u64)>> {
        let records = self.records(opened);
        self.search(opened, key.hash, regime, |place| {
            // Verified before its key is compared: a damaged id must not pass for another one.
            let record = records.read(place, regime)?;
            Ok(record.is_of(key).then_some((record, place)))
        })
    }

    /// Visits the places that the fingerprint table has for a hash, until one gives an answer.
    #[inline]
    pub(super) fn search<T>(
        &self,
        opened: &Opened,
        hash: u64,
        regime: Regime,
        mut visit: impl FnMut(u64) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let Opened { file, index } = opened;
        let table = index.fingerprints();
        let mut number = table.bucket_of(hash);
        for _ in 0..table.buckets {
            let bucket = index.bucket(file, number, regime)?;
            let matches = table.matches(bucket, hash);
            let mut slots = matches.slots;
            while slots != 0 {
                let place = table.offset_in(bucket, slots.trailing_zeros());
                if let Some(answer) = visit(place)? {
                    return Ok(Some(answer));
                }
                slots &= slots - 1;
            }
            if matches.is_last {
                break;
            }
            number = table.next_bucket(number);
        }
        Ok(None)
    }

    /// The newest version of the key at or before `at`, where newer ones may exist, and its place.
    fn version(
        &self,
        opened: &Opened,
        key: Key<'_>,
        at: Sequence,
        regime: Regime,
    ) -> Result<Option<(Record, u64)>> {
        let sorted = self.sorted_of(opened, regime);
        let mut buffer = BlockBuffer::default();
        let target = Target::Version(key, at);
        let entry = sorted.lower_bound(&target, Damage::Fails, &mut buffer)?;
        if entry == sorted.len() {
            return Ok(None);
        }
        let place = sorted.place(entry, &mut buffer)?;
        let record = sorted.records.read(place, regime)?;
        Ok(record.is_of(&key).then_some((record, place)))
    }

    #[inline]
    pub(super) fn opened(&self) -> Result<&Opened> {
        match self.opened.get() {
            Some(opened) => Ok(opened),
            None => self.open(),
        }
    }

    /// Reads the trailer. Of several threads that come at once, the first one's is kept.
    #[cold]
    fn open(&self) -> Result<&Opened> {
        let (meta, file) = (&self.meta, self.data.file()?);
        let (found, layout) = read_layout(file, meta.trailer_offset)?;
        let members_are_right = match &self.members {
            Some(members) => members.are(&layout.members),
            None => layout.members.is_empty(),
        };
        if found != *meta || !members_are_right {
            let what = "the trailer differs from the manifest";
            return Err(Error::corrupt(file.path(), meta.trailer_offset, what));
        }
        let opened = Opened { index: Index::new(meta, layout), file: Arc::clone(file) };
        Ok(self.opened.get_or_init(|| opened))
    }
}
