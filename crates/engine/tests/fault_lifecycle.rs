//! Fault cases of opening and closing: crashes at every step, foreign folders, locks, and what
//! opening costs.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod faults;

use std::ffi::OsString;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::disk::faulty::{Call, Fault, FaultyDisk, Outcome, Repeat};
use engine::disk::{Disk, MemoryDisk, Operation, RealDisk, Unsynced};
use engine::{Database, Error, Options};
use faults::hook::{Hook, HookDisk};
use faults::*;

/// Every call that changes something, or that an opening needs.
const CHANGES_AND_OPENING: &[Call] = &[
    Call::Open,
    Call::Write,
    Call::SyncData,
    Call::SyncDir,
    Call::SetLen,
    Call::Allocate,
    Call::Rename,
    Call::Remove,
    Call::CreateDir,
    Call::Lock,
];

/// What power cuts leave of a disk: nothing unsynced, all of it, the names or the bytes alone, and
/// random parts.
fn power_cuts(disk: &MemoryDisk, random: &mut Random) -> Vec<MemoryDisk> {
    let is_byte =
        |unsynced: &Unsynced| matches!(unsynced, Unsynced::Sector { .. } | Unsynced::Length { .. });
    vec![
        power_cut(disk),
        kill(disk),
        disk.power_cut(is_byte).unwrap(),
        disk.power_cut(|unsynced| !is_byte(unsynced)).unwrap(),
        disk.power_cut(|_| random.below(2) == 0).unwrap(),
        disk.power_cut(|_| random.below(8) > 0).unwrap(),
    ]
}

#[test]
fn a14_a_power_cut_at_any_step_of_the_first_open_leaves_a_folder_that_opens() {
    let mut random = Random::new(0xa14);
    let disk = MemoryDisk::new();
    disk.start_trace();
    let db = DURABLE.open_memory(&disk).unwrap();
    db.step();
    let trace = disk.trace();
    drop(db);
    assert!(trace.len() > 8, "{trace:?}");
    for k in 0..=trace.len() {
        let disk = MemoryDisk::replay(&trace[..k]).unwrap();
        for (cut, disk) in power_cuts(&disk, &mut random).into_iter().enumerate() {
            let what = format!("step {k} of {}, cut {cut}", trace.len());
            let db = DURABLE
                .open_memory(&disk)
                .unwrap_or_else(|e| panic!("{what}: {e}\n{:?}", names(&disk)));
            assert_eq!(db.rows(), Rows::new(), "{what}");
            put(&db.collection(), 1, 10).unwrap();
            let disk = power_cut(&disk);
            assert_eq!(DURABLE.open_memory(&disk).unwrap().rows(), expected([1]), "{what}");
        }
    }
}

#[test]
fn a13_a_power_cut_at_any_step_of_a_life_keeps_every_acknowledged_write() {
    let mut random = Random::new(0xa13);
    for setup in [DURABLE, BUFFERED] {
        let disk = MemoryDisk::new();
        disk.start_trace();
        // The length of the trace when each write was known to be durable.
        let mut durable = vec![0];
        let db = setup.open_memory(&disk).unwrap();
        let collection = db.collection();
        for id in 1..=40 {
            put_large(&collection, id, 10 * id).unwrap();
            let answer_is_durable = setup.durability == DURABLE.durability;
            if !answer_is_durable && id % 7 == 0 {
                db.database.sync().unwrap();
            }
            if answer_is_durable || id % 7 == 0 {
                durable.resize(usize::try_from(id).unwrap() + 1, disk.trace().len());
            }
            if id % 5 == 0 {
                db.step();
            }
        }
        db.database.close().unwrap();
        let trace = disk.trace();
        durable.resize(41, trace.len());
        assert!(db.database.stats().rolls > 1);
        for k in 0..=trace.len() {
            let disk = MemoryDisk::replay(&trace[..k]).unwrap();
            let at_least = durable.iter().rposition(|&at| at <= k).unwrap();
            for (cut, disk) in power_cuts(&disk, &mut random).into_iter().enumerate() {
                let what = format!("{setup:?} step {k} of {}, cut {cut}", trace.len());
                let db = setup
                    .open_memory(&disk)
                    .unwrap_or_else(|e| panic!("{what}: {e}\n{:?}", names(&disk)));
                let rows = db.try_rows().unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(
                    rows.len() >= at_least,
                    "{what}: {} rows, {at_least} were durable",
                    rows.len()
                );
                let kept = i64::try_from(rows.len()).unwrap();
                assert!(rows == expected(1..=kept), "{what}: a prefix");
            }
        }
    }
}

