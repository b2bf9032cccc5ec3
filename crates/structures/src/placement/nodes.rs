//! The memtable's shape: a hash table of nodes, linked in the order of their ids.

use engine::internals::{Ids, key_hash};

use super::{CONTENT_BYTES, Layout};
use crate::ids::ID_BYTES;
use crate::records::{RECORD_BYTES, Records};

/// The bytes of a memtable's node of an id: heads, sequence, place, links.
const NODE_BYTES: usize = 64;
const INLINE_NODE_BYTES: usize = (NODE_BYTES + CONTENT_BYTES).next_multiple_of(64);
const NEXT: usize = 0;
const PLACE: usize = 8;
const HEAD: usize = 16;

/// The memtable's shape, with `NODE` bytes a node; the record's copy behind a node if it fits.
struct Nodes<const NODE: usize> {
    slots: Vec<u32>,
    nodes: Vec<u8>,
    records: &'static Records,
}

impl<const NODE: usize> Nodes<NODE> {
    const INLINE: bool = NODE >= INLINE_NODE_BYTES;

    fn new(records: &'static Records) -> Self {
        let mut slots = vec![0; (records.len() * 2).next_power_of_two()];
        // A node's number is its record's, plus 1, and so it is in order of arrival too.
        let mut nodes = vec![0; (records.len() + 1) * NODE];
        let mut order: Vec<usize> = (0..records.len()).collect();
        order.sort_unstable_by_key(|record| *records.id(*record));
        for record in 0..records.len() {
            let mut slot = key_hash(records.id(record)) as usize & (slots.len() - 1);
            while slots[slot] != 0 {
                slot = (slot + 1) & (slots.len() - 1);
            }
            slots[slot] = record as u32 + 1;
            let node = &mut nodes[(record + 1) * NODE..(record + 2) * NODE];
            let offset = Records::offset(record);
            node[PLACE..PLACE + 8].copy_from_slice(&offset.to_le_bytes());
            node[HEAD..HEAD + 8].copy_from_slice(&records.id(record)[8..16]);
            if Self::INLINE {
                let content = records.verified(offset).0;
                node[NODE_BYTES..NODE_BYTES + content.len()].copy_from_slice(content);
            }
        }
        for pair in order.windows(2) {
            let at = (pair[0] + 1) * NODE + NEXT;
            nodes[at..at + 4].copy_from_slice(&(pair[1] as u32 + 1).to_le_bytes());
        }
        Self { slots, nodes, records }
    }

    #[inline]
    fn word(&self, node: u32, field: usize) -> u64 {
        let at = node as usize * NODE + field;
        u64::from_le_bytes(*self.nodes[at..].first_chunk().unwrap_or(&[0; 8]))
    }

    #[inline]
    fn find(&self, id: &[u8]) -> Option<u32> {
        let mut slot = key_hash(id) as usize & (self.slots.len() - 1);
        loop {
            let node = self.slots[slot];
            if node == 0 {
                return None;
            }
            // The head, then the id itself, as the memtable compares.
            if self.word(node, HEAD).to_le_bytes() == id[8..16] && self.id(node) == id {
                return Some(node);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    #[inline]
    fn id(&self, node: u32) -> &[u8] {
        if Self::INLINE {
            let at = node as usize * NODE + NODE_BYTES;
            &self.nodes[at..at + ID_BYTES]
        } else {
            self.records.id_at(self.word(node, PLACE))
        }
    }

    #[inline]
    fn verify(&self, node: u32) -> u32 {
        if Self::INLINE {
            let at = node as usize * NODE + NODE_BYTES;
            crc32fast::hash(&self.nodes[at..at + CONTENT_BYTES])
        } else {
            self.records.verified(self.word(node, PLACE)).1
        }
    }

    fn get(&self, id: &[u8]) -> u32 {
        self.find(id).map_or(0, |node| self.verify(node))
    }

    fn scan(&self, from: &[u8], rows: usize) -> u32 {
        let mut sum = 0u32;
        let mut at = self.find(from).unwrap_or(0);
        for _ in 0..rows {
            if at == 0 {
                break;
            }
            sum = sum.wrapping_add(self.verify(at));
            at = self.word(at, NEXT) as u32;
        }
        sum
    }
}

/// The memtable names places in the log.
pub struct LogPlaced(Nodes<NODE_BYTES>);

/// The memtable has a copy of each document behind its node.
pub struct NodeInline(Nodes<INLINE_NODE_BYTES>);

macro_rules! memtable_layout {
    ($name:ident, $bytes:expr) => {
        impl Layout for $name {
            fn new(records: &'static Records) -> Self {
                Self(Nodes::new(records))
            }

            #[inline]
            fn get(&self, id: &[u8]) -> u32 {
                self.0.get(id)
            }

            #[inline]
            fn scan(&self, from: &[u8], rows: usize) -> u32 {
                self.0.scan(from, rows)
            }

            fn bytes_a_document() -> (usize, usize) {
                // Two slots of the hash table for each node.
                ($bytes + 8, RECORD_BYTES)
            }
        }
    };
}

memtable_layout!(LogPlaced, NODE_BYTES);
memtable_layout!(NodeInline, INLINE_NODE_BYTES);
