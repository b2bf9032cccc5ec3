//! crossbeam-skiplist: lock-free for writers too, a node of its own allocation, epochs.

use std::ops::Bound;

use crossbeam_skiplist::SkipMap;

use super::{Candidate, Key, Place};
use crate::records::Records;

/// A skip list of owned nodes.
pub struct SkipList<K> {
    map: SkipMap<K, Place>,
    records: &'static Records,
}

impl<K: Key> Candidate for SkipList<K> {
    fn new(records: &'static Records, _capacity: usize) -> Self {
        Self { map: SkipMap::new(), records }
    }

    #[inline]
    fn insert(&self, record: usize) {
        self.map.insert(K::new(self.records.id(record)), self.records.place(record));
    }

    #[inline]
    fn get(&self, id: &'static [u8]) -> Option<Place> {
        let probe = K::probe(id);
        let probe: &K::Probe = std::borrow::Borrow::borrow(&probe);
        self.map.get(probe).map(|entry| *entry.value())
    }

    #[inline]
    fn scan(&self, from: &'static [u8], rows: usize, mut visit: impl FnMut(Place)) {
        let probe = K::probe(from);
        let probe: &K::Probe = std::borrow::Borrow::borrow(&probe);
        let mut at = self.map.lower_bound(Bound::Included(probe));
        for _ in 0..rows {
            let Some(entry) = at else { break };
            visit(*entry.value());
            at = entry.next();
        }
    }
}
