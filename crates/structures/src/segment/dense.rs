//! A dense index: an entry a record, as level 0 has anyway for scans, since its records are in the
//! order of their arrival.
//!
//! As in a segment: blocks of 336 entries of a head (8 bytes) and a place (4), and above them the
//! first head of each block.

use super::sparse::{common_prefix, head};
use super::{Lookup, SortedFile};

const ENTRIES_A_BLOCK: usize = 336;
const ENTRY_BYTES: usize = 12;

/// An entry for each record.
#[derive(Debug)]
pub struct Dense {
    skip: usize,
    firsts: Vec<u64>,
    entries: Vec<u8>,
}

impl Dense {
    /// The index of a file.
    #[must_use]
    pub fn new(file: &SortedFile) -> Self {
        let skip = common_prefix(file);
        let mut entries = Vec::with_capacity(file.len() * ENTRY_BYTES);
        let mut firsts = Vec::new();
        for (record, id) in file.ids().enumerate() {
            let head = head(id, skip);
            if record.is_multiple_of(ENTRIES_A_BLOCK) {
                firsts.push(head);
            }
            entries.extend_from_slice(&head.to_le_bytes());
            entries.extend_from_slice(&(record as u32).to_le_bytes());
        }
        Self { skip, firsts, entries }
    }

    fn head(&self, entry: usize) -> u64 {
        let head = self.entries[entry * ENTRY_BYTES..].first_chunk();
        u64::from_le_bytes(*head.unwrap_or(&[0; 8]))
    }

    fn place(&self, entry: usize) -> usize {
        let place = self.entries[entry * ENTRY_BYTES + 8..].first_chunk();
        u32::from_le_bytes(*place.unwrap_or(&[0; 4])) as usize
    }
}

impl Lookup for Dense {
    #[inline]
    fn find(&self, file: &SortedFile, id: &[u8]) -> Option<usize> {
        let target = head(id, self.skip);
        // The first block that begins at the head or behind it; the entry may end the one before.
        let block = self.firsts.partition_point(|first| *first < target).saturating_sub(1);
        let len = self.entries.len() / ENTRY_BYTES;
        let (mut low, mut high) =
            (block * ENTRIES_A_BLOCK, ((block + 1) * ENTRIES_A_BLOCK).min(len));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.head(middle) < target { low = middle + 1 } else { high = middle }
        }
        // Equal heads prove nothing: the records tell.
        (low..len)
            .take_while(|entry| self.head(*entry) == target)
            .map(|entry| self.place(entry))
            .find(|record| file.id(*record) == id)
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.firsts) + self.entries.len()
    }
}
