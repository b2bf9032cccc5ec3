//! The 4 KiB blocks of a segment's index: their header, and the entries of sorted blocks.
//!
//! Invariants:
//!
//! 1. A block verifies only in its own file (incarnation), at its own offset: a misplaced or stale
//!    block never does.
//! 2. Heads rise within a block: `head(a) < head(b)` means that key a is before key b. Equal heads
//!    prove nothing.
//! 3. A *full key* is the collection in four big-endian bytes, then the id: its order by bytes is
//!    the order by collection, then id.

use std::cmp::Ordering;
use std::ops::Range;

use super::bytes::Reader;
use super::record::mix;
use super::segment_header::FormatFault;
use super::types::CollectionId;

/// The length of an index block in bytes; also what blocks are aligned to.
pub(crate) const BLOCK_BYTES: usize = 4096;
/// Bytes of a block before its entries.
pub(crate) const BLOCK_HEADER_BYTES: usize = 64;
/// The longest prefix that a block takes out of its heads, in bytes.
pub(crate) const PREFIX_BYTES_MAX: usize = 48;

const PREFIX: usize = 16;
/// The bytes of a key that an entry shows, behind its block's prefix.
pub(crate) const HEAD_BYTES: usize = 8;
const COLLECTION_BYTES: usize = 4;
/// So many equal heads are counted one by one.
const TIES_FEW: usize = 4;
/// Stands for the sequence in a block's check, which must not equal a record's.
const SALT: u64 = !1;

/// What a block holds. Explicit, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockType {
    Fingerprints = 1,
    Sorted = 2,
    Trailer = 3,
}

/// A block's header, but for its check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHeader<'a> {
    pub(crate) block_type: BlockType,
    /// How far above the records: 0 is the level that names every record.
    pub(crate) level: u8,
    /// Buckets or entries in the block.
    pub(crate) count: u16,
    pub(crate) prefix: &'a [u8],
}

impl BlockHeader<'_> {
    /// Completes a block whose entries are in place: writes its header, then its check.
    pub(crate) fn seal(&self, block: &mut [u8], incarnation: u64, offset: u64) {
        let prefix_len = u8::try_from(self.prefix.len()).expect("prefixes are at most 48 bytes");
        block[4] = self.block_type as u8;
        block[5] = self.level;
        block[6..8].copy_from_slice(&self.count.to_le_bytes());
        block[8] = prefix_len;
        block[9..BLOCK_HEADER_BYTES].fill(0);
        block[PREFIX..PREFIX + self.prefix.len()].copy_from_slice(self.prefix);
        let check = check(block, incarnation, offset);
        block[..4].copy_from_slice(&check.to_le_bytes());
    }
}

/// Verifies a block and that it is the expected one. Costs a CRC over 4 KiB.
pub(crate) fn verify_block(
    block: &[u8],
    incarnation: u64,
    offset: u64,
    (block_type, level, count): (BlockType, u8, u16),
) -> Result<(), FormatFault> {
    const DAMAGED: FormatFault = FormatFault::Damaged("the index block does not verify");
    if block.len() != BLOCK_BYTES {
        return Err(DAMAGED);
    }
    let stored = Reader::new(block).u32().ok_or(DAMAGED)?;
    if stored != check(block, incarnation, offset) {
        return Err(DAMAGED);
    }
    let found = (block[4], block[5], u16::from_le_bytes([block[6], block[7]]));
    if found != (block_type as u8, level, count) || usize::from(block[8]) > PREFIX_BYTES_MAX {
        return Err(FormatFault::Damaged("the index block is not the one that belongs here"));
    }
    Ok(())
}

fn check(block: &[u8], incarnation: u64, offset: u64) -> u32 {
    crc32fast::hash(&block[4..]) ^ mix(incarnation, offset, SALT)
}

/// How wide places are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// 32 bits.
    Narrow,
    /// 64 bits.
    Wide,
}

impl Width {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Narrow => 4,
            Self::Wide => 8,
        }
    }

    pub(super) fn from_byte(bytes: u8) -> Option<Self> {
        match bytes {
            4 => Some(Self::Narrow),
            8 => Some(Self::Wide),
            _ => None,
        }
    }

    /// The width of places in sorted blocks of a file whose log ends at `log_end`.
    pub(crate) fn of_places(log_end: u64) -> Self {
        if u32::try_from(log_end / 8).is_ok() { Self::Narrow } else { Self::Wide }
    }

    /// Entries in a full sorted block.
    pub(crate) fn entries_a_block(self) -> usize {
        (BLOCK_BYTES - BLOCK_HEADER_BYTES) / (HEAD_BYTES + self.bytes())
    }
}

