//! The memtable of hash and skip list.

use super::hash::Slots;
use super::node::{HEIGHT_MAX, Nodes};
use super::tree::{NodeRef, Target, Tree};
use super::{Entry, Full, Ids, Index};
use crate::format::{CollectionId, Direction, Key, Position, Sequence};
use crate::sync::{AtomicUsize, Ordering};

/// More records than this would leave too few bits of hash in a slot.
const RECORDS_MAX: usize = 1 << 24;

/// A hash table for points in front of a skip list for scans. The module's documentation has its
/// costs.
pub(crate) struct Memtable {
    slots: Slots,
    tree: Tree,
    len: AtomicUsize,
    capacity: usize,
}

impl Index for Memtable {
    /// At most 2^24 records; a larger number is taken as that.
    fn with_capacity(records: usize) -> Self {
        let capacity = records.min(RECORDS_MAX);
        let nodes = Nodes::with_capacity(capacity);
        Self {
            slots: Slots::with_capacity(capacity, nodes.places()),
            tree: Tree::new(nodes),
            len: AtomicUsize::new(0),
            capacity,
        }
    }

    fn insert(&self, key: Key<'_>, entry: Entry, ids: &impl Ids) -> Result<(), Full> {
        let len = self.len();
        if len == self.capacity {
            return Err(Full);
        }
        let target = Target::new(key.collection, key.id);
        let nodes = &self.tree.nodes;
        if let Some(id) = self.slots.find(key.hash, |node| self.tree.is(node, &target, ids)) {
            nodes.add_version(id, entry);
        } else {
            let path = self.tree.path(&target, ids);
            let records_left = self.capacity - len - 1;
            let (node, height) = nodes.add_id(&target.head, entry, height(len), records_left);
            self.tree.link(node, height, &path);
            self.slots.insert(key.hash, node);
        }
        self.len.store(len + 1, Ordering::Relaxed);
        Ok(())
    }

    fn get(&self, key: Key<'_>, at: Sequence, ids: &impl Ids) -> Option<Entry> {
        let target = Target::new(key.collection, key.id);
        let id = self.slots.find(key.hash, |node| self.tree.is(node, &target, ids))?;
        let nodes = &self.tree.nodes;
        let mut version = nodes.newest(id);
        while nodes.sequence(version) > at {
            if version == id {
                return None;
            }
            version = nodes.older(version);
        }
        Some(nodes.entry(version))
    }

    fn suspect(&self, key: Key<'_>) -> Option<Entry> {
        let target = Target::new(key.collection, key.id);
        if !target.head.is_longer_than_heads() {
            return None;
        }
        let nodes = &self.tree.nodes;
        let is_alike = |node| nodes.compare(node, &target.head) == std::cmp::Ordering::Equal;
        self.slots.find(key.hash, is_alike).map(|node| nodes.entry(node))
    }

    fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn bytes(&self) -> usize {
        self.slots.bytes() + self.tree.nodes.bytes()
    }

    fn seek(
        &self,
        position: Position<'_>,
        direction: Direction,
        ids: &impl Ids,
    ) -> Option<NodeRef> {
        self.tree.seek(position, direction, ids)
    }

    fn step(&self, node: NodeRef, direction: Direction, ids: &impl Ids) -> Option<NodeRef> {
        self.tree.step(node, direction, ids)
    }

    #[inline]
    fn prefetch_next(&self, node: NodeRef) {
        self.tree.prefetch_next(node);
    }

    fn entry(&self, node: NodeRef) -> (CollectionId, Entry) {
        (self.tree.nodes.collection(node.id()), self.tree.nodes.entry(node.version()))
    }
}

/// The height of the n-th node: each level has a quarter of the nodes below it. Depends on nothing
/// but `n` (splitmix64's finaliser), so that a run can be repeated.
fn height(n: usize) -> usize {
    let mut h = (n as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    h = (h ^ (h >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    h ^= h >> 31;
    (h.trailing_zeros() as usize / 2 + 1).min(HEIGHT_MAX)
}
