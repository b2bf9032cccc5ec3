//! A sealed segment: cheap to have, opened at its first use.
//!
//! What a get costs here, where the file is mapped: one cache line of the fingerprint table, and
//! for an id that is present its record and the record's checksum; 1.3 lines and nothing else for
//! an id that is absent, but for false positives (0.8 % in a log of 11 MB, see `fingerprints`),
//! each of which costs a record. Nothing is allocated, no lock is taken, and the only write is to
//! the thread's pin. Invariants:
//!
//! 1. Opening a database touches no sealed segment: bounds and counts come from the manifest, and
//!    must be those of the trailer when the file is opened.
//! 2. Damage in the index or in a record that a lookup meets is `Corrupt`, with file and offset;
//!    never an answer.
//! 3. A segment that is doomed, opened or not, is unlinked once it and all its records are gone.

use std::path::{Path, PathBuf};

use super::cursor::SegmentCursor;
use super::file::{Regime, SegmentFile, segment_path};
use super::index::{BlockBuffer, Index};
use super::reaper::{Reaper, Remains};
use super::record::Record;
use super::sorted::{SortedIndex, Target};
use crate::disk::{Disk, OpenMode};
use crate::error::{Error, Result};
use crate::format::{BLOCK_BYTES, FileKind, IndexLayout, Key, LOG_START, SealedMeta, Sequence};
use crate::sync::{Arc, AtomicBool, OnceLock, Ordering, Weak};

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
    /// The file that was just sealed, if its map reaches far enough.
    handed: Option<Arc<SegmentFile>>,
    doomed: AtomicBool,
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    reaper: Weak<Reaper>,
}

#[derive(Debug)]
struct Opened {
    file: Arc<SegmentFile>,
    index: Index,
}

impl SealedSegment {
    /// A segment that the manifest names. Touches no file.
    pub(crate) fn new(
        meta: SealedMeta,
        disk: &Arc<dyn Disk>,
        dir: &Path,
        reaper: &Arc<Reaper>,
    ) -> Arc<Self> {
        Self::with_file(meta, None, Arc::clone(disk), dir.to_owned(), Arc::downgrade(reaper))
    }

    /// A segment that was just sealed, whose file is open. A file that is not mapped as far as the
    /// index reaches is let go, and opened anew at the first use.
    pub(crate) fn from_file(meta: SealedMeta, file: Arc<SegmentFile>) -> Arc<Self> {
        let disk = Arc::clone(file.disk());
        let dir = file.path().parent().unwrap_or(Path::new("")).to_owned();
        let reaper = file.reaper().clone();
        let handed = (file.capacity() >= meta.file_bytes()).then_some(file);
        Self::with_file(meta, handed, disk, dir, reaper)
    }

    fn with_file(
        meta: SealedMeta,
        handed: Option<Arc<SegmentFile>>,
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        reaper: Weak<Reaper>,
    ) -> Arc<Self> {
        Arc::new(Self {
            meta,
            opened: OnceLock::new(),
            handed,
            doomed: AtomicBool::new(false),
            disk,
            dir,
            reaper,
        })
    }

    pub(crate) fn meta(&self) -> &SealedMeta {
        &self.meta
    }

    #[cfg(test)]
    /// Whether the file is open, so that a use costs no system call for that.
    pub(crate) fn is_open(&self) -> bool {
        self.opened.get().is_some() || self.handed.is_some()
    }

    #[cfg(test)]
    /// Space that the file takes on the disk, in bytes: asked where it is open, else its length.
    ///
    /// # Errors
    ///
    /// When the operating system does not say.
    pub(crate) fn allocated_bytes(&self) -> Result<u64> {
        match self.opened.get().map(|opened| &opened.file).or(self.handed.as_ref()) {
            Some(file) => {
                file.disk_file().allocated().map_err(|e| Error::io("measure", file.path(), e))
            }
            None => Ok(self.meta.file_bytes()),
        }
    }