/// Writes entry `i` of a sorted block.
pub(crate) fn put_entry(block: &mut [u8], places: Width, i: usize, head: u64, offset: u64) {
    let at = BLOCK_HEADER_BYTES + i * (HEAD_BYTES + places.bytes());
    block[at..at + HEAD_BYTES].copy_from_slice(&head.to_le_bytes());
    let place = &(offset / 8).to_le_bytes()[..places.bytes()];
    block[at + HEAD_BYTES..at + HEAD_BYTES + places.bytes()].copy_from_slice(place);
}

/// The entries of a verified sorted block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortedBlock<'a> {
    prefix: &'a [u8],
    entries: &'a [u8],
    count: usize,
    places: Width,
}

impl<'a> SortedBlock<'a> {
    /// A block that passed [`verify_block`].
    pub(crate) fn new(block: &'a [u8], places: Width) -> Self {
        let count = usize::from(u16::from_le_bytes([block[6], block[7]]));
        let len = count * (HEAD_BYTES + places.bytes());
        Self {
            prefix: &block[PREFIX..PREFIX + usize::from(block[8])],
            entries: &block[BLOCK_HEADER_BYTES..BLOCK_HEADER_BYTES + len],
            count,
            places,
        }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    fn head(&self, i: usize) -> u64 {
        self.word(i * (HEAD_BYTES + self.places.bytes()))
    }

    /// Where entry `i`'s record stands in the file, in bytes.
    pub(crate) fn offset(&self, i: usize) -> u64 {
        let at = i * (HEAD_BYTES + self.places.bytes()) + HEAD_BYTES;
        let place = match self.places {
            Width::Narrow => u64::from(u32::from_le_bytes(self.bytes(at))),
            Width::Wide => self.word(at),
        };
        place.saturating_mul(8)
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes(at))
    }

    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        *self.entries[at..].first_chunk().expect("entries are whole")
    }

    /// The entries whose heads say neither that they are before the key nor after it. All before
    /// the range are before the key, and all behind it are after.
    pub(crate) fn ties(&self, collection: CollectionId, id: &[u8]) -> Range<usize> {
        match compare_with_prefix(collection, id, self.prefix) {
            Ordering::Less => 0..0,
            Ordering::Greater => self.len()..self.len(),
            Ordering::Equal => {
                let head = head(collection, id, self.prefix.len());
                let len = self.len();
                let start = partition(0..len, |i| self.head(i) < head);
                // A search would cost as much again, and ties are few or none.
                let ties = (start..len).take(TIES_FEW).take_while(|i| self.head(*i) == head);
                let end = start + ties.count();
                if end < start + TIES_FEW {
                    return start..end;
                }
                start..partition(end..len, |i| self.head(i) == head)
            }
        }
    }
}

/// The first of `range` for which `before` is false; it must not become true again behind that.
fn partition(range: Range<usize>, mut before: impl FnMut(usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// Eight bytes of a full key from `skip` on, big-endian, zeros where the key is shorter.
pub(crate) fn head(collection: CollectionId, id: &[u8], skip: usize) -> u64 {
    let collection = collection.0.to_be_bytes();
    let before = collection.get(skip..).unwrap_or(&[]);
    let id = id.get(skip.saturating_sub(COLLECTION_BYTES)..).unwrap_or(&[]);
    let taken = id.len().min(HEAD_BYTES - before.len());
    let mut head = [0; HEAD_BYTES];
    head[..before.len()].copy_from_slice(before);
    head[before.len()..before.len() + taken].copy_from_slice(&id[..taken]);
    u64::from_be_bytes(head)
}

/// The first bytes that two full keys share, at most [`PREFIX_BYTES_MAX`], written to `out`; their
/// number.
pub(crate) fn common_prefix(
    (a_collection, a_id): (CollectionId, &[u8]),
    (b_collection, b_id): (CollectionId, &[u8]),
    out: &mut [u8; PREFIX_BYTES_MAX],
) -> usize {
    let (a, b) = (a_collection.0.to_be_bytes(), b_collection.0.to_be_bytes());
    let mut len = 0;
    for (a, b) in a.iter().chain(a_id).zip(b.iter().chain(b_id)).take(PREFIX_BYTES_MAX) {
        if a != b {
            break;
        }
        out[len] = *a;
        len += 1;
    }
    len
}

/// Where a full key is among the keys that begin with `prefix`: before all, after all, or one of
/// them.
pub(crate) fn compare_with_prefix(collection: CollectionId, id: &[u8], prefix: &[u8]) -> Ordering {
    let (of_collection, of_id) = prefix.split_at(prefix.len().min(COLLECTION_BYTES));
    collection.0.to_be_bytes()[..of_collection.len()].cmp(of_collection).then_with(|| {
        // An id that ends within the prefix is before every key that has the whole of it.
        id[..id.len().min(of_id.len())].cmp(of_id)
    })
}
