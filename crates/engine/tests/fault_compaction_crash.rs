//! Fault cases of compaction cut short: by a kill, by a power cut, by a call that fails or by a
//! full disk, at each step of a sweep and of the merges within level 0.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod faults;

use std::sync::Arc;

use engine::disk::faulty::{Call, Fault, FaultyDisk, Outcome, Repeat};
use engine::disk::{Disk, MemoryDisk, Unsynced};
use engine::{Batch, Compaction, CompactionReason, Error};
use faults::life::{Life, both_ways};
use faults::sorted::find;
use faults::*;

/// What crashes leave of a disk: a kill, and power cuts that take all that is not synced, the names
/// or the bytes alone, and random parts.
const CRASHES: usize = 5;

fn crash(disk: &MemoryDisk, cut: usize, random: &mut Random) -> MemoryDisk {
    let is_byte =
        |unsynced: &Unsynced| matches!(unsynced, Unsynced::Sector { .. } | Unsynced::Length { .. });
    match cut {
        0 => kill(disk),
        1 => power_cut(disk),
        2 => disk.power_cut(is_byte).unwrap(),
        3 => disk.power_cut(|unsynced| !is_byte(unsynced)).unwrap(),
        _ => disk.power_cut(|_| random.below(2) == 0).unwrap(),
    }
}

/// No file is left that the database does not know.
fn check_files(life: &Life, disk: &dyn Disk, what: &str) {
    life.step();
    let stats = life.stats();
    // Besides, one is prepared.
    let known = stats.segments_sealed + stats.segments_unsealed + 1;
    assert_eq!(segments(disk).len() as u64, known, "{what}: {:?}\n{stats:?}", names(disk));
    assert!(!names(disk).contains(&"MANIFEST.new".to_owned()), "{what}");
}

/// What a crash, a failure or a race is put into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    Sweep,
    Indexes,
    Documents,
}

const JOBS: [Job; 3] = [Job::Sweep, Job::Indexes, Job::Documents];

/// A closed database: some of it in level 1, and in level 0 segments that compaction sweeps, or
/// merges first.
fn layered(setup: Setup, job: Job) -> (MemoryDisk, Life, Setup) {
    let disk = MemoryDisk::new();
    let setup = setup.manual();
    let mut life = Life::new(setup, &shared(&disk));
    for id in 0..150 {
        life.collection.put(id, &serde_json::json!({ "v": id, "pad": "x".repeat(100) })).unwrap();
        life.rows.insert(id, id);
        life.ids.insert(id);
    }
    life.compact();
    let other = life.db.database.collection("other").unwrap();
    for round in 0..4 {
        for id in (round..40).step_by(4) {
            life.put(id, 1000 * round + id);
        }
        life.delete(100 + round);
        life.delete(round * 7);
        if job == Job::Documents {
            for id in 200..204 {
                put(&other, id, id).unwrap();
            }
        }
        life.roll();
        if job == Job::Documents && round == 2 {
            // No index can name it; neither the first nor the last of its collection.
            let (segment, place) = find(&disk, 202);
            flip(&disk, &segment, place.id + 8, 4);
        }
    }
    life.db.database.close().unwrap();
    let runs = if job == Job::Sweep { 64 } else { 2 };
    (disk, life, Setup { level0_runs: runs, ..setup })
}

/// That the jobs of this kind have run; only at the end of the others comes the sweep.
fn check_job(life: &Life, job: Job, what: &str) {
    let merges = [CompactionReason::Indexes, CompactionReason::Documents].map(|r| life.count(r));
    match job {
        Job::Sweep => assert_eq!(merges, [0, 0], "{what}"),
        Job::Indexes => assert!(merges[0] > 0 && merges[1] == 0, "{what}: {merges:?}"),
        Job::Documents => assert!(merges[1] > 0, "{what}: {merges:?}"),
    }
    assert_eq!(life.count(CompactionReason::Forced), 1, "{what}");
}

#[test]
fn a16_a_crash_at_any_step_of_a_merge_loses_nothing_and_leaves_nothing_behind() {
    let mut random = Random::new(0xa16);
    for base in [DURABLE.tiny(), BUFFERED.tiny()] {
        for job in JOBS {
            let (disk, life, setup) = layered(base, job);
            // A new disk with the same bytes, whose trace begins with them.
            let origin = traced_copy(&disk);
            let start = origin.trace().len();
            let traced = life.again(setup, &shared(&origin)).unwrap();
            traced.step();
            traced.compact();
            check_job(&traced, job, "the run that is cut short");
            let trace = origin.trace();
            drop(traced);
            println!("{job:?}: {} steps", trace.len() - start);
            // The buffered log is another one, compaction is not.
            let thinned = if base.durability == DURABLE.durability { 1 } else { 4 };
            for k in (start..=trace.len()).step_by(thinned) {
                let replayed = MemoryDisk::replay(&trace[..k]).unwrap();
                for cut in [k % CRASHES, (k + 2) % CRASHES] {
                    let what = format!("{:?} {job:?} step {k}, cut {cut}", base.durability);
                    let disk = &crash(&replayed, cut, &mut random);
                    let again = life.again(setup, &shared(disk)).unwrap();
                    again.check(&what);
                    check_files(&again, disk, &what);
                    if k % 4 == 0 {
                        again.compact();
                        again.check(&format!("{what}, compacted"));
                        check_files(&again, disk, &what);
                        again.db.database.close().unwrap();
                        life.again(setup, &shared(disk)).unwrap().check(&what);
                    }
                }
            }
        }
    }
}

