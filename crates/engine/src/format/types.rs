//! Integers that must not be swapped.

use std::fmt;

macro_rules! newtype {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(pub(crate) $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

newtype! {
    /// Names a segment file. Ids grow with age and are never used again; 0 is no segment.
    SegmentId(u64)
}
newtype! {
    /// The place of a write in the commit order. The first is 1.
    Sequence(u64)
}
newtype! {
    /// Names a collection. Never used again; 0 is the engine itself (marks, batch framing).
    CollectionId(u32)
}

impl Sequence {
    /// Later than every write: what a read uses that looks at the newest record.
    pub(crate) const MAX: Self = Self(u64::MAX);

    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// What a record is. Explicit, never reused; 0 is invalid so that zeroed blocks are never a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A document.
    Put = 1,
    /// A tombstone: the id has no document from here on.
    Delete = 2,
    /// Reserved: a tombstone for a range of ids.
    RangeDelete = 3,
    /// Reserved: a document with a time to live.
    Expiry = 4,
    /// Reserved: a change to a document.
    Patch = 5,
    /// Stands where compaction met a record that did not verify: reads of the id report it.
    Damaged = 6,
    /// Says how far the log is synced.
    Mark = 7,
    /// Creates or drops a collection.
    Catalogue = 8,
    /// Begins a batch.
    Batch = 9,
}

impl Kind {
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Put,
            2 => Self::Delete,
            3 => Self::RangeDelete,
            4 => Self::Expiry,
            5 => Self::Patch,
            6 => Self::Damaged,
            7 => Self::Mark,
            8 => Self::Catalogue,
            9 => Self::Batch,
            _ => return None,
        })
    }
}

/// A collection's id and a document's encoded id, with their hash: what a lookup needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'a> {
    pub(crate) collection: CollectionId,
    pub(crate) id: &'a [u8],
    /// [`key_hash`] of the two.
    pub(crate) hash: u64,
}

impl<'a> Key<'a> {
    pub(crate) fn new(collection: CollectionId, id: &'a [u8]) -> Self {
        Self { collection, id, hash: key_hash(collection, id) }
    }
}

/// The hash that places a key in fingerprint tables: XXH3-64 of the encoded id, seeded with the
/// collection's id. Part of the format.
pub(crate) fn key_hash(collection: CollectionId, id: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(id, u64::from(collection.0))
}

/// A place between two ids of a collection, for the start of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position<'a> {
    pub(crate) collection: CollectionId,
    pub(crate) id: &'a [u8],
    pub(crate) side: Side,
}

/// Which side of all versions of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// Before the newest version.
    Before,
    /// After the oldest version.
    After,
}

/// Which way a scan goes: forward is by rising id, and from the newest version of an id to its
/// oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Reverse,
}
