//! Writes a segment's index: behind a log when it is sealed, behind sorted records, or by itself.
//!
//! The index region is, in this order: the sorted levels from the bottom up, the fingerprint table,
//! the trailer. Invariants:
//!
//! 1. Entries arrive in order (collection, id, newest first) and are written as they arrive: 64 KiB
//!    of blocks, a block's entries, 72 bytes for each block written, and 18 bytes an id for the
//!    table are all that is held. No id is held but the last one.
//! 2. Nothing below the index's offset is written, and the trailer is the file's last block.
//! 3. Nothing is synced: whoever publishes the segment does that.

use super::file::SegmentFile;
use super::fingerprints::TableBuilder;
use super::levels::{BlockWriter, LevelWriter, Named};
use crate::error::{Error, Result};
use crate::format::{
    BLOCK_BYTES, CollectionId, FileKind, IndexLayout, Key, KeyBound, Kind, LEVELS_MAX, LevelLayout,
    Member, SealedMeta, Sequence, Width,
};
use crate::sync::Arc;

/// The most bytes that the index of so many records takes, wide places included: 16 an entry with
/// its share of the levels above, 9.2 a slot, and a few blocks.
pub(crate) fn index_bytes_max(records: usize) -> u64 {
    (records as u64 * 28 + (64 << 10)).next_multiple_of(BLOCK_BYTES as u64)
}

/// A record that the index is to name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexEntry<'a> {
    pub(crate) key: Key<'a>,
    /// Where the record stands in the file, in bytes.
    pub(crate) offset: u64,
    /// 0 when every reader sees the record.
    pub(crate) sequence: Sequence,
    pub(crate) kind: Kind,
    /// The length of the id and the document in bytes.
    pub(crate) content_len: u64,
}

/// Writes the index of a log that ends at `log_end` to `index_offset`, a multiple of 4096 at or
/// behind it, and cuts the file behind the trailer. `count` is how many ids there are, at least;
/// `superseded_bytes` is the content of the log's other records.
///
/// Costs, for each record, 12 bytes written and for each id another 5.3; no record is read.
///
/// # Errors
///
/// When a write fails. What was written by then is no index: nothing refers to it.
pub(crate) fn build_index<'a>(
    file: &Arc<SegmentFile>,
    (log_end, index_offset): (u64, u64),
    count: usize,
    superseded_bytes: u64,
    entries: impl Iterator<Item = IndexEntry<'a>>,
) -> Result<SealedMeta> {
    debug_assert!(index_offset >= log_end && index_offset.is_multiple_of(BLOCK_BYTES as u64));
    let out = BlockWriter::new(file, index_offset);
    let mut builder = IndexBuilder::new(out, FileKind::Log, log_end, count);
    for entry in entries {
        builder.push(&entry)?;
    }
    builder.finish(superseded_bytes, Vec::new())
}

/// What the index is of, and where it begins.
#[derive(Clone, Copy, Debug)]
struct Region {
    file_kind: FileKind,
    log_end: u64,
    index_offset: u64,
}

/// An index that is being written.
#[derive(Debug)]
pub(super) struct IndexBuilder {
    out: BlockWriter,
    region: Region,
    places: Width,
    table: TableBuilder,
    counts: Counts,
    bottom: LevelWriter,
}

impl IndexBuilder {
    /// An index that begins where `out` stands, over records that lie below `log_end`: of at most
    /// `count` ids.
    pub(super) fn new(out: BlockWriter, file_kind: FileKind, log_end: u64, count: usize) -> Self {
        let (index_offset, places) = (out.end(), Width::of_places(log_end));
        Self {
            out,
            region: Region { file_kind, log_end, index_offset },
            places,
            table: TableBuilder::new(log_end, count),
            counts: Counts::default(),
            bottom: LevelWriter::new(0, index_offset, places),
        }
    }

    /// Adds the next entry. The id is needed for the call only.
    pub(super) fn push(&mut self, entry: &IndexEntry<'_>) -> Result<()> {
        debug_assert!(entry.offset < self.region.log_end, "a record lies within the data");
        if self.counts.add(entry) == Version::Newest {
            self.table.push(entry.key.hash, entry.offset);
        }
        let named = Named::new(entry.key.collection, entry.key.id, entry.offset);
        self.bottom.push(&mut self.out, named)
    }

    /// Whether there is no entry so far.
    pub(super) fn is_empty(&self) -> bool {
        self.counts.records == 0
    }

    /// Bytes of the ids and documents of the entries so far.
    pub(super) fn content_bytes(&self) -> u64 {
        self.counts.content_bytes
    }

