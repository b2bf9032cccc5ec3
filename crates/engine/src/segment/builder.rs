//! Writes a segment's index when it is sealed.
//!
//! The index region is, in this order: the sorted levels from the bottom up, the fingerprint table,
//! the trailer. Invariants:
//!
//! 1. Entries arrive in order (collection, id, newest first) and are written as they arrive: 64 KiB
//!    of blocks, the first key of each block, and 18 bytes an id for the table are all that is
//!    held.
//! 2. Nothing below the index's offset is written, and the trailer is the file's last block.
//! 3. Nothing is synced: whoever publishes the segment does that.

use std::io::{self, IoSlice};

use super::file::SegmentFile;
use super::fingerprints::TableBuilder;
use crate::disk::Access;
use crate::error::{Error, Result};
use crate::format::{
    BLOCK_BYTES, BlockHeader, BlockType, CollectionId, FileKind, IndexLayout, Key, KeyBound, Kind,
    LEVELS_MAX, LevelLayout, PREFIX_BYTES_MAX, SealedMeta, Sequence, Width, common_prefix, head,
    put_entry,
};

/// Bytes that are written in one call.
const WRITE_BYTES: usize = 64 << 10;

/// A record that the index is to name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexEntry<'a> {
    pub(crate) key: Key<'a>,
    /// Where the record stands in the file, in bytes.
    pub(crate) offset: u64,
    pub(crate) sequence: Sequence,
    pub(crate) kind: Kind,
}

/// Writes the index of a log that ends at `log_end` to `index_offset`, a multiple of 4096 at or
/// behind it, and cuts the file behind the trailer. `count` is about how many entries there are.
///
/// Costs, for each record, 12 bytes written and for each id another 5.3; no record is read.
///
/// # Errors
///
/// When a write fails. What was written by then is no index: nothing refers to it.
pub(crate) fn build_index<'a>(
    file: &SegmentFile,
    log_end: u64,
    index_offset: u64,
    count: usize,
    entries: impl Iterator<Item = IndexEntry<'a>>,
) -> Result<SealedMeta> {
    debug_assert!(index_offset >= log_end && index_offset.is_multiple_of(BLOCK_BYTES as u64));
    let places = Width::of_places(log_end);
    let mut out = BlockWriter::new(file, index_offset);
    let mut table = TableBuilder::new(log_end, count);
    let mut counts = Counts::default();
    let mut bottom = LevelWriter::new(0, index_offset, places);
    for entry in entries {
        debug_assert!(entry.offset < log_end, "a record lies within the log");
        if counts.add(&entry) == Version::Newest {
            table.push(entry.key.hash, entry.offset);
        }
        bottom.push(&mut out, Named::from(&entry))?;
    }

    let mut levels = Vec::new();
    let (mut level, mut firsts) = bottom.finish(&mut out)?;
    while level.blocks > 0 {
        levels.push(level);
        if level.blocks == 1 {
            break;
        }
        let number = u8::try_from(levels.len()).expect("levels are few");
        let mut next = LevelWriter::new(number, out.end(), places);
        for first in firsts {
            next.push(&mut out, first)?;
        }
        (level, firsts) = next.finish(&mut out)?;
    }
    debug_assert!(levels.len() <= LEVELS_MAX);

    let (fingerprints, blocks) = table.finish(file.incarnation(), out.end());
    out.append(&blocks)?;
    let trailer_offset = out.end();
    let meta = counts.into_meta(file, log_end, index_offset, trailer_offset);
    let layout = IndexLayout { fingerprints, places, levels };
    out.append(&layout.encode_trailer(&meta))?;
    out.flush()?;
    file.disk_file()
        .set_len(meta.file_bytes())
        .map_err(|e| Error::io("set the length of", file.path(), e))?;
    Ok(meta)
}

/// What a sorted entry is made of.
#[derive(Clone, Copy, Debug)]
struct Named<'a> {
    collection: CollectionId,
    id: &'a [u8],
    offset: u64,
}

impl<'a> From<&IndexEntry<'a>> for Named<'a> {
    fn from(entry: &IndexEntry<'a>) -> Self {
        Self { collection: entry.key.collection, id: entry.key.id, offset: entry.offset }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Newest,
    Older,
}

