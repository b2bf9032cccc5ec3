//! Two of the engine's structures, for benches that put them beside others.
//!
//! **Not part of the API**: exists with the feature `internals` only, which is off by default, and
//! may change or go in any release, whatever its number. `crates/structures` is its one user.
//!
//! The wrappers are thin, so that what is measured is the engine's own code:
//!
//! 1. They take and give plain integers and bytes, in collection 1, and keep nothing of their own.
//! 2. They add no branch, no allocation and no lock to what they wrap.

use crate::format::{
    BLOCK_BYTES, CollectionId, Direction, FingerprintLayout, Key, Kind, Position, Sequence, Side,
};
use crate::memtable::{self, Index as _};
use crate::segment::{BUCKET_BYTES, TableBuilder};

/// Every id is of this collection.
const COLLECTION: CollectionId = CollectionId(1);
/// Mixed into the checks of index blocks, which nobody verifies here.
const INCARNATION: u64 = 1;

/// The hash of an encoded id: one XXH3 over it.
#[must_use]
#[inline]
pub fn key_hash(id: &[u8]) -> u64 {
    crate::format::key_hash(COLLECTION, id)
}

/// Reads encoded ids out of the records that a memtable names.
pub trait Ids {
    /// The encoded id of the record at `offset`, in bytes.
    fn id_at(&self, offset: u64) -> &[u8];
}

/// Lets the memtable see an [`Ids`].
struct Through<'a, T>(&'a T);

impl<T: Ids> memtable::Ids for Through<'_, T> {
    #[inline]
    fn id_at(&self, offset: u64) -> &[u8] {
        self.0.id_at(offset)
    }
}

/// Where a record is, and its place in the commit order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// In bytes, under 2^48.
    pub offset: u64,
    /// Above 0; rises from version to version of an id.
    pub sequence: u64,
}

/// The memtable has as many records as it can hold. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A record's place in the order of a [`Memtable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(memtable::NodeRef);

/// The engine's memtable: a hash table for points in front of a skip list for scans. Holds no ids;
/// each call gets the records that have them, which must be the same ones every time.
pub struct Memtable(memtable::Memtable);

impl Memtable {
    /// For at most `records` records. Its memory is taken as it is used.
    #[must_use]
    pub fn with_capacity(records: usize) -> Self {
        Self(memtable::Memtable::with_capacity(records))
    }

    /// Adds a put. One writer at a time; readers may run at any moment.
    ///
    /// # Errors
    ///
    /// [`Full`] when it holds as many records as it was made for.
    #[inline]
    pub fn insert(&self, id: &[u8], place: Place, ids: &impl Ids) -> Result<(), Full> {
        let entry = memtable::Entry {
            offset: place.offset,
            sequence: Sequence(place.sequence),
            kind: Kind::Put,
        };
        self.0.insert(Key::new(COLLECTION, id), entry, &Through(ids)).map_err(|memtable::Full| Full)
    }

    /// The id's newest record: by the hash table.
    #[must_use]
    #[inline]
    pub fn get(&self, id: &[u8], ids: &impl Ids) -> Option<Place> {
        self.0.newest(Key::new(COLLECTION, id), &Through(ids)).map(Place::from)
    }

    /// The first record at or after the id: by the skip list.
    #[must_use]
    #[inline]
    pub fn seek(&self, id: &[u8], ids: &impl Ids) -> Option<Node> {
        let position = Position { collection: COLLECTION, id, side: Side::Before };
        self.0.seek(position, Direction::Forward, &Through(ids)).map(Node)
    }

    /// The record that follows.
    #[must_use]
    #[inline]
    pub fn step(&self, node: Node, ids: &impl Ids) -> Option<Node> {
        self.0.step(node.0, Direction::Forward, &Through(ids)).map(Node)
    }

    /// The record at a place in the order.
    #[must_use]
    #[inline]
    pub fn place(&self, node: Node) -> Place {
        self.0.entry(node.0).1.into()
    }

    /// The number of records.
    #[must_use]
    pub fn records(&self) -> usize {
        self.0.len()
    }

    /// The memory it takes when full, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl From<memtable::Entry> for Place {
    fn from(entry: memtable::Entry) -> Self {
        Self { offset: entry.offset, sequence: entry.sequence.0 }
    }
}

/// A segment's fingerprint table, in memory: index blocks of 4096 bytes.
pub struct FingerprintTable {
    layout: FingerprintLayout,
    bytes: Vec<u8>,
    /// Where the blocks begin, so that buckets are cache lines, as they are in a mapped file.
    start: usize,
}

