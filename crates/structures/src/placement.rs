//! Where a 100-byte document lives: in the log, or with what finds it.
//!
//! Models of four layouts, each with its real cache lines, and a read that verifies what it found
//! (a checksum over id and document), as the engine's does.
//!
//! | layout | found by | the document |
//! |---|---|---|
//! | [`LogPlaced`] | hash table of nodes, as in the memtable | in the log, in order of arrival |
//! | [`NodeInline`] | the same | behind its node |
//! | [`PlacesLeaf`] | sorted leaves of 12-byte entries, as in level 0 | in the log, in order of arrival |
//! | [`InlineLeaf`] | sorted leaves | in the leaf, as in level 1 |

use std::cmp::Ordering;

use engine::internals::{Ids, key_hash};

use crate::records::{HEADER_BYTES, RECORD_BYTES, Records};

/// The bytes of a memtable's node of an id: heads, sequence, place, links.
const NODE_BYTES: usize = 64;
const NODE_NEXT: usize = 0;
const NODE_PLACE: usize = 8;
const NODE_RECORD: usize = 16;
const ENTRY_BYTES: usize = 12;

/// Finds documents, and goes on from them in the order of ids.
pub trait Layout {
    /// The layout of all records.
    fn new(records: &'static Records) -> Self;

    /// Verifies the document of an id: its checksum. 0 if there is none.
    fn get(&self, id: &[u8]) -> u32;

    /// Verifies the first `rows` documents from an id on, which must exist; a sum of checksums.
    fn scan(&self, from: &[u8], rows: usize) -> u32;

    /// The bytes of a document with its id and header: in what finds it and in the log, together.
    fn bytes_a_document() -> (usize, usize);
}

/// The memtable's shape, with `NODE` bytes a node; the record's copy behind a node if it fits.
struct Nodes<const NODE: usize> {
    slots: Vec<u32>,
    nodes: Vec<u8>,
    records: &'static Records,
}

impl<const NODE: usize> Nodes<NODE> {
    const INLINE: bool = NODE >= NODE_BYTES + RECORD_BYTES - HEADER_BYTES;

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
            node[NODE_PLACE..NODE_PLACE + 8].copy_from_slice(&offset.to_le_bytes());
            node[NODE_RECORD..NODE_RECORD + 8].copy_from_slice(&records.id(record)[8..16]);
            if Self::INLINE {
                let content = records.verified(offset).0;
                node[NODE_BYTES..NODE_BYTES + content.len()].copy_from_slice(content);
            }
        }
        for pair in order.windows(2) {
            let at = (pair[0] + 1) * NODE + NODE_NEXT;
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
            if self.word(node, NODE_RECORD).to_le_bytes() == id[8..16] && self.id(node) == id {
                return Some(node);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    #[inline]
    fn id(&self, node: u32) -> &[u8] {
        if Self::INLINE {
            let at = node as usize * NODE + NODE_BYTES;
            &self.nodes[at..at + crate::ids::ID_BYTES]
        } else {
            self.records.id_at(self.word(node, NODE_PLACE))
        }
    }

    #[inline]
    fn verify(&self, node: u32) -> u32 {
        if Self::INLINE {
            let at = node as usize * NODE + NODE_BYTES;
            crc32fast::hash(&self.nodes[at..at + CONTENT_BYTES])
        } else {
            self.records.verified(self.word(node, NODE_PLACE)).1
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
            at = self.word(at, NODE_NEXT) as u32;
        }
        sum
    }
}

const CONTENT_BYTES: usize = crate::ids::ID_BYTES + crate::records::DOCUMENT_BYTES;
const INLINE_NODE_BYTES: usize = (NODE_BYTES + CONTENT_BYTES).next_multiple_of(64);

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

/// Level 0's sorted index over the log.
pub struct PlacesLeaf {
    entries: Vec<u8>,
    records: &'static Records,
}

impl PlacesLeaf {
    fn offset(&self, entry: usize) -> u64 {
        let place = self.entries[entry * ENTRY_BYTES + 8..].first_chunk();
        u64::from(u32::from_le_bytes(*place.unwrap_or(&[0; 4]))) * 8
    }

    /// By the heads that entries have, and the records where those tie.
    fn compare(&self, entry: usize, id: &[u8]) -> Ordering {
        let head: &[u8; 8] = self.entries[entry * ENTRY_BYTES..].first_chunk().unwrap_or(&[0; 8]);
        head[..].cmp(&id[5..13]).then_with(|| self.records.id_at(self.offset(entry)).cmp(id))
    }

    fn find(&self, id: &[u8]) -> Option<usize> {
        binary_search(self.entries.len() / ENTRY_BYTES, |entry| self.compare(entry, id))
    }
}

impl Layout for PlacesLeaf {
    fn new(records: &'static Records) -> Self {
        let mut entries = Vec::with_capacity(records.len() * ENTRY_BYTES);
        for record in sorted(records) {
            entries.extend_from_slice(&records.id(record)[5..13]);
            entries.extend_from_slice(&((Records::offset(record) / 8) as u32).to_le_bytes());
        }
        Self { entries, records }
    }

    #[inline]
    fn get(&self, id: &[u8]) -> u32 {
        self.find(id).map_or(0, |entry| self.records.verified(self.offset(entry)).1)
    }

    #[inline]
    fn scan(&self, from: &[u8], rows: usize) -> u32 {
        let first = self.find(from).unwrap_or(usize::MAX);
        let last = first.saturating_add(rows).min(self.entries.len() / ENTRY_BYTES);
        let sums = (first..last).map(|entry| self.records.verified(self.offset(entry)).1);
        sums.fold(0, u32::wrapping_add)
    }

    fn bytes_a_document() -> (usize, usize) {
        (ENTRY_BYTES, RECORD_BYTES)
    }
}

/// Level 1's records: sorted, behind a header of 8 bytes.
pub struct InlineLeaf {
    bytes: Vec<u8>,
}

const LEAF_HEADER_BYTES: usize = 8;
const LEAF_RECORD_BYTES: usize = (LEAF_HEADER_BYTES + CONTENT_BYTES).next_multiple_of(8);

impl InlineLeaf {
    fn content(&self, record: usize) -> &[u8] {
        let at = record * LEAF_RECORD_BYTES + LEAF_HEADER_BYTES;
        &self.bytes[at..at + CONTENT_BYTES]
    }

    fn find(&self, id: &[u8]) -> Option<usize> {
        binary_search(self.bytes.len() / LEAF_RECORD_BYTES, |record| {
            self.content(record)[..id.len()].cmp(id)
        })
    }
}

impl Layout for InlineLeaf {
    fn new(records: &'static Records) -> Self {
        let mut bytes = Vec::with_capacity(records.len() * LEAF_RECORD_BYTES);
        for record in sorted(records) {
            bytes.extend_from_slice(&[0; LEAF_HEADER_BYTES]);
            bytes.extend_from_slice(records.verified(Records::offset(record)).0);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        Self { bytes }
    }

    #[inline]
    fn get(&self, id: &[u8]) -> u32 {
        self.find(id).map_or(0, |record| crc32fast::hash(self.content(record)))
    }

    #[inline]
    fn scan(&self, from: &[u8], rows: usize) -> u32 {
        let first = self.find(from).unwrap_or(usize::MAX);
        let last = first.saturating_add(rows).min(self.bytes.len() / LEAF_RECORD_BYTES);
        let sums = (first..last).map(|record| crc32fast::hash(self.content(record)));
        sums.fold(0, u32::wrapping_add)
    }

    fn bytes_a_document() -> (usize, usize) {
        (0, LEAF_RECORD_BYTES)
    }
}

/// The records in the order of their ids.
fn sorted(records: &Records) -> Vec<usize> {
    let mut order: Vec<usize> = (0..records.len()).collect();
    order.sort_unstable_by_key(|record| *records.id(*record));
    order
}

fn binary_search(len: usize, compare: impl Fn(usize) -> Ordering) -> Option<usize> {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        match compare(middle) {
            Ordering::Less => low = middle + 1,
            Ordering::Equal => return Some(middle),
            Ordering::Greater => high = middle,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Probes;

    fn check<L: Layout>(records: &'static Records) -> (Vec<u32>, Vec<u32>) {
        let layout = L::new(records);
        let (present, absent) = (Probes::present(500, 500, 9), Probes::absent(100, 9));
        assert!(absent.ids().iter().all(|id| layout.get(id) == 0));
        let gets = present.ids().iter().map(|id| layout.get(id)).collect();
        (gets, present.ids().iter().map(|id| layout.scan(id, 10)).collect())
    }

    #[test]
    fn all_layouts_find_the_same_documents() {
        let records = Records::leak(500);
        let expected = check::<LogPlaced>(records);
        assert_eq!(check::<NodeInline>(records), expected);
        assert_eq!(check::<PlacesLeaf>(records), expected);
        assert_eq!(check::<InlineLeaf>(records), expected);
        let by_id: std::collections::BTreeMap<_, _> =
            (0..500).map(|n| (*records.id(n), records.verified(Records::offset(n)).1)).collect();
        let present = Probes::present(500, 500, 9);
        for (i, id) in present.ids().iter().enumerate() {
            assert_eq!(expected.0[i], by_id[id]);
            let rows = by_id.range(*id..).take(10).map(|(_, sum)| *sum);
            assert_eq!(expected.1[i], rows.fold(0, u32::wrapping_add));
        }
    }
}
