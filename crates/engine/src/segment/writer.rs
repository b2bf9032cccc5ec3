//! Writes sorted segments: records in the order of their keys, then their index.
//!
//! Invariants:
//!
//! 1. Records arrive in order (collection, id, newest first), verified, and keep the checksum of
//!    their content: it is never computed anew from bytes that this process copied.
//! 2. The index is made from records that were read back and verified, and whose ids hash as those
//!    that were pushed: bytes that changed in between are found before anything refers to them.
//! 3. A writer that is dropped, or fails, leaves no file.

use std::cmp::Ordering;

use super::builder::{IndexBuilder, IndexEntry, index_bytes_max};
use super::draft::{Draft, NewSegment, first_page, write_all};
use super::file::SegmentFile;
use super::levels::BlockWriter;
use super::record::Record;
use super::record_format::RecordFormat;
use super::window::Window;
use crate::disk::Access;
use crate::error::{Error, Result};
use crate::format::{
    BLOCK_BYTES, CollectionId, FileKind, Key, Kind, LOG_START, RECORD_ALIGNMENT, SealedMeta,
    Sequence, SortedHeader, content_checksum, key_hash,
};
use crate::sync::Arc;

/// Bytes that are written in one call.
const WRITE_BYTES: usize = 256 << 10;
/// Bytes after which the kernel is asked to begin writing them to the disk, so that the sync at the
/// end is short.
const WRITEBACK_BYTES: u64 = 1 << 20;

/// A sorted segment that is being written.
///
/// Holds 512 KiB and a record, 8 bytes a record, and at the end what its index takes.
#[derive(Debug)]
pub(crate) struct SortedWriter {
    draft: Draft,
    access: Access,
    /// The file from `written` on.
    buffer: Vec<u8>,
    /// How far the file is written, in bytes.
    written: u64,
    /// How far the kernel was asked to write it to the disk.
    started: u64,
    hashes: Hashes,
    first: Option<(CollectionId, Vec<u8>)>,
    /// The last record's key, while there is a first one.
    last: (CollectionId, Vec<u8>),
    last_sequence: Sequence,
}

/// The key hash of each record, in pieces: a vector that grows holds twice what it needs, and three
/// times while it moves.
#[derive(Debug, Default)]
struct Hashes {
    pieces: Vec<Vec<u64>>,
    len: usize,
}

impl Hashes {
    const PIECE: usize = 1 << 12;

    fn push(&mut self, hash: u64) {
        if self.len.is_multiple_of(Self::PIECE) {
            self.pieces.push(Vec::with_capacity(Self::PIECE));
        }
        self.len += 1;
        self.pieces.last_mut().into_iter().for_each(|piece| piece.push(hash));
    }
}

impl SortedWriter {
    /// Creates the file, mapped to `capacity` bytes: what [`SortedWriter::room_for`] allows for.
    /// `access` is for the records, as they are written and read back.
    ///
    /// # Errors
    ///
    /// When the file exists, or the operating system refuses.
    pub(crate) fn create(new: &NewSegment<'_>, capacity: u64, access: Access) -> Result<Self> {
        let draft = Draft::create(new, capacity)?;
        let mut buffer = Vec::with_capacity(WRITE_BYTES * 2);
        buffer.extend_from_slice(&first_page(new, FileKind::Sorted));
        Ok(Self {
            draft,
            access,
            buffer,
            written: 0,
            started: 0,
            hashes: Hashes::default(),
            first: None,
            last: (CollectionId(0), Vec::new()),
            last_sequence: Sequence(0),
        })
    }

    /// Adds the next record, under a sequence that may differ from its own: 0 when every reader may
    /// see it. Costs a copy; a write for each 256 KiB.
    ///
    /// # Errors
    ///
    /// When a write fails; the writer is then of no more use.
    pub(crate) fn push(&mut self, record: &Record, sequence: Sequence) -> Result<()> {
        self.append(&header_of(record, sequence), record.id(), record.document())
    }

    /// Adds a marker for the lost versions of an id: reads of the id report damage.
    ///
    /// # Errors
    ///
    /// As [`SortedWriter::push`].
    pub(crate) fn push_damaged(
        &mut self,
        collection: CollectionId,
        id: &[u8],
        sequence: Sequence,
    ) -> Result<()> {
        let kind = Kind::Damaged;
        let id_len = u16::try_from(id.len()).expect("ids are at most 65 535 bytes long");
        let content_checksum = content_checksum(kind, collection, id_len, 0, id);
        let header =
            SortedHeader { kind, id_len, document_len: 0, collection, sequence, content_checksum };
        self.append(&header, id, &[])
    }