/// A killed database whose log goes over two unsealed segments, behind one that is sealed.
fn killed_under_load() -> (MemoryDisk, Rows) {
    let disk = MemoryDisk::new();
    let db = DURABLE.open_memory(&disk).unwrap();
    let collection = db.collection();
    let mut rows = Rows::new();
    let mut id = 0;
    let mut stepped = false;
    while db.database.stats().rolls < 2 {
        id += 1;
        put_large(&collection, id, 10 * id).unwrap();
        rows.insert(id, 10 * id);
        if db.database.stats().rolls == 1 && !stepped {
            db.step();
            stepped = true;
        }
    }
    collection.delete(3).unwrap();
    rows.remove(&3);
    let stats = db.database.stats();
    assert_eq!((stats.segments_sealed, stats.segments_unsealed), (1, 2));
    (kill(&disk), rows)
}

#[test]
fn a20_a_crash_at_any_step_of_recovery_leaves_what_was_there() {
    let mut random = Random::new(0xa20);
    let (killed, rows) = killed_under_load();
    let run = |k: Option<u64>, random: &mut Random| -> u64 {
        let below = kill(&killed);
        let faulty = FaultyDisk::new(shared(&below));
        if let Some(k) = k {
            faulty.fail_from(CHANGES_AND_OPENING, k, libc::EIO);
        }
        let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
        let opened = DURABLE.open(&disk);
        let calls = faulty.calls_of(CHANGES_AND_OPENING);
        assert_eq!(opened.is_err(), k.is_some_and(|k| k < calls) && opened.is_err());
        for disk in power_cuts(&below, random) {
            // The recovery after the crash crashes too, anywhere.
            let faulty = FaultyDisk::new(shared(&disk));
            faulty.fail_from(CHANGES_AND_OPENING, random.below(40), libc::EIO);
            drop(DURABLE.open(&(Arc::new(faulty) as Arc<dyn Disk>)));
            let disk = disk.power_cut(|_| random.below(2) == 0).unwrap();
            let db = DURABLE.open_memory(&disk).unwrap_or_else(|e| panic!("crash at {k:?}: {e}"));
            assert!(db.rows() == rows, "crash at {k:?}");
            db.step();
            db.database.close().unwrap();
            let db = DURABLE.open_memory(&disk).unwrap();
            assert!(db.rows() == rows, "crash at {k:?}, reopened");
            // Nothing of the attempts is left.
            let stats = db.database.stats();
            let known = stats.segments_sealed + stats.segments_unsealed;
            assert_eq!(segments(&disk).len() as u64, known, "crash at {k:?}: {:?}", names(&disk));
            assert!(!names(&disk).contains(&"MANIFEST.new".to_owned()));
        }
        calls
    };
    let calls = run(None, &mut random);
    assert!(calls > 12, "{calls}");
    for k in 0..calls {
        run(Some(k), &mut random);
    }
}

#[test]
fn a20_recovery_reports_a_read_error_and_changes_nothing() {
    let (killed, rows) = killed_under_load();
    let reads = {
        let faulty = FaultyDisk::new(shared(&kill(&killed)));
        drop(DURABLE.open(&(Arc::new(faulty.clone()) as Arc<dyn Disk>)).unwrap());
        faulty.calls(Call::Read)
    };
    assert!(reads > 4);
    let mut failed = 0;
    for k in 0..reads {
        let disk = kill(&killed);
        let faulty = FaultyDisk::new(shared(&disk));
        faulty.fail_once(&[Call::Read], k, libc::EIO);
        match DURABLE.open(&(Arc::new(faulty) as Arc<dyn Disk>)) {
            Ok(db) => assert!(db.rows() == rows, "read {k}"),
            Err(e) => {
                assert!(matches!(e, Error::Io { .. }), "read {k}: {e:?}");
                failed += 1;
            }
        }
        assert!(DURABLE.open_memory(&disk).unwrap().rows() == rows, "read {k}, opened again");
    }
    assert!(failed > 4, "{failed} of {reads}");
}

