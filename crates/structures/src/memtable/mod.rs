//! Ordered maps from an id to the place of its newest record, which readers may use while one
//! thread inserts: what a memtable is.
//!
//! The engine's memtable also keeps older versions for snapshots. The others would need the
//! sequence as a part of their keys for that, and are spared it: their figures are a lower bound.

mod art;
mod btree;
mod engine_own;
mod keys;
mod skip_list;
mod tree_index;

pub use engine::internals::Place;

pub use art::Art;
pub use btree::BTree;
pub use engine_own::{Engine, EngineTree};
pub use keys::{Headed, Key, Owned};
pub use skip_list::SkipList;
pub use tree_index::Tree;

use crate::records::Records;

/// What is asked of a memtable.
pub trait Candidate: Send + Sync + Sized {
    /// Empty, for at most `capacity` of the records.
    fn new(records: &'static Records, capacity: usize) -> Self;

    /// Adds a record whose id is new. One thread at a time.
    fn insert(&self, record: usize);

    /// The place of an id's record. Any number of threads.
    fn get(&self, id: &'static [u8]) -> Option<Place>;

    /// Visits the first `rows` places, in order, from an id on. Any number of threads.
    fn scan(&self, from: &'static [u8], rows: usize, visit: impl FnMut(Place));
}

/// The candidates' names, in the order of [`each_memtable!`](crate::each_memtable).
pub const NAMES: [&str; 9] = [
    "engine",
    "engine, its tree alone",
    "crossbeam-skiplist, ids owned",
    "crossbeam-skiplist, heads",
    "BTreeMap in a lock, ids owned",
    "BTreeMap in a lock, heads",
    "ART (blart) in a lock, ids owned",
    "scc TreeIndex, ids owned",
    "scc TreeIndex, heads",
];

/// A call for each candidate, with its name and its type.
#[macro_export]
macro_rules! each_memtable {
    ($call:ident ( $($argument:expr),* )) => {
        $call::<$crate::memtable::Engine>($crate::memtable::NAMES[0], $($argument),*);
        $call::<$crate::memtable::EngineTree>($crate::memtable::NAMES[1], $($argument),*);
        $call::<$crate::memtable::SkipList<$crate::memtable::Owned>>(
            $crate::memtable::NAMES[2], $($argument),*);
        $call::<$crate::memtable::SkipList<$crate::memtable::Headed>>(
            $crate::memtable::NAMES[3], $($argument),*);
        $call::<$crate::memtable::BTree<$crate::memtable::Owned>>(
            $crate::memtable::NAMES[4], $($argument),*);
        $call::<$crate::memtable::BTree<$crate::memtable::Headed>>(
            $crate::memtable::NAMES[5], $($argument),*);
        $call::<$crate::memtable::Art>($crate::memtable::NAMES[6], $($argument),*);
        $call::<$crate::memtable::Tree<$crate::memtable::Owned>>(
            $crate::memtable::NAMES[7], $($argument),*);
        $call::<$crate::memtable::Tree<$crate::memtable::Headed>>(
            $crate::memtable::NAMES[8], $($argument),*);
    };
}

/// A candidate with the records 0 to `filled`.
pub fn filled<C: Candidate>(records: &'static Records, filled: usize, capacity: usize) -> C {
    let candidate = C::new(records, capacity);
    for record in 0..filled {
        candidate.insert(record);
    }
    candidate
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ids::Probes;

    /// Fills a candidate step by step, and compares every answer with a `BTreeMap`'s.
    fn equals_a_btreemap<C: Candidate>(name: &str, records: &'static Records, seed: u64) {
        let candidate = C::new(records, records.len());
        let mut model = BTreeMap::new();
        let present = Probes::present(records.len(), records.len(), seed);
        let absent = Probes::absent(200, seed);
        for record in 0..records.len() {
            candidate.insert(record);
            model.insert(*records.id(record), records.place(record));
            if !record.is_multiple_of(97) && record + 1 != records.len() {
                continue;
            }
            for id in present.ids().iter().chain(absent.ids()) {
                let found = candidate.get(id);
                assert_eq!(found, model.get(id).copied(), "{name}, seed {seed}, {id:?}");
            }
            for id in present.ids().iter().chain(absent.ids()).step_by(31) {
                let mut rows = Vec::new();
                candidate.scan(id, 20, |place| rows.push(place));
                let expected: Vec<_> = model.range(*id..).map(|(_, p)| *p).take(20).collect();
                assert_eq!(rows, expected, "{name}, seed {seed}, from {id:?}");
            }
        }
    }

    #[test]
    fn every_candidate_equals_a_btreemap() {
        let records = Records::leak(700);
        for seed in 1..4 {
            each_memtable!(equals_a_btreemap(records, seed));
        }
    }

    /// Whatever was inserted before a reader asks is there, while a writer goes on.
    fn is_whole_beside_a_writer<C: Candidate>(name: &str, records: &'static Records) {
        let candidate: C = filled(records, 1000, records.len());
        let present = Probes::present(1000, 1000, 5);
        crate::drive::beside_writer(&candidate, 1000..records.len(), || {
            crate::drive::together(2, |thread| {
                present.each(thread * 500, 3000, |id| {
                    let mut first = None;
                    candidate.scan(id, 1, |place| first = Some(place));
                    let found = candidate.get(id);
                    assert!(found.is_some(), "{name}: {id:?}");
                    assert_eq!(found, first, "{name}: {id:?}");
                    0
                });
            });
        });
    }

    #[test]
    fn every_candidate_is_whole_beside_a_writer() {
        let records = Records::leak(5000);
        each_memtable!(is_whole_beside_a_writer(records));
    }
}
