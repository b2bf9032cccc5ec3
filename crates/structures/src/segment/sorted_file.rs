//! Sorted records in pages of 4096 bytes, in memory: what a sparse index needs.
//!
//! 1. Records are those of the numbers 0 to `len`, in the order of their ids, 26 to a page.
//! 2. A record has level 1's narrow header (8 bytes), then its id and a document of 100 bytes.
//! 3. The last bytes of a page are the offsets of its records, the first record's at the very end,
//!    behind their number.

use crate::ids::{ID_BYTES, Id, hashed, spelt};
use crate::records::DOCUMENT_BYTES;

const PAGE_BYTES: usize = 4096;
const HEADER_BYTES: usize = 8;
const RECORD_BYTES: usize = (HEADER_BYTES + ID_BYTES + DOCUMENT_BYTES).next_multiple_of(8);
const RECORDS_A_PAGE: usize = (PAGE_BYTES - 2) / (RECORD_BYTES + 2);

/// How a page is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPage {
    /// From its first record on, by the lengths in the headers.
    Linear,
    /// By halving, by the offsets at its end.
    Binary,
}

/// The pages.
#[derive(Debug)]
pub struct SortedFile {
    bytes: Vec<u8>,
    /// Where the first page begins, so that pages and cache lines are aligned as in a map.
    start: usize,
    len: usize,
}

impl SortedFile {
    /// The records of the numbers below `len`.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let mut order: Vec<u64> = (0..len as u64).map(hashed).collect();
        order.sort_unstable();
        let mut bytes = vec![0; len.div_ceil(RECORDS_A_PAGE) * PAGE_BYTES + PAGE_BYTES];
        let start = bytes.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        for (page, numbers) in order.chunks(RECORDS_A_PAGE).enumerate() {
            let at = start + page * PAGE_BYTES;
            let page = &mut bytes[at..at + PAGE_BYTES];
            page[PAGE_BYTES - 2..].copy_from_slice(&(numbers.len() as u16).to_le_bytes());
            for (i, number) in numbers.iter().enumerate() {
                let at = i * RECORD_BYTES;
                page[at] = 1;
                page[at + 1] = ID_BYTES as u8;
                page[at + 2..at + 4].copy_from_slice(&(DOCUMENT_BYTES as u16).to_le_bytes());
                let id = at + HEADER_BYTES;
                page[id..id + ID_BYTES].copy_from_slice(&spelt(*number));
                let entry = PAGE_BYTES - 4 - 2 * i;
                page[entry..entry + 2].copy_from_slice(&(at as u16).to_le_bytes());
            }
        }
        Self { bytes, start, len }
    }

    /// The number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of pages.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.len.div_ceil(RECORDS_A_PAGE)
    }

    /// The id of a record.
    #[must_use]
    #[inline]
    pub fn id(&self, record: usize) -> &[u8] {
        let at = self.start + record / RECORDS_A_PAGE * PAGE_BYTES;
        let at = at + record % RECORDS_A_PAGE * RECORD_BYTES;
        id_at(&self.bytes[at..])
    }

    /// The first id of a page.
    #[must_use]
    #[inline]
    pub fn first_id(&self, page: usize) -> &[u8] {
        id_at(self.page(page))
    }

    /// The record with an id, if it is in the page.
    #[must_use]
    #[inline]
    pub fn find_in(&self, page: usize, id: &[u8], search: InPage) -> Option<usize> {
        let bytes = self.page(page);
        let count = usize::from(u16_at(bytes, PAGE_BYTES - 2));
        let found = match search {
            InPage::Linear => {
                let mut at = 0;
                (0..count).find_map(|i| {
                    let order = id_at(&bytes[at..]).cmp(id);
                    at += record_len(&bytes[at..]);
                    order.is_ge().then_some((i, order.is_eq()))
                })
            }
            InPage::Binary => {
                let (mut low, mut high) = (0, count);
                while low < high {
                    let middle = low + (high - low) / 2;
                    if id_at(&bytes[offset_of(bytes, middle)..]) < id {
                        low = middle + 1;
                    } else {
                        high = middle;
                    }
                }
                (low < count).then(|| (low, id_at(&bytes[offset_of(bytes, low)..]) == id))
            }
        };
        found.and_then(|(i, is_it)| is_it.then_some(page * RECORDS_A_PAGE + i))
    }

    /// The key hash of each record, in order.
    #[must_use]
    pub fn hashes(&self) -> Vec<u64> {
        (0..self.len).map(|record| engine::internals::key_hash(self.id(record))).collect()
    }

    /// The id of each record, in order.
    pub fn ids(&self) -> impl Iterator<Item = &Id> {
        (0..self.len).filter_map(|record| self.id(record).first_chunk())
    }

    fn page(&self, page: usize) -> &[u8] {
        let at = self.start + page * PAGE_BYTES;
        &self.bytes[at..at + PAGE_BYTES]
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// Where record i of a page begins.
fn offset_of(page: &[u8], i: usize) -> usize {
    usize::from(u16_at(page, PAGE_BYTES - 4 - 2 * i))
}

/// The id of the record that the bytes begin with.
fn id_at(record: &[u8]) -> &[u8] {
    &record[HEADER_BYTES..HEADER_BYTES + usize::from(record[1])]
}

fn record_len(record: &[u8]) -> usize {
    let len = HEADER_BYTES + usize::from(record[1]) + usize::from(u16_at(record, 2));
    len.next_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::encoded;

    #[test]
    fn pages_hold_the_records_in_order() {
        assert_eq!((RECORD_BYTES, RECORDS_A_PAGE), (152, 26));
        let file = SortedFile::new(100);
        assert_eq!((file.len(), file.pages(), file.is_empty()), (100, 4, false));
        let mut expected: Vec<Id> = (0..100).map(encoded).collect();
        expected.sort_unstable();
        assert!(file.ids().eq(&expected));
        assert_eq!(file.first_id(1), expected[26]);
        for (record, id) in expected.iter().enumerate() {
            for search in [InPage::Linear, InPage::Binary] {
                assert_eq!(file.find_in(record / 26, id, search), Some(record));
                assert_eq!(file.find_in((record / 26 + 1) % 4, id, search), None);
            }
        }
    }
}