#[test]
fn a28_leftover_temporary_files_do_not_block_opening_and_go() {
    let (killed, rows) = killed_under_load();
    let manifest = read(&killed, &path("MANIFEST"));
    // Crashes during the write of the temporary manifest: every kind of beginning of it.
    for len in (0..manifest.len().min(600)).step_by(7) {
        let disk = kill(&killed);
        create(&disk, &path("MANIFEST.new"), &manifest[..len]);
        let db = DURABLE.open_memory(&disk).unwrap();
        assert!(db.rows() == rows, "{len} bytes");
        assert!(!names(&disk).contains(&"MANIFEST.new".to_owned()));
    }
    // In a real crash, by failing each write and each sync of an open.
    for outcome in [
        Outcome::Short(0),
        Outcome::Short(100),
        Outcome::Error(libc::EIO),
        Outcome::ErrorAfter(libc::EIO),
    ] {
        for k in 0..8 {
            let disk = kill(&killed);
            let faulty = FaultyDisk::new(shared(&disk));
            let calls = vec![Call::Write, Call::SyncData, Call::Rename];
            faulty.inject(Fault { calls, skip: k, outcome, repeat: Repeat::Onward });
            drop(DURABLE.open(&(Arc::new(faulty) as Arc<dyn Disk>)));
            let disk = kill(&disk);
            let db = DURABLE.open_memory(&disk).unwrap();
            assert!(db.rows() == rows, "{outcome:?} from call {k}");
            assert!(!names(&disk).contains(&"MANIFEST.new".to_owned()));
        }
    }
}

/// Everything in a folder of the operating system.
fn listing(dir: &Path) -> Vec<(OsString, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let bytes = if entry.path().is_file() {
                std::fs::read(entry.path()).unwrap()
            } else {
                Vec::new()
            };
            (entry.file_name(), bytes)
        })
        .collect();
    files.sort();
    files
}

