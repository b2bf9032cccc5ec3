//! scc's `TreeIndex`: a B+ tree whose readers take no lock.

use std::ops::Bound;

use scc::{Guard, TreeIndex};

use super::{Candidate, Key, Place};
use crate::records::Records;

/// A B+ tree with lock-free readers.
pub struct Tree<K> {
    index: TreeIndex<K, Place>,
    records: &'static Records,
}

impl<K: Key> Candidate for Tree<K> {
    fn new(records: &'static Records, _capacity: usize) -> Self {
        Self { index: TreeIndex::new(), records }
    }

    #[inline]
    fn insert(&self, record: usize) {
        let (key, place) = (K::new(self.records.id(record)), self.records.place(record));
        assert!(self.index.insert_sync(key, place).is_ok(), "the id is new");
    }

    #[inline]
    fn get(&self, id: &'static [u8]) -> Option<Place> {
        let probe = K::probe(id);
        let probe: &K::Probe = std::borrow::Borrow::borrow(&probe);
        self.index.peek_with(probe, |_, place| *place)
    }

    #[inline]
    fn scan(&self, from: &'static [u8], rows: usize, visit: impl FnMut(Place)) {
        let probe = K::probe(from);
        let probe: &K::Probe = std::borrow::Borrow::borrow(&probe);
        let guard = Guard::new();
        let from = (Bound::Included(probe), Bound::Unbounded);
        self.index
            .range::<K::Probe, _>(from, &guard)
            .take(rows)
            .map(|(_, place)| *place)
            .for_each(visit);
    }
}