/// A disk with the same files, whose trace tells how they came about.
fn traced_copy(disk: &MemoryDisk) -> MemoryDisk {
    let copy = MemoryDisk::new();
    copy.start_trace();
    copy.create_dir_all(std::path::Path::new(DIR)).unwrap();
    for name in names(disk) {
        create(&copy, &path(&name), &read(disk, &path(&name)));
    }
    copy.sync_dir(std::path::Path::new(DIR)).unwrap();
    copy
}

/// How a call fails.
const FAILURES: [(Outcome, Repeat); 4] = [
    (Outcome::Error(libc::EIO), Repeat::Once),
    (Outcome::ErrorAfter(libc::EIO), Repeat::Once),
    (Outcome::Error(libc::ENOSPC), Repeat::Onward),
    (Outcome::ShortThenError(100, libc::ENOSPC), Repeat::Once),
];

/// A disk whose calls fail from the k-th of some kinds on.
fn failing(disk: &MemoryDisk) -> (FaultyDisk, Arc<dyn Disk>) {
    let faulty = FaultyDisk::new(shared(disk));
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    (faulty, disk)
}

/// The calls of some kinds that a compaction makes.
fn calls_of(disk: &MemoryDisk, life: &Life, setup: Setup, kinds: &[Call]) -> u64 {
    let (faulty, disk) = failing(&kill(disk));
    let again = life.again(setup, &disk).unwrap();
    again.step();
    let before = faulty.calls_of(kinds);
    again.compact();
    faulty.calls_of(kinds) - before
}

/// After a failure: what there was is there, compaction goes on once the disk allows it, and no
/// file stays behind.
fn check_failed(
    life: Life,
    setup: Setup,
    (below, faulty): (&MemoryDisk, &FaultyDisk),
    outcome: Result<(), Error>,
    what: &str,
) {
    if let Err(e) = &outcome {
        let is_disk = is_disk_full(e) || matches!(e, Error::Io { .. } | Error::ReadOnly { .. });
        assert!(is_disk, "{what}: {e:?}");
        assert!(life.stats().compaction_failures > 0, "{what}");
    }
    // A disk that refuses writes can be read, and what was merged has all its inputs or outputs.
    life.check(&format!("{what}, while it fails"));
    faulty.heal();
    life.compact();
    life.check(&format!("{what}, healed"));
    assert_eq!(life.stats().level0_segments, 0, "{what}: all is merged");
    life.db.database.close().unwrap();
    let again = life.again(setup, &shared(below)).unwrap();
    again.check(&format!("{what}, reopened"));
    check_files(&again, below, what);
}

#[test]
fn b10_a_failed_call_or_a_full_disk_in_a_merge_loses_nothing() {
    for (base, job) in [
        (DURABLE.tiny(), Job::Sweep),
        (DURABLE.tiny(), Job::Indexes),
        (BUFFERED.tiny(), Job::Documents),
    ] {
        let (disk, life, setup) = layered(base, job);
        let calls = calls_of(&disk, &life, setup, CHANGES);
        assert!(calls > 30, "{calls}");
        let mut reported = 0;
        for k in 0..calls {
            // Two of them each.
            for n in [k, k + 1] {
                let (outcome, repeat) = FAILURES[usize::try_from(n).unwrap() % FAILURES.len()];
                let what = format!("{:?} {job:?} {outcome:?} {repeat:?} {k}", base.durability);
                let below = kill(&disk);
                let (faulty, disk) = failing(&below);
                let again = life.again(setup, &disk).unwrap();
                again.step();
                // While no file can be opened nothing can be read either.
                let open = (repeat == Repeat::Once).then_some(Call::Open);
                let calls = CHANGES.iter().copied().chain(open).collect();
                faulty.inject(Fault { calls, skip: k, outcome, repeat });
                let outcome = again.db.database.compact();
                reported += u64::from(outcome.is_err());
                check_failed(again, setup, (&below, &faulty), outcome, &what);
            }
        }
        // Removing what is merged is no part of the job, nor is a call that does not matter.
        assert!(reported > calls / 2, "{reported} of {calls} calls, twice");
    }
}