impl FingerprintTable {
    /// The table of a log that ends at `log_end`, from the hash and the offset in bytes of each
    /// id's newest record.
    #[must_use]
    pub fn build(log_end: u64, ids: impl ExactSizeIterator<Item = (u64, u64)>) -> Self {
        let mut builder = TableBuilder::new(log_end, ids.len());
        for (hash, offset) in ids {
            builder.push(hash, offset);
        }
        let (layout, blocks) = builder.finish(INCARNATION, 0);
        let mut bytes = vec![0; blocks.len() + BUCKET_BYTES];
        let start = bytes.as_ptr().align_offset(BUCKET_BYTES).min(BUCKET_BYTES);
        bytes[start..start + blocks.len()].copy_from_slice(&blocks);
        Self { layout, bytes, start }
    }

    /// The first offset among those that may be the id's for which `is_match` holds.
    #[inline]
    pub fn find(&self, hash: u64, mut is_match: impl FnMut(u64) -> bool) -> Option<u64> {
        let mut number = self.layout.bucket_of(hash);
        for _ in 0..self.layout.buckets {
            let bucket = self.bucket(number)?;
            let matches = self.layout.matches(bucket, hash);
            let mut slots = matches.slots;
            while slots != 0 {
                let offset = self.layout.offset_in(bucket, slots.trailing_zeros());
                if is_match(offset) {
                    return Some(offset);
                }
                slots &= slots - 1;
            }
            if matches.is_last {
                break;
            }
            number = self.layout.next_bucket(number);
        }
        None
    }

    #[inline]
    fn bucket(&self, number: u32) -> Option<&[u8; BUCKET_BYTES]> {
        let (block, at) = FingerprintLayout::place_of(number);
        self.blocks()[block as usize * BLOCK_BYTES + at..].first_chunk()
    }

    /// The number of buckets.
    #[must_use]
    pub fn buckets(&self) -> u32 {
        self.layout.buckets
    }

    /// The bytes of a slot, 4 or 8.
    #[must_use]
    pub fn slot_bytes(&self) -> usize {
        self.layout.slots.bytes()
    }

    /// The bits of a slot that are a place.
    #[must_use]
    pub fn place_bits(&self) -> u8 {
        self.layout.place_bits
    }

    /// The blocks, as they stand in a segment file.
    #[must_use]
    #[inline]
    pub fn blocks(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.layout.blocks as usize * BLOCK_BYTES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Records([[u8; 3]; 2]);

    impl Ids for Records {
        fn id_at(&self, offset: u64) -> &[u8] {
            &self.0[usize::from(offset != 0)]
        }
    }

    #[test]
    fn the_memtable_answers_through_its_wrapper() {
        let records = Records([*b"\x20b.", *b"\x20a."]);
        let memtable = Memtable::with_capacity(2);
        for (offset, sequence) in [(0, 1), (8, 2)] {
            let place = Place { offset, sequence };
            assert_eq!(memtable.insert(records.id_at(offset), place, &records), Ok(()));
        }
        assert_eq!(memtable.records(), 2);
        assert_eq!(
            memtable.insert(b"\x20c.", Place { offset: 16, sequence: 3 }, &records),
            Err(Full)
        );
        assert_eq!(memtable.get(b"\x20b.", &records), Some(Place { offset: 0, sequence: 1 }));
        assert_eq!(memtable.get(b"\x20c.", &records), None);
        let first = memtable.seek(b"\x20a", &records).unwrap();
        assert_eq!(memtable.place(first), Place { offset: 8, sequence: 2 });
        let second = memtable.step(first, &records).unwrap();
        assert_eq!(memtable.place(second).offset, 0);
        assert_eq!(memtable.step(second, &records), None);
    }

    #[test]
    fn the_table_finds_what_was_put_in_through_its_wrapper() {
        let ids = (0..1000u64).map(|n| (key_hash(&n.to_le_bytes()), n * 8));
        let table = FingerprintTable::build(8000, ids.collect::<Vec<_>>().into_iter());
        for n in 0..1000u64 {
            let found = table.find(key_hash(&n.to_le_bytes()), |offset| offset == n * 8);
            assert_eq!(found, Some(n * 8));
        }
        assert_eq!(table.find(key_hash(b"absent"), |_| false), None);
    }
}