    /// Memory that the segment holds, its maps not counted, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.opened.get().map_or(0, |opened| opened.index.heap_bytes())
    }

    #[cfg_attr(not(test), expect(dead_code, reason = "compaction removes sealed segments"))]
    /// Has the file unlinked once the segment and its last record are gone.
    pub(crate) fn doom(&self) {
        // With the swapped order in `open`, one of the two sees the other.
        self.doomed.store(true, Ordering::SeqCst);
        if let Some(file) = self.opened.get().map(|opened| &opened.file).or(self.handed.as_ref()) {
            file.doom();
        }
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
        let record = match self.newest(opened, &key, regime)? {
            Some(newest) if newest.sequence() > at => self.version(key, at, regime)?,
            found => found,
        };
        if let Some(record) = &record {
            record.check_servable(opened.file.path())?;
        }
        Ok(record)
    }

    /// A cursor over all records. Touches no file before its first seek.
    pub(crate) fn cursor(self: &Arc<Self>, regime: Regime) -> SegmentCursor {
        SegmentCursor::new(Arc::clone(self), regime)
    }

    /// The sorted index; opens the file.
    pub(super) fn sorted(&self, regime: Regime) -> Result<SortedIndex<'_>> {
        let Opened { file, index } = self.opened()?;
        Ok(SortedIndex { index, file, log_end: self.meta.log_end, regime })
    }

    /// The newest version of the key.
    fn newest(&self, opened: &Opened, key: &Key<'_>, regime: Regime) -> Result<Option<Record>> {
        let Opened { file, index } = opened;
        let table = index.fingerprints();
        let mut number = table.bucket_of(key.hash);
        for _ in 0..table.buckets {
            let bucket = index.bucket(file, number, regime)?;
            let matches = table.matches(bucket, key.hash);
            let mut slots = matches.slots;
            while slots != 0 {
                let offset = table.offset_in(bucket, slots.trailing_zeros());
                // Verified before its key is compared: a damaged id must not pass for another one.
                let record = file.read(offset, self.meta.log_end, regime)?;
                if record.is_of(key) {
                    return Ok(Some(record));
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

    /// The newest version of the key at or before `at`, where newer ones may exist.
    fn version(&self, key: Key<'_>, at: Sequence, regime: Regime) -> Result<Option<Record>> {
        let sorted = self.sorted(regime)?;
        let mut buffer = BlockBuffer::default();
        let entry = sorted.lower_bound(&Target::Version(key, at), &mut buffer)?;
        if entry == sorted.len() {
            return Ok(None);
        }
        let offset = sorted.offset(entry, &mut buffer)?;
        let record = sorted.file.read(offset, self.meta.log_end, regime)?;
        Ok(record.is_of(&key).then_some(record))
    }

    #[inline]
    fn opened(&self) -> Result<&Opened> {
        match self.opened.get() {
            Some(opened) => Ok(opened),
            None => self.open(),
        }
    }

    /// Opens the file. Of several threads that come at once, the first one's file is kept.
    #[cold]
    fn open(&self) -> Result<&Opened> {
        let meta = &self.meta;
        let path = || segment_path(&self.dir, meta.id);
        if meta.file_kind != FileKind::Log {
            let what = format!("segments of kind {:?}", meta.file_kind);
            return Err(Error::UnsupportedFormat { file: path(), what });
        }
        let file = match &self.handed {
            Some(file) => Arc::clone(file),
            None => {
                // A scan may outlive its database; its files are then released where they are
                // dropped.
                let reaper = self.reaper.upgrade().unwrap_or_default();
                let (len, mode) = (meta.file_bytes(), OpenMode::Read);
                SegmentFile::open(
                    &self.disk,
                    &self.dir,
                    meta.id,
                    meta.incarnation,
                    len,
                    mode,
                    &reaper,
                )?
            }
        };
        let (found, layout) = read_layout(&file, meta.trailer_offset)?;
        if found != *meta {
            let what = "the trailer differs from the manifest";
            return Err(Error::corrupt(file.path(), meta.trailer_offset, what));
        }
        if let Some(mean) = (meta.log_end - LOG_START).checked_div(meta.records) {
            file.expect_records_of(mean);
        }
        let opened = Opened { index: Index::new(meta, layout), file };
        let opened = self.opened.get_or_init(|| opened);
        if self.doomed.load(Ordering::SeqCst) {
            opened.file.doom();
        }
        Ok(opened)
    }
}

impl Drop for SealedSegment {
    fn drop(&mut self) {
        let opened = self.opened.get().is_some() || self.handed.is_some();
        if *self.doomed.get_mut() && !opened {
            let path = segment_path(&self.dir, self.meta.id);
            let unlink = Some((Arc::clone(&self.disk), path));
            Remains { map: None, file: None, unlink }.hand_over(&self.reaper);
        }
    }
}