#[test]
fn b10_a_disk_that_is_full_at_any_byte_of_a_merge_loses_nothing() {
    for job in JOBS {
        let (disk, life, setup) = layered(DURABLE.tiny(), job);
        let mut failed = 0;
        for space in (0..400_000).step_by(9000) {
            let what = format!("{job:?} {space} bytes free");
            let below = kill(&disk);
            let (faulty, disk) = failing(&below);
            let again = life.again(setup, &disk).unwrap();
            again.step();
            faulty.set_free_space(Some(space));
            let outcome = again.db.database.compact();
            failed += u64::from(outcome.is_err());
            check_failed(again, setup, (&below, &faulty), outcome, &what);
        }
        assert!(failed > 3, "{job:?}: {failed} failed");
    }
}

#[test]
fn b11_a_read_that_fails_ends_the_merge_and_drops_nothing() {
    for job in JOBS {
        let (disk, life, setup) = layered(DURABLE.tiny(), job);
        let reads = calls_of(&disk, &life, setup, &[Call::Read]);
        assert!(reads > 100, "{reads}");
        let mut reported = 0;
        for k in (0..reads).step_by(7) {
            let what = format!("{job:?} read {k} of {reads}");
            let below = kill(&disk);
            let (faulty, disk) = failing(&below);
            let again = life.again(setup, &disk).unwrap();
            again.step();
            faulty.fail_once(&[Call::Read], k, libc::EIO);
            let outcome = again.db.database.compact();
            reported += u64::from(outcome.is_err());
            if let Err(e) = &outcome {
                assert!(matches!(e, Error::Io { .. }), "{what}: {e:?}");
            }
            check_failed(again, setup, (&below, &faulty), outcome, &what);
        }
        assert!(reported > reads / 14, "{job:?}: {reported} of {reads}, each seventh");
    }
}

#[test]
fn b10_a_failed_compaction_is_tried_again_by_itself() {
    for job in JOBS {
        let (disk, life, setup) = layered(DURABLE.tiny(), job);
        let automatic = Setup { compaction: Compaction::Automatic, ..setup };
        let mut life = life.again(setup, &shared(&disk)).unwrap();
        if job == Job::Sweep {
            // So much that one is due.
            (300..1300).for_each(|id| life.put(id, id));
        }
        life.db.database.close().unwrap();
        let below = kill(&disk);
        let (faulty, disk) = failing(&below);
        let again = life.again(automatic, &disk).unwrap();
        faulty.fail_from(CHANGES, 0, libc::ENOSPC);
        for _ in 0..20 {
            again.db.pass(std::time::Duration::from_millis(300));
        }
        let failures = again.stats().compaction_failures;
        assert!((2..12).contains(&failures), "{job:?}: {failures}: once a second");
        again.check("while it fails");
        faulty.heal();
        again.idle();
        let stats = again.stats();
        assert_eq!(stats.compaction_failures, failures, "{job:?}");
        assert!(stats.level0_runs <= 2, "{job:?}: {stats:?}");
        again.check("healed");
    }
}

/// Versions that a snapshot held are dropped once it is gone: by a seal and the merges behind it, or
/// by a sweep that is due. A crash at any step, and then a longer history: a sequence of the past is
/// answered as it was, or refused.
#[test]
fn a16_after_a_crash_a_view_of_the_past_is_complete_or_refused() {
    let mut random = Random::new(0xa16);
    let setup = DURABLE.tiny().manual();
    for is_due in [false, true] {
        let disk = MemoryDisk::new();
        disk.start_trace();
        let mut life = Life::new(setup, &shared(&disk));
        let oldest = life.db.database.snapshot().unwrap();
        let mut past = Vec::new();
        for round in 0..4 {
            for id in 0..30 {
                life.put(id, 100 * round + id);
            }
            life.delete(round);
            past.push((life.stats().visible_sequence, life.rows.clone()));
            if round < 3 {
                life.roll();
            }
        }
        let start;
        if is_due {
            life.db.database.close().unwrap();
            drop(oldest);
            let history = life.stats().visible_sequence;
            let compaction = Compaction::Automatic;
            let (memtable_bytes, segment_bytes) = (DURABLE.memtable_bytes, DURABLE.segment_bytes);
            let roomy = Setup { history, compaction, memtable_bytes, segment_bytes, ..setup };
            life = life.again(roomy, &shared(&disk)).unwrap();
            // The older half of the past leaves the history.
            for n in 0..i64::try_from(history / 2).unwrap() {
                life.put(500, n);
            }
            start = disk.trace().len();
            life.step();
            assert!(life.count(CompactionReason::Level0) > 0, "{:?}", life.stats());
        } else {
            drop(oldest);
            start = disk.trace().len();
            life.roll();
            life.compact();
            assert!(life.count(CompactionReason::Indexes) > 0, "{:?}", life.stats());
            assert_eq!(life.count(CompactionReason::Forced), 1, "{:?}", life.stats());
        }
        let (mut answered, mut refused) = (0, 0);
        let trace = disk.trace();
        for k in start..=trace.len() {
            let replayed = MemoryDisk::replay(&trace[..k]).unwrap();
            let cut = k % CRASHES;
            let disk = crash(&replayed, cut, &mut random);
            let what = format!("due: {is_due}, step {k} of {}, cut {cut}", trace.len());
            let again = Setup { history: 1 << 20, ..setup }.open_memory(&disk).unwrap();
            for (sequence, rows) in &past {
                match again.database.snapshot_at(*sequence) {
                    Ok(view) => {
                        let scan = || view.scan(&again.collection(), ..).unwrap();
                        assert!(both_ways(scan) == *rows, "{what}: the past at {sequence}");
                        answered += 1;
                    }
                    Err(Error::HistoryGone { .. }) => refused += 1,
                    Err(e) => panic!("{what}: {e}"),
                }
            }
        }
        println!("{answered} answered, {refused} refused");
        assert!(answered > 20 && refused > 20, "{answered} answered, {refused} refused");
    }
}

