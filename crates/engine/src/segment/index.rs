//! The blocks of an open segment's index, each verified before it is believed.
//!
//! Invariants:
//!
//! 1. No byte of a block is used before the block's check matched: at its first use since the
//!    segment was opened where it is mapped, and each time that it is read where it is not. A
//!    flipped bit is an error, never "not found".
//! 2. A block that failed is tried again at its next use, and fails again as long as it is damaged.

use super::file::{Regime, SegmentFile};
use super::fingerprints::BUCKET_BYTES;
use crate::error::{Error, Result};
use crate::format::{
    BLOCK_BYTES, BlockType, FingerprintLayout, IndexLayout, LevelLayout, SealedMeta, SortedBlock,
    verify_block,
};
use crate::sync::{AtomicU64, OnceLock, Ordering};

const BLOCK: u64 = BLOCK_BYTES as u64;

/// A segment's index, open.
#[derive(Debug)]
pub(super) struct Index {
    layout: IndexLayout,
    /// The index's first block, in bytes.
    offset: u64,
    /// A bit for each block that was verified in the map.
    verified: Box<[AtomicU64]>,
    /// The fingerprint table in memory, once a read that does without the map has needed it.
    resident: OnceLock<ResidentTable>,
}

/// Whole blocks in memory, so placed that buckets are cache lines.
#[derive(Debug)]
struct ResidentTable {
    bytes: Vec<u8>,
    start: usize,
}

/// The block that a scan without the map is in. Empty at first, and always for scans of the map.
#[derive(Debug, Default)]
pub(super) struct BlockBuffer {
    bytes: Vec<u8>,
    /// Where the block stands in the file; 0 when there is none.
    offset: u64,
}

impl Index {
    /// The index that a segment's trailer describes. Reads nothing.
    pub(super) fn new(meta: &SealedMeta, layout: IndexLayout) -> Self {
        let blocks = meta.file_bytes().saturating_sub(meta.index_offset) / BLOCK;
        Self {
            layout,
            offset: meta.index_offset,
            verified: (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            resident: OnceLock::new(),
        }
    }

    pub(super) fn fingerprints(&self) -> &FingerprintLayout {
        &self.layout.fingerprints
    }

    /// The sorted levels, the one that names every record first.
    pub(super) fn levels(&self) -> &[LevelLayout] {
        &self.layout.levels
    }

    /// Entries in a full sorted block.
    pub(super) fn entries_a_block(&self) -> u64 {
        self.layout.places.entries_a_block() as u64
    }

    /// Memory held, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.verified)
            + self.layout.levels.capacity() * size_of::<LevelLayout>()
            + self.resident.get().map_or(0, |table| table.bytes.capacity())
    }

