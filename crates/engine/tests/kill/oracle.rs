//! What must be in the database: what each writer's answered operations add up to, to the byte.
//!
//! A writer begins an operation when the one before was answered, so that at most one is without an
//! answer when the victim dies. It came through whole, or not at all.

use std::collections::BTreeMap;

use engine::{Collection, Database, Id, Scan};

use crate::operations::{
    Answer, COLLECTIONS, Change, Operation, SHARED, SLOTS, WRITERS, field_of, fleeting, id_of,
    shared_document, shared_id,
};
use crate::setup::Mode;

type Rows = BTreeMap<Id<'static>, Vec<u8>>;

/// What one writer's operations add up to.
#[derive(Clone, Debug, Default)]
struct Writer {
    /// The number of its last operation.
    done: u64,
    /// Its rows in [`COLLECTIONS`], then those in the collection that it has for itself.
    rows: [Rows; 3],
    /// The numbers of its last updates of the shared documents.
    shared: [i64; SHARED],
}

/// Where the rows of a writer's own collection are in its `rows`.
const OWN: usize = COLLECTIONS.len();

#[derive(Debug)]
pub(crate) struct Oracle {
    seed: u64,
    mode: Mode,
    writers: [Writer; WRITERS],
}

impl Oracle {
    /// Of an empty database, to which it adds the documents that writers update together.
    pub(crate) fn new(seed: u64, mode: Mode, database: &Database) -> Self {
        let first = database.collection(COLLECTIONS[0]).unwrap();
        database.collection(COLLECTIONS[1]).unwrap();
        for shared in 0..SHARED {
            first.put_raw(shared_id(shared), &shared_document(&[0; WRITERS])).unwrap();
        }
        Self { seed, mode, writers: Default::default() }
    }

    /// The number of each writer's last operation.
    pub(crate) fn done(&self) -> [u64; WRITERS] {
        self.writers.each_ref().map(|writer| writer.done)
    }

    fn operation(&self, writer: usize) -> Operation {
        Operation::of(self.seed, self.mode, writer, self.writers[writer].done + 1)
    }

    /// A writer's next operation was answered.
    pub(crate) fn answered(&mut self, writer: usize, n: u64, answer: Answer) {
        let operation = self.operation(writer);
        let expected = self.writers[writer].apply(writer, &operation);
        assert_eq!(self.writers[writer].done, n, "writer {writer} left operations out");
        assert_eq!(answer, expected, "the answer to {operation:?} of writer {writer}, its {n}th");
    }

    /// Finds out which unanswered operations came through: those of whose effects any is there, so
    /// that a part of one is found by [`Oracle::check`]. Their number.
    pub(crate) fn settle(&mut self, database: &Database) -> u64 {
        let found = Found::of(database);
        let mut came_through = 0;
        for writer in 0..WRITERS {
            let operation = self.operation(writer);
            let mut next = self.writers[writer].clone();
            next.apply(writer, &operation);
            if next.has_effects(writer, &self.writers[writer], &found) {
                self.writers[writer] = next;
                came_through += 1;
            }
        }
        came_through
    }

    /// Compares all there is, by scans in both directions and by gets, also of what was deleted. The
    /// number of rows.
    pub(crate) fn check(&self, database: &Database, what: &str) -> u64 {
        let stats = database.stats();
        assert_eq!(stats.recovery.damage, None, "{what}");
        assert_eq!(stats.quarantined_segments, 0, "{what}");
        assert_eq!(stats.compaction_failures, 0, "{what}: {:?}", stats.last_compaction_error);
        let own = std::array::from_fn::<_, WRITERS, _>(fleeting);
        let names = database.collections().unwrap();
        for name in &names {
            let is_known = COLLECTIONS.contains(&name.as_str()) || own.contains(name);
            assert!(is_known, "{what}: nobody made the collection {name}");
        }
        let mut rows = 0;
        for (at, name) in COLLECTIONS.iter().enumerate() {
            let mut expected: Rows =
                self.writers.iter().flat_map(|writer| writer.rows[at].clone()).collect();
            if at == 0 {
                for shared in 0..SHARED {
                    let numbers = self.writers.each_ref().map(|writer| writer.shared[shared]);
                    expected.insert(shared_id(shared), shared_document(&numbers));
                }
            }
            let collection = database.collection(name).unwrap();
            compare(&collection, &expected, 0..WRITERS, &format!("{what}: {name}"));
            rows += expected.len();
        }
        for (writer, name) in own.iter().enumerate() {
            let expected = &self.writers[writer].rows[OWN];
            if names.contains(name) {
                let collection = database.collection(name).unwrap();
                compare(&collection, expected, writer..writer + 1, &format!("{what}: {name}"));
            } else {
                assert!(expected.is_empty(), "{what}: the collection {name} is gone");
            }
            rows += expected.len();
        }
        rows as u64
    }
}

