//! Everything that was ever written, by sequence: what the database must show of any moment that it
//! still reads, and what it must count.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::Id;

use crate::content::{Rows, Stored};

/// A document written, or deleted.
struct Change {
    sequence: u64,
    /// The collection's number.
    collection: u64,
    id: Id<'static>,
    stored: Option<Arc<Stored>>,
}

/// The sequence of the newest write, and all that led there.
#[derive(Default)]
pub(crate) struct History {
    pub(crate) newest: u64,
    changes: Vec<Change>,
    /// The numbers of dropped collections, and the sequences of their drops.
    drops: Vec<(u64, u64)>,
}

impl History {
    /// A collection was created, which takes a sequence.
    pub(crate) fn created(&mut self) {
        self.newest += 1;
    }

    /// A collection was dropped, which takes a sequence: this one.
    pub(crate) fn dropped(&mut self, collection: u64) -> u64 {
        self.newest += 1;
        self.drops.push((collection, self.newest));
        self.newest
    }

    /// Collections that were dropped, and that a reader at or above the horizon may see.
    pub(crate) fn dropped_above(&self, horizon: u64) -> Vec<u64> {
        let above = self.drops.iter().filter(|(_, at)| *at > horizon);
        above.map(|(collection, _)| *collection).collect()
    }

    pub(crate) fn wrote(&mut self, collection: u64, id: Id<'static>, stored: Option<Arc<Stored>>) {
        self.newest += 1;
        self.changes.push(Change { sequence: self.newest, collection, id, stored });
    }

    /// The rows of a collection as of a sequence.
    pub(crate) fn rows(&self, collection: u64, at: u64) -> Rows {
        let mut rows = Rows::new();
        let until = self.changes.partition_point(|change| change.sequence <= at);
        for change in self.changes[..until].iter().filter(|c| c.collection == collection) {
            match &change.stored {
                Some(stored) => drop(rows.insert(change.id.clone(), Arc::clone(stored))),
                None => drop(rows.remove(&change.id)),
            }
        }
        rows
    }

    /// Bytes of the versions that are not the newest of their id, and that a reader at or above the
    /// horizon may see; the collections are those that are not gone.
    pub(crate) fn pinned_bytes(&self, collections: &[u64], horizon: u64) -> u64 {
        let mut older: BTreeMap<(u64, &Id<'static>), &Change> = BTreeMap::new();
        let mut bytes = 0;
        for change in self.changes.iter().filter(|c| collections.contains(&c.collection)) {
            let version = older.insert((change.collection, &change.id), change);
            if let Some(Change { id, stored: Some(stored), .. }) = version
                && change.sequence > horizon
            {
                bytes += content_bytes(id, stored);
            }
        }
        bytes
    }
}

/// The bytes of an id and its document, as the database counts them: the id has a byte that tells
/// its type.
pub(crate) fn content_bytes(id: &Id<'_>, stored: &Stored) -> u64 {
    let id = 1 + match id {
        Id::Integer(_) => 8,
        Id::String(text) => text.len(),
        Id::Bytes(bytes) => bytes.len(),
    };
    (id + stored.bytes.len()) as u64
}
