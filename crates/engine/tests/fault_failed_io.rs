//! Fault cases of failing I/O: what a failed write, sync or full disk may do, and when writes
//! resume.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod faults;

use std::sync::Arc;
use std::time::Duration;

use engine::disk::faulty::{Call, Fault, FaultyDisk, Outcome, Repeat, Syncs};
use engine::disk::{Disk, MemoryDisk};
use engine::{Batch, Error, WriteDurability};
use faults::*;

/// A disk in memory, and what makes it fail.
struct Stage {
    below: MemoryDisk,
    faulty: FaultyDisk,
    disk: Arc<dyn Disk>,
}

impl Stage {
    fn new() -> Self {
        let below = MemoryDisk::new();
        let faulty = FaultyDisk::new(shared(&below));
        let disk = Arc::new(faulty.clone());
        Self { below, faulty, disk }
    }

    fn inject(&self, calls: &[Call], skip: u64, outcome: Outcome) {
        self.faulty.inject(Fault { calls: calls.to_vec(), skip, outcome, repeat: Repeat::Once });
    }
}

fn batch_of(collection: &engine::Collection, ids: std::ops::RangeInclusive<i64>) -> Batch {
    let mut batch = Batch::new();
    for id in ids {
        batch.put(collection, id, &document(10 * id)).unwrap();
    }
    batch
}

/// A quarter of a segment.
fn large_batch_of(collection: &engine::Collection, ids: std::ops::RangeInclusive<i64>) -> Batch {
    let mut batch = Batch::new();
    for id in ids {
        batch.put(collection, id, &large_document(10 * id)).unwrap();
    }
    batch
}

#[test]
fn b1_a_failed_append_leaves_nothing_and_a_later_durable_commit_survives() {
    let outcomes = [
        Outcome::Error(libc::EIO),
        Outcome::ErrorAfter(libc::EIO),
        Outcome::Short(1),
        Outcome::Short(90),
        Outcome::ShortThenError(90, libc::EIO),
        Outcome::ShortThenError(170, libc::ENOSPC),
    ];
    for setup in [DURABLE, BUFFERED] {
        for outcome in outcomes {
            // The k-th write from the batch on: the batch itself, then those of the repair.
            for k in 0..6 {
                let what = format!("{setup:?} {outcome:?} at write {k}");
                let stage = Stage::new();
                let db = setup.open(&stage.disk).unwrap();
                let collection = db.collection();
                put(&collection, 1, 10).unwrap();
                db.step();
                stage.inject(&[Call::Write], k, outcome);
                let mut rows = expected([1]);
                let first = db.database.write(batch_of(&collection, 5..=7));
                if first.is_ok() {
                    rows.extend(expected(5..=7));
                }
                assert_eq!(first.is_err(), k == 0, "{what}: {first:?}");
                assert_eq!(db.rows(), rows, "{what}: a failed batch is not seen");
                // What comes next may fail too, while the repair does; one of them must succeed.
                let mut acknowledged = None;
                for id in 20..24 {
                    let mut batch = batch_of(&collection, id..=id);
                    batch.delete(&collection, 1).unwrap();
                    let durable = WriteDurability::Durable;
                    if db.database.write_with(batch, durable).is_ok() {
                        acknowledged = Some(id);
                        break;
                    }
                }
                let id = acknowledged.unwrap_or_else(|| panic!("{what}: writes never resume"));
                rows.remove(&1);
                rows.extend(expected([id]));
                assert_eq!(db.rows(), rows, "{what}");
                for disk in [power_cut(&stage.below), kill(&stage.below)] {
                    let db = setup.open_memory(&disk).unwrap();
                    assert_eq!(db.rows(), rows, "{what}");
                    db.database.close().unwrap();
                }
                // Faults that were not met yet.
                stage.faulty.heal();
                db.step();
                db.database.close().unwrap();
                assert_eq!(setup.open_memory(&stage.below).unwrap().rows(), rows, "{what}");
            }
        }
    }
}

