//! A sealed segment's last block: its description, and where the parts of its index are.
//!
//! Invariants:
//!
//! 1. A decoded trailer's regions lie between the index's offset and the trailer, block-aligned,
//!    and their sizes agree with their counts: a reader may compute places from them without
//!    checking.
//! 2. The members of an index segment, one behind the other, are as long as its description says.

use super::bytes::Reader;
use super::index_block::{
    BLOCK_BYTES, BLOCK_HEADER_BYTES, BlockHeader, BlockType, Width, verify_block,
};
use super::sealed_meta::SealedMeta;
use super::segment_header::{FileKind, FormatFault, LOG_START, SEGMENT_VERSION};
use super::types::{CollectionId, SegmentId};

/// The most levels that a sorted index can have: enough for 2^63 records.
pub(crate) const LEVELS_MAX: usize = 8;
/// The most segments that an index segment can be over.
pub(crate) const MEMBERS_MAX: usize = 64;
/// Buckets in a fingerprint block.
pub(crate) const BUCKETS_A_BLOCK: u32 = 63;

const MAGIC: &[u8; 8] = b"SEDTRAIL";
const BLOCK: u64 = BLOCK_BYTES as u64;
/// What a damaged trailer's contradictions are reported as.
const CONTRADICTION: FormatFault = FormatFault::Damaged("the trailer contradicts itself");

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

/// A segment whose records an index segment names.
///
/// A place in the index is the record's offset in its member, behind the ends of all members before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) segment: SegmentId,
    pub(crate) incarnation: u64,
    /// Where the member's last record ends, in bytes.
    pub(crate) log_end: u64,
    pub(crate) file_kind: FileKind,
    /// See [`SealedMeta::default_collection`].
    pub(crate) collection: CollectionId,
}

impl Member {
    /// A segment as a member.
    pub(crate) fn of(meta: &SealedMeta) -> Self {
        Self {
            segment: meta.id,
            incarnation: meta.incarnation,
            log_end: meta.log_end,
            file_kind: meta.file_kind,
            collection: meta.default_collection(),
        }
    }

    /// Appends 32 bytes.
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.segment.0.to_le_bytes());
        out.extend_from_slice(&self.incarnation.to_le_bytes());
        out.extend_from_slice(&self.log_end.to_le_bytes());
        out.extend_from_slice(&[self.file_kind as u8, 0, 0, 0]);
        out.extend_from_slice(&self.collection.0.to_le_bytes());
    }

    fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let (segment, incarnation, log_end) = (SegmentId(from.u64()?), from.u64()?, from.u64()?);
        let file_kind = FileKind::from_byte(from.u8()?)?;
        from.take(3)?;
        let collection = CollectionId(from.u32()?);
        let has_records = file_kind != FileKind::Index && log_end >= LOG_START;
        has_records.then_some(Self { segment, incarnation, log_end, file_kind, collection })
    }
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
    /// Of an index segment, the segments that have its records; else empty.
    pub(crate) members: Vec<Member>,
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
        let byte = |n: usize| u8::try_from(n).expect("widths and counts are below 256");
        out.extend_from_slice(&[
            byte(table.slots.bytes()),
            table.place_bits,
            byte(self.places.bytes()),
            byte(self.levels.len()),
        ]);
        out.extend_from_slice(&[byte(self.members.len()), 0, 0, 0]);
        for level in &self.levels {
            out.extend_from_slice(&level.offset.to_le_bytes());
            out.extend_from_slice(&level.entries.to_le_bytes());
            out.extend_from_slice(&level.blocks.to_le_bytes());
            out.extend_from_slice(&[0; 4]);
        }
        for member in &self.members {
            member.encode(&mut out);
        }
        debug_assert!(out.len() <= BLOCK_BYTES, "the levels and members fit");
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
        let members = usize::from(from.u8()?);
        from.take(3)?;
        if levels > LEVELS_MAX || members > MEMBERS_MAX {
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
        let members = (0..members).map(|_| Member::decode(from)).collect::<Option<Vec<_>>>()?;
        Some(Self { fingerprints, places, levels, members })
    }

    /// Invariants 1 and 2.
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
        let data_end = self.members.iter().try_fold(0u64, |sum, m| sum.checked_add(m.log_end));
        let members_fit = match meta.file_kind {
            FileKind::Index => data_end == Some(meta.log_end),
            FileKind::Log | FileKind::Sorted => self.members.is_empty(),
        };
        table_fits
            && levels_fit
            && members_fit
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
