//! Reading a sorted segment from one end to the other in few calls.
//!
//! Invariant: a record is handed out only after its checksum matched, as by any other way.

use super::file::SegmentFile;
use super::record::Record;
use super::record_format::HEADER_BYTES_MAX;
use crate::disk::Access;
use crate::error::Result;
use crate::planted::{self, Bug};

/// Bytes that are read in one call, unless a record is longer.
const WINDOW_BYTES: usize = 128 << 10;

/// A stretch of a file's data in memory.
#[derive(Debug)]
pub(super) struct Window {
    access: Access,
    bytes: Vec<u8>,
    /// Where the bytes stand in the file.
    offset: u64,
}

impl Window {
    /// Empty: nothing is read, and no memory taken, before the first record.
    pub(super) fn new(access: Access) -> Self {
        Self { access, bytes: Vec::new(), offset: 0 }
    }

    /// Reads and verifies the record at `offset` of data that ends at `end`: from the window, which
    /// is moved there if it does not have it. Costs a read for each 128 KiB where records are
    /// taken in the order of the file, and an allocation each.
    ///
    /// # Errors
    ///
    /// As [`SegmentFile::read`].
    pub(super) fn read(&mut self, file: &SegmentFile, offset: u64, end: u64) -> Result<Record> {
        let room = file.readable(offset, end)?;
        let room_bytes = usize::try_from(room).unwrap_or(usize::MAX);
        let header = self.fetch(file, offset, room_bytes, HEADER_BYTES_MAX.min(room_bytes))?;
        let mut head = file.parse(header, offset, room)?;
        let bytes = self.fetch(file, offset, room_bytes, head.used_len())?;
        if planted::is(Bug::ChecksumRecomputed) {
            head = head.recomputed(bytes);
        }
        file.adopt(head, offset, bytes.into())
    }

    /// `len` bytes at `offset`, where `room` can be read.
    fn fetch(&mut self, file: &SegmentFile, offset: u64, room: usize, len: usize) -> Result<&[u8]> {
        let at = offset.checked_sub(self.offset).and_then(|at| usize::try_from(at).ok());
        let at = at.filter(|at| at.saturating_add(len) <= self.bytes.len());
        let at = match at {
            Some(at) => at,
            None => {
                self.load(file, offset, len.max(WINDOW_BYTES.min(room)))?;
                0
            }
        };
        Ok(&self.bytes[at..at + len])
    }

    fn load(&mut self, file: &SegmentFile, offset: u64, len: usize) -> Result<()> {
        self.bytes.resize(len, 0);
        // Not for ever what one long record took.
        self.bytes.shrink_to(WINDOW_BYTES);
        if let Err(e) = file.pread_as(&mut self.bytes, offset, self.access) {
            self.bytes.clear();
            return Err(e);
        }
        self.offset = offset;
        Ok(())
    }
}