#[test]
fn b4_a_failed_sync_is_not_believed_when_the_next_one_succeeds() {
    // The disk below loses what the failed sync did not write: the sync fails without reaching it,
    // and later syncs lie, as the kernel's do after it reported a failed writeback once.
    let stage = Stage::new();
    let db = DURABLE.open(&stage.disk).unwrap();
    let collection = db.collection();
    put(&collection, 1, 10).unwrap();
    db.step();
    let log = log_segment(&stage.below);
    let end = records(&read(&stage.below, &log)).last().unwrap().end();
    stage.inject(&[Call::SyncData], 0, Outcome::Error(libc::EIO));
    let error = put(&collection, 2, 20).unwrap_err();
    assert!(matches!(error, Error::WriteFailed { .. }), "{error}");
    assert_eq!(db.rows(), expected([1]));

    put(&collection, 3, 30).unwrap();
    // The old file lost the pages that the failed sync covered.
    overwrite(&stage.below, &log, end, &[0; 512]);
    for disk in [power_cut(&stage.below), kill(&stage.below)] {
        let rows = DURABLE.open_memory(&disk).unwrap().rows();
        assert_eq!(rows, expected([1, 3]), "what was answered is not in those pages");
    }
    assert_eq!(db.database.stats().repairs, 1);
    db.step();
    db.database.close().unwrap();
    assert_eq!(DURABLE.open_memory(&stage.below).unwrap().rows(), expected([1, 3]));
}

#[test]
fn b4_an_explicit_sync_that_fails_rewrites_what_was_answered() {
    let stage = Stage::new();
    let db = BUFFERED.open(&stage.disk).unwrap();
    let collection = db.collection();
    for id in 1..=5 {
        put(&collection, id, 10 * id).unwrap();
    }
    let log = log_segment(&stage.below);
    stage.inject(&[Call::SyncData], 0, Outcome::Error(libc::EIO));
    db.database.sync().unwrap();
    assert_eq!(db.database.stats().repairs, 1, "success means rewritten, not tried again");
    // The pages of the old file are gone, whatever a later sync of it would say.
    let bytes = read(&stage.below, &log);
    if stage.below.list(std::path::Path::new(DIR)).unwrap().iter().any(|n| log.ends_with(n)) {
        overwrite(&stage.below, &log, LOG_START, &vec![0; bytes.len() - LOG_START]);
    }
    let disk = power_cut(&stage.below);
    assert_eq!(BUFFERED.open_memory(&disk).unwrap().rows(), expected(1..=5));
}

#[test]
fn b8_writes_resume_without_a_reopen_once_space_is_freed() {
    for setup in [DURABLE, BUFFERED] {
        // Full at different moments: at once, in the middle of a group, in the repair.
        for space in [0, 1, 50, 200, 5000, 20_000, 70_000, 200_000] {
            let stage = Stage::new();
            let db = setup.open(&stage.disk).unwrap();
            let collection = db.collection();
            put(&collection, 0, 0).unwrap();
            stage.faulty.set_free_space(Some(space));
            let mut rows = expected([0]);
            let mut failures = 0;
            for id in 1..5000 {
                match put(&collection, id, 10 * id) {
                    Ok(()) => drop(rows.insert(id, 10 * id)),
                    Err(e) => {
                        assert!(
                            is_disk_full(&e) || matches!(e, Error::WriteFailed { .. }),
                            "{space}: {e:?}"
                        );
                        failures += 1;
                        db.step();
                        if failures > 2 {
                            assert!(is_disk_full(&e), "the cause is named: {e:?}");
                        }
                    }
                }
                if id % 50 == 0 {
                    db.step();
                }
                if failures > 20 {
                    break;
                }
            }
            assert!(failures > 20, "{setup:?} {space}: the disk was never full");
            assert_eq!(db.rows(), rows, "{setup:?} {space}: reads go on");
            let full = kill(&stage.below);
            let files_when_full = names(&full).len();
            assert!(files_when_full < 12, "failing writes pile up files: {:?}", names(&full));

            stage.faulty.set_free_space(None);
            for id in 6000..6100 {
                put(&collection, id, 10 * id).unwrap();
                rows.insert(id, 10 * id);
            }
            assert_eq!(db.rows(), rows, "{setup:?} {space}");
            db.database.sync().unwrap();
            let disk = power_cut(&stage.below);
            assert_eq!(setup.open_memory(&disk).unwrap().rows(), rows, "{setup:?} {space}");
            db.step();
            db.database.close().unwrap();
            assert_eq!(setup.open_memory(&stage.below).unwrap().rows(), rows);
        }
    }
}

