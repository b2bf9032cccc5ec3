//! Deletes on a full disk: the reserve that they are given, and how the disk comes free again.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod faults;

use std::sync::Arc;

use engine::disk::faulty::FaultyDisk;
use engine::disk::{Disk, MemoryDisk};
use engine::{Batch, Error};
use faults::*;

/// A database on a disk that can run full.
struct Stage {
    below: MemoryDisk,
    faulty: FaultyDisk,
    setup: Setup,
    db: Opened,
    rows: Rows,
}

impl Stage {
    /// With so many documents.
    fn new(setup: Setup, documents: i64) -> Self {
        let below = MemoryDisk::new();
        let faulty = FaultyDisk::new(shared(&below));
        let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
        let db = setup.open(&disk).unwrap();
        let mut stage = Self { below, faulty, setup, db, rows: Rows::new() };
        for id in 0..documents {
            stage.put(id).unwrap();
            if id % 40 == 0 {
                stage.db.step();
            }
        }
        stage.db.step();
        stage
    }

    fn put(&mut self, id: i64) -> Result<(), Error> {
        put(&self.db.collection(), id, 10 * id)?;
        self.rows.insert(id, 10 * id);
        Ok(())
    }

    fn delete(&mut self, id: i64) -> Result<(), Error> {
        self.db.collection().delete(id)?;
        self.rows.remove(&id);
        Ok(())
    }

    /// Leaves so much space, and puts documents until the disk is full.
    fn fill(&mut self, space: u64, first: i64) {
        self.faulty.set_free_space(Some(space));
        let (mut id, mut refused) = (first, 0);
        while refused < 3 {
            if let Err(e) = self.put(id) {
                refused += 1;
                assert!(refused < 3 || is_disk_full(&e), "{e:?}");
            }
            id += 1;
            assert!(id < first + 100_000, "the disk is never full");
        }
    }

    /// What is there now, after a kill, and after a power cut once all of it is durable.
    fn check(&self, what: &str) {
        assert_eq!(self.db.rows(), self.rows, "{what}");
        let killed = self.setup.open_memory(&kill(&self.below)).unwrap();
        assert_eq!(killed.rows(), self.rows, "{what}: killed");
        self.db.database.sync().unwrap();
        let cut = self.setup.open_memory(&power_cut(&self.below)).unwrap();
        assert_eq!(cut.rows(), self.rows, "{what}: power cut");
    }
}

fn setups() -> [Setup; 4] {
    [DURABLE, BUFFERED, DURABLE.tiny(), BUFFERED.tiny()]
}

#[test]
fn b8_a_full_disk_takes_deletes_and_refuses_documents_until_there_is_space() {
    for setup in setups() {
        for space in [0, 1, 700, 5000, 30_000] {
            let what = format!("{setup:?}, {space} bytes free");
            let mut stage = Stage::new(setup, 400);
            // Twice: the reserve is filled up again in between.
            for round in 0..2 {
                stage.fill(space, 1000);
                assert!(!stage.db.database.stats().deletes_only, "{what}: documents take none");
                for id in (200 * round..200 * (round + 1)).step_by(2) {
                    stage.delete(id).unwrap_or_else(|e| panic!("{what}: delete {id}: {e:?}"));
                }
                assert!(stage.db.database.stats().deletes_only, "{what}");
                // Whatever a seal or a merge has freed is taken by others.
                stage.faulty.set_free_space(Some(space));
                let collection = stage.db.collection();
                let mut mixed = Batch::new();
                mixed.delete(&collection, 1).unwrap();
                mixed.put(&collection, 5, &document(5)).unwrap();
                for refused in [
                    collection.put(5, &document(5)),
                    collection.insert(50_000, &document(5)),
                    collection.update(1, &document(5)),
                    stage.db.database.write(mixed),
                    stage.db.database.collection("another").map(drop),
                ] {
                    let error = refused.unwrap_err();
                    assert!(matches!(error, Error::ReadOnly { .. }), "{what}: {error:?}");
                    assert!(is_disk_full(&error), "{what}: {error:?}");
                }
                stage.check(&what);
                stage.faulty.set_free_space(None);
                stage.put(2000 + round).unwrap();
                assert!(!stage.db.database.stats().deletes_only, "{what}");
                stage.db.step();
                stage.check(&what);
            }
            stage.db.database.close().unwrap();
            assert_eq!(setup.open_memory(&stage.below).unwrap().rows(), stage.rows, "{what}");
        }
    }
}