impl Writer {
    /// What the next operation does, and its answer.
    fn apply(&mut self, writer: usize, operation: &Operation) -> Answer {
        self.done += 1;
        match operation {
            Operation::Change(change) => self.change(writer, change),
            Operation::Batch(changes) | Operation::Durable(changes) => {
                changes.iter().for_each(|change| self.change(writer, change));
            }
            Operation::Insert(change) => {
                if self.rows[change.collection].contains_key(&id_of(writer, change.slot)) {
                    return Answer::Taken;
                }
                self.change(writer, change);
            }
            Operation::Update { slot } => {
                let Some(document) = self.rows[0].get_mut(&id_of(writer, *slot)) else {
                    return Answer::Missing;
                };
                // Length, then the type and the name of the first field, then its value.
                assert_eq!(document[4..7], *b"\x12n\0");
                document[7..15].copy_from_slice(&self.done.to_le_bytes());
            }
            Operation::Share { shared } => self.shared[*shared] = self.done.cast_signed(),
            Operation::PutFleeting { slot, document } => {
                self.rows[OWN].insert(id_of(writer, *slot), document.clone());
            }
            Operation::DropFleeting => self.rows[OWN].clear(),
            Operation::Sync | Operation::Compact | Operation::Snapshot => {}
        }
        Answer::Done
    }

    fn change(&mut self, writer: usize, change: &Change) {
        let (rows, id) = (&mut self.rows[change.collection], id_of(writer, change.slot));
        match &change.document {
            Some(document) => drop(rows.insert(id, document.clone())),
            None => drop(rows.remove(&id)),
        }
    }

    /// Whether something is found that is so since the last operation only.
    fn has_effects(&self, writer: usize, before: &Self, found: &Found) -> bool {
        let is_new = |at: usize, slot: usize| {
            let id = id_of(writer, slot);
            let (then, now) = (before.rows[at].get(&id), self.rows[at].get(&id));
            then != now && found.get(at, writer, &id).as_ref() == now
        };
        let is_shared = |shared: usize| {
            before.shared[shared] != self.shared[shared]
                && found.shared(shared, writer) == self.shared[shared]
        };
        (0..=OWN).any(|at| (0..SLOTS).any(|slot| is_new(at, slot))) || (0..SHARED).any(is_shared)
    }
}

/// The collections that are there.
struct Found {
    collections: [Collection; 2],
    own: [Option<Collection>; WRITERS],
}

impl Found {
    fn of(database: &Database) -> Self {
        let names = database.collections().unwrap();
        let own = std::array::from_fn(|writer| {
            // Asking for one that is not there would make it.
            let name = fleeting(writer);
            names.contains(&name).then(|| database.collection(&name).unwrap())
        });
        Self { collections: COLLECTIONS.map(|name| database.collection(name).unwrap()), own }
    }

    fn get(&self, at: usize, writer: usize, id: &Id<'static>) -> Option<Vec<u8>> {
        let collection = self.collections.get(at).or(self.own[writer].as_ref())?;
        collection.get(id.clone()).unwrap().map(|document| document.as_bytes().to_vec())
    }

    fn shared(&self, shared: usize, writer: usize) -> i64 {
        let document = self.collections[0].get(shared_id(shared)).unwrap().unwrap();
        document.get_i64(&field_of(writer)).unwrap().unwrap()
    }
}

/// Compares a collection with what it must hold; the ids that these writers use there are asked for
/// one by one too.
fn compare(collection: &Collection, expected: &Rows, writers: std::ops::Range<usize>, what: &str) {
    let forward = rows(collection.scan(..).unwrap(), false);
    if let Some(difference) = difference(&forward, expected) {
        panic!("{what}: a scan finds {difference}");
    }
    let mut reverse = rows(collection.scan(..).unwrap(), true);
    reverse.reverse();
    assert!(forward == reverse, "{what}: the scans of both directions differ");
    let ids = collection.scan_ids(..).unwrap().map(Result::unwrap);
    assert!(ids.eq(expected.keys().cloned()), "{what}: a scan of ids differs");
    let all = writers.flat_map(|writer| (0..SLOTS).map(move |slot| id_of(writer, slot)));
    for id in all.chain((0..SHARED).map(shared_id)) {
        let found = collection.get(id.clone()).unwrap();
        let found = found.as_ref().map(|document| document.as_bytes());
        assert!(
            found == expected.get(&id).map(Vec::as_slice),
            "{what}: a get of {id} finds {:?}, and not {:?}",
            found.map(shown),
            expected.get(&id).map(|document| shown(document)),
        );
    }
}

fn rows(scan: Scan, is_reverse: bool) -> Vec<(Id<'static>, Vec<u8>)> {
    let row = |row: engine::Result<(Id<'static>, engine::Document)>| {
        let (id, document) = row.unwrap();
        (id, document.as_bytes().to_vec())
    };
    if is_reverse { scan.rev().map(row).collect() } else { scan.map(row).collect() }
}

/// Where the rows first differ.
fn difference(found: &[(Id<'static>, Vec<u8>)], expected: &Rows) -> Option<String> {
    let mut expected = expected.iter();
    for (id, document) in found {
        let next = expected.next();
        if next != Some((id, document)) {
            let next = next.map(|(id, document)| format!("{id} ({})", shown(document)));
            return Some(format!("{id} ({}), and not {next:?}", shown(document)));
        }
    }
    expected.next().map(|(id, document)| format!("no {id} ({})", shown(document)))
}

/// A document's beginning, for reading.
fn shown(document: &[u8]) -> String {
    format!("{} bytes: {:02x?}", document.len(), &document[..document.len().min(40)])
}
