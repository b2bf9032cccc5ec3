//! The fingerprint table: a hash index whose slots hold a piece of the hash and a place.
//!
//! One cache line (a bucket of 16 slots, or 8 wide ones) says that an id is absent, or where its
//! newest record may stand. Invariants:
//!
//! 1. Every id of the segment has exactly one slot, for its newest version. (With a slot a version,
//!    the thousands of versions of a hot id would fill hundreds of buckets in a row, and every id
//!    that hashes among them would walk through.) Older versions are found in the sorted index.
//! 2. A bucket's empty slots are its last ones, and an id is in the first bucket with room from its
//!    own on: a bucket with an empty slot ends the search.
//! 3. At most 3 slots in 4 are used, so that every search ends, and soon.
//!
//! Load: 3/4 is the knee. An id that is absent costs 1.3 buckets at 12 slots of 16 (5.3 bytes an
//! id), 1.7 at 13 (4.9 bytes) and 2.6 at 14 (4.6 bytes); one that is present 1.03, 1.06 and 1.14.
//!
//! False positives, each of which costs the read of a record: 2^-bits for each slot looked at,
//! about 16. The fingerprint has what the place leaves of 32 bits: 11 bits and 0.8 % for a log of
//! 11 MB, 9 bits and 3 % for 64 MB, 8 bits and 6 % just below the 128 MiB where slots become wide,
//! 24 bits from there on.

use crate::format::{
    BLOCK_BYTES, BLOCK_HEADER_BYTES, BUCKETS_A_BLOCK, BlockHeader, BlockType, FingerprintLayout,
    Width,
};

/// A bucket's length in bytes: a cache line.
pub(crate) const BUCKET_BYTES: usize = 64;
const LAST_NARROW: usize = BUCKET_BYTES / 4 - 1;
const LAST_WIDE: usize = BUCKET_BYTES / 8 - 1;
const WIDE_FINGERPRINT_BITS: u32 = 24;

/// The slots of a bucket that have a fingerprint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matches {
    /// A bit for each slot, the first slot lowest.
    pub(crate) slots: u32,
    /// Whether the search ends here.
    pub(crate) is_last: bool,
}

impl FingerprintLayout {
    /// The first bucket that may have the hash.
    #[inline]
    pub(crate) fn bucket_of(&self, hash: u64) -> u32 {
        (((hash >> 32) * u64::from(self.buckets)) >> 32) as u32
    }

    /// The bucket that takes what another has no room for.
    #[inline]
    pub(crate) fn next_bucket(&self, bucket: u32) -> u32 {
        if bucket + 1 == self.buckets { 0 } else { bucket + 1 }
    }

    /// The block of a bucket, and where the bucket is in it, in bytes.
    #[inline]
    pub(crate) fn place_of(bucket: u32) -> (u32, usize) {
        let in_block = (bucket % BUCKETS_A_BLOCK) as usize;
        (bucket / BUCKETS_A_BLOCK, BLOCK_HEADER_BYTES + in_block * BUCKET_BYTES)
    }

    /// Slots in a bucket.
    pub(super) fn slots_a_bucket(&self) -> u32 {
        u32::try_from(BUCKET_BYTES / self.slots.bytes()).expect("at most 16")
    }

    /// How many buckets a block of the table has.
    pub(super) fn buckets_in(&self, block: u32) -> u16 {
        let left = self.buckets - block * BUCKETS_A_BLOCK;
        u16::try_from(left.min(BUCKETS_A_BLOCK)).expect("at most 63")
    }

    /// Compares all slots of a bucket with the hash's fingerprint.
    #[inline]
    pub(crate) fn matches(&self, bucket: &[u8; BUCKET_BYTES], hash: u64) -> Matches {
        let mut slots = 0u32;
        match self.slots {
            Width::Narrow => {
                let place_bits = u32::from(self.place_bits);
                let fingerprint = narrow_fingerprint(hash, self.place_bits);
                let (values, _) = bucket.as_chunks::<4>();
                for (i, value) in (0u32..).zip(values) {
                    let value = u32::from_le_bytes(*value);
                    let same = value.wrapping_shr(place_bits) == fingerprint && value != 0;
                    slots |= u32::from(same).wrapping_shl(i);
                }
                Matches { slots, is_last: values[LAST_NARROW] == [0; 4] }
            }
            Width::Wide => {
                let fingerprint = wide_fingerprint(hash);
                let (values, _) = bucket.as_chunks::<8>();
                for (i, value) in (0u32..).zip(values) {
                    let value = u64::from_le_bytes(*value);
                    let same = value.wrapping_shr(self.place_bits.into()) == fingerprint;
                    slots |= u32::from(same && value != 0).wrapping_shl(i);
                }
                Matches { slots, is_last: values[LAST_WIDE] == [0; 8] }
            }
        }
    }

