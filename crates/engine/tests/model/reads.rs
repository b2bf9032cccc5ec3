//! Operations that compare.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeBounds;
use std::sync::Arc;

use engine::{Collection, Document, Error, Id, Ids, Scan, Snapshot, prefix};

use crate::common::Random;
use crate::content::{Bounds, Rows, Stored, document, range};
use crate::world::{Past, World};

type Expected = VecDeque<(Id<'static>, Arc<Stored>)>;

fn within(rows: &Rows, bounds: &Bounds) -> Expected {
    let rows = rows.iter().filter(|(id, _)| bounds.contains(*id));
    rows.map(|(id, stored)| (id.clone(), Arc::clone(stored))).collect()
}

fn assert_row(
    found: Option<engine::Result<(Id<'static>, Document)>>,
    expected: Option<&(Id<'static>, Arc<Stored>)>,
) {
    let found = found.map(|row| row.unwrap());
    match (&found, expected) {
        (None, None) => {}
        (Some((id, document)), Some((expected, stored))) => {
            assert_eq!(id, expected);
            assert_eq!(document.as_bytes(), stored.bytes, "{id}");
        }
        _ => {
            panic!("found {:?}, expected {:?}", found.map(|row| row.0), expected.map(|row| &row.0))
        }
    }
}

/// Takes up to `rows` rows from both ends in turns.
fn compare_some(random: &mut Random, scan: &mut Scan, expected: &mut Expected, rows: usize) -> u64 {
    let from_back = *random.pick(&[0, 50, 100]);
    for taken in 0..rows {
        let ended = expected.is_empty();
        if random.percent(from_back) {
            assert_row(scan.next_back(), expected.pop_back().as_ref());
        } else {
            assert_row(scan.next(), expected.pop_front().as_ref());
        }
        if ended {
            assert!(scan.next().is_none() && scan.next_back().is_none(), "a scan went on");
            return taken as u64;
        }
    }
    rows as u64
}

fn compare(random: &mut Random, mut scan: Scan, mut expected: Expected) -> u64 {
    compare_some(random, &mut scan, &mut expected, usize::MAX)
}

fn compare_ids(random: &mut Random, ids: Ids, expected: Expected) -> u64 {
    let mut expected: Vec<_> = expected.into_iter().map(|(id, _)| id).collect();
    let found: Vec<_> = if random.percent(50) {
        ids.map(Result::unwrap).collect()
    } else {
        expected.reverse();
        ids.rev().map(Result::unwrap).collect()
    };
    assert_eq!(found, expected);
    found.len() as u64
}

/// A scan of any shape, compared; live, or in a snapshot.
fn scan(
    random: &mut Random,
    ids: &[Id<'static>],
    collection: &Collection,
    snapshot: Option<&Snapshot>,
    rows: &Rows,
) -> u64 {
    if random.percent(10) {
        let text = *random.pick(&["", "k", "k1", "prefix-", "longlong", "none"]);
        let starts = |id: &Id<'_>| matches!(id, Id::String(id) if id.starts_with(text));
        let expected = rows.iter().filter(|(id, _)| starts(id));
        let expected = expected.map(|(id, stored)| (id.clone(), Arc::clone(stored))).collect();
        let scan = match snapshot {
            Some(snapshot) => snapshot.scan(collection, prefix(text)),
            None => collection.scan(prefix(text)),
        };
        return compare(random, scan.unwrap(), expected);
    }
    let bounds = range(random, ids);
    let expected = within(rows, &bounds);
    if random.percent(20) {
        let ids = match snapshot {
            Some(snapshot) => snapshot.scan_ids(collection, bounds),
            None => collection.scan_ids(bounds),
        };
        return compare_ids(random, ids.unwrap(), expected);
    }
    let scan = match snapshot {
        Some(snapshot) => snapshot.scan(collection, bounds),
        None => collection.scan(bounds),
    };
    compare(random, scan.unwrap(), expected)
}

fn assert_document(id: &Id<'_>, found: Option<&Document>, expected: Option<&Arc<Stored>>) {
    let found = found.map(Document::as_bytes);
    assert_eq!(found, expected.map(|stored| &*stored.bytes), "{id}");
}

impl World {
    pub(crate) fn get(&mut self) {
        let Some(name) = self.some_collection() else { return };
        let id = self.some_id();
        self.say(|| format!("get {name} {id}"));
        let live = &self.collections[name];
        let found = live.handle.get(&id).unwrap();
        let expected = live.rows.get(&id);
        assert_document(&id, found.as_ref(), expected);
        if let (Some(document), Some(stored)) = (found, expected)
            && self.random.percent(10)
        {
            self.held.push((document, Arc::clone(stored)));
        }
    }

    pub(crate) fn scan_live(&mut self) {
        let Some(name) = self.some_collection() else { return };
        self.say(|| format!("scan {name}"));
        let live = &self.collections[name];
        self.totals.rows += scan(&mut self.random, &self.ids, &live.handle, None, &live.rows);
    }

    /// A scan sees the moment it began, whatever is written, rolled and sealed meanwhile.
    pub(crate) fn scan_while_writing(&mut self) {
        let Some(name) = self.some_collection() else { return };
        self.say(|| format!("scan {name} while writing"));
        let bounds = range(&mut self.random, &self.ids);
        let mut expected = within(&self.collections[name].rows, &bounds);
        let mut scan = self.collections[name].handle.scan(bounds).unwrap();
        for _ in 0..4 {
            let rows = self.random.below(8);
            self.totals.rows += compare_some(&mut self.random, &mut scan, &mut expected, rows);
            match self.random.below(6) {
                0 => self.burst(),
                1 => self.batch(),
                2 => self.delete(),
                3 => self.background(),
                4 => self.drop_snapshot(),
                _ => {
                    let id = self.some_id();
                    let fields = document(&mut self.random);
                    self.put_this(name, id, fields);
                }
            }
        }
        self.totals.rows += compare(&mut self.random, scan, expected);
    }

    pub(crate) fn take_snapshot(&mut self) {
        self.say(|| "take a snapshot".to_owned());
        let snapshot = self.database().snapshot().unwrap();
        let collections = self.collections.values();
        let collections: BTreeMap<_, _> = collections
            .map(|live| (live.number, (live.handle.clone(), live.rows.clone())))
            .collect();
        self.snapshots.push(Past { snapshot, collections });
    }

    pub(crate) fn read_snapshot(&mut self) {
        if self.snapshots.is_empty() {
            return self.take_snapshot();
        }
        let at = self.random.below(self.snapshots.len());
        self.say(|| format!("read snapshot {at}"));
        if self.random.percent(30) {
            return self.read_all_of_snapshot(at);
        }
        self.totals.snapshots_read += 1;
        let past = &self.snapshots[at];
        for (collection, rows) in past.collections.values() {
            for _ in 0..3 {
                let id = self.random.pick(&self.ids);
                let found = past.snapshot.get(collection, id).unwrap();
                assert_document(id, found.as_ref(), rows.get(id));
            }
            let snapshot = Some(&past.snapshot);
            self.totals.rows += scan(&mut self.random, &self.ids, collection, snapshot, rows);
        }
    }

    /// Every id and a whole scan of every collection, those included that came later.
    pub(crate) fn read_all_of_snapshot(&mut self, at: usize) {
        self.totals.snapshots_read += 1;
        let past = &self.snapshots[at];
        for (collection, rows) in past.collections.values() {
            for id in &self.ids {
                let found = past.snapshot.get(collection, id).unwrap();
                assert_document(id, found.as_ref(), rows.get(id));
            }
            let scan = past.snapshot.scan(collection, ..).unwrap();
            let expected = rows.iter().map(|(id, stored)| (id.clone(), Arc::clone(stored)));
            self.totals.rows += compare(&mut self.random, scan, expected.collect());
        }
        let later = self.collections.values();
        for live in later.filter(|live| !past.collections.contains_key(&live.number)) {
            assert_eq!(past.snapshot.scan(&live.handle, ..).unwrap().count(), 0);
        }
    }

    pub(crate) fn drop_snapshot(&mut self) {
        if !self.snapshots.is_empty() {
            let at = self.random.below(self.snapshots.len());
            self.say(|| format!("drop snapshot {at}"));
            self.snapshots.swap_remove(at);
            let live = self.database().stats().snapshots;
            assert_eq!(live, self.snapshots.len() as u64);
        }
    }

    pub(crate) fn look_at_held(&mut self) {
        for (document, stored) in &self.held {
            assert_eq!(document.as_bytes(), stored.bytes);
        }
    }

    /// Compares everything.
    pub(crate) fn verify(&mut self) {
        let names: Vec<_> = self.collections.keys().map(|name| (*name).to_owned()).collect();
        assert_eq!(self.database().collections().unwrap(), names);
        for live in self.collections.values() {
            let expected = live.rows.iter().map(|(id, stored)| (id.clone(), Arc::clone(stored)));
            let scan = live.handle.scan(..).unwrap();
            self.totals.rows += compare(&mut self.random, scan, expected.collect());
            for id in &self.ids {
                let found = live.handle.get(id).unwrap();
                assert_document(id, found.as_ref(), live.rows.get(id));
            }
        }
        for dropped in &self.dropped {
            let handle = &dropped.handle;
            assert!(matches!(handle.get(1), Err(Error::CollectionDropped { .. })));
            let put = handle.put(1, &engine::bson::doc! {});
            assert!(matches!(put, Err(Error::CollectionDropped { .. })));
        }
    }
}