#[test]
fn b8_the_reserve_has_an_end_behind_which_deletes_are_refused_and_nothing_is_lost() {
    for setup in setups() {
        // Nothing comes free meanwhile.
        let setup = setup.manual();
        let what = format!("{setup:?}");
        let mut stage = Stage::new(setup, 300);
        stage.fill(0, 1000);
        let mut deleted = 0;
        let error = loop {
            // Of one that is there, or was never.
            match stage.delete(deleted % 2 * 1_000_000 + deleted / 2) {
                Ok(()) => deleted += 1,
                Err(e) => break e,
            }
            assert!(deleted < 100_000, "{what}: the reserve has no end");
        };
        assert!(deleted > 1000, "{what}: {deleted}");
        assert!(matches!(error, Error::WriteFailed { .. }) || is_disk_full(&error), "{error:?}");
        for id in 0..20 {
            let error = stage.db.collection().delete(id).unwrap_err();
            assert!(is_disk_full(&error), "{what}: {error:?}");
        }
        assert_eq!(stage.db.rows(), stage.rows, "{what}: reads go on");
        assert_eq!(setup.open_memory(&kill(&stage.below)).unwrap().rows(), stage.rows, "{what}");
        stage.faulty.set_free_space(None);
        stage.delete(299).unwrap();
        stage.put(3000).unwrap();
        stage.check(&what);
    }
}

#[test]
fn b8_what_deletes_free_on_a_full_disk_is_free_for_documents() {
    for setup in setups() {
        for whole in [true, false] {
            let what = format!("{setup:?}, the collection at once: {whole}");
            let mut stage = Stage::new(setup, 1500);
            stage.db.database.compact().unwrap();
            stage.fill(0, 3000);
            if whole {
                assert!(stage.db.database.drop_collection("c").unwrap());
                stage.rows.clear();
            } else {
                let ids: Vec<i64> = stage.rows.keys().copied().collect();
                for ids in ids.chunks(30) {
                    let mut batch = Batch::new();
                    ids.iter().for_each(|id| batch.delete(&stage.db.collection(), *id).unwrap());
                    stage.db.database.write(batch).unwrap();
                }
                stage.rows.clear();
            }
            assert!(stage.db.database.stats().deletes_only, "{what}");
            stage.db.database.compact().unwrap_or_else(|e| panic!("{what}: {e:?}"));
            stage.db.step();
            // Nobody else frees anything.
            for id in 0..50 {
                stage.put(id).unwrap_or_else(|e| panic!("{what}: put {id}: {e:?}"));
            }
            assert!(!stage.db.database.stats().deletes_only, "{what}");
            stage.check(&what);
        }
    }
}

#[test]
fn b8_a_database_closes_and_opens_on_a_full_disk() {
    for setup in setups() {
        for end in ["close", "kill"] {
            let what = format!("{setup:?}, {end}");
            let mut stage = Stage::new(setup, 200);
            stage.fill(0, 1000);
            if end == "close" {
                stage.db.database.close().unwrap_or_else(|e| panic!("{what}: {e:?}"));
            }
            let below = kill(&stage.below);
            let faulty = FaultyDisk::new(shared(&below));
            faulty.set_free_space(Some(stage.faulty.free_space().unwrap()));
            let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
            let db = setup.open(&disk).unwrap_or_else(|e| panic!("{what}: {e:?}"));
            assert_eq!(db.rows(), stage.rows, "{what}");
            stage.db = db;
            (stage.below, stage.faulty) = (below, faulty);
            for id in 0..100 {
                stage.delete(id).unwrap_or_else(|e| panic!("{what}: delete {id}: {e:?}"));
            }
            stage.check(&what);
            stage.faulty.set_free_space(None);
            stage.put(5000).unwrap();
            stage.check(&what);
        }
    }
}