    /// Writes the rest of the index, and cuts the file behind it.
    pub(super) fn finish(self, superseded_bytes: u64, members: Vec<Member>) -> Result<SealedMeta> {
        let Self { mut out, places, .. } = self;
        let levels = write_levels(self.bottom, &mut out, places)?;
        let (fingerprints, blocks) = self.table.finish(out.file().incarnation(), out.end());
        out.append(&blocks)?;
        let meta = self.counts.into_meta(out.file(), self.region, out.end(), superseded_bytes);
        let layout = IndexLayout { fingerprints, places, levels, members };
        out.append(&layout.encode_trailer(&meta))?;
        out.flush()?;
        let file = out.file();
        file.disk_file()
            .set_len(meta.file_bytes())
            .map_err(|e| Error::io("set the length of", file.path(), e))?;
        Ok(meta)
    }
}

/// Completes the bottom level and writes those above.
fn write_levels(
    bottom: LevelWriter,
    out: &mut BlockWriter,
    places: Width,
) -> Result<Vec<LevelLayout>> {
    let mut levels = Vec::new();
    let (mut level, mut firsts) = bottom.finish(out)?;
    while level.blocks > 0 {
        levels.push(level);
        if level.blocks == 1 {
            break;
        }
        let number = u8::try_from(levels.len()).expect("levels are few");
        let mut next = LevelWriter::new(number, out.end(), places);
        for first in firsts {
            next.push(out, first)?;
        }
        (level, firsts) = next.finish(out)?;
    }
    debug_assert!(levels.len() <= LEVELS_MAX);
    Ok(levels)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Newest,
    Older,
}

/// Counts and bounds of the entries so far.
#[derive(Debug, Default)]
struct Counts {
    records: u64,
    ids: u64,
    tombstones: u64,
    damaged: u64,
    content_bytes: u64,
    pinned_bytes: u64,
    tombstone_bytes: u64,
    sequences: Option<(Sequence, Sequence)>,
    first: Option<KeyBound>,
    last: Option<(CollectionId, Sequence)>,
    last_id: Vec<u8>,
}

impl Counts {
    /// Whether the entry is the first, and so the newest, of its id.
    fn add(&mut self, entry: &IndexEntry<'_>) -> Version {
        let version = self.version(entry);
        self.records += 1;
        self.tombstones += u64::from(entry.kind == Kind::Delete);
        self.damaged += u64::from(entry.kind == Kind::Damaged);
        self.content_bytes += entry.content_len;
        match version {
            Version::Newest => {
                self.ids += 1;
                if entry.kind == Kind::Delete {
                    self.tombstone_bytes += entry.content_len;
                }
                self.last_id.clear();
                self.last_id.extend_from_slice(entry.key.id);
            }
            Version::Older => self.pinned_bytes += entry.content_len,
        }
        let (low, high) = self.sequences.unwrap_or((entry.sequence, entry.sequence));
        self.sequences = Some((low.min(entry.sequence), high.max(entry.sequence)));
        self.first.get_or_insert_with(|| KeyBound::lower(entry.key.collection, entry.key.id));
        self.last = Some((entry.key.collection, entry.sequence));
        version
    }

    fn version(&self, entry: &IndexEntry<'_>) -> Version {
        let (collection, id) = (entry.key.collection, entry.key.id);
        let Some((last, sequence)) = self.last else { return Version::Newest };
        if (last, self.last_id.as_slice()) == (collection, id) {
            debug_assert!(sequence > entry.sequence, "newer versions come first");
            return Version::Older;
        }
        debug_assert!((last, self.last_id.as_slice()) < (collection, id), "sorted");
        Version::Newest
    }

    fn into_meta(
        self,
        file: &SegmentFile,
        region: Region,
        trailer_offset: u64,
        superseded_bytes: u64,
    ) -> SealedMeta {
        let (sequence_min, sequence_max) = self.sequences.unwrap_or_default();
        let (last, _) = self.last.unwrap_or_default();
        SealedMeta {
            id: file.id(),
            incarnation: file.incarnation(),
            file_kind: region.file_kind,
            log_end: region.log_end,
            index_offset: region.index_offset,
            trailer_offset,
            records: self.records,
            ids: self.ids,
            tombstones: self.tombstones,
            sequence_min,
            sequence_max,
            first_key: self.first.unwrap_or_else(|| KeyBound::lower(CollectionId(0), &[])),
            last_key: KeyBound::upper(last, &self.last_id),
            content_bytes: self.content_bytes,
            pinned_bytes: self.pinned_bytes,
            tombstone_bytes: self.tombstone_bytes,
            superseded_bytes,
            damaged: self.damaged,
        }
    }
}
