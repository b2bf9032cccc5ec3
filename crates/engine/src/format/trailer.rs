//! What is known of a sealed segment: in the manifest, so that opening a database visits no
//! segment, and in the segment's last block, so that a segment can be read without a manifest.
//!
//! Invariants:
//!
//! 1. The bounds never exclude a key that the segment has, however long the keys are.
//! 2. A decoded trailer's regions lie between the index's offset and the trailer, block-aligned,
//!    and their sizes agree with their counts: a reader may compute places from them without
//!    checking.

use std::cmp::Ordering;

use super::bytes::Reader;
use super::index_block::{
    BLOCK_BYTES, BLOCK_HEADER_BYTES, BlockHeader, BlockType, Width, compare_with_prefix,
    verify_block,
};
use super::segment_header::{FileKind, FormatFault, LOG_START, SEGMENT_VERSION};
use super::types::{CollectionId, Key, SegmentId, Sequence};

/// The most levels that a sorted index can have: enough for 2^63 records.
pub(crate) const LEVELS_MAX: usize = 8;
/// Buckets in a fingerprint block.
pub(crate) const BUCKETS_A_BLOCK: u32 = 63;

const MAGIC: &[u8; 8] = b"SEDTRAIL";
const BOUND_BYTES_MAX: usize = 32;
const BLOCK: u64 = BLOCK_BYTES as u64;
/// What a damaged trailer's contradictions are reported as.
const CONTRADICTION: FormatFault = FormatFault::Damaged("the trailer contradicts itself");

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
        let taken = id.len().min(BOUND_BYTES_MAX - 4);
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
    /// Where the log's last record ends, in bytes.
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
    /// The lowest sequence of an indexed record; 0 when there is none.
    pub(crate) sequence_min: Sequence,
    /// The highest.
    pub(crate) sequence_max: Sequence,
    pub(crate) first_key: KeyBound,
    pub(crate) last_key: KeyBound,
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

    /// Appends 152 bytes.
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
        };
        meta.is_consistent().then_some(meta)
    }

    fn is_consistent(&self) -> bool {
        LOG_START <= self.log_end
            && self.log_end <= self.index_offset
            && self.index_offset < self.trailer_offset
            && self.index_offset.is_multiple_of(BLOCK)
            && self.trailer_offset.is_multiple_of(BLOCK)
            && self.trailer_offset <= i64::MAX as u64 - BLOCK
            && self.ids <= self.records
            && self.tombstones <= self.records
            && self.sequence_min <= self.sequence_max
            // Records are aligned to 8 bytes.
            && self.records <= (self.log_end - LOG_START) / 8
    }
}

/// Where a fingerprint table is, and its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FingerprintLayout {
    /// The first block, in bytes.
    pub(crate) offset: u64,
    pub(crate) blocks: u32,
    pub(crate) buckets: u32,
    pub(crate) slots: Width,
    /// Bits of a narrow slot that are the place.
    pub(crate) place_bits: u8,
}

/// One level of a sorted index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LevelLayout {
    /// The first block, in bytes.
    pub(crate) offset: u64,
    pub(crate) entries: u64,
    pub(crate) blocks: u32,
}

/// Where the parts of a segment's index are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexLayout {
    pub(crate) fingerprints: FingerprintLayout,
    /// How wide the places in sorted blocks are.
    pub(crate) places: Width,
    /// From the level that names every record up to the one of a single block; empty without
    /// records.
    pub(crate) levels: Vec<LevelLayout>,
}

