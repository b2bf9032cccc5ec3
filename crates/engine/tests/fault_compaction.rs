//! Fault cases of compaction: deletes that meet merges, readers that meet them, work that must end,
//! and work that must not wait for ever.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod faults;

use std::path::Path;
use std::sync::{Arc, Mutex};

use engine::disk::faulty::{Call, FaultyDisk};
use engine::disk::{Disk, MemoryDisk};
use engine::{Collection, CompactionReason, Reads};
use faults::hook::{Hook, HookDisk};
use faults::life::{IDLE, Life, both_ways};
use faults::sorted::find;
use faults::*;

/// As a kill, a power cut and a close leave the disk; what was written before is durable.
fn reopened(life: Life, setup: Setup, below: &MemoryDisk, what: &str) {
    life.db.database.sync().unwrap();
    for (after, disk) in [("a kill", kill(below)), ("a power cut", power_cut(below))] {
        let again = life.again(setup, &shared(&disk)).unwrap();
        again.check(&format!("{what}, after {after}"));
        again.compact();
        again.check(&format!("{what}, after {after} and a sweep"));
    }
    life.db.database.close().unwrap();
    let again = life.again(setup, &shared(below)).unwrap();
    again.check(&format!("{what}, after a close"));
    again.compact();
    again.check(&format!("{what}, after a close and a sweep"));
}

#[test]
fn c1_a_merge_of_newer_runs_keeps_what_deletes_in_older_ones() {
    for setup in [DURABLE.tiny(), BUFFERED.tiny()] {
        for documents in [false, true] {
            let what = format!("{:?}, documents: {documents}", setup.durability);
            let below = MemoryDisk::new();
            let mut life = Life::new(setup, &shared(&below));
            life.put(1, 10);
            // As large as all that comes after it, so that it is not merged with it.
            for id in 100..140 {
                life.collection.put(id, &large_document_of(id, 300)).unwrap();
                life.rows.insert(id, id);
            }
            life.roll();
            life.delete(1);
            put_elsewhere(&life);
            life.roll();
            if documents {
                damage_elsewhere(&below);
            }
            life.roll();
            life.step();
            let reason =
                if documents { CompactionReason::Documents } else { CompactionReason::Indexes };
            assert_eq!(life.count(reason), 1, "{what}");
            assert_eq!(life.count(CompactionReason::Level0), 0, "{what}: the oldest stays");
            assert_eq!(life.stats().level0_runs, 2, "{what}");
            life.check(&what);
            reopened(life, setup, &below, &what);
        }
    }
}

fn large_document_of(value: i64, bytes: usize) -> serde_json::Value {
    serde_json::json!({ "v": value, "pad": "x".repeat(bytes) })
}

/// Calls that change something, in the order in which a job makes them.
#[derive(Debug, Default)]
struct Interrupt {
    state: Mutex<Pending>,
}

type Act = Box<dyn FnOnce(&Path) + Send>;

#[derive(Default)]
struct Pending {
    calls: usize,
    at: Option<usize>,
    act: Option<Act>,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").field("at", &self.at).finish_non_exhaustive()
    }
}

impl Interrupt {
    /// Acts before the call of this number, counted from now.
    fn before(&self, at: usize, act: impl FnOnce(&Path) + Send + 'static) {
        *self.state.lock().unwrap() = Pending { calls: 0, at: Some(at), act: Some(Box::new(act)) };
    }

    /// Whether the call came.
    fn disarm(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        state.at = None;
        state.act.take().is_none()
    }
}

impl Hook for Interrupt {
    fn begin(&self, call: Call, path: &Path) {
        let is_change = matches!(
            call,
            Call::Open | Call::Write | Call::SyncData | Call::SyncDir | Call::Remove
        );
        if !is_change {
            return;
        }
        let act = {
            let mut state = self.state.lock().unwrap();
            state.calls += 1;
            if state.at == Some(state.calls) { state.act.take() } else { None }
        };
        if let Some(act) = act {
            act(path);
        }
    }
}

/// What comes between the copy of a record and its publication.
#[derive(Clone, Copy, Debug)]
enum Race {
    Delete,
    Update,
    DeleteAndSeal,
}

