//! The segment's shapes: sorted entries over a log, and sorted records.

use std::cmp::Ordering;

use engine::internals::Ids;

use super::{CONTENT_BYTES, Layout};
use crate::records::{RECORD_BYTES, Records};

const ENTRY_BYTES: usize = 12;
const LEAF_HEADER_BYTES: usize = 8;
const LEAF_RECORD_BYTES: usize = (LEAF_HEADER_BYTES + CONTENT_BYTES).next_multiple_of(8);

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
