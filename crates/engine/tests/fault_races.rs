//! Failures that meet work in progress: flushes, repairs and seals that overlap, handles that
//! outlive their database, and what a search behind damage reads.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test may panic")]

mod faults;

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use engine::disk::faulty::{Call, Fault, FaultyDisk, Outcome, Repeat};
use engine::disk::{Access, Disk, MemoryDisk, OpenMode};
use engine::executor::Stepped;
use engine::{Batch, Database, Error, Options, Reads, WriteDurability};
use serde_json::json;

use faults::hook::{Hook, HookDisk};
use faults::*;

#[test]
fn a_prepared_segment_takes_no_records_while_an_edit_may_have_removed_it() {
    let below = MemoryDisk::new();
    let faulty = FaultyDisk::new(shared(&below));
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let open = DURABLE.open(&disk).unwrap();
    let documents = open.collection();
    // Prepares a segment, which the batch does not fit.
    open.step();
    put_large(&documents, 1, 10).unwrap();
    // The edit that removes it is written and not synced.
    faulty.inject(Fault {
        calls: vec![Call::SyncData],
        skip: 0,
        outcome: Outcome::ErrorAfter(libc::EIO),
        repeat: Repeat::Once,
    });
    let mut batch = Batch::new();
    for id in 1000..1030 {
        batch.put(&documents, id, &large_document(1)).unwrap();
    }
    open.database.write(batch).unwrap_err();
    let mut acknowledged = vec![1];
    for id in 2..25 {
        put_large(&documents, id, 10 * id).unwrap();
        acknowledged.push(id);
    }
    for (after, disk) in [("a power cut", power_cut(&below)), ("a kill", kill(&below))] {
        let rows = DURABLE.open_memory(&disk).unwrap().rows();
        for id in &acknowledged {
            assert!(rows.contains_key(id), "{id} is lost after {after}");
        }
    }
}

/// Holds syncs back: those of the first segment until a later one arrives, and that one until the
/// first is done.
#[derive(Debug, Default)]
struct Gate {
    stage: Mutex<Stage>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    #[default]
    Open,
    Armed,
    FirstWaits,
    LaterWaits,
    FirstDone,
}

impl Gate {
    fn reach(&self, stage: Stage) {
        *self.stage.lock().unwrap() = stage;
        self.changed.notify_all();
    }

    fn wait_for(&self, stage: Stage) {
        let guard = self.stage.lock().unwrap();
        drop(self.changed.wait_while(guard, |now| *now < stage).unwrap());
    }
}

impl Hook for Gate {
    fn sync(&self, path: &Path, sync: &dyn Fn() -> io::Result<()>) -> io::Result<()> {
        let is_first = path.ends_with("0000000000000001.seg");
        let is_later = !is_first && path.extension().is_some_and(|extension| extension == "seg");
        let stage = *self.stage.lock().unwrap();
        if is_first && stage == Stage::Armed {
            self.reach(Stage::FirstWaits);
            self.wait_for(Stage::LaterWaits);
            let outcome = sync();
            self.reach(Stage::FirstDone);
            return outcome;
        }
        if is_later && stage == Stage::FirstWaits {
            self.reach(Stage::LaterWaits);
            self.wait_for(Stage::FirstDone);
        }
        sync()
    }
}

#[test]
fn a_flush_that_ends_while_a_repair_runs_loses_nothing_that_was_answered() {
    let below = MemoryDisk::new();
    let faulty = FaultyDisk::new(shared(&below));
    let gate = Arc::new(Gate::default());
    let disk: Arc<dyn Disk> = Arc::new(HookDisk::new(Arc::new(faulty.clone()), &gate));
    let open = BUFFERED.open(&disk).unwrap();
    let documents = open.collection();
    open.database.sync().unwrap();
    let mut acknowledged: Vec<i64> = (1..=5).collect();
    for id in &acknowledged {
        put(&documents, *id, 10 * id).unwrap();
    }
    gate.reach(Stage::Armed);
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| open.database.sync());
        gate.wait_for(Stage::FirstWaits);
        faulty.inject(Fault {
            calls: vec![Call::Write],
            skip: 0,
            outcome: Outcome::Error(libc::ENOSPC),
            repeat: Repeat::Once,
        });
        put(&documents, 6, 60).unwrap_err();
        // Repairs: its new segment is synced while the flush of the old one ends.
        put(&documents, 7, 70).unwrap();
        flush.join().unwrap().unwrap();
    });
    acknowledged.push(7);
    for id in 8..20 {
        let mut batch = Batch::new();
        batch.put(&documents, id, &document(10 * id)).unwrap();
        open.database.write_with(batch, WriteDurability::Durable).unwrap();
        acknowledged.push(id);
    }
    for sealed in ["before the old segment's seal", "after it"] {
        let rows = BUFFERED.open_memory(&power_cut(&below)).unwrap().rows();
        for id in &acknowledged {
            assert!(rows.contains_key(id), "{id} is lost {sealed}");
        }
        open.step();
    }
}