/// Ids 1 and 200 are put in the third segment and deleted in the seventh.
#[test]
fn c23_what_is_deleted_in_a_newer_segment_stays_away_wherever_a_sweep_is_cut_short() {
    let mut random = Random::new(0xc23);
    for base in [DURABLE.tiny(), BUFFERED.tiny()] {
        let setup = Setup { level0_runs: 64, ..base };
        let disk = MemoryDisk::new();
        let mut life = Life::new(setup.manual(), &shared(&disk));
        for segment in 1..=8 {
            match segment {
                3 => [1, 200].into_iter().for_each(|id| life.put(id, id)),
                7 => [1, 200].into_iter().for_each(|id| life.delete(id)),
                _ => {}
            }
            // Rows before, between and behind them.
            for id in [0, 100 + segment, 201 + segment] {
                life.put(id, segment);
            }
            life.roll();
        }
        life.db.database.close().unwrap();
        let origin = traced_copy(&disk);
        let start = origin.trace().len();
        let mut traced = life.again(setup, &shared(&origin)).unwrap();
        // Newer segments arrive between the steps.
        let mut steps = 0;
        while let Some(job) = traced.db.executor.step() {
            if job == "compact" && steps < 6 {
                steps += 1;
                // In one write: a crash within the log is another case.
                let mut batch = Batch::new();
                for id in 0..64 {
                    batch.put(&traced.collection, 1000 * steps + id, &document(id)).unwrap();
                    traced.rows.insert(1000 * steps + id, id);
                }
                traced.db.database.write(batch).unwrap();
                traced.seal();
            }
        }
        assert!(traced.count(CompactionReason::Level0) > 0 && steps > 3, "{:?}", traced.stats());
        traced.check("not cut short");
        let trace = origin.trace();
        println!("{} steps", trace.len() - start);
        for k in start..=trace.len() {
            let replayed = MemoryDisk::replay(&trace[..k]).unwrap();
            for cut in [k % CRASHES, (k + 2) % CRASHES].into_iter().take(1 + k % 2) {
                let disk = crash(&replayed, cut, &mut random);
                let what = format!("{:?} step {k}, cut {cut}", base.durability);
                // The next generation's sweep is cut short as well.
                let (faulty, failing) = failing(&disk);
                let second = life.again(setup, &failing).unwrap();
                check_c23(&second, &life, &what);
                faulty.fail_from(CHANGES, random.below(60), libc::EIO);
                drop(second.db.database.compact());
                drop(second);
                let disk = disk.power_cut(|_| random.below(2) == 0).unwrap();
                let third = life.again(setup, &shared(&disk)).unwrap();
                check_c23(&third, &life, &format!("{what}, cut short again"));
                third.compact();
                check_c23(&third, &life, &format!("{what}, swept at last"));
                third.db.database.close().unwrap();
                let last = life.again(setup, &shared(&disk)).unwrap();
                check_c23(&last, &life, &format!("{what}, reopened"));
            }
        }
    }
}

/// What was there before the sweep, and none of what was deleted; whatever else has come since.
fn check_c23(now: &Life, before: &Life, what: &str) {
    for id in [1, 200] {
        assert!(now.collection.get(id).unwrap().is_none(), "{what}: {id} is back");
    }
    let rows = now.db.rows();
    assert!(!rows.contains_key(&1) && !rows.contains_key(&200), "{what}: back in a scan");
    for (id, value) in &before.rows {
        // Fillers that came since have numbers of their own.
        assert_eq!(rows.get(id), Some(value), "{what}: {id}");
    }
}