impl IndexLayout {
    /// The trailer block of a segment.
    pub(crate) fn encode_trailer(&self, meta: &SealedMeta) -> Vec<u8> {
        let mut out = vec![0; BLOCK_HEADER_BYTES];
        out.reserve(BLOCK_BYTES);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&SEGMENT_VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 6]);
        meta.encode(&mut out);
        let table = &self.fingerprints;
        out.extend_from_slice(&table.offset.to_le_bytes());
        out.extend_from_slice(&table.blocks.to_le_bytes());
        out.extend_from_slice(&table.buckets.to_le_bytes());
        let byte = |n: usize| u8::try_from(n).expect("widths and levels are below 256");
        out.extend_from_slice(&[
            byte(table.slots.bytes()),
            table.place_bits,
            byte(self.places.bytes()),
            byte(self.levels.len()),
        ]);
        out.extend_from_slice(&[0; 4]);
        for level in &self.levels {
            out.extend_from_slice(&level.offset.to_le_bytes());
            out.extend_from_slice(&level.entries.to_le_bytes());
            out.extend_from_slice(&level.blocks.to_le_bytes());
            out.extend_from_slice(&[0; 4]);
        }
        out.resize(BLOCK_BYTES, 0);
        TRAILER.seal(&mut out, meta.incarnation, meta.trailer_offset);
        out
    }

    /// Verifies a trailer block that stands at `offset` of the file with this incarnation.
    pub(crate) fn decode_trailer(
        block: &[u8],
        incarnation: u64,
        offset: u64,
    ) -> Result<(SealedMeta, Self), FormatFault> {
        verify_block(
            block,
            incarnation,
            offset,
            (TRAILER.block_type, TRAILER.level, TRAILER.count),
        )?;
        let mut from = Reader::new(&block[BLOCK_HEADER_BYTES..]);
        if from.take(MAGIC.len()) != Some(MAGIC) {
            return Err(FormatFault::Damaged("the trailer is none"));
        }
        match from.u16() {
            Some(SEGMENT_VERSION) => {}
            version => {
                let version = version.unwrap_or_default();
                return Err(FormatFault::Unsupported(format!("segment version {version}")));
            }
        }
        let parse = |mut from: Reader<'_>| {
            from.take(6)?;
            let meta = SealedMeta::decode(&mut from)?;
            let layout = Self::decode(&mut from)?;
            let own = meta.incarnation == incarnation && meta.trailer_offset == offset;
            (own && layout.fits(&meta)).then_some((meta, layout))
        };
        parse(from).ok_or(CONTRADICTION)
    }

    fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let (offset, blocks, buckets) = (from.u64()?, from.u32()?, from.u32()?);
        let (slots, place_bits) = (Width::from_byte(from.u8()?)?, from.u8()?);
        let (places, levels) = (Width::from_byte(from.u8()?)?, usize::from(from.u8()?));
        from.take(4)?;
        if levels > LEVELS_MAX {
            return None;
        }
        let fingerprints = FingerprintLayout { offset, blocks, buckets, slots, place_bits };
        let levels = (0..levels)
            .map(|_| {
                let (offset, entries, blocks) = (from.u64()?, from.u64()?, from.u32()?);
                from.take(4)?;
                Some(LevelLayout { offset, entries, blocks })
            })
            .collect::<Option<Vec<_>>>()?;
        Some(Self { fingerprints, places, levels })
    }

    /// Invariant 2.
    fn fits(&self, meta: &SealedMeta) -> bool {
        let within = |offset: u64, blocks: u32| {
            offset >= meta.index_offset
                && offset.is_multiple_of(BLOCK)
                && u64::from(blocks)
                    .checked_mul(BLOCK)
                    .and_then(|bytes| bytes.checked_add(offset))
                    .is_some_and(|end| end <= meta.trailer_offset)
        };
        let table = &self.fingerprints;
        let table_fits = within(table.offset, table.blocks)
            && table.buckets > 0
            && table.blocks == table.buckets.div_ceil(BUCKETS_A_BLOCK)
            && *table == FingerprintLayout { offset: table.offset, ..table.shape(meta.log_end) };
        let mut entries = meta.records;
        let capacity = self.places.entries_a_block() as u64;
        let levels_fit = self.levels.iter().enumerate().all(|(i, level)| {
            let fits = level.entries == entries
                && u64::from(level.blocks) == entries.div_ceil(capacity)
                && level.blocks > 0
                && (level.blocks == 1) == (i + 1 == self.levels.len())
                && within(level.offset, level.blocks);
            entries = u64::from(level.blocks);
            fits
        });
        table_fits
            && levels_fit
            && self.places == Width::of_places(meta.log_end)
            && self.levels.is_empty() == (meta.records == 0)
    }
}

impl FingerprintLayout {
    /// The same table with the widths that a log of this length calls for.
    fn shape(self, log_end: u64) -> Self {
        let (slots, place_bits) = Self::widths(log_end);
        Self { slots, place_bits, ..self }
    }

    /// The width of slots, and the bits of the place in them, for a log of this length.
    pub(crate) fn widths(log_end: u64) -> (Width, u8) {
        const NARROW_PLACE_BITS_MAX: u32 = 24;
        const WIDE_PLACE_BITS: u8 = 40;
        let bits = u64::BITS - (log_end / 8).leading_zeros();
        match u8::try_from(bits) {
            Ok(narrow) if bits <= NARROW_PLACE_BITS_MAX => (Width::Narrow, narrow),
            _ => (Width::Wide, WIDE_PLACE_BITS),
        }
    }
}

const TRAILER: BlockHeader<'static> =
    BlockHeader { block_type: BlockType::Trailer, level: 0, count: 0, prefix: &[] };
