//! The standard library's B-tree, in a lock that many readers share.

use std::collections::BTreeMap;
use std::ops::Bound;

use parking_lot::RwLock;

use super::{Candidate, Key, Place};
use crate::records::Records;

/// A B-tree in a lock. A scan holds the lock to its end, which a store could not allow.
pub struct BTree<K> {
    map: RwLock<BTreeMap<K, Place>>,
    records: &'static Records,
}

impl<K: Key> Candidate for BTree<K> {
    fn new(records: &'static Records, _capacity: usize) -> Self {
        Self { map: RwLock::new(BTreeMap::new()), records }
    }

    #[inline]
    fn insert(&self, record: usize) {
        let (key, place) = (K::new(self.records.id(record)), self.records.place(record));
        self.map.write().insert(key, place);
    }

    #[inline]
    fn get(&self, id: &'static [u8]) -> Option<Place> {
        let probe = K::probe(id);
        let probe: &K::Probe = std::borrow::Borrow::borrow(&probe);
        self.map.read().get(probe).copied()
    }

    #[inline]
    fn scan(&self, from: &'static [u8], rows: usize, visit: impl FnMut(Place)) {
        let probe = K::probe(from);
        let probe: &K::Probe = std::borrow::Borrow::borrow(&probe);
        let map = self.map.read();
        let from = (Bound::Included(probe), Bound::Unbounded);
        map.range::<K::Probe, _>(from).take(rows).map(|(_, place)| *place).for_each(visit);
    }
}