#[test]
fn a30_a_folder_of_foreign_files_is_refused_and_unchanged() {
    let foreign: &[&[(&str, &[u8])]] = &[
        &[("notes.txt", b"mine")],
        &[("CURRENT", b"MANIFEST-000001\n"), ("MANIFEST-000001", b"\x01"), ("LOCK", b"")],
        &[("MANIFEST.new", b"Manifest-Version: 1.0\n")],
        &[("LOCK", b"pid 4711\n")],
        &[("LOCK", b""), ("MANIFEST.new", b""), ("photo.jpg", b"\xff\xd8")],
        &[(".hidden", b"")],
        &[("0001.seg", b"not a name of ours")],
    ];
    for files in foreign {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in *files {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        let before = listing(dir.path());
        let error = Database::open(dir.path(), Options::default()).unwrap_err();
        assert!(matches!(error, Error::NotADatabase { .. }), "{files:?}: {error:?}");
        assert_eq!(listing(dir.path()), before, "no file is changed, none appears");
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    let error = Database::open(dir.path(), Options::default()).unwrap_err();
    assert!(matches!(error, Error::NotADatabase { .. }), "{error:?}");
    assert_eq!(listing(dir.path()).len(), 1);
}

#[test]
fn a30_a_folder_with_a_manifest_opens_whatever_else_lies_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Database::open(dir.path(), Options::default()).unwrap();
    let database = open();
    put(&database.collection("c").unwrap(), 1, 10).unwrap();
    database.close().unwrap();
    let foreign: &[(&str, &[u8])] = &[
        ("notes.txt", b"mine"),
        ("MANIFEST.bak", b"x"),
        ("00000000000000ff.seg.bak", b"x"),
        ("ff.seg", b""),
        ("00000000000000fe.seg", b"no segment, though it is called one"),
    ];
    for (name, bytes) in foreign {
        std::fs::write(dir.path().join(name), bytes).unwrap();
    }
    let folders = ["folder", "00000000000000fd.seg"];
    for name in folders {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    for round in 0..3 {
        let database = open();
        assert_eq!(rows(&database).unwrap(), expected([1]));
        put(&database.collection("c").unwrap(), 1, 10).unwrap();
        // By a close and, in the last round, by a drop.
        if round < 2 {
            database.close().unwrap();
        }
        drop(database);
        for (name, bytes) in foreign {
            assert_eq!(&std::fs::read(dir.path().join(name)).unwrap(), bytes, "{name}");
        }
        assert!(folders.iter().all(|name| dir.path().join(name).is_dir()));
    }
}

#[test]
fn a30_a_creation_that_did_not_finish_starts_again() {
    let leftovers: &[&[(&str, &[u8])]] = &[
        &[],
        &[("LOCK", b"")],
        &[("MANIFEST.new", b"")],
        &[("LOCK", b""), ("MANIFEST.new", &[0; 4096])],
        // A power cut while the manifest was written, on a file system that shows what its blocks
        // held before: such a folder was refused for ever.
        &[("LOCK", b""), ("MANIFEST.new", &[0xA5; 4096])],
    ];
    for files in leftovers {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in *files {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        let database = Database::open(dir.path(), Options::default()).unwrap();
        put(&database.collection("c").unwrap(), 1, 10).unwrap();
        database.close().unwrap();
        let database = Database::open(dir.path(), Options::default()).unwrap();
        assert_eq!(rows(&database).unwrap(), expected([1]));
    }
    // With `create_if_missing` off nothing is made.
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    let options = || Options::default().create_if_missing(false);
    for path in [dir.path(), &missing] {
        let error = Database::open(path, options()).unwrap_err();
        assert!(matches!(error, Error::NoDatabase { .. }), "{error:?}");
    }
    assert!(listing(dir.path()).is_empty());
}

/// Of a log without a document recovery keeps nothing, and dooms the copy that it had begun. Opening
/// removes it too, as it does whatever no manifest names: it was then reported as left behind.
#[test]
fn a28_what_recovery_drops_is_gone_and_not_reported_as_left_behind() {
    let disk = MemoryDisk::new();
    drop(DURABLE.open_memory(&disk).unwrap().collection());
    let db = DURABLE.open_memory(&disk).unwrap();
    let other = db.database.collection("other").unwrap();
    let killed = kill(&disk);
    drop(other);
    let db = DURABLE.open_memory(&killed).unwrap();
    db.step();
    let stats = db.database.stats();
    assert_eq!(stats.recovery.records, 1, "the collection");
    assert_eq!(stats.files_left_behind, 0);
    assert_eq!(segments(&killed).len(), 2, "the active one and a prepared one");
    assert_eq!(db.database.collections().unwrap(), ["c", "other"]);
}

#[test]
fn e4_the_lock_is_free_once_the_last_handle_is_dropped_a_thousand_times() {
    let disk = MemoryDisk::new();
    let options = || {
        Options::default()
            .disk(shared(&disk))
            .memtable_bytes(64 << 10)
            .segment_bytes(64 << 10)
            .memory_budget(128 << 10)
    };
    for round in 0..1000 {
        let database =
            Database::open(DIR, options()).unwrap_or_else(|e| panic!("round {round}: {e}"));
        let error = Database::open(DIR, options()).unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{error:?}");
        if round % 100 == 0 {
            put(&database.collection("c").unwrap(), round, 10 * round).unwrap();
        }
        if round % 3 == 0 {
            // The last handle is a collection's.
            let collection = database.collection("c").unwrap();
            drop(database);
            drop(collection);
        }
    }
    assert_eq!(
        rows(&Database::open(DIR, options()).unwrap()).unwrap(),
        expected((0..1000).step_by(100))
    );
}

#[test]
fn e4_on_a_real_folder_too_and_with_documents_and_scans_still_held() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..30 {
        let database = Database::open(dir.path(), Options::default()).unwrap();
        let collection = database.collection("c").unwrap();
        put(&collection, 1, round).unwrap();
        let document = collection.get(1).unwrap().unwrap();
        let mut scan = collection.scan(..).unwrap();
        drop((database, collection));
        let again = Database::open(dir.path(), Options::default()).unwrap();
        assert_eq!(document.get_i64("v").unwrap(), Some(round));
        assert_eq!(scan.next().unwrap().unwrap().1.get_i64("v").unwrap(), Some(round));
        drop(again);
    }
}

#[test]
fn e5_a_database_killed_under_load_makes_progress_with_smaller_limits() {
    let disk = MemoryDisk::new();
    let large = Setup { memtable_bytes: 1 << 20, segment_bytes: 4 << 20, ..BUFFERED };
    let db = large.open_memory(&disk).unwrap();
    let collection = db.collection();
    for id in 1..=6000 {
        put(&collection, id, 10 * id).unwrap();
    }
    assert_eq!(db.database.stats().rolls, 0, "all of it is unsealed");
    let disk = kill(&disk);
    for setup in [BUFFERED, DURABLE] {
        let disk = kill(&disk);
        let db = setup.open_memory(&disk).unwrap();
        assert_eq!(db.database.stats().recovery.records, 6001);
        let collection = db.collection();
        for id in 6001..=9000 {
            put(&collection, id, 10 * id).unwrap();
        }
        assert!(db.database.stats().rolls >= 2);
        assert!(db.rows() == expected(1..=9000));
        db.database.close().unwrap();
        assert!(setup.open_memory(&disk).unwrap().rows() == expected(1..=9000));
    }
}

/// Counts calls, and what is read.
#[derive(Debug, Default)]
struct Counts {
    calls: AtomicU64,
    /// Bytes read, those of the manifest apart.
    log_bytes: AtomicU64,
    manifest_bytes: AtomicU64,
}

impl Hook for Counts {
    fn begin(&self, _call: Call, _path: &Path) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self, path: &Path, bytes: usize) {
        let is_manifest = path.ends_with("MANIFEST");
        let counter = if is_manifest { &self.manifest_bytes } else { &self.log_bytes };
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// Whether a file ends with the trailer that sealing, or compaction, writes last.
fn is_sealed(disk: &dyn Disk, path: &Path) -> bool {
    let bytes = read(disk, path);
    let trailer = bytes.len().checked_sub(4096).map(|at| &bytes[at + 64..at + 72]);
    trailer == Some(b"SEDTRAIL")
}

/// A segment is as long as it may become from its beginning, and what was not written is a hole:
/// opening once read all 64 MiB of it in search of later records.
#[test]
fn f7_opening_after_a_crash_reads_what_was_written_and_no_hole() {
    let setup = Setup { memtable_bytes: 1 << 20, segment_bytes: 64 << 20, ..DURABLE };
    let folder = tempfile::tempdir().unwrap();
    let in_memory = MemoryDisk::new();
    let real: Arc<dyn Disk> = Arc::new(RealDisk::new());
    for (path, disk) in [(Path::new(DIR), shared(&in_memory)), (folder.path(), real)] {
        let db = setup.open_at(path, &disk).unwrap();
        for id in 1..=10 {
            put_large(&db.collection(), id, 10 * id).unwrap();
        }
        // What a kill leaves, beside the database that goes on.
        let (path, disk): (_, Arc<dyn Disk>) = if path == Path::new(DIR) {
            (path.to_owned(), shared(&kill(&in_memory)))
        } else {
            let copy = folder.path().join("copy");
            copy_sparse(path, &copy);
            (copy, disk)
        };
        let counts = Arc::new(Counts::default());
        let counting: Arc<dyn Disk> = Arc::new(HookDisk::new(disk, &counts));
        let db = setup.open_at(&path, &counting).unwrap();
        assert_eq!(db.rows(), expected(1..=10));
        // A window of the log, twice, and a little of the zeros ahead.
        let read = counts.log_bytes.load(Ordering::Relaxed);
        assert!(read < 4 << 20, "{read} bytes read in {}", path.display());
    }
}

/// Copies the segments and the manifest of a folder, holes as holes.
fn copy_sparse(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let copy = std::fs::File::create_new(to.join(path.file_name().unwrap())).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            copy.set_len(bytes.len() as u64).unwrap();
            for (number, block) in bytes.chunks(4096).enumerate() {
                if block.iter().any(|byte| *byte != 0) {
                    copy.write_all_at(block, number as u64 * 4096).unwrap();
                }
            }
        }
    }
}

/// Of the open call itself: the jobs that it schedules may visit what is sealed, and run later.
#[test]
fn f7_opening_after_a_crash_costs_the_unsealed_log_whatever_is_sealed() {
    let mut costs = Vec::new();
    for sealed in [1, 10, 100] {
        let disk = MemoryDisk::new();
        let db = DURABLE.open_memory(&disk).unwrap();
        let collection = db.collection();
        let mut id = 0;
        while db.database.stats().segments_sealed < sealed {
            id += 1;
            put_large(&collection, id, 10 * id).unwrap();
            db.step();
        }
        // The same tail each time.
        for _ in 0..5 {
            id += 1;
            put_large(&collection, id, 10 * id).unwrap();
        }
        let before = db.database.stats();
        assert!(sealed < 10 || before.level1_segments > 0, "some of it is merged");
        let disk = kill(&disk);
        let sealed_files: Vec<_> =
            segments(&disk).into_iter().filter(|path| is_sealed(&disk, path)).collect();
        assert_eq!(sealed_files.len() as u64, before.segments_sealed);
        let counts = Arc::new(Counts::default());
        let counting = HookDisk::new(shared(&disk), &counts);
        disk.start_trace();
        let db = DURABLE.open(&(Arc::new(counting) as Arc<dyn Disk>)).unwrap();
        for operation in disk.trace() {
            if let Operation::Open { path, .. } = operation {
                let was_sealed = sealed_files.contains(&path);
                assert!(!was_sealed, "a sealed segment was opened: {}", path.display());
            }
        }
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        costs.push((load(&counts.calls), load(&counts.log_bytes)));
        // Written anew once it has grown past a megabyte, so it does not keep what was.
        assert!(load(&counts.manifest_bytes) < (1 << 20) + (64 << 10));
        assert_eq!(db.database.stats().segments_sealed, before.segments_sealed + 1);
        assert!(db.rows() == expected(1..=id));
    }
    assert_eq!(costs[0], costs[1]);
    assert_eq!(costs[0], costs[2]);
    assert!(costs[0].1 < 1 << 20, "{costs:?}");
}
