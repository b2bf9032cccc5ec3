//! An open segment file, active or sealed: reading records by place.
//!
//! Invariants:
//!
//! 1. A record is handed out only after its checksum matched its file, offset and sequence.
//! 2. Nothing at or behind the caller's `end` is touched: those bytes may be unwritten, or missing.
//! 3. Beyond memory a record costs one read, unless it is longer than the file's records commonly
//!    are.
//!
//! Cost of a mapped read: the record's cache lines, its checksum, and one increment on a line that
//! the thread has to itself; no allocation. Of a read by `pread`: one call and one allocation.

use std::cell::RefCell;
use std::io;
use std::path::Path;

use super::names::segment_path;
use super::pin::{Mapping, PINS, Pin, pin_of_thread};
use super::reaper::Reaper;
use super::record::Record;
use super::record_format::{HEADER_BYTES_MAX, Head, RecordFormat};
use crate::disk::{Access, Disk, DiskFile, OpenMode};
use crate::error::{Error, Result};
use crate::format::{LOG_START, RECORD_ALIGNMENT, RecordFault, SegmentId};
use crate::sync::{Arc, AtomicU32, Ordering, Weak};

/// How documents are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Regime {
    /// As slices of the mapped file, without a copy: while the files fit in memory.
    Mapped,
    /// With `pread`, into bytes of their own: one I/O a record, no read-around, no `SIGBUS`.
    Pread,
}

/// What is read of a record whose length is not known, in bytes: a document of 1 KiB and its id.
const GUESS_BYTES: u32 = 1280;
const GUESS_BYTES_MIN: u32 = 192;

/// An open segment file.
#[derive(Debug)]
pub(crate) struct SegmentFile {
    id: SegmentId,
    incarnation: u64,
    format: RecordFormat,
    capacity: u64,
    mapping: Arc<Mapping>,
    pins: [Arc<Pin>; PINS],
    guess_bytes: AtomicU32,
}

impl SegmentFile {
    /// Creates a segment's file: empty, sparse, `capacity` bytes long and mapped so far. Neither
    /// its header nor its name is written durably. Its remains go to the reaper.
    ///
    /// # Errors
    ///
    /// When the file exists, or the operating system refuses; no file is left behind then.
    pub(crate) fn create(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        (id, incarnation): (SegmentId, u64),
        format: RecordFormat,
        capacity: u64,
        reaper: &Arc<Reaper>,
    ) -> Result<Arc<Self>> {
        let path = segment_path(dir, id);
        let file =
            disk.open(&path, OpenMode::CreateNew).map_err(|e| Error::io("create", &path, e))?;
        let map = match file.set_len(capacity).and_then(|()| file.map(capacity)) {
            Ok(map) => map,
            Err(e) => {
                // The first failure is the one to report.
                let _ = disk.remove(&path);
                return Err(Error::io("create", &path, e));
            }
        };
        let mapping = Mapping::new(map, file, disk, path, reaper);
        Ok(Self::from_mapping((id, incarnation), format, capacity, &mapping))
    }

