//! What every store must do, asked of each that is built in: the same calls, the same answers, in
//! both durabilities, and again after the store was closed and opened.

use std::path::Path;

use super::{
    Durability, Presence, Settled, Statistics, Store, StoreConfig, StoreKind, StoreTask, Visitor,
};
use crate::workload::{DocumentShape, InsertOrder, KeyFormat, Records};

const SHAPE: DocumentShape = DocumentShape { fields: 2, field_bytes: 30 };
const KEYS: KeyFormat = KeyFormat { order: InsertOrder::Hashed, zero_padding: 1 };
const RECORDS: usize = 500;
const SEED: u64 = 42;

fn config(durability: Durability) -> StoreConfig {
    StoreConfig {
        durability,
        memtable_bytes: 1 << 20,
        cache_bytes: 1 << 20,
        cores: 2,
        statistics: Statistics::Off,
    }
}

fn records() -> Vec<(String, Vec<u8>)> {
    let mut records = vec![(String::new(), Vec::new()); RECORDS];
    let count = RECORDS.try_into().unwrap();
    let filled = Records::new(count, SHAPE, KEYS, SEED).fill(&mut records);
    assert_eq!(filled, RECORDS);
    records
}

#[derive(Default)]
struct Values(Vec<Vec<u8>>);

impl Visitor for Values {
    fn value(&mut self, bytes: &[u8]) {
        self.0.push(bytes.to_vec());
    }
}

fn read(store: &impl Store, key: &str) -> Option<Vec<u8>> {
    let mut values = Values::default();
    let presence = store.read(key, &mut values).unwrap();
    assert_eq!(values.0.len(), usize::from(presence == Presence::Found), "{key}");
    values.0.pop()
}

fn scan(store: &impl Store, from: &str, limit: usize) -> Vec<Vec<u8>> {
    let mut values = Values::default();
    assert_eq!(store.scan(from, limit, &mut values).unwrap(), values.0.len());
    values.0
}

/// A document whose one field is `field0`.
fn field(text: &str) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(b"\x02field0\0");
    bytes.extend_from_slice(&u32::try_from(text.len() + 1).unwrap().to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend_from_slice(&[0, 0]);
    let length = u32::try_from(bytes.len()).unwrap();
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// Everything that is read, as it must be in each store.
fn check(store: &impl Store, expected: &[(String, Vec<u8>)]) {
    for (key, document) in expected {
        assert_eq!(read(store, key).as_ref(), Some(document), "{key}");
    }
    assert_eq!(read(store, "user"), None);
    let documents: Vec<_> = expected.iter().map(|(_, document)| document.clone()).collect();
    assert_eq!(scan(store, "", usize::MAX), documents);
    let middle = expected.len() / 2;
    let (key, _) = &expected[middle];
    assert_eq!(scan(store, key, 100), documents[middle..middle + 100]);
    assert_eq!(scan(store, &format!("{key}0"), 7), documents[middle + 1..middle + 8]);
    let (last, _) = expected.last().unwrap();
    assert_eq!(scan(store, last, 100), documents[documents.len() - 1..]);
    assert!(scan(store, "v", 100).is_empty());
}

struct Agreement<'a> {
    folder: &'a Path,
    durability: Durability,
}

impl StoreTask for Agreement<'_> {
    type Output = ();

    fn with<S: Store>(self) {
        let config = config(self.durability);
        let store = S::open(self.folder, &config).unwrap();
        let mut expected = records();
        store.load(&expected[..RECORDS / 2]).unwrap();
        store.load(&expected[RECORDS / 2..]).unwrap();
        expected.sort();
        check(&store, &expected);

        for (key, document) in expected.iter_mut().step_by(3) {
            let fields = field(&format!("updated {key}"));
            assert_eq!(store.update(key, &fields).unwrap(), Presence::Found);
            *document = engine::merge_documents(document, &fields).unwrap();
        }
        assert_eq!(store.update("user", &field("x")).unwrap(), Presence::Missing);
        let added = ("user5x".to_owned(), field("inserted"));
        store.insert(&added.0, &added.1).unwrap();
        store.insert(&expected[7].0, &field("overwritten")).unwrap();
        expected[7].1 = field("overwritten");
        expected.push(added);
        expected.sort();
        check(&store, &expected);
        assert_eq!(store.settle(std::time::Duration::from_secs(600)).unwrap(), Settled::Idle);
        check(&store, &expected);
        store.close().unwrap();

        let store = S::open(self.folder, &config).unwrap();
        check(&store, &expected);
        store.close().unwrap();
    }
}

struct Counting<'a>(&'a Path);

impl StoreTask for Counting<'_> {
    type Output = ();

    /// Clients that update one record at once: each update sees the one before it, or two of them
    /// would keep one field between them.
    fn with<S: Store>(self) {
        const CLIENTS: usize = 4;
        const UPDATES: usize = 25;
        let store = S::open(self.0, &config(Durability::Buffered)).unwrap();
        store.load(&[("user1".to_owned(), field("loaded"))]).unwrap();
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let store = &store;
                scope.spawn(move || {
                    for number in 0..UPDATES {
                        let mut fields = field("updated");
                        // "field0" becomes a name of this update's own, of the same length.
                        let name = format!("f{client}-{number:03}");
                        fields[5..11].copy_from_slice(name.as_bytes());
                        assert_eq!(store.update("user1", &fields).unwrap(), Presence::Found);
                    }
                });
            }
        });
        let document = read(&store, "user1").unwrap();
        let fields = document.windows(7).filter(|bytes| *bytes == b"updated").count();
        assert_eq!(fields, CLIENTS * UPDATES);
        store.close().unwrap();
    }
}

fn stores() -> impl Iterator<Item = StoreKind> {
    StoreKind::ALL.iter().copied().filter(|kind| kind.scope().is_a_store())
}

#[test]
fn every_store_gives_the_same_answers_before_and_after_another_open() {
    for kind in stores() {
        for durability in [Durability::Durable, Durability::Buffered] {
            println!("{} {}", kind.name(), durability.name());
            let folder = tempfile::tempdir().unwrap();
            kind.with(Agreement { folder: &folder.path().join("store"), durability });
        }
    }
}

#[test]
fn updates_of_one_record_by_several_clients_are_all_kept() {
    for kind in stores() {
        println!("{}", kind.name());
        let folder = tempfile::tempdir().unwrap();
        kind.with(Counting(&folder.path().join("store")));
    }
}