/// Level 1 with some rows, and above it runs of level 0 that compaction merges first, then sweeps.
fn layered(setup: Setup, disk: &Arc<dyn Disk>) -> Life {
    let mut life = Life::new(setup.manual(), disk);
    for id in 0..40 {
        life.put(id, id);
    }
    life.roll();
    life.compact();
    for round in 0..3 {
        for id in (round..40).step_by(3) {
            life.put(id, 100 + id);
        }
        life.delete(30 + round);
        life.roll();
    }
    life
}

#[test]
fn c2_a_delete_or_update_that_races_a_merge_is_not_lost() {
    for setup in [DURABLE.tiny(), BUFFERED.tiny()] {
        for race in [Race::Delete, Race::Update, Race::DeleteAndSeal] {
            let mut call = 0;
            loop {
                call += 1;
                let what = format!("{:?} {race:?} before call {call}", setup.durability);
                let below = MemoryDisk::new();
                let interrupt = Arc::new(Interrupt::default());
                let disk: Arc<dyn Disk> = Arc::new(HookDisk::new(shared(&below), &interrupt));
                let life = layered(setup, &shared(&below));
                life.db.database.close().unwrap();
                let mut life = life.again(setup.manual(), &disk).unwrap();
                life.step();
                let collection = life.collection.clone();
                let executor = Arc::clone(&life.db.executor);
                let database = life.db.database.clone();
                interrupt.before(call, move |path| {
                    race_with(race, path, &collection, &|| {
                        while database.stats().segments_unsealed > 1 {
                            executor.step().unwrap();
                        }
                    });
                });
                life.compact();
                if !interrupt.disarm() {
                    break;
                }
                match race {
                    Race::Delete | Race::DeleteAndSeal => {
                        life.rows.remove(&2);
                        life.rows.remove(&35);
                        life.ids.extend([2, 35]);
                    }
                    Race::Update => life.rows.extend([(2, -2), (35, -35)]),
                }
                if matches!(race, Race::DeleteAndSeal) {
                    let filler = 2_000_000..2_000_064;
                    life.rows.extend(
                        rows(&life.db.database).unwrap().range(filler).map(|(k, v)| (*k, *v)),
                    );
                }
                life.check(&what);
                // Each second one: the reopens cost most of the time.
                if call % 2 == 0 {
                    reopened(life, setup.manual(), &below, &what);
                }
            }
            assert!(call > 20, "{call} calls");
        }
    }
}

/// Id 2 is early in the order of a sweep, 35 late.
fn race_with(race: Race, path: &Path, collection: &Collection, seal: &dyn Fn()) {
    match race {
        Race::Delete | Race::DeleteAndSeal => {
            collection.delete(2).unwrap();
            collection.delete(35).unwrap();
        }
        Race::Update => {
            put(collection, 2, -2).unwrap();
            put(collection, 35, -35).unwrap();
        }
    }
    // Who writes the manifest has it to itself, and a segment cannot begin without it.
    if matches!(race, Race::DeleteAndSeal) && path.extension().is_some_and(|e| e == "seg") {
        for id in 2_000_000..2_000_064 {
            put(collection, id, id).unwrap();
        }
        seal();
    }
}

#[test]
fn c4_what_was_put_merged_deleted_and_merged_stays_away() {
    for setup in [DURABLE.tiny(), BUFFERED.tiny()] {
        let below = MemoryDisk::new();
        let mut life = Life::new(setup, &shared(&below));
        for round in 0..3 {
            let what = format!("{:?}, round {round}", setup.durability);
            for id in 0..100 {
                life.put(id, round + id);
            }
            life.compact();
            life.check(&what);
            for id in 0..100 {
                life.delete(id);
            }
            life.compact();
            life.check(&what);
            life.db.database.sync().unwrap();
            for disk in [kill(&below), power_cut(&below)] {
                life.again(setup, &shared(&disk)).unwrap().check(&what);
            }
            life.db.database.close().unwrap();
            life = life.again(setup, &shared(&below)).unwrap();
            life.check(&what);
            assert!(life.rows.is_empty());
        }
        life.compact();
        assert_eq!(life.stats().sealed_records, 0);
    }
}

/// What the process has of files below a folder whose names are gone.
fn deleted_files(dir: &Path) -> Vec<String> {
    let is_gone = |name: &str| name.contains(dir.to_str().unwrap()) && name.ends_with("(deleted)");
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let maps = maps.lines().filter(|line| is_gone(line)).map(str::to_owned);
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let links = descriptors.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    let links = links.map(|link| link.to_string_lossy().into_owned()).filter(|link| is_gone(link));
    maps.chain(links).collect()
}