    /// Opens a segment's file to read it, and maps its first `len` bytes.
    ///
    /// # Errors
    ///
    /// `Corrupt` when the file is shorter than `len`; `Io` when it is missing or cannot be opened.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        (id, incarnation): (SegmentId, u64),
        format: RecordFormat,
        len: u64,
        reaper: &Arc<Reaper>,
    ) -> Result<Arc<Self>> {
        let path = segment_path(dir, id);
        let open = || -> io::Result<_> {
            let file = disk.open(&path, OpenMode::Read)?;
            let found = file.len()?;
            Ok((file, found))
        };
        let (file, found) = open().map_err(|e| Error::io("open", &path, e))?;
        if found < len {
            let what = format!("the file is cut: it had {len} bytes");
            return Err(Error::corrupt(&path, found, what));
        }
        let map = file.map(len).map_err(|e| Error::io("map", &path, e))?;
        let mapping = Mapping::new(map, file, disk, path, reaper);
        Ok(Self::from_mapping((id, incarnation), format, len, &mapping))
    }

    /// The same file, whose records are read as of another format. Records of both keep it in
    /// place.
    pub(super) fn with_format(&self, format: RecordFormat) -> Arc<Self> {
        Self::from_mapping((self.id, self.incarnation), format, self.capacity, &self.mapping)
    }

    fn from_mapping(
        (id, incarnation): (SegmentId, u64),
        format: RecordFormat,
        capacity: u64,
        mapping: &Arc<Mapping>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            incarnation,
            format,
            capacity,
            mapping: Arc::clone(mapping),
            pins: std::array::from_fn(|_| Pin::new(mapping)),
            guess_bytes: AtomicU32::new(GUESS_BYTES),
        })
    }

    pub(crate) fn id(&self) -> SegmentId {
        self.id
    }

    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    pub(super) fn format(&self) -> RecordFormat {
        self.format
    }

    pub(crate) fn path(&self) -> &Path {
        self.mapping.path()
    }

    pub(crate) fn disk_file(&self) -> &Arc<dyn DiskFile> {
        self.mapping.file()
    }

    pub(super) fn disk(&self) -> &Arc<dyn Disk> {
        self.mapping.disk()
    }

    pub(super) fn reaper(&self) -> &Weak<Reaper> {
        self.mapping.reaper()
    }

    /// How many bytes are mapped.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Has the file unlinked once its last reader is gone.
    pub(crate) fn doom(&self) {
        self.mapping.doom();
    }

    /// Tells how long records commonly are, so that a `pread` takes one and not its neighbours'
    /// pages.
    pub(super) fn expect_records_of(&self, mean_bytes: u64) {
        let guess = (mean_bytes + mean_bytes / 8).next_multiple_of(64);
        let guess = u32::try_from(guess).unwrap_or(GUESS_BYTES);
        self.guess_bytes.store(guess.clamp(GUESS_BYTES_MIN, GUESS_BYTES), Ordering::Relaxed);
    }

    /// Reads and verifies the record at `offset`, all of which lies below `end`.
    ///
    /// # Errors
    ///
    /// `Corrupt`, with file and offset, when no record verifies there; `Io` when the bytes cannot
    /// be read.
    pub(crate) fn read(&self, offset: u64, end: u64, regime: Regime) -> Result<Record> {
        match regime {
            Regime::Mapped => {
                let head = self.verify_mapped(offset, end)?;
                Ok(Record::mapped(head, offset, self.pin()))
            }
            Regime::Pread => self.read_owned(offset, end),
        }
    }

    /// [`SegmentFile::read`] into the place of an earlier record of this file, if there is one,
    /// whose pin it takes over. After an error there is none.
    #[inline]
    pub(crate) fn read_into(
        &self,
        record: &mut Option<Record>,
        offset: u64,
        end: u64,
        regime: Regime,
    ) -> Result<()> {
        if regime == Regime::Mapped
            && let Some(record) = record
            && let Ok(head) = self.check_mapped(offset, end)
            && let Some(()) = record.move_to(head, offset)
        {
            return Ok(());
        }
        *record = None;
        *record = Some(self.read(offset, end, regime)?);
        Ok(())
    }

    /// The id of the record at `offset`, not verified, for comparisons among records that this
    /// process wrote or has verified; empty when the lengths make no sense.
    pub(crate) fn id_at(&self, offset: u64) -> &[u8] {
        let id = || {
            let head = self.head_at(offset)?;
            let start = offset.checked_add(head.id_start() as u64)?;
            self.mapping.bytes(start, usize::from(head.id_len))
        };
        id().unwrap_or_default()
    }

    /// The length in bytes of the id and the document of the record at `offset`, not verified, for
    /// counts; 0 when the lengths make no sense.
    pub(crate) fn content_len_at(&self, offset: u64) -> u64 {
        let content_len = || {
            let head = self.head_at(offset)?;
            let room = self.capacity.checked_sub(offset)?;
            (head.used_len() as u64 <= room).then(|| head.content_len())
        };
        content_len().unwrap_or(0)
    }

    /// The header at a place of the map, not verified.
    #[inline]
    fn head_at(&self, offset: u64) -> Option<Head> {
        let room = usize::try_from(self.capacity.checked_sub(offset)?).ok()?;
        let bytes = self.mapping.bytes(offset, room.min(HEADER_BYTES_MAX))?;
        self.format.parse(bytes, self.incarnation, offset).ok()
    }

    /// Whether a record's bytes are this file's, mapped.
    pub(super) fn lends_to(&self, record: &Record) -> bool {
        record.borrows_from(&self.mapping)
    }

    fn pin(&self) -> Arc<Pin> {
        Arc::clone(&self.pins[pin_of_thread()])
    }

    /// Has a record that will soon be read on its way from memory; costs a few instructions.
    #[inline]
    pub(crate) fn prefetch(&self, offset: u64) {
        self.mapping.prefetch(offset);
    }

    /// Has bytes on their way from memory that a walk over records back to back comes to some rows
    /// after `offset`: as many as it moves on by.
    #[inline]
    pub(super) fn prefetch_ahead(&self, offset: u64, len: usize) {
        self.mapping.prefetch_ahead(offset, len);
    }

    /// Published bytes of the map; `None` beyond it.
    pub(super) fn mapped(&self, offset: u64, len: usize) -> Option<&[u8]> {
        self.mapping.bytes(offset, len)
    }

    /// Fills `buf` from the file. A file that ends too early is damage, not an I/O error.
    pub(super) fn pread(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.pread_as(buf, offset, Access::Keep)
    }

    pub(super) fn pread_as(&self, buf: &mut [u8], offset: u64, access: Access) -> Result<()> {
        self.disk_file().read_exact_at(buf, offset, access).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => {
                Error::corrupt(self.path(), offset, "the file ends before these bytes")
            }
            _ => Error::io("read", self.path(), e),
        })
    }

    fn verify_mapped(&self, offset: u64, end: u64) -> Result<Head> {
        self.check_mapped(offset, end).map_err(|fault| self.corrupt(offset, fault))
    }

    /// Verifies the record at `offset` of the map.
    #[inline]
    fn check_mapped(&self, offset: u64, end: u64) -> Result<Head, RecordFault> {
        let room = self.room(offset, end.min(self.capacity))?;
        match self.format {
            // All of a sorted file's records are published: one slice has whatever there is.
            RecordFormat::Sorted { .. } => {
                let room = usize::try_from(room).map_err(|_| RecordFault::Short)?;
                let bytes = self.mapping.bytes(offset, room).ok_or(RecordFault::Short)?;
                let head = self.format.parse(bytes, self.incarnation, offset)?;
                head.verify(bytes)?;
                Ok(head)
            }
            RecordFormat::Log => {
                let header = self.mapping.bytes(offset, header_room(room));
                let header = header.ok_or(RecordFault::Short)?;
                let head = self.format.parse(header, self.incarnation, offset)?;
                if head.used_len() as u64 > room {
                    return Err(RecordFault::Short);
                }
                let bytes = self.mapping.bytes(offset, head.used_len());
                head.verify(bytes.ok_or(RecordFault::Short)?)?;
                Ok(head)
            }
        }
    }

    /// Reads the header of the record at the beginning of `bytes`, which ends below `offset + room`
    /// if it makes sense. Not verified.
    pub(super) fn parse(&self, bytes: &[u8], offset: u64, room: u64) -> Result<Head> {
        let head = self.format.parse(bytes, self.incarnation, offset);
        match head {
            Ok(head) if head.used_len() as u64 <= room => Ok(head),
            Ok(_) => Err(self.corrupt(offset, RecordFault::Short)),
            Err(fault) => Err(self.corrupt(offset, fault)),
        }
    }

    /// The header at the beginning of `bytes`, which may be damaged.
    pub(super) fn suspect(&self, bytes: &[u8], offset: u64) -> Option<Head> {
        self.format.parse(bytes, self.incarnation, offset).ok()
    }

    /// A record of its own bytes, which are verified first.
    pub(super) fn adopt(&self, head: Head, offset: u64, bytes: Arc<[u8]>) -> Result<Record> {
        head.verify(&bytes).map_err(|fault| self.corrupt(offset, fault))?;
        Ok(Record::owned(head, offset, bytes))
    }

    fn read_owned(&self, offset: u64, end: u64) -> Result<Record> {
        thread_local! {
            static GUESS: RefCell<[u8; GUESS_BYTES as usize]> =
                const { RefCell::new([0; GUESS_BYTES as usize]) };
        }
        let room = self.readable(offset, end)?;
        let guess = u64::from(self.guess_bytes.load(Ordering::Relaxed)).min(room);
        let guess = usize::try_from(guess).unwrap_or(GUESS_BYTES as usize);
        GUESS.with_borrow_mut(|scratch| {
            let scratch = &mut scratch[..guess];
            self.pread(scratch, offset)?;
            let head = self.parse(scratch, offset, room)?;
            let used = head.used_len();
            let bytes: Arc<[u8]> = if let Some(bytes) = scratch.get(..used) {
                bytes.into()
            } else {
                let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, used).collect();
                let rest = Arc::get_mut(&mut bytes).expect("nobody else has it yet");
                rest[..guess].copy_from_slice(scratch);
                self.pread(&mut rest[guess..], offset + guess as u64)?;
                bytes
            };
            self.adopt(head, offset, bytes)
        })
    }

    /// The bytes from a record's place to the end of the data: at least a header.
    pub(super) fn readable(&self, offset: u64, end: u64) -> Result<u64> {
        self.room(offset, end).map_err(|fault| self.corrupt(offset, fault))
    }

    #[inline]
    fn room(&self, offset: u64, end: u64) -> Result<u64, RecordFault> {
        if offset < LOG_START || !offset.is_multiple_of(RECORD_ALIGNMENT as u64) {
            return Err(RecordFault::Header);
        }
        match end.checked_sub(offset) {
            Some(room) if room >= self.format.header_bytes_min() => Ok(room),
            _ => Err(RecordFault::Short),
        }
    }

    fn corrupt(&self, offset: u64, fault: RecordFault) -> Error {
        Error::corrupt(self.path(), offset, fault.what())
    }
}

/// How much of the room behind a record's place a header can take.
#[inline]
fn header_room(room: u64) -> usize {
    usize::try_from(room).map_or(HEADER_BYTES_MAX, |room| room.min(HEADER_BYTES_MAX))
}