#[test]
fn a_search_behind_damage_reads_the_log_about_once() {
    let setup = Setup { memtable_bytes: 4 << 20, segment_bytes: 16 << 20, ..BUFFERED };
    let below = MemoryDisk::new();
    let open = setup.open_memory(&below).unwrap();
    let documents = open.collection();
    for id in 0..8_000 {
        put(&documents, id, id).unwrap();
    }
    let copy = kill(&below);
    let path = Path::new("/db/0000000000000001.seg");
    let file = copy.open(path, OpenMode::ReadWrite).unwrap();
    file.write_at(&[IoSlice::new(&[0xFF; 8])], 4096 + 200, Access::Keep).unwrap();
    let counting = FaultyDisk::new(shared(&copy));
    let disk: Arc<dyn Disk> = Arc::new(counting.clone());
    let again = setup.cut_at_damage().open(&disk).unwrap();
    assert!(again.database.stats().recovery.torn_tail);
    let windows = file.len().unwrap() >> 20;
    let reads = counting.calls(Call::Read);
    assert!(reads < 3 * windows + 30, "{reads} reads of a file of {windows} windows");
}

#[test]
fn an_old_handle_removes_nothing_of_the_database_that_came_after() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let open = || Database::open(&path, Options::default()).unwrap();
    // A session without a write leaves an empty segment, which its handles keep.
    let old = open();
    old.close().unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    let new = open();
    let documents = new.collection("documents").unwrap();
    documents.put(1, &document(10)).unwrap();
    drop(old);
    drop(documents);
    new.close().unwrap();
    drop(new);
    let again = open();
    assert!(again.collection("documents").unwrap().get(1).unwrap().is_some());
}

#[test]
fn a_seal_that_a_full_disk_stops_leaves_the_records_readable_without_a_map() {
    // Logs that end at different places of a page.
    for length in 0..24 {
        let below = MemoryDisk::new();
        let faulty = FaultyDisk::new(shared(&below));
        let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
        let stepped = Arc::new(Stepped::new(Arc::default()));
        let options = Options::default()
            .disk(disk)
            .executor(stepped.clone())
            .memtable_bytes(64 << 10)
            .reads(Reads::Pread);
        let database = Database::open("/db", options).unwrap();
        let documents = database.collection("documents").unwrap();
        documents.put(0, &json!({ "v": "x".repeat(170 * length) })).unwrap();
        let mut count = 1;
        while database.stats().rolls == 0 {
            documents.put(count, &document(count)).unwrap();
            count += 1;
        }
        faulty.set_free_space(Some(0));
        stepped.run_until_idle();
        assert_eq!(database.stats().seals, 0, "the disk is full");
        for id in 0..count {
            assert!(documents.get(id).unwrap().is_some(), "{length}: {id}");
        }
        assert!(documents.scan(..).unwrap().all(|row| row.is_ok()));
    }
}

#[test]
fn a_damaged_document_in_an_unsealed_segment_is_reported_and_stops_no_write() {
    let below = MemoryDisk::new();
    let open = DURABLE.manual().open_memory(&below).unwrap();
    let documents = open.collection();
    put(&documents, 1, 10).unwrap();
    let segment = log_segment(&below);
    let record = records(&read(&below, &segment)).into_iter().rfind(|r| r.kind == PUT).unwrap();
    flip(&below, &segment, record.end() - 2, 3);
    let error = documents.get(1).unwrap_err();
    assert_eq!(corrupt_file(&error), segment);
    for id in 2..3000 {
        put(&documents, id, 10 * id).unwrap();
        if id % 100 == 0 {
            open.step();
        }
    }
    assert!(open.database.stats().seals >= 2);
    assert_eq!(corrupt_file(&documents.get(1).unwrap_err()), segment, "after the seal too");
    assert!(documents.get(2).unwrap().is_some());
}