#[test]
fn c8_merged_files_are_readable_while_read_and_leave_nothing_behind() {
    for reads in [Reads::Mapped, Reads::Pread] {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("db");
        let clock = Arc::new(engine::clock::ManualClock::default());
        let executor = Arc::new(engine::executor::Stepped::new(Arc::clone(&clock)));
        let options = engine::Options::default()
            .memory_budget(1 << 20)
            .memtable_bytes(4 << 10)
            .segment_bytes(16 << 10)
            .level0_runs(2)
            .reads(reads)
            .clock(clock)
            .executor(Arc::clone(&executor) as _);
        let database = engine::Database::open(&dir, options).unwrap();
        let collection = database.collection("c").unwrap();
        let write = |value: i64| {
            for id in 0..300 {
                put(&collection, id, value + id).unwrap();
            }
        };
        write(0);
        executor.run_until_idle();
        let expected: Vec<i64> = (0..300).collect();
        for round in 1..4 {
            let document = collection.get(7).unwrap().unwrap();
            let mut scan = collection.scan(..).unwrap();
            let value = |row: engine::Result<(_, engine::Document)>| {
                row.unwrap().1.get_i64("v").unwrap().unwrap() - 1000 * (round - 1)
            };
            let mut seen: Vec<i64> = scan.by_ref().take(100).map(value).collect();
            write(1000 * round);
            database.compact().unwrap();
            executor.run_until_idle();
            // The scan's files are all there, though nothing names them any more.
            assert_eq!(document.get_i64("v").unwrap(), Some(1000 * (round - 1) + 7));
            seen.extend(scan.by_ref().map(value));
            assert_eq!(seen, expected, "{reads:?} round {round}");
            drop((document, scan));
            executor.run_until_idle();
            assert_eq!(deleted_files(&dir), Vec::<String>::new(), "{reads:?} round {round}");
            let names = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name());
            let files = names.filter(|name| name.to_str().unwrap().ends_with(".seg")).count();
            let stats = database.stats();
            // Besides, one is prepared.
            let known = stats.segments_sealed + stats.segments_unsealed + 1;
            assert_eq!(files as u64, known, "{reads:?} round {round}: {stats:?}");
            assert_eq!(stats.level0_segments, 0, "{reads:?} round {round}");
        }
        // A scan that outlives the database.
        let scan = collection.scan(..).unwrap();
        let mut scan = scan.skip(1);
        assert!(scan.next().is_some());
        database.close().unwrap();
        assert_eq!(scan.count(), 298);
        drop((collection, database));
        assert_eq!(deleted_files(&dir), Vec::<String>::new(), "{reads:?} at the end");
    }
}

/// Rows of another collection, to be damaged: they say nothing about the one with the rows.
fn put_elsewhere(life: &Life) {
    let other = life.db.database.collection("other").unwrap();
    for id in 200..204 {
        put(&other, id, id).unwrap();
    }
}

/// Damages an id of the newest segment with those rows, which is sealed: an index cannot name it,
/// so the segment's documents are merged. Neither the first nor the last of its collection: it is
/// known where it was.
fn damage_elsewhere(below: &MemoryDisk) {
    let (segment, place) = find(below, 202);
    flip(below, &segment, place.id + 8, 4);
}

