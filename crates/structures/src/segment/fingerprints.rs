//! The engine's fingerprint table with its parameters open: bits, load, and bucket.
//!
//! A test holds it against the engine's own, byte for byte, at the engine's parameters.

use engine::internals::key_hash;

use super::{Lookup, SortedFile};

const BLOCK_BYTES: usize = 4096;
const BLOCK_HEADER_BYTES: usize = 64;

/// The bytes of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotWidth {
    /// 4.
    Narrow,
    /// 8.
    Wide,
}

impl SlotWidth {
    fn bytes(self) -> usize {
        match self {
            Self::Narrow => 4,
            Self::Wide => 8,
        }
    }
}

/// What of a table can be chosen, besides its buckets' length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Of a slot.
    pub slot: SlotWidth,
    /// The low bits of a slot: the record's place.
    pub place_bits: u32,
    /// The bits above: the low bits of the hash.
    pub fingerprint_bits: u32,
    /// How much of the slots the builder uses, in sixteenths.
    pub used_sixteenths: usize,
}

impl Shape {
    /// Places of 20 bits, which is a log of 8 MiB in the format, and three quarters full.
    pub const ENGINE: Self =
        Self { slot: SlotWidth::Narrow, place_bits: 20, fingerprint_bits: 12, used_sixteenths: 12 };
    /// The format's wide slots.
    pub const WIDE: Self =
        Self { slot: SlotWidth::Wide, place_bits: 40, fingerprint_bits: 24, used_sixteenths: 12 };
}

/// A table with buckets of `BUCKET` bytes. Its places are record numbers, from 1 on.
#[derive(Debug)]
pub struct Fingerprints<const BUCKET: usize> {
    shape: Shape,
    buckets: u32,
    bytes: Vec<u8>,
    /// Where the first block begins, so that buckets are aligned as in a map.
    start: usize,
}

impl<const BUCKET: usize> Fingerprints<BUCKET> {
    const BUCKETS_A_BLOCK: usize = (BLOCK_BYTES - BLOCK_HEADER_BYTES) / BUCKET;

    /// The table of records with these hashes. Block headers stay empty.
    #[must_use]
    pub fn new(shape: Shape, hashes: &[u64]) -> Self {
        let slot_bytes = shape.slot.bytes();
        let used = (BUCKET / slot_bytes * shape.used_sixteenths / 16).max(1);
        let buckets = hashes.len().div_ceil(used).max(1);
        let bytes = vec![0; (buckets.div_ceil(Self::BUCKETS_A_BLOCK) + 1) * BLOCK_BYTES];
        let start = bytes.as_ptr().align_offset(BLOCK_BYTES).min(BLOCK_BYTES);
        let mut table = Self { shape, buckets: buckets as u32, bytes, start };
        for (place, hash) in (1u64..).zip(hashes) {
            let slot = table.fingerprint(*hash) << shape.place_bits | place;
            let mut bucket = table.bucket_of(*hash);
            let empty = loop {
                let at = table.place_of(bucket);
                let mut slots = table.bytes[at..at + BUCKET].chunks_exact(slot_bytes);
                if let Some(i) = slots.position(|slot| slot.iter().all(|byte| *byte == 0)) {
                    break at + i * slot_bytes;
                }
                bucket = table.next_bucket(bucket);
            };
            table.bytes[empty..empty + slot_bytes]
                .copy_from_slice(&slot.to_le_bytes()[..slot_bytes]);
        }
        table
    }

    /// The number of buckets.
    #[must_use]
    pub fn buckets(&self) -> u32 {
        self.buckets
    }

    /// Whole blocks, as they would stand in a file.
    #[must_use]
    pub fn blocks(&self) -> &[u8] {
        let blocks = (self.buckets as usize).div_ceil(Self::BUCKETS_A_BLOCK);
        &self.bytes[self.start..self.start + blocks * BLOCK_BYTES]
    }

