//! Failures that meet work in progress: a flush that ends while a repair runs, a prepared segment
//! that an edit of unknown outcome may have removed, and what a search behind damage reads.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test may panic")]

mod faults;

use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use engine::disk::faulty::{Call, Fault, FaultyDisk, Outcome, Repeat};
use engine::disk::{Access, Disk, DiskFile, DiskLock, Map, MemoryDisk, OpenMode};
use engine::{Batch, WriteDurability};
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
#[derive(Clone, Debug)]
struct GatedDisk {
    below: Arc<dyn Disk>,
    gate: Arc<Gate>,
}

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

    fn sync(&self, is_first: bool, sync: impl Fn() -> io::Result<()>) -> io::Result<()> {
        let stage = *self.stage.lock().unwrap();
        if is_first && stage == Stage::Armed {
            self.reach(Stage::FirstWaits);
            self.wait_for(Stage::LaterWaits);
            let outcome = sync();
            self.reach(Stage::FirstDone);
            return outcome;
        }
        if !is_first && stage == Stage::FirstWaits {
            self.reach(Stage::LaterWaits);
            self.wait_for(Stage::FirstDone);
        }
        sync()
    }
}

#[derive(Debug)]
struct GatedFile {
    below: Arc<dyn DiskFile>,
    gate: Arc<Gate>,
    is_segment: bool,
    is_first: bool,
}

impl Disk for GatedDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        Ok(Arc::new(GatedFile {
            below: self.below.open(path, mode)?,
            gate: Arc::clone(&self.gate),
            is_segment: name.ends_with(".seg"),
            is_first: name == "0000000000000001.seg",
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.below.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.below.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.below.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.below.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.below.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        self.below.lock(path)
    }
}

impl DiskFile for GatedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64, access: Access) -> io::Result<usize> {
        self.below.read_at(buf, offset, access)
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64, access: Access) -> io::Result<usize> {
        self.below.write_at(bufs, offset, access)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.is_segment {
            self.gate.sync(self.is_first, || self.below.sync_data())
        } else {
            self.below.sync_data()
        }
    }

    fn start_writeback(&self, offset: u64, len: u64) -> io::Result<()> {
        self.below.start_writeback(offset, len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.below.allocate(offset, len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.below.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.below.len()
    }

    fn allocated(&self) -> io::Result<u64> {
        self.below.allocated()
    }

    fn map(&self, len: u64) -> io::Result<Map> {
        self.below.map(len)
    }
}

#[test]
fn a_flush_that_ends_while_a_repair_runs_loses_nothing_that_was_answered() {
    let below = MemoryDisk::new();
    let faulty = FaultyDisk::new(shared(&below));
    let gated = GatedDisk { below: Arc::new(faulty.clone()), gate: Arc::default() };
    let disk: Arc<dyn Disk> = Arc::new(gated.clone());
    let open = BUFFERED.open(&disk).unwrap();
    let documents = open.collection();
    open.database.sync().unwrap();
    let mut acknowledged: Vec<i64> = (1..=5).collect();
    for id in &acknowledged {
        put(&documents, *id, 10 * id).unwrap();
    }
    gated.gate.reach(Stage::Armed);
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| open.database.sync());
        gated.gate.wait_for(Stage::FirstWaits);
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
