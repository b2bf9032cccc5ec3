//! What is known of a sealed segment: in the manifest, so that opening a database visits no
//! segment, and in the segment's last block, so that a segment can be read without a manifest.
//!
//! Invariants:
//!
//! 1. The bounds never exclude a key that the segment has, however long the keys are.
//! 2. A decoded description's regions follow each other: data, index, trailer.

use std::cmp::Ordering;

use super::bytes::Reader;
use super::index_block::{BLOCK_BYTES, compare_with_prefix};
use super::segment_header::{FileKind, LOG_START};
use super::types::{CollectionId, Key, SegmentId, Sequence};

const BOUND_BYTES_MAX: usize = 32;
const COLLECTION_BYTES: usize = 4;
const BLOCK: u64 = BLOCK_BYTES as u64;

/// A bound of full keys (the collection in four big-endian bytes, then the id), cut to 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyBound {
    len: u8,
    bytes: [u8; BOUND_BYTES_MAX],
}

impl KeyBound {
    /// No key is below the least one, and as an upper bound it excludes nothing.
    const NONE: Self = Self { len: 0, bytes: [0; BOUND_BYTES_MAX] };

    /// At or below `key` and everything after it.
    pub(crate) fn lower(collection: CollectionId, id: &[u8]) -> Self {
        Self::cut(collection, id).0
    }

    /// At or above `key` and everything before it; where a cut key cannot be raised, it excludes
    /// nothing.
    pub(crate) fn upper(collection: CollectionId, id: &[u8]) -> Self {
        let (mut bound, cut) = Self::cut(collection, id);
        if !cut {
            return bound;
        }
        // Everything that begins as the cut bytes do is below their successor.
        while let Some(last) = usize::from(bound.len).checked_sub(1) {
            if let Some(raised) = bound.bytes[last].checked_add(1) {
                bound.bytes[last] = raised;
                return bound;
            }
            bound.bytes[last] = 0;
            bound.len -= 1;
        }
        Self::NONE
    }

    fn cut(collection: CollectionId, id: &[u8]) -> (Self, bool) {
        let mut bound = Self::NONE;
        let taken = id.len().min(BOUND_BYTES_MAX - COLLECTION_BYTES);
        bound.bytes[..4].copy_from_slice(&collection.0.to_be_bytes());
        bound.bytes[4..4 + taken].copy_from_slice(&id[..taken]);
        bound.len = u8::try_from(4 + taken).expect("at most 32");
        (bound, taken < id.len())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// How a key compares to the bound.
    fn compare(&self, collection: CollectionId, id: &[u8]) -> Ordering {
        let bound = self.as_bytes();
        compare_with_prefix(collection, id, bound).then((id.len() + 4).cmp(&bound.len()))
    }

    fn decode(len: u8, bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; BOUND_BYTES_MAX] = bytes.try_into().ok()?;
        (usize::from(len) <= BOUND_BYTES_MAX).then_some(Self { len, bytes })
    }
}

impl std::fmt::Debug for KeyBound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.as_bytes().escape_ascii())
    }
}

/// A sealed segment, as the manifest knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SealedMeta {
    pub(crate) id: SegmentId,
    pub(crate) incarnation: u64,
    pub(crate) file_kind: FileKind,
    /// Where the last record ends, in bytes; in an index segment, where the last member's would if
    /// the members stood one behind the other.
    pub(crate) log_end: u64,
    /// Where the index's first block stands, in bytes.
    pub(crate) index_offset: u64,
    /// Where the trailer, the file's last block, stands, in bytes.
    pub(crate) trailer_offset: u64,
    /// Records in the index: every version of every id that was not superseded before.
    pub(crate) records: u64,
    /// Different ids among them.
    pub(crate) ids: u64,
    /// Tombstones among the records.
    pub(crate) tombstones: u64,
    /// The lowest sequence of an indexed record; 0 when there is none, or one without a sequence.
    pub(crate) sequence_min: Sequence,
    /// The highest.
    pub(crate) sequence_max: Sequence,
    pub(crate) first_key: KeyBound,
    pub(crate) last_key: KeyBound,
    /// Bytes of the ids and documents of all indexed records.
    pub(crate) content_bytes: u64,
    /// Of those, what is not the newest indexed version of its id: kept for snapshots or history.
    pub(crate) pinned_bytes: u64,
    /// Of the content, the ids of tombstones that are the newest version.
    pub(crate) tombstone_bytes: u64,
    /// Bytes of the ids and documents of records that lie in the data and are not in the index.
    pub(crate) superseded_bytes: u64,
    /// Indexed records that mark lost ones.
    pub(crate) damaged: u64,
}

