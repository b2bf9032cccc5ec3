//! The files that hold a segment's records: opened at their first use, shared, and unlinked when
//! they are doomed and nobody reads them any more.
//!
//! Invariants:
//!
//! 1. Making one touches no file, unless it is handed over open.
//! 2. A file that is doomed, opened or not, is unlinked once the last segment that has it and all
//!    its records are gone. Who dooms an index segment dooms none of its members.
//! 3. A place in an index segment leads to exactly one member.

use std::path::{Path, PathBuf};

use super::file::{Regime, SegmentFile};
use super::names::segment_path;
use super::reaper::{Reaper, Remains};
use super::record::Record;
use super::record_format::RecordFormat;
use crate::disk::Disk;
use crate::error::Result;
use crate::format::{FileKind, LOG_START, Member, RECORD_ALIGNMENT, SealedMeta};
use crate::sync::{Arc, AtomicBool, OnceLock, Ordering, Weak};

/// The file of a sealed segment.
#[derive(Debug)]
pub(crate) struct DataSegment {
    meta: SealedMeta,
    file: OnceLock<Arc<SegmentFile>>,
    doomed: AtomicBool,
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    reaper: Weak<Reaper>,
}

impl DataSegment {
    /// The file of a segment that the manifest names. Touches no file.
    pub(crate) fn new(
        meta: SealedMeta,
        disk: &Arc<dyn Disk>,
        dir: &Path,
        reaper: &Arc<Reaper>,
    ) -> Arc<Self> {
        Arc::new(Self {
            meta,
            file: OnceLock::new(),
            doomed: AtomicBool::new(false),
            disk: Arc::clone(disk),
            dir: dir.to_owned(),
            reaper: Arc::downgrade(reaper),
        })
    }

    /// The file of a segment that was just written. A file that is not mapped as far as its trailer
    /// is let go, and opened anew at the first use.
    pub(crate) fn from_file(meta: SealedMeta, file: Arc<SegmentFile>) -> Arc<Self> {
        let disk = Arc::clone(file.disk());
        let dir = file.path().parent().unwrap_or(Path::new("")).to_owned();
        let reaper = file.reaper().clone();
        let opened = OnceLock::new();
        if file.capacity() >= meta.file_bytes() {
            expect_records(&file, &meta);
            let _ = opened.set(file);
        }
        Arc::new(Self { meta, file: opened, doomed: AtomicBool::new(false), disk, dir, reaper })
    }

    pub(crate) fn meta(&self) -> &SealedMeta {
        &self.meta
    }

    /// Has the file unlinked once every segment that has it and its last record are gone.
    pub(crate) fn doom(&self) {
        // With the swapped order in `open`, one of the two sees the other.
        self.doomed.store(true, Ordering::SeqCst);
        if let Some(file) = self.opened() {
            file.doom();
        }
    }

    /// Opens the file, which stays open for as long as this is there.
    pub(crate) fn keep_open(&self) -> Result<()> {
        self.file().map(drop)
    }