    /// Bytes of records so far, padding included.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.end() - LOG_START
    }

    /// The number of records so far.
    pub(crate) fn records(&self) -> usize {
        self.hashes.len
    }

    pub(crate) fn first_key(&self) -> Option<(CollectionId, &[u8])> {
        self.first.as_ref().map(|(collection, id)| (*collection, id.as_slice()))
    }

    pub(crate) fn last_key(&self) -> Option<(CollectionId, &[u8])> {
        self.first.as_ref().map(|_| (self.last.0, self.last.1.as_slice()))
    }

    /// Whether the capacity suffices for another record and the index. A record that does not fit
    /// may be pushed all the same: the file is then opened anew for its first reader.
    pub(crate) fn room_for(&self, record: &Record) -> bool {
        // Any sequence but 0 takes as many bytes.
        let header = header_of(record, Sequence::MAX);
        let data = self.end() + header.record_len(self.default_collection(&header)) as u64;
        data.next_multiple_of(BLOCK_BYTES as u64) + index_bytes_max(self.records() + 1)
            <= self.draft.file().capacity()
    }

    /// Writes what is left, reads all of it back into the index, and syncs the file. The caller
    /// syncs the folder and publishes the segment; if it does not come to that, it dooms the file.
    /// At least one record must have been pushed.
    ///
    /// # Errors
    ///
    /// `Corrupt` when a record that is read back is not what was pushed; when a call on the file
    /// fails. The file is gone then.
    pub(crate) fn finish(mut self) -> Result<(SealedMeta, Arc<SegmentFile>)> {
        debug_assert!(self.first.is_some(), "a sorted segment has records");
        let log_end = self.end();
        self.write(self.buffer.len())?;
        self.buffer = Vec::new();
        let collection = self.first.as_ref().map_or(CollectionId(0), |(collection, _)| *collection);
        let file = self.draft.file().with_format(RecordFormat::Sorted { collection });
        let meta = index(&file, log_end, &self.hashes, self.access)?;
        self.draft.complete()?;
        Ok((meta, file))
    }

    fn append(&mut self, header: &SortedHeader, id: &[u8], document: &[u8]) -> Result<()> {
        self.note(header, id);
        let (offset, incarnation) = (self.end(), self.draft.file().incarnation());
        let collection = self.default_collection(header);
        header.append(&mut self.buffer, collection, incarnation, offset);
        self.buffer.extend_from_slice(id);
        self.buffer.extend_from_slice(document);
        self.buffer.resize(self.buffer.len().next_multiple_of(RECORD_ALIGNMENT), 0);
        match self.buffer.len() / WRITE_BYTES {
            0 => Ok(()),
            pieces => self.write(pieces * WRITE_BYTES),
        }
    }

    /// Takes note of the next record's key.
    fn note(&mut self, header: &SortedHeader, id: &[u8]) {
        let collection = header.collection;
        debug_assert!(
            self.last_key().is_none_or(|last| match last.cmp(&(collection, id)) {
                Ordering::Equal => self.last_sequence > header.sequence,
                order => order.is_lt(),
            }),
            "records are pushed in order"
        );
        self.hashes.push(key_hash(collection, id));
        self.first.get_or_insert_with(|| (collection, id.to_vec()));
        self.last.0 = collection;
        self.last.1.clear();
        self.last.1.extend_from_slice(id);
        self.last_sequence = header.sequence;
    }

    /// The collection that is not written out: the first record's, which may be this one.
    fn default_collection(&self, header: &SortedHeader) -> CollectionId {
        self.first.as_ref().map_or(header.collection, |(collection, _)| *collection)
    }

    /// Where the next record will stand.
    fn end(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Writes the first bytes of the buffer.
    fn write(&mut self, len: usize) -> Result<()> {
        let file = self.draft.file();
        for piece in self.buffer[..len].chunks(WRITE_BYTES) {
            write_all(file, piece, self.written, self.access)?;
            self.written += piece.len() as u64;
            let dirty = self.written - self.started;
            if dirty >= WRITEBACK_BYTES {
                file.disk_file()
                    .start_writeback(self.started, dirty)
                    .map_err(|e| Error::io("write back", file.path(), e))?;
                self.started = self.written;
            }
        }
        self.buffer.drain(..len);
        Ok(())
    }
}

fn header_of(record: &Record, sequence: Sequence) -> SortedHeader {
    SortedHeader {
        kind: record.kind(),
        id_len: u16::try_from(record.id().len()).expect("ids are at most 65 535 bytes long"),
        document_len: u32::try_from(record.document().len()).expect("it came out of a u32"),
        collection: record.collection(),
        sequence,
        content_checksum: record.content_checksum(),
    }
}

/// Reads back records that end at `log_end`, and writes their index behind them.
fn index(
    file: &Arc<SegmentFile>,
    log_end: u64,
    hashes: &Hashes,
    access: Access,
) -> Result<SealedMeta> {
    let index_offset = log_end.next_multiple_of(BLOCK_BYTES as u64);
    let out = BlockWriter::new(file, index_offset);
    let mut builder = IndexBuilder::new(out, FileKind::Sorted, log_end, hashes.len);
    let mut window = Window::new(access);
    let mut offset = LOG_START;
    for hash in hashes.pieces.iter().flatten() {
        let record = window.read(file, offset, log_end)?;
        let key = Key::new(record.collection(), record.id());
        if key.hash != *hash {
            let what = "the record is not the one that was written here";
            return Err(Error::corrupt(file.path(), offset, what));
        }
        builder.push(&IndexEntry {
            key,
            offset,
            sequence: record.sequence(),
            kind: record.kind(),
            content_len: record.content_len(),
        })?;
        offset += record.used_len().next_multiple_of(RECORD_ALIGNMENT) as u64;
    }
    debug_assert_eq!(offset, log_end, "records stand back to back");
    builder.finish(0, Vec::new())
}
