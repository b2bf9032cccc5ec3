//! An adaptive radix tree (Leis, Kemper and Neumann, 2013), in a lock that many readers share.
//!
//! blart, because it takes keys of any length, has range scans, is fuzzed, and had a release in
//! the months before this was written. congee is concurrent, but its keys are 8 bytes and no
//! more; rart's tree for concurrent readers copies the path to each insert once a snapshot of it
//! exists, and every insert must be seen. Neither allows a key that is a prefix of another one; ids
//! of all lengths would need a terminator, and an escape.

use std::ops::Bound;

use blart::TreeMap;
use parking_lot::RwLock;

use super::{Candidate, Owned, Place};
use crate::records::Records;

/// A radix tree in a lock. A scan holds the lock to its end, which a store could not allow.
pub struct Art {
    map: RwLock<TreeMap<Owned, Place>>,
    records: &'static Records,
}

impl Candidate for Art {
    fn new(records: &'static Records, _capacity: usize) -> Self {
        Self { map: RwLock::new(TreeMap::new()), records }
    }

    #[inline]
    fn insert(&self, record: usize) {
        let (id, place) = (self.records.id(record).as_slice(), self.records.place(record));
        let added = self.map.write().try_insert(id.into(), place);
        added.expect("ids of one length are no prefixes of each other");
    }

    #[inline]
    fn get(&self, id: &'static [u8]) -> Option<Place> {
        self.map.read().get(id).copied()
    }

    #[inline]
    fn scan(&self, from: &'static [u8], rows: usize, visit: impl FnMut(Place)) {
        let map = self.map.read();
        let from = (Bound::Included(from), Bound::Unbounded);
        map.range::<[u8], _>(from).take(rows).map(|(_, place)| *place).for_each(visit);
    }
}