#[test]
fn c10_what_snapshots_see_stays_at_every_step_of_every_merge_and_after_a_reopen() {
    for base in [DURABLE.tiny(), BUFFERED.tiny()] {
        for reads in [Reads::Mapped, Reads::Pread] {
            let setup = Setup { history: 1 << 20, reads, ..base };
            let below = MemoryDisk::new();
            let mut life = Life::new(setup.manual(), &shared(&below));
            let mut views = Vec::new();
            let mut taken = Vec::new();
            let mut random = Random::new(0xc10);
            for round in 0..12 {
                for id in 0..120 {
                    match random.below(5) {
                        0 => life.delete(id),
                        1 | 2 => life.put(id, 1000 * round + id),
                        _ => {}
                    }
                }
                if round % 3 == 1 {
                    views.push((life.db.database.snapshot().unwrap(), life.rows.clone()));
                }
                taken.push((life.stats().visible_sequence, life.rows.clone()));
                if round == 9 {
                    // Sealed at once: what is not sealed yet is read back by a reopen.
                    life.roll();
                    life.seal();
                }
                life.seal();
            }
            let check = |life: &Life, views: &[(engine::Snapshot, Rows)], what: &str| {
                for (view, rows) in views {
                    let scan = || view.scan(&life.collection, ..).unwrap();
                    assert!(both_ways(scan) == *rows, "{what} at {}", view.sequence());
                    for id in (0..120).step_by(17) {
                        let found = view.get(&life.collection, id).unwrap();
                        let found = found.map(|document| document.get_i64("v").unwrap().unwrap());
                        assert_eq!(found, rows.get(&id).copied(), "{what}: {id}");
                    }
                }
            };
            check(&life, &views, "before");
            drop(views);
            life.db.database.close().unwrap();
            for round in 0..3 {
                let what = format!("{:?} {reads:?} open {round}", base.durability);
                life = life.again(setup, &shared(&below)).unwrap();
                let views: Vec<_> = taken
                    .iter()
                    .map(|(at, rows)| (life.db.database.snapshot_at(*at).unwrap(), rows.clone()))
                    .collect();
                let mut steps = 0;
                for _ in 0..8 {
                    while let Some(job) = life.db.executor.step() {
                        if job == "compact" {
                            steps += 1;
                            check(&life, &views, &format!("{what}, step {steps}"));
                        }
                    }
                    life.db.clock.advance(IDLE);
                }
                life.check(&what);
                if round == 0 {
                    assert!(life.count(CompactionReason::Indexes) > 0, "{:?}", life.stats());
                    assert!(steps > 6, "{steps} steps");
                }
                drop(views);
                // More to merge.
                for id in 0..120 {
                    life.put(id, id + round);
                }
                life.roll();
                taken.push((life.stats().visible_sequence, life.rows.clone()));
                life.db.database.close().unwrap();
            }
        }
    }
}

#[test]
fn c10_what_snapshots_see_stays_at_every_step_of_merges_of_documents() {
    let setup = DURABLE.tiny();
    let below = MemoryDisk::new();
    let mut life = Life::new(setup, &shared(&below));
    // So much that what follows is merged within level 0, and the rest of it at the end.
    for id in 60..190 {
        life.collection.put(id, &large_document_of(id, 300)).unwrap();
        life.rows.insert(id, id);
    }
    life.compact();
    let mut views = Vec::new();
    let mut steps = 0;
    for round in 0..8 {
        for id in (round % 3..60).step_by(3) {
            life.put(id, 100 * round + id);
        }
        life.delete(round);
        if round % 2 == 0 {
            views.push((life.db.database.snapshot().unwrap(), life.rows.clone()));
        }
        put_elsewhere(&life);
        life.roll();
        damage_elsewhere(&below);
        while life.db.executor.step().is_some() {
            steps += 1;
            life.check("now");
            for (view, rows) in &views {
                assert!(both_ways(|| view.scan(&life.collection, ..).unwrap()) == *rows);
            }
        }
    }
    assert!(steps > 20, "{steps}");
    assert!(life.count(CompactionReason::Documents) > 1, "{:?}", life.stats());
    assert!(life.stats().quarantined_segments > 0);
    life.compact();
    life.check("swept");
    for (view, rows) in &views {
        assert!(both_ways(|| view.scan(&life.collection, ..).unwrap()) == *rows, "swept");
    }
}

#[test]
fn compact_merges_what_came_after_one_that_found_nothing_or_failed() {
    for setup in [DURABLE.tiny().manual(), BUFFERED.tiny().manual()] {
        let below = MemoryDisk::new();
        let faulty = FaultyDisk::new(shared(&below));
        let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
        let mut life = Life::new(setup, &disk);
        let mut next = 0;
        let mut write = |life: &mut Life| {
            for id in next..next + 100 {
                life.put(id, id);
            }
            next += 100;
        };
        let check = |life: &Life, what: &str| {
            let stats = life.stats();
            assert_eq!((stats.level0_segments, stats.level0_bytes), (0, 0), "{what}: {stats:?}");
            life.check(what);
        };
        // Nothing is there to be merged, twice.
        life.compact();
        life.compact();
        write(&mut life);
        life.compact();
        check(&life, "after one that found nothing");
        write(&mut life);
        life.step();
        faulty.fail_from(&[Call::SyncDir], 0, libc::EIO);
        life.db.database.compact().unwrap_err();
        faulty.heal();
        life.compact();
        check(&life, "after one that failed");
        write(&mut life);
        life.compact();
        check(&life, "after one that succeeded");
    }
}