    /// Where the record of a slot stands in the file, in bytes.
    #[inline]
    pub(crate) fn offset_in(&self, bucket: &[u8; BUCKET_BYTES], slot: u32) -> u64 {
        let slot = slot as usize;
        let value = match self.slots {
            Width::Narrow => u64::from(u32::from_le_bytes(bucket.as_chunks().0[slot])),
            Width::Wide => u64::from_le_bytes(bucket.as_chunks().0[slot]),
        };
        (value & ((1 << self.place_bits) - 1)) * 8
    }

    fn slot(&self, hash: u64, offset: u64) -> u64 {
        let fingerprint = match self.slots {
            Width::Narrow => u64::from(narrow_fingerprint(hash, self.place_bits)),
            Width::Wide => wide_fingerprint(hash),
        };
        (fingerprint << self.place_bits) | (offset / 8)
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low bits are what is wanted")]
fn narrow_fingerprint(hash: u64, place_bits: u8) -> u32 {
    hash as u32 & u32::MAX.wrapping_shr(place_bits.into())
}

#[inline]
fn wide_fingerprint(hash: u64) -> u64 {
    hash & ((1 << WIDE_FINGERPRINT_BITS) - 1)
}

/// A table that is being filled: in memory as it will be in the file, 5.3 bytes an id with narrow
/// slots and 10.7 with wide ones.
#[derive(Debug)]
pub(crate) struct TableBuilder {
    layout: FingerprintLayout,
    /// The blocks, without their headers.
    table: Vec<u8>,
    /// Ids that may still be added.
    room: usize,
}

impl TableBuilder {
    /// For a log that ends at `log_end`, with at most `count` ids: a table for so many is written.
    pub(crate) fn new(log_end: u64, count: usize) -> Self {
        let (slots, place_bits) = FingerprintLayout::widths(log_end);
        let fill = BUCKET_BYTES / slots.bytes() * 3 / 4;
        let buckets = u32::try_from(count.div_ceil(fill).max(1)).expect("records are below 2^32");
        let blocks = buckets.div_ceil(BUCKETS_A_BLOCK);
        Self {
            layout: FingerprintLayout { offset: 0, blocks, buckets, slots, place_bits },
            table: vec![0; blocks as usize * BLOCK_BYTES],
            room: count,
        }
    }

    /// Adds an id that was not added before.
    ///
    /// # Panics
    ///
    /// When there are more than were said to come: a full table would have no end.
    pub(crate) fn push(&mut self, hash: u64, offset: u64) {
        self.room = self.room.checked_sub(1).expect("no more ids come than were counted");
        let slot_bytes = self.layout.slots.bytes();
        let slot = self.layout.slot(hash, offset).to_le_bytes();
        let mut bucket = self.layout.bucket_of(hash);
        let empty = loop {
            let (block, at) = FingerprintLayout::place_of(bucket);
            let start = block as usize * BLOCK_BYTES + at;
            let mut in_bucket = self.table[start..start + BUCKET_BYTES].chunks_exact(slot_bytes);
            if let Some(i) = in_bucket.position(|slot| slot.iter().all(|b| *b == 0)) {
                break start + i * slot_bytes;
            }
            bucket = self.layout.next_bucket(bucket);
        };
        self.table[empty..empty + slot_bytes].copy_from_slice(&slot[..slot_bytes]);
    }

    /// The table's blocks, sealed for `offset` on.
    pub(crate) fn finish(mut self, incarnation: u64, offset: u64) -> (FingerprintLayout, Vec<u8>) {
        self.layout.offset = offset;
        for (i, block) in (0u32..).zip(self.table.chunks_exact_mut(BLOCK_BYTES)) {
            let header = BlockHeader {
                block_type: BlockType::Fingerprints,
                level: 0,
                count: self.layout.buckets_in(i),
                prefix: &[],
            };
            header.seal(block, incarnation, offset + u64::from(i) * BLOCK_BYTES as u64);
        }
        (self.layout, self.table)
    }
}