    /// The first record among those that may have the hash for which `is_match` holds.
    #[inline]
    pub fn find_place(&self, hash: u64, mut is_match: impl FnMut(usize) -> bool) -> Option<usize> {
        let mut number = self.bucket_of(hash);
        for _ in 0..self.buckets {
            let at = self.place_of(number);
            let bucket: &[u8; BUCKET] = self.bytes[at..].first_chunk()?;
            let (mut slots, is_last) = self.matches(bucket, hash);
            while slots != 0 {
                let record = self.place_in(bucket, slots.trailing_zeros()) - 1;
                if is_match(record) {
                    return Some(record);
                }
                slots &= slots - 1;
            }
            if is_last {
                break;
            }
            number = self.next_bucket(number);
        }
        None
    }

    /// The buckets that a search for an absent hash looks at.
    #[must_use]
    pub fn buckets_passed(&self, hash: u64) -> u32 {
        let mut number = self.bucket_of(hash);
        let mut passed = 1;
        while passed < self.buckets {
            let at = self.place_of(number);
            let last = &self.bytes[at + BUCKET - self.shape.slot.bytes()..at + BUCKET];
            if last.iter().all(|byte| *byte == 0) {
                break;
            }
            number = self.next_bucket(number);
            passed += 1;
        }
        passed
    }

    #[inline]
    fn bucket_of(&self, hash: u64) -> u32 {
        (((hash >> 32) * u64::from(self.buckets)) >> 32) as u32
    }

    #[inline]
    fn next_bucket(&self, bucket: u32) -> u32 {
        if bucket + 1 == self.buckets { 0 } else { bucket + 1 }
    }

    #[inline]
    fn place_of(&self, bucket: u32) -> usize {
        let (block, in_block) =
            (bucket as usize / Self::BUCKETS_A_BLOCK, bucket as usize % Self::BUCKETS_A_BLOCK);
        self.start + block * BLOCK_BYTES + BLOCK_HEADER_BYTES + in_block * BUCKET
    }

    #[inline]
    fn fingerprint(&self, hash: u64) -> u64 {
        hash & ((1 << self.shape.fingerprint_bits) - 1)
    }

    /// A bit for each slot that has the fingerprint, and whether the search ends here.
    #[inline]
    fn matches(&self, bucket: &[u8; BUCKET], hash: u64) -> (u32, bool) {
        let (fingerprint, place_bits) = (self.fingerprint(hash), self.shape.place_bits);
        let mut slots = 0u32;
        match self.shape.slot {
            SlotWidth::Narrow => {
                let (values, _) = bucket.as_chunks::<4>();
                for (i, value) in (0u32..).zip(values) {
                    let value = u32::from_le_bytes(*value);
                    let same = value.wrapping_shr(place_bits) == fingerprint as u32 && value != 0;
                    slots |= u32::from(same).wrapping_shl(i);
                }
                (slots, values[BUCKET / 4 - 1] == [0; 4])
            }
            SlotWidth::Wide => {
                let (values, _) = bucket.as_chunks::<8>();
                for (i, value) in (0u32..).zip(values) {
                    let value = u64::from_le_bytes(*value);
                    let same = value.wrapping_shr(place_bits) == fingerprint && value != 0;
                    slots |= u32::from(same).wrapping_shl(i);
                }
                (slots, values[BUCKET / 8 - 1] == [0; 8])
            }
        }
    }

    #[inline]
    fn place_in(&self, bucket: &[u8; BUCKET], slot: u32) -> usize {
        let slot = slot as usize;
        let value = match self.shape.slot {
            SlotWidth::Narrow => u64::from(u32::from_le_bytes(bucket.as_chunks().0[slot])),
            SlotWidth::Wide => u64::from_le_bytes(bucket.as_chunks().0[slot]),
        };
        (value & ((1 << self.shape.place_bits) - 1)) as usize
    }
}

impl<const BUCKET: usize> Lookup for Fingerprints<BUCKET> {
    #[inline]
    fn find(&self, file: &SortedFile, id: &[u8]) -> Option<usize> {
        self.find_place(key_hash(id), |record| file.id(record) == id)
    }

    fn bytes(&self) -> usize {
        self.blocks().len()
    }
}