#[test]
fn b21_answered_buffered_writes_survive_a_sync_that_fails_later() {
    for way in ["flush", "sync", "durable write", "close", "seal"] {
        let stage = Stage::new();
        let db = BUFFERED.open(&stage.disk).unwrap();
        let collection = db.collection();
        let mut id = 0;
        let mut rows = Rows::new();
        // Over a roll when it is the seal that fails.
        let stop = if way == "seal" { 1100 } else { 30 };
        while id < stop {
            id += 1;
            put(&collection, id, 10 * id).unwrap();
            rows.insert(id, 10 * id);
        }
        stage.inject(&[Call::SyncData], 0, Outcome::Error(libc::EIO));
        let failed = match way {
            "flush" => {
                db.pass(Duration::from_millis(300));
                Ok(())
            }
            "seal" => {
                db.step();
                Ok(())
            }
            "sync" => db.database.sync(),
            "close" => db.database.close(),
            _ => {
                let batch = batch_of(&collection, 50_000..=50_001);
                let outcome = db.database.write_with(batch, WriteDurability::Durable);
                outcome.unwrap_err();
                Ok(())
            }
        };
        failed.unwrap_or_else(|e| assert_eq!(way, "close", "{e}"));
        if way != "close" {
            assert_eq!(db.rows(), rows, "{way}");
            let after = db
                .database
                .write_with(batch_of(&collection, 60_000..=60_000), WriteDurability::Durable);
            after.unwrap();
            rows.insert(60_000, 600_000);
            assert_eq!(db.rows(), rows, "{way}");
            let disk = power_cut(&stage.below);
            assert_eq!(
                BUFFERED.open_memory(&disk).unwrap().rows(),
                rows,
                "{way}: after power loss"
            );
            db.step();
            db.database.close().unwrap();
        }
        assert_eq!(BUFFERED.open_memory(&kill(&stage.below)).unwrap().rows(), rows, "{way}");
    }
}

#[test]
fn a_seal_whose_sync_fails_costs_no_durable_write_and_is_repeated() {
    for later_write_fails in [false, true] {
        let stage = Stage::new();
        let db = DURABLE.open(&stage.disk).unwrap();
        let collection = db.collection();
        db.step();
        let mut rows = Rows::new();
        let mut id = 0;
        while db.database.stats().rolls == 0 {
            id += 1;
            put(&collection, id, 10 * id).unwrap();
            rows.insert(id, 10 * id);
        }
        // The next sync is that of the index: the log was synced write by write.
        stage.inject(&[Call::SyncData], 0, Outcome::Error(libc::EIO));
        db.step();
        assert_eq!(db.database.stats().seals, 0, "the seal failed");
        for _ in 0..10 {
            id += 1;
            put(&collection, id, 10 * id).unwrap();
            rows.insert(id, 10 * id);
        }
        if later_write_fails {
            stage.inject(&[Call::Write], 0, Outcome::Error(libc::EIO));
            put(&collection, 90_000, 1).unwrap_err();
            put(&collection, 90_001, 1).unwrap();
            rows.insert(90_001, 1);
        }
        assert_eq!(db.rows(), rows);
        let disk = power_cut(&stage.below);
        assert_eq!(DURABLE.open_memory(&disk).unwrap().rows(), rows);
        // Through further rolls, for which the first seal must have ended.
        while db.database.stats().rolls < 4 {
            id += 1;
            put(&collection, id, 10 * id).unwrap();
            rows.insert(id, 10 * id);
        }
        db.step();
        assert_eq!(db.rows(), rows);
        db.database.close().unwrap();
        assert_eq!(DURABLE.open_memory(&stage.below).unwrap().rows(), rows);
    }
}

/// Puts, rolls, steps and a close, with one call after the other failing: whatever was acknowledged
/// is there after a power cut.
#[test]
fn b1_a_fault_at_any_call_costs_nothing_that_was_acknowledged_durable() {
    let outcomes = [
        Outcome::Error(libc::EIO),
        Outcome::ErrorAfter(libc::EIO),
        Outcome::Short(20),
        Outcome::ShortThenError(100, libc::EIO),
    ];
    for outcome in outcomes {
        let run = |k: Option<u64>| -> u64 {
            let stage = Stage::new();
            let db = DURABLE.open(&stage.disk).unwrap();
            let collection = db.collection();
            let before = stage.faulty.calls_of(CHANGES);
            if let Some(k) = k {
                stage.inject(CHANGES, k, outcome);
            }
            let mut rows = Rows::new();
            let mut unsure = std::collections::BTreeSet::new();
            for group in 0..12 {
                let ids = group * 4 + 1..=group * 4 + 4;
                match db.database.write(large_batch_of(&collection, ids.clone())) {
                    Ok(()) => rows.extend(expected(ids)),
                    Err(_) => drop(unsure.insert(group)),
                }
                if group % 3 == 0 {
                    db.step();
                }
                assert_eq!(db.rows(), rows, "{outcome:?} at {k:?}, group {group}");
            }
            // A group whose outcome was unknown is gone since the next success.
            assert!(unsure.len() <= 1, "{outcome:?} at {k:?}: {unsure:?}");
            let check = |disk: &MemoryDisk, when: &str| {
                let db = DURABLE.open_memory(disk).unwrap_or_else(|e| {
                    panic!("{outcome:?} at {k:?}, {when}: {e}\n{:?}", names(disk))
                });
                let mut found = db.rows();
                if unsure.contains(&11) {
                    found.retain(|id, _| *id <= 44);
                }
                assert!(found == rows, "{outcome:?} at {k:?}, {when}");
                let left = segments(disk).len() as u64;
                let stats = db.database.stats();
                let known = stats.segments_sealed + stats.segments_unsealed;
                assert!(left <= known + 1, "{outcome:?} at {k:?}, {when}: leaked files");
            };
            check(&power_cut(&stage.below), "power cut");
            check(&kill(&stage.below), "kill");
            let closed = db.database.close();
            let calls = stage.faulty.calls_of(CHANGES) - before;
            check(&power_cut(&stage.below), "power cut after the close");
            check(&kill(&stage.below), if closed.is_ok() { "close" } else { "failed close" });
            calls
        };
        let calls = run(None);
        assert!(calls > 40, "{calls}");
        for k in 0..calls {
            run(Some(k));
        }
    }
}