/// Counts and bounds of the entries so far.
#[derive(Default)]
struct Counts<'a> {
    records: u64,
    ids: u64,
    tombstones: u64,
    sequences: Option<(Sequence, Sequence)>,
    first: Option<(CollectionId, &'a [u8])>,
    last: Option<(CollectionId, &'a [u8], Sequence)>,
}

impl<'a> Counts<'a> {
    /// Whether the entry is the first, and so the newest, of its id.
    fn add(&mut self, entry: &IndexEntry<'a>) -> Version {
        let (collection, id) = (entry.key.collection, entry.key.id);
        let version = match self.last {
            Some((c, i, sequence)) if (c, i) == (collection, id) => {
                debug_assert!(sequence > entry.sequence, "newer versions come first");
                Version::Older
            }
            last => {
                debug_assert!(last.is_none_or(|(c, i, _)| (c, i) < (collection, id)), "sorted");
                Version::Newest
            }
        };
        self.records += 1;
        self.ids += u64::from(version == Version::Newest);
        self.tombstones += u64::from(entry.kind == Kind::Delete);
        let (low, high) = self.sequences.unwrap_or((entry.sequence, entry.sequence));
        self.sequences = Some((low.min(entry.sequence), high.max(entry.sequence)));
        self.first.get_or_insert((collection, id));
        self.last = Some((collection, id, entry.sequence));
        version
    }

    fn into_meta(
        self,
        file: &SegmentFile,
        log_end: u64,
        index_offset: u64,
        trailer_offset: u64,
    ) -> SealedMeta {
        let (sequence_min, sequence_max) = self.sequences.unwrap_or_default();
        let (first, first_id) = self.first.unwrap_or_default();
        let (last, last_id, _) = self.last.unwrap_or_default();
        SealedMeta {
            id: file.id(),
            incarnation: file.incarnation(),
            file_kind: FileKind::Log,
            log_end,
            index_offset,
            trailer_offset,
            records: self.records,
            ids: self.ids,
            tombstones: self.tombstones,
            sequence_min,
            sequence_max,
            first_key: KeyBound::lower(first, first_id),
            last_key: KeyBound::upper(last, last_id),
        }
    }
}

/// One level of the sorted index, on its way to the file.
struct LevelWriter<'a> {
    number: u8,
    places: Width,
    layout: LevelLayout,
    /// The entries of the block that is being filled.
    block: Vec<Named<'a>>,
    /// The first entry of each block: the entries of the next level.
    firsts: Vec<Named<'a>>,
}

impl<'a> LevelWriter<'a> {
    fn new(number: u8, offset: u64, places: Width) -> Self {
        Self {
            number,
            places,
            layout: LevelLayout { offset, entries: 0, blocks: 0 },
            block: Vec::with_capacity(places.entries_a_block()),
            firsts: Vec::new(),
        }
    }

    fn push(&mut self, out: &mut BlockWriter<'_>, entry: Named<'a>) -> Result<()> {
        if self.block.len() == self.places.entries_a_block() {
            self.write_block(out)?;
        }
        self.block.push(entry);
        Ok(())
    }

    fn finish(mut self, out: &mut BlockWriter<'_>) -> Result<(LevelLayout, Vec<Named<'a>>)> {
        if !self.block.is_empty() {
            self.write_block(out)?;
        }
        Ok((self.layout, self.firsts))
    }

    fn write_block(&mut self, out: &mut BlockWriter<'_>) -> Result<()> {
        let (first, last) = (self.block[0], self.block[self.block.len() - 1]);
        let mut prefix = [0; PREFIX_BYTES_MAX];
        let skip =
            common_prefix((first.collection, first.id), (last.collection, last.id), &mut prefix);
        let mut block = vec![0; BLOCK_BYTES];
        for (i, entry) in self.block.iter().enumerate() {
            let head = head(entry.collection, entry.id, skip);
            put_entry(&mut block, self.places, i, head, entry.offset);
        }
        let header = BlockHeader {
            block_type: BlockType::Sorted,
            level: self.number,
            count: u16::try_from(self.block.len()).expect("a block has at most 336 entries"),
            prefix: &prefix[..skip],
        };
        header.seal(&mut block, out.file.incarnation(), out.end());
        out.append(&block)?;
        self.layout.entries += self.block.len() as u64;
        self.layout.blocks += 1;
        self.firsts.push(first);
        self.block.clear();
        Ok(())
    }
}

/// Writes blocks one behind the other, a few in a call.
struct BlockWriter<'f> {
    file: &'f SegmentFile,
    /// Where the buffer belongs in the file.
    offset: u64,
    buffer: Vec<u8>,
}

impl<'f> BlockWriter<'f> {
    fn new(file: &'f SegmentFile, offset: u64) -> Self {
        Self { file, offset, buffer: Vec::with_capacity(WRITE_BYTES) }
    }

    /// Where the next block will stand.
    fn end(&self) -> u64 {
        self.offset + self.buffer.len() as u64
    }

    fn append(&mut self, blocks: &[u8]) -> Result<()> {
        for block in blocks.chunks(BLOCK_BYTES) {
            if self.buffer.len() + block.len() > WRITE_BYTES {
                self.flush()?;
            }
            self.buffer.extend_from_slice(block);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let failed = |e| Error::io("write", self.file.path(), e);
        let mut rest = self.buffer.as_slice();
        while !rest.is_empty() {
            let bufs = [IoSlice::new(rest)];
            match self.file.disk_file().write_at(&bufs, self.offset, Access::Keep) {
                Ok(0) => return Err(failed(io::ErrorKind::WriteZero.into())),
                Ok(n) => {
                    rest = &rest[n..];
                    self.offset += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(failed(e)),
            }
        }
        self.buffer.clear();
        Ok(())
    }
}