#[test]
fn a_flush_that_failed_is_tried_again_though_nothing_is_written() {
    let below = MemoryDisk::new();
    let faulty = FaultyDisk::new(shared(&below));
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let open = BUFFERED.open(&disk).unwrap();
    let documents = open.collection();
    open.step();
    put(&documents, 1, 10).unwrap();
    // The sync fails, and so does the repair.
    faulty.fail_from(&[Call::SyncData, Call::Open], 0, libc::EIO);
    open.pass(Duration::from_millis(300));
    assert!(!BUFFERED.open_memory(&power_cut(&below)).unwrap().rows().contains_key(&1));
    faulty.heal();
    open.pass(Duration::from_millis(300));
    assert_eq!(BUFFERED.open_memory(&power_cut(&below)).unwrap().rows(), expected([1]));
}

#[test]
fn a_repair_of_an_empty_segment_keeps_the_chain_to_the_one_before() {
    let below = MemoryDisk::new();
    let faulty = FaultyDisk::new(shared(&below));
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let setup = Setup { segment_bytes: 1 << 20, ..DURABLE };
    let open = setup.open(&disk).unwrap();
    let documents = open.collection();
    let mut id = 0;
    while open.database.stats().rolls == 0 {
        id += 1;
        // No step: the segment that is left stays frozen.
        if open.database.stats().memtable_records == 1024 {
            // The header's write passes, that of the first group fails.
            faulty.fail_once(&[Call::Write], 2, libc::EIO);
        }
        drop(put(&documents, id, 10 * id));
    }
    let frozen = segments(&below).into_iter().next().unwrap();
    for id in id + 1..id + 10 {
        put(&documents, id, 10 * id).unwrap();
    }
    assert_eq!(open.database.stats().repairs, 1);
    assert_eq!(open.database.stats().segments_sealed, 0, "the first segment is still unsealed");
    let killed = kill(&below);
    let last = records(&read(&killed, &frozen)).into_iter().rfind(|r| r.kind == PUT).unwrap();
    flip(&killed, &frozen, last.end() - 2, 1);
    let error = setup.open_memory(&killed).unwrap_err();
    assert_eq!(corrupt_file(&error), frozen, "{error}");
}

#[test]
fn a_repair_does_not_take_a_damaged_id_for_the_true_one() {
    let below = MemoryDisk::new();
    let faulty = FaultyDisk::new(shared(&below));
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let open = DURABLE.open(&disk).unwrap();
    let documents = open.collection();
    put(&documents, 1, 10).unwrap();
    let segment = log_segment(&below);
    let record = records(&read(&below, &segment)).into_iter().rfind(|r| r.kind == PUT).unwrap();
    // The last byte of the id: 1 becomes 3.
    flip(&below, &segment, record.offset + 28 + 8, 1);
    faulty.fail_once(&[Call::Write], 0, libc::EIO);
    put(&documents, 2, 20).unwrap_err();
    let error = put(&documents, 4, 40).unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. }), "{error}");
    assert_eq!(corrupt_file(&documents.get(1).unwrap_err()), segment);
    assert!(documents.get(3).unwrap().is_none());
}

#[test]
fn a_long_id_that_is_damaged_in_an_unsealed_segment_is_corrupt_and_not_absent() {
    let below = MemoryDisk::new();
    let open = DURABLE.open_memory(&below).unwrap();
    let documents = open.collection();
    let id = "user6284781860667377211";
    documents.put(id, &document(1)).unwrap();
    documents.put("user6284781860667377999", &document(2)).unwrap();
    let segment = log_segment(&below);
    let bytes = read(&below, &segment);
    let record = records(&bytes).into_iter().find(|r| {
        r.kind == PUT
            && bytes[r.offset..r.offset + r.used].windows(id.len()).any(|w| w == id.as_bytes())
    });
    // The id's last byte, behind what the memtable remembers.
    flip(&below, &segment, record.unwrap().offset + 28 + id.len(), 0);
    assert_eq!(corrupt_file(&documents.get(id).unwrap_err()), segment);
    assert!(documents.insert(id, &document(3)).is_err(), "nothing is built on it");
    assert!(documents.get("user6284781860667377999").unwrap().is_some());
    assert!(documents.get("user6284781860667377998").unwrap().is_none());
}