/// From the k-th change on everything fails, the process is killed or the power cut, and the folder
/// opened again.
#[test]
fn b1_a_disk_that_dies_at_any_call_costs_nothing_that_was_acknowledged_durable() {
    let run = |k: Option<u64>| -> u64 {
        let stage = Stage::new();
        let db = DURABLE.open(&stage.disk).unwrap();
        let collection = db.collection();
        let before = stage.faulty.calls_of(CHANGES);
        if let Some(k) = k {
            stage.faulty.fail_from(CHANGES, k, libc::EIO);
        }
        let mut rows = Rows::new();
        let mut unsure = Rows::new();
        for group in 0..12 {
            let ids = group * 4 + 1..=group * 4 + 4;
            match db.database.write(large_batch_of(&collection, ids.clone())) {
                Ok(()) => rows.extend(expected(ids)),
                Err(_) if unsure.is_empty() => unsure = expected(ids),
                Err(e) => assert!(
                    matches!(
                        e,
                        Error::ReadOnly { .. } | Error::WriteFailed { .. } | Error::Io { .. }
                    ),
                    "{e:?}"
                ),
            }
            if group % 3 == 0 {
                db.step();
            }
            assert_eq!(db.rows(), rows, "at {k:?}: reads go on");
        }
        let died = power_cut(&stage.below);
        let killed = kill(&stage.below);
        let closed = db.database.close();
        let calls = stage.faulty.calls_of(CHANGES) - before;
        if closed.is_ok() {
            // All that could still fail is the removal of files that are not needed.
            let db = DURABLE.open_memory(&power_cut(&stage.below)).unwrap();
            assert_eq!(
                db.database.stats().recovery.log_bytes,
                0,
                "at {k:?}: the close is a clean one"
            );
        }
        for disk in [died, killed, power_cut(&stage.below), kill(&stage.below)] {
            let db = DURABLE.open_memory(&disk).unwrap_or_else(|e| panic!("at {k:?}: {e}"));
            let found = db.rows();
            let mut with_unsure = rows.clone();
            with_unsure.extend(unsure.clone());
            assert!(found == rows || found == with_unsure, "at {k:?}: {} rows", found.len());
        }
        calls
    };
    let calls = run(None);
    for k in 0..calls {
        run(Some(k));
    }
}

#[test]
fn a_disk_that_lies_about_syncs_loses_no_more_than_a_suffix() {
    let mut random = Random::new(0x11e5);
    for _ in 0..40 {
        let stage = Stage::new();
        let db = DURABLE.open(&stage.disk).unwrap();
        let collection = db.collection();
        stage.faulty.set_syncs(Syncs::Lying);
        for id in 1..=60 {
            put(&collection, id, 10 * id).unwrap();
        }
        let often = 2 + random.below(40);
        let disk = stage.below.power_cut(|_| random.below(often) > 0).unwrap();
        // A disk that lied about what marks call synced: that is damage, which Strict reports, or a
        // shorter prefix.
        match DURABLE.open_memory(&disk) {
            Ok(db) => {
                let rows = db.rows();
                let kept = i64::try_from(rows.len()).unwrap();
                assert_eq!(rows, expected(1..=kept));
            }
            Err(e) => drop(corrupt_file(&e)),
        }
        let rows = DURABLE.cut_at_damage().open_memory(&disk).unwrap().rows();
        let kept = i64::try_from(rows.len()).unwrap();
        assert_eq!(rows, expected(1..=kept));
    }
}