    /// Reads the whole file in order, so that its pages are in memory for those who read it out of
    /// order next.
    pub(crate) fn read_through(&self) -> Result<()> {
        const PIECE_BYTES: usize = 1 << 20;
        let file = self.file()?;
        let mut piece = vec![0; PIECE_BYTES];
        let mut at = 0;
        while at < self.meta.log_end {
            let left = usize::try_from(self.meta.log_end - at).unwrap_or(PIECE_BYTES);
            let piece = &mut piece[..left.min(PIECE_BYTES)];
            file.pread(piece, at)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    /// The file, if it is open.
    #[inline]
    pub(super) fn opened(&self) -> Option<&Arc<SegmentFile>> {
        self.file.get()
    }

    /// The file; opens it.
    #[inline]
    pub(super) fn file(&self) -> Result<&Arc<SegmentFile>> {
        match self.opened() {
            Some(file) => Ok(file),
            None => self.open(),
        }
    }

    /// Opens the file. Of several threads that come at once, the first one's is kept.
    #[cold]
    fn open(&self) -> Result<&Arc<SegmentFile>> {
        let meta = &self.meta;
        // A scan may outlive its database; its files are then released where they are dropped.
        let reaper = self.reaper.upgrade().unwrap_or_default();
        let file = SegmentFile::open(
            &self.disk,
            &self.dir,
            (meta.id, meta.incarnation),
            RecordFormat::of(meta),
            meta.file_bytes(),
            &reaper,
        )?;
        expect_records(&file, meta);
        let file = self.file.get_or_init(|| file);
        if self.doomed.load(Ordering::SeqCst) {
            file.doom();
        }
        Ok(file)
    }

    pub(super) fn path(&self) -> PathBuf {
        segment_path(&self.dir, self.meta.id)
    }
}

fn expect_records(file: &SegmentFile, meta: &SealedMeta) {
    if meta.file_kind != FileKind::Index
        && let Some(mean) = (meta.log_end - LOG_START).checked_div(meta.records)
    {
        file.expect_records_of(mean);
    }
}

impl Drop for DataSegment {
    fn drop(&mut self) {
        if *self.doomed.get_mut() && self.opened().is_none() {
            let unlink = Some((Arc::clone(&self.disk), self.path()));
            Remains { map: None, file: None, unlink }.hand_over(&self.reaper);
        }
    }
}

/// The segments that an index segment is over.
#[derive(Debug)]
pub(super) struct Members {
    data: Box<[Arc<DataSegment>]>,
    /// For each, the sum of the lengths of those before.
    bases: Box<[u64]>,
}

impl Members {
    /// In the order of the index segment's trailer.
    pub(super) fn new(data: Vec<Arc<DataSegment>>) -> Self {
        let bases = bases_of(data.iter().map(|member| member.meta.log_end)).collect();
        Self { data: data.into(), bases }
    }

    pub(super) fn data(&self) -> &[Arc<DataSegment>] {
        &self.data
    }

    /// Whether these are what a trailer names.
    pub(super) fn are(&self, named: &[Member]) -> bool {
        self.data.iter().map(|member| Member::of(&member.meta)).eq(named.iter().copied())
    }

    /// Where a place of the index is.
    fn locate(&self, place: u64) -> RecordPlace {
        // The first base is 0, so that one at least is at or below every place.
        let member = self.bases.partition_point(|base| *base <= place) - 1;
        RecordPlace { member, offset: place - self.bases[member] }
    }
}

/// Where each of several lengths begins when they stand one behind the other.
pub(super) fn bases_of(lengths: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    lengths.scan(0, |end, length| {
        let base = *end;
        *end += length;
        Some(base)
    })
}

/// Where a record stands: which of a segment's members has it, and the offset there in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordPlace {
    /// An index into [`SealedSegment::members`](super::SealedSegment::members).
    pub(crate) member: usize,
    pub(crate) offset: u64,
}

/// The records of a segment that is open, by their places in its index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Records<'a> {
    /// The segment's own file.
    pub(super) file: &'a SegmentFile,
    /// Where the records of the own file end.
    pub(super) log_end: u64,
    /// Where the records are, if not in the own file.
    pub(super) members: Option<&'a Members>,
}

impl<'a> Records<'a> {
    /// Reads and verifies the record at a place.
    #[inline]
    pub(super) fn read(&self, place: u64, regime: Regime) -> Result<Record> {
        match self.members {
            None => self.file.read(place, self.log_end, regime),
            Some(_) => {
                let (file, offset, end) = self.at(place)?;
                file.read(offset, end, regime)
            }
        }
    }

    /// [`SegmentFile::read_into`], by place.
    #[inline]
    pub(super) fn read_into(
        &self,
        record: &mut Option<Record>,
        place: u64,
        regime: Regime,
    ) -> Result<()> {
        if self.members.is_none() {
            return self.file.read_into(record, place, self.log_end, regime);
        }
        let (file, offset, end) = self.at(place)?;
        if record.as_ref().is_some_and(|record| !file.lends_to(record)) {
            *record = None;
        }
        file.read_into(record, offset, end, regime)
    }

    /// Moves on to the record that stands right behind one of the own file.
    #[inline]
    pub(super) fn read_next(&self, record: &mut Option<Record>, regime: Regime) -> Result<()> {
        let Some(present) = record else { return Ok(()) };
        let len = present.used_len().next_multiple_of(RECORD_ALIGNMENT);
        let next = present.offset() + len as u64;
        if regime == Regime::Mapped {
            self.file.prefetch_ahead(next, len);
        }
        self.file.read_into(record, next, self.log_end, regime)
    }

    /// Has the record at a place on its way from memory, where its file is open.
    #[inline]
    pub(super) fn prefetch(&self, place: u64) {
        match self.members {
            None => self.file.prefetch(place),
            Some(members) => {
                let RecordPlace { member, offset } = members.locate(place);
                if let Some(file) = members.data[member].opened() {
                    file.prefetch(offset);
                }
            }
        }
    }

    pub(super) fn locate(&self, place: u64) -> RecordPlace {
        match self.members {
            None => RecordPlace { member: 0, offset: place },
            Some(members) => members.locate(place),
        }
    }

    /// The file that has the record at a place, its offset there, and where that file's records
    /// end.
    pub(super) fn at(&self, place: u64) -> Result<(&'a SegmentFile, u64, u64)> {
        let Some(members) = self.members else { return Ok((self.file, place, self.log_end)) };
        let RecordPlace { member, offset } = members.locate(place);
        let data = &members.data[member];
        Ok((data.file()?, offset, data.meta.log_end))
    }
}
