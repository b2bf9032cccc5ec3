//! The memtable: where the newest records are, by id. Holds places, never documents or ids.
//!
//! An insert allocates one node in a flat array and, for an id that is new, links it into a skip
//! list (scans, sealing) and a hash table (points). A new version of a known id joins a chain at
//! the id's node and touches neither. Ids stay in their records: a node holds the first 16 bytes
//! and the rest is fetched through [`Ids`] when those tie.
//!
//! Invariants:
//!
//! 1. There is one writer at a time (the holder of the log's lock); readers take no lock and never
//!    wait.
//! 2. A reader that reaches a node sees all of it: its words are written before the store with
//!    `Release` that makes it reachable, and every way to a node begins with a load with `Acquire`.
//! 3. Nothing is ever removed or moved: a place in the order stays valid as long as the memtable.
//! 4. The order is (collection, id, newest version first). Sequences of one id only rise.
//! 5. `capacity` records always fit; one more is refused with [`Full`] and changes nothing.
//!
//! Memory: 60 bytes a record when all ids differ (8 of hash, 50 of node, the rest slack for tall
//! nodes) and 24 for each further version of an id. It is zeroed lazily by the operating system, so
//! a prepared memtable takes address space and no memory.
//!
//! Cost, in cache lines that are likely cold, at 65 536 records with 24-byte ids (the nodes, 3.3
//! MB, are larger than a second-level cache); nanoseconds from a release build on a 2-core Xeon
//! with 2 MiB of L2:
//!
//! | operation | cold lines | ns |
//! |---|---|---|
//! | insert of a new id | 8 to 10: the lower three levels of the search; the node; its slot | 380 |
//! | insert of a version | 4: slot, node, the record's id, the newest version | 220 |
//! | `get`, found | 3: slot, node, the record's id (which the caller reads next) | 200 |
//! | `get`, not found | 1: slot (one time in 8 000, a node too) | 25 |
//! | `seek` | 8 to 10 | 410 |
//! | `step` forward | 1 to 2: the next node | 30 |
//! | `step` in reverse | 1 between versions of an id, else a `seek` | 340 |

mod hash;
mod node;
mod table;
#[cfg(test)]
mod tests;
mod tree;

use crate::format::{CollectionId, Direction, Key, Kind, Position, Sequence};

pub(crate) use table::Memtable;
pub(crate) use tree::NodeRef;

/// Where a record is, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// In the memtable's segment, in bytes; under 2^48.
    pub(crate) offset: u64,
    pub(crate) sequence: Sequence,
    pub(crate) kind: Kind,
}

/// Reads ids out of the records of the memtable's segment.
pub(crate) trait Ids {
    /// The id in the record at `offset`, which was inserted before.
    fn id_at(&self, offset: u64) -> &[u8];
}

/// The memtable has as many records as it can hold. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// What the engine needs of a memtable. `ids` must be the same records at each call, and must
/// include the one that an insert names.
pub(crate) trait Index: Send + Sync + Sized {
    /// A memtable for at most `records` records. Its memory is taken as it is used.
    fn with_capacity(records: usize) -> Self;

    /// Adds a record. Single writer; readers may run at any moment. The sequence must be above
    /// those of the id's other records.
    fn insert(&self, key: Key<'_>, entry: Entry, ids: &impl Ids) -> Result<(), Full>;

    /// The id's newest record with a sequence of at most `at`. Its cost grows with the number of
    /// newer versions that it passes.
    fn get(&self, key: Key<'_>, at: Sequence, ids: &impl Ids) -> Option<Entry>;

    /// The id's newest record, visible or not.
    fn newest(&self, key: Key<'_>, ids: &impl Ids) -> Option<Entry> {
        self.get(key, Sequence::MAX, ids)
    }

    /// For an id that was not found: the oldest record of one that agrees with it in all that the
    /// memtable itself remembers. Another id's, about one time in 8 000; or this one's, if its bytes
    /// changed in the log, which the caller tells by verifying it.
    fn suspect(&self, key: Key<'_>) -> Option<Entry>;

    /// The number of records.
    fn len(&self) -> usize;

    /// The number of records it can hold.
    fn capacity(&self) -> usize;

    /// The memory it takes when full, in bytes, at most.
    fn bytes(&self) -> usize;

    /// Forward: the first record after the position. Reverse: the last one before it.
    fn seek(&self, position: Position<'_>, direction: Direction, ids: &impl Ids)
    -> Option<NodeRef>;

    /// The record that follows in the direction.
    fn step(&self, node: NodeRef, direction: Direction, ids: &impl Ids) -> Option<NodeRef>;

    /// Has the processor load what a step forward to the next id will read, without waiting.
    fn prefetch_next(&self, node: NodeRef);

    /// The record at a place in the order.
    fn entry(&self, node: NodeRef) -> (CollectionId, Entry);
}
