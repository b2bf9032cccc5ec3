//! The engine's memtable, and the same without its hash table.

use engine::internals::Memtable;

use super::{Candidate, Place};
use crate::records::Records;

/// Hash table and skip list, as the engine has them.
pub struct Engine {
    memtable: Memtable,
    records: &'static Records,
}

impl Candidate for Engine {
    fn new(records: &'static Records, capacity: usize) -> Self {
        Self { memtable: Memtable::with_capacity(capacity), records }
    }

    #[inline]
    fn insert(&self, record: usize) {
        let (id, place) = (self.records.id(record), self.records.place(record));
        self.memtable.insert(id, place, self.records).expect("it was made for so many records");
    }

    #[inline]
    fn get(&self, id: &'static [u8]) -> Option<Place> {
        self.memtable.get(id, self.records)
    }

    #[inline]
    fn scan(&self, from: &'static [u8], rows: usize, mut visit: impl FnMut(Place)) {
        let mut at = self.memtable.seek(from, self.records);
        for _ in 0..rows {
            let Some(node) = at else { break };
            visit(self.memtable.place(node));
            at = self.memtable.step(node, self.records);
        }
    }
}

/// Points by the skip list too: what the hash table is for. (It is filled all the same, so inserts
/// and bytes are those of [`Engine`].)
pub struct EngineTree(Engine);

impl Candidate for EngineTree {
    fn new(records: &'static Records, capacity: usize) -> Self {
        Self(Engine::new(records, capacity))
    }

    #[inline]
    fn insert(&self, record: usize) {
        self.0.insert(record);
    }

    #[inline]
    fn get(&self, id: &'static [u8]) -> Option<Place> {
        use engine::internals::Ids;
        let Engine { memtable, records } = &self.0;
        let place = memtable.place(memtable.seek(id, *records)?);
        (records.id_at(place.offset) == id).then_some(place)
    }

    #[inline]
    fn scan(&self, from: &'static [u8], rows: usize, visit: impl FnMut(Place)) {
        self.0.scan(from, rows, visit);
    }
}