impl SealedMeta {
    /// The length of the file in bytes.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.trailer_offset + BLOCK
    }

    /// Whether the key lies within the segment's bounds. Costs two short comparisons.
    pub(crate) fn may_hold(&self, key: &Key<'_>) -> bool {
        self.records != 0
            && self.first_key.compare(key.collection, key.id) != Ordering::Less
            && (self.last_key.len == 0
                || self.last_key.compare(key.collection, key.id) != Ordering::Greater)
    }

    /// The collection of records in a sorted segment that name none: the first record's. Of other
    /// segments, which have no such records, 0.
    pub(crate) fn default_collection(&self) -> CollectionId {
        match (self.file_kind, self.first_key.bytes.first_chunk()) {
            (FileKind::Sorted, Some(first)) => CollectionId(u32::from_be_bytes(*first)),
            _ => CollectionId(0),
        }
    }

    /// Appends 192 bytes.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        for field in [
            self.id.0,
            self.incarnation,
            self.log_end,
            self.index_offset,
            self.trailer_offset,
            self.records,
            self.ids,
            self.tombstones,
            self.sequence_min.0,
            self.sequence_max.0,
        ] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&[self.file_kind as u8, self.first_key.len, self.last_key.len]);
        out.extend_from_slice(&[0; 5]);
        out.extend_from_slice(&self.first_key.bytes);
        out.extend_from_slice(&self.last_key.bytes);
        for field in [
            self.content_bytes,
            self.pinned_bytes,
            self.tombstone_bytes,
            self.superseded_bytes,
            self.damaged,
        ] {
            out.extend_from_slice(&field.to_le_bytes());
        }
    }

    /// Reads what [`SealedMeta::encode`] wrote; `None` when it is cut or contradicts itself.
    pub(crate) fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let (id, incarnation) = (SegmentId(from.u64()?), from.u64()?);
        let [log_end, index_offset, trailer_offset] = [from.u64()?, from.u64()?, from.u64()?];
        let [records, ids, tombstones] = [from.u64()?, from.u64()?, from.u64()?];
        let [sequence_min, sequence_max] = [Sequence(from.u64()?), Sequence(from.u64()?)];
        let file_kind = FileKind::from_byte(from.u8()?)?;
        let [first_len, last_len] = [from.u8()?, from.u8()?];
        from.take(5)?;
        let first_key = KeyBound::decode(first_len, from.take(BOUND_BYTES_MAX)?)?;
        let last_key = KeyBound::decode(last_len, from.take(BOUND_BYTES_MAX)?)?;
        let [content_bytes, pinned_bytes] = [from.u64()?, from.u64()?];
        let [tombstone_bytes, superseded_bytes, damaged] = [from.u64()?, from.u64()?, from.u64()?];
        let meta = Self {
            id,
            incarnation,
            file_kind,
            log_end,
            index_offset,
            trailer_offset,
            records,
            ids,
            tombstones,
            sequence_min,
            sequence_max,
            first_key,
            last_key,
            content_bytes,
            pinned_bytes,
            tombstone_bytes,
            superseded_bytes,
            damaged,
        };
        meta.is_consistent().then_some(meta)
    }

    fn is_consistent(&self) -> bool {
        let index_follows = match self.file_kind {
            FileKind::Log | FileKind::Sorted => self.log_end <= self.index_offset,
            // The data is in other files.
            FileKind::Index => self.index_offset == LOG_START,
        };
        let kinds = self.tombstones.checked_add(self.damaged);
        let parts = self.pinned_bytes.checked_add(self.tombstone_bytes);
        LOG_START <= self.log_end
            && index_follows
            && self.index_offset < self.trailer_offset
            && self.index_offset.is_multiple_of(BLOCK)
            && self.trailer_offset.is_multiple_of(BLOCK)
            && self.trailer_offset <= i64::MAX as u64 - BLOCK
            && self.ids <= self.records
            && kinds.is_some_and(|kinds| kinds <= self.records)
            && parts.is_some_and(|parts| parts <= self.content_bytes)
            && self.sequence_min <= self.sequence_max
            && usize::from(self.first_key.len) >= COLLECTION_BYTES
            // Records are aligned to 8 bytes.
            && self.records <= (self.log_end - LOG_START) / 8
    }
}
