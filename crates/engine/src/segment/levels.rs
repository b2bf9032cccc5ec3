//! Writing the sorted levels of an index, block by block.
//!
//! Invariants:
//!
//! 1. All blocks of a level but its last are full, and entry `i` of a level is the first entry of
//!    block `i` of the level below.
//! 2. Of a key only the bytes are kept that a block can show: those of the longest prefix, and the
//!    head behind it. So a level holds 24 KiB for its block, and 72 bytes for each block before it.

use super::draft::write_all;
use super::file::SegmentFile;
use crate::disk::Access;
use crate::error::Result;
use crate::format::{
    BLOCK_BYTES, BlockHeader, BlockType, CollectionId, HEAD_BYTES, LevelLayout, PREFIX_BYTES_MAX,
    Width, common_prefix, head, put_entry,
};
use crate::sync::Arc;

/// Bytes that are written in one call.
const WRITE_BYTES: usize = 64 << 10;
/// The bytes of an id that a block can show: a full key begins with four bytes of the collection.
const ID_BYTES: usize = PREFIX_BYTES_MAX + HEAD_BYTES - size_of::<CollectionId>();

/// What a sorted entry is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    collection: CollectionId,
    id_len: u8,
    id: [u8; ID_BYTES],
    place: u64,
}

impl Named {
    pub(super) fn new(collection: CollectionId, id: &[u8], place: u64) -> Self {
        let kept = &id[..id.len().min(ID_BYTES)];
        let mut id = [0; ID_BYTES];
        id[..kept.len()].copy_from_slice(kept);
        let id_len = u8::try_from(kept.len()).expect("at most 52 bytes are kept");
        Self { collection, id_len, id, place }
    }

    fn id(&self) -> &[u8] {
        &self.id[..usize::from(self.id_len)]
    }
}

/// One level of the sorted index, on its way to the file.
#[derive(Debug)]
pub(super) struct LevelWriter {
    number: u8,
    places: Width,
    layout: LevelLayout,
    /// The entries of the block that is being filled.
    block: Vec<Named>,
    /// The first entry of each block: the entries of the next level.
    firsts: Vec<Named>,
}

impl LevelWriter {
    pub(super) fn new(number: u8, offset: u64, places: Width) -> Self {
        Self {
            number,
            places,
            layout: LevelLayout { offset, entries: 0, blocks: 0 },
            block: Vec::with_capacity(places.entries_a_block()),
            firsts: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, out: &mut BlockWriter, entry: Named) -> Result<()> {
        if self.block.len() == self.places.entries_a_block() {
            self.write_block(out)?;
        }
        self.block.push(entry);
        Ok(())
    }

    /// Writes the last block. The level, and the entries of the next one.
    pub(super) fn finish(mut self, out: &mut BlockWriter) -> Result<(LevelLayout, Vec<Named>)> {
        if !self.block.is_empty() {
            self.write_block(out)?;
        }
        Ok((self.layout, self.firsts))
    }

    fn write_block(&mut self, out: &mut BlockWriter) -> Result<()> {
        let (first, last) = (self.block[0], self.block[self.block.len() - 1]);
        let mut prefix = [0; PREFIX_BYTES_MAX];
        let skip = common_prefix(
            (first.collection, first.id()),
            (last.collection, last.id()),
            &mut prefix,
        );
        let mut block = vec![0; BLOCK_BYTES];
        for (i, entry) in self.block.iter().enumerate() {
            let head = head(entry.collection, entry.id(), skip);
            put_entry(&mut block, self.places, i, head, entry.place);
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
#[derive(Debug)]
pub(super) struct BlockWriter {
    file: Arc<SegmentFile>,
    /// Where the buffer belongs in the file.
    offset: u64,
    buffer: Vec<u8>,
}

impl BlockWriter {
    pub(super) fn new(file: &Arc<SegmentFile>, offset: u64) -> Self {
        Self { file: Arc::clone(file), offset, buffer: Vec::with_capacity(WRITE_BYTES) }
    }

    pub(super) fn file(&self) -> &SegmentFile {
        &self.file
    }

    /// Where the next block will stand.
    pub(super) fn end(&self) -> u64 {
        self.offset + self.buffer.len() as u64
    }

    pub(super) fn append(&mut self, blocks: &[u8]) -> Result<()> {
        for block in blocks.chunks(BLOCK_BYTES) {
            if self.buffer.len() + block.len() > WRITE_BYTES {
                self.flush()?;
            }
            self.buffer.extend_from_slice(block);
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        write_all(&self.file, &self.buffer, self.offset, Access::Keep)?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}
