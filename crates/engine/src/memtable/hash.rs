//! A hash table from keys to id nodes: open addressing, linear probing, insertion only.
//!
//! A slot is one word: the node's place in the low bits, the hash's highest bits in those above.
//! With 65 536 records 13 bits of hash remain, so that one probe in 8 000 visits a node in vain.
//! The table is at most half full and a slot is set once, hence a probe ends and a reader needs no
//! retry.

use super::node::Node;
use crate::disk::Words;
use crate::sync::{AtomicU32, Ordering};

pub(super) struct Slots {
    slots: Words,
    /// The bits of a slot that name the node.
    place_mask: u32,
}

impl Slots {
    /// For at most `keys` keys and places less than `places`.
    pub(super) fn with_capacity(keys: usize, places: usize) -> Self {
        let places = u32::try_from(places).expect("the capacity was bounded");
        Self {
            slots: Words::zeroed((keys * 2).next_power_of_two().max(2)),
            place_mask: u32::MAX >> places.leading_zeros(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<AtomicU32>()
    }

    /// The node with this hash that `is_match` accepts.
    pub(super) fn find(&self, hash: u64, is_match: impl Fn(Node) -> bool) -> Option<Node> {
        let tag = self.tag(hash);
        let mut at = self.first(hash);
        loop {
            // Pairs with the store in `insert`: the node is seen whole.
            let slot = self.slots[at].load(Ordering::Acquire);
            if slot == 0 {
                return None;
            }
            let node = Node(slot & self.place_mask);
            if slot & !self.place_mask == tag && is_match(node) {
                return Some(node);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Adds a key that is not in the table. Single writer.
    pub(super) fn insert(&self, hash: u64, node: Node) {
        let mut at = self.first(hash);
        while self.slots[at].load(Ordering::Relaxed) != 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at].store(self.tag(hash) | node.0, Ordering::Release);
    }

    #[expect(clippy::cast_possible_truncation, reason = "the mask leaves less than the length")]
    fn first(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn tag(&self, hash: u64) -> u32 {
        (hash >> 32) as u32 & !self.place_mask
    }
}