    /// A bucket of the fingerprint table. Costs its cache line; the first use of its block a CRC.
    #[inline]
    pub(super) fn bucket<'a>(
        &'a self,
        file: &'a SegmentFile,
        bucket: u32,
        regime: Regime,
    ) -> Result<&'a [u8; BUCKET_BYTES]> {
        let (block, at) = FingerprintLayout::place_of(bucket);
        let found = match regime {
            Regime::Mapped => {
                let offset = self.layout.fingerprints.offset + u64::from(block) * BLOCK;
                if !self.is_verified(offset) {
                    self.verify_mapped(file, offset, self.table_block(block))?;
                }
                file.mapped(offset + at as u64, BUCKET_BYTES)
            }
            Regime::Pread => {
                let table = self.resident(file)?;
                let start = table.start + block as usize * BLOCK_BYTES + at;
                table.bytes.get(start..start + BUCKET_BYTES)
            }
        };
        found
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| Error::corrupt(file.path(), self.offset, "the index is cut"))
    }

    /// Whether any slot of the fingerprint table names a place. Costs a pass over the table.
    pub(super) fn names(&self, file: &SegmentFile, place: u64, regime: Regime) -> Result<bool> {
        let table = &self.layout.fingerprints;
        for number in 0..table.buckets {
            let bucket = self.bucket(file, number, regime)?;
            if (0..table.slots_a_bucket()).any(|slot| table.offset_in(bucket, slot) == place) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A block of a sorted level. Costs nothing but the block's page where it is mapped and
    /// verified, else a read (unless the buffer has it) and a CRC.
    pub(super) fn sorted<'a>(
        &'a self,
        file: &'a SegmentFile,
        level: usize,
        block: u64,
        regime: Regime,
        buffer: &'a mut BlockBuffer,
    ) -> Result<SortedBlock<'a>> {
        let layout = &self.layout.levels[level];
        let capacity = self.entries_a_block();
        let offset = layout.offset + block * BLOCK;
        let entries = layout.entries.saturating_sub(block * capacity).min(capacity);
        let expected = (
            BlockType::Sorted,
            u8::try_from(level).expect("at most 8 levels"),
            u16::try_from(entries).expect("at most 336 entries"),
        );
        let bytes = match regime {
            Regime::Mapped => {
                if !self.is_verified(offset) {
                    self.verify_mapped(file, offset, expected)?;
                }
                mapped_block(file, offset)?
            }
            Regime::Pread => buffer.load(file, offset, expected)?,
        };
        Ok(SortedBlock::new(bytes, self.layout.places))
    }

    fn table_block(&self, block: u32) -> (BlockType, u8, u16) {
        (BlockType::Fingerprints, 0, self.layout.fingerprints.buckets_in(block))
    }

    /// The word and the bit that say whether a block was verified.
    #[inline]
    fn bit(&self, offset: u64) -> Option<(&AtomicU64, u64)> {
        let block = (offset - self.offset) / BLOCK;
        let word = usize::try_from(block / 64).ok()?;
        Some((self.verified.get(word)?, 1 << (block % 64)))
    }

    #[inline]
    fn is_verified(&self, offset: u64) -> bool {
        // Relaxed: the bit says something about bytes that do not change, not about other writes.
        self.bit(offset).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    #[cold]
    fn verify_mapped(
        &self,
        file: &SegmentFile,
        offset: u64,
        expected: (BlockType, u8, u16),
    ) -> Result<()> {
        verify(file, mapped_block(file, offset)?, offset, expected)?;
        if let Some((word, bit)) = self.bit(offset) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The table in memory, read and verified by whoever comes first. Two that come at once both
    /// read.
    fn resident(&self, file: &SegmentFile) -> Result<&ResidentTable> {
        if let Some(table) = self.resident.get() {
            return Ok(table);
        }
        let layout = &self.layout.fingerprints;
        let len = layout.blocks as usize * BLOCK_BYTES;
        let mut bytes = vec![0; len + BUCKET_BYTES];
        let start = bytes.as_ptr().align_offset(BUCKET_BYTES).min(BUCKET_BYTES);
        file.pread(&mut bytes[start..start + len], layout.offset)?;
        for (i, block) in (0u32..).zip(bytes[start..start + len].chunks_exact(BLOCK_BYTES)) {
            verify(file, block, layout.offset + u64::from(i) * BLOCK, self.table_block(i))?;
        }
        Ok(self.resident.get_or_init(|| ResidentTable { bytes, start }))
    }
}

impl BlockBuffer {
    fn load(
        &mut self,
        file: &SegmentFile,
        offset: u64,
        expected: (BlockType, u8, u16),
    ) -> Result<&[u8]> {
        if self.offset != offset {
            self.offset = 0;
            self.bytes.resize(BLOCK_BYTES, 0);
            file.pread(&mut self.bytes, offset)?;
            verify(file, &self.bytes, offset, expected)?;
            self.offset = offset;
        }
        Ok(&self.bytes)
    }
}

fn mapped_block(file: &SegmentFile, offset: u64) -> Result<&[u8]> {
    file.mapped(offset, BLOCK_BYTES)
        .ok_or_else(|| Error::corrupt(file.path(), offset, "the index is cut"))
}

fn verify(
    file: &SegmentFile,
    block: &[u8],
    offset: u64,
    expected: (BlockType, u8, u16),
) -> Result<()> {
    verify_block(block, file.incarnation(), offset, expected)
        .map_err(|fault| fault.into_error(file.path(), offset))
}
