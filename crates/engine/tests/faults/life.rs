//! A database beside a map of what it must answer, so small that a few records fill a segment.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use engine::disk::Disk;
use engine::{Collection, CompactionReason, Document, Error, Id, Scan, Stats};

use super::{Opened, Rows, Setup, document};

/// Ids from here on fill segments and mean nothing.
pub const FILLER: i64 = 1_000_000;

/// Nothing is written for so long: compaction counts it as idle.
pub const IDLE: Duration = Duration::from_millis(300);

/// An open database and its rows.
#[derive(Debug)]
pub struct Life {
    pub db: Opened,
    pub collection: Collection,
    pub rows: Rows,
    /// Every id that was ever written.
    pub ids: BTreeSet<i64>,
    filler: i64,
}

impl Life {
    pub fn new(setup: Setup, disk: &Arc<dyn Disk>) -> Self {
        let db = setup.open(disk).unwrap();
        let collection = db.collection();
        Self { db, collection, rows: Rows::new(), ids: BTreeSet::new(), filler: FILLER }
    }

    /// What is known, of the same database opened anew.
    pub fn again(&self, setup: Setup, disk: &Arc<dyn Disk>) -> Result<Self, Error> {
        let db = setup.open(disk)?;
        let collection = db.collection();
        let (rows, ids) = (self.rows.clone(), self.ids.clone());
        Ok(Self { db, collection, rows, ids, filler: self.filler })
    }

    pub fn put(&mut self, id: i64, value: i64) {
        self.collection.put(id, &document(value)).unwrap();
        self.rows.insert(id, value);
        self.ids.insert(id);
    }

    pub fn delete(&mut self, id: i64) {
        self.collection.delete(id).unwrap();
        self.rows.remove(&id);
        self.ids.insert(id);
    }

    /// Fills the segment with rows of no meaning, so that the log goes on in another one, and has
    /// it sealed. The last one is in the new segment.
    pub fn roll(&mut self) {
        let rolls = self.stats().rolls;
        while self.stats().rolls == rolls {
            self.put(self.filler, self.filler);
            self.filler += 1;
        }
        self.seal();
    }

    /// Has what is frozen sealed, and runs nothing else.
    pub fn seal(&self) {
        while self.stats().segments_unsealed > 1 {
            self.db.executor.step().expect("the seal is queued");
        }
    }

    pub fn step(&self) {
        self.db.step();
    }

    pub fn compact(&self) {
        self.db.database.compact().unwrap();
        self.db.step();
    }

    /// Lets time pass without a write until nothing is left to do but timers.
    pub fn idle(&self) {
        for _ in 0..40 {
            self.db.pass(IDLE);
        }
    }

    pub fn stats(&self) -> Stats {
        self.db.database.stats()
    }

    /// How often compaction ran for a reason.
    pub fn count(&self, reason: CompactionReason) -> u64 {
        let stats = self.stats();
        stats.compactions.iter().find(|entry| entry.reason == reason).map_or(0, |entry| entry.count)
    }

    /// Asks for every id that was ever written, and scans in both directions.
    pub fn check(&self, what: &str) {
        for &id in &self.ids {
            let found = self.collection.get(id).unwrap_or_else(|e| panic!("{what}: {id}: {e}"));
            let found = found.map(|document| document.get_i64("v").unwrap().unwrap());
            assert_eq!(found, self.rows.get(&id).copied(), "{what}: {id}");
        }
        assert!(both_ways(|| self.collection.scan(..).unwrap()) == self.rows, "{what}: scans");
    }
}

/// The id and the value of a row that [`Life`] has written.
fn row_of(row: Result<(Id<'static>, Document), Error>) -> (i64, i64) {
    let (id, document) = row.unwrap();
    let Id::Integer(id) = id else { panic!("an id that nobody wrote: {id}") };
    (id, document.get_i64("v").unwrap().expect("every document has a `v`"))
}

/// The rows of a scan, which must be the same in both directions.
pub fn both_ways(scan: impl Fn() -> Scan) -> Rows {
    both_ways_as(scan, row_of)
}

/// The same, with documents of another kind.
pub fn both_ways_as(
    scan: impl Fn() -> Scan,
    row: impl Fn(Result<(Id<'static>, Document), Error>) -> (i64, i64),
) -> Rows {
    let forward: Vec<(i64, i64)> = scan().map(&row).collect();
    let mut reverse: Vec<(i64, i64)> = scan().rev().map(&row).collect();
    reverse.reverse();
    assert!(forward == reverse, "forward and reverse differ");
    assert!(forward.is_sorted_by(|a, b| a.0 < b.0), "ids rise");
    forward.into_iter().collect()
}
