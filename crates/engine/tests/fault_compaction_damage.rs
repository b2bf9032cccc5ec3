//! Fault cases of damaged records that compaction meets: they neither stop it nor vanish in it.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod faults;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use engine::disk::faulty::Call;
use engine::disk::{Disk, MemoryDisk};
use engine::{CompactionReason, Error, Id, Reads};
use faults::hook::{Hook, HookDisk};
use faults::life::{Life, both_ways};
use faults::sorted::{FileKind, Place, file_kind, find_in};
use faults::*;

/// The id whose record is damaged, in the middle of the others.
const VICTIM: u8 = 50;

/// Where the damaged record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A log segment, a run of level 0.
    Log,
    /// A log segment that an index of several runs names.
    Member,
    /// A sorted run of level 0.
    Sorted,
    Level1,
}

const SOURCES: [Source; 4] = [Source::Log, Source::Member, Source::Sorted, Source::Level1];

/// A closed database whose compaction runs by hand, with the file that has the newest record of
/// the victim, and the record's place.
struct Stage {
    disk: MemoryDisk,
    life: Life,
    setup: Setup,
    file: PathBuf,
    place: Place,
}

fn write_round(life: &mut Life, round: i64) {
    for id in (20..80).step_by(2) {
        life.put(id, 1000 * round + id);
    }
    life.delete(30 + 2 * round);
}

fn stage(source: Source, reads: Reads) -> Stage {
    let disk = MemoryDisk::new();
    let setup = Setup { reads, ..DURABLE.tiny() };
    let runs = Setup { level0_runs: 64, ..setup.manual() };
    let mut life = Life::new(runs, &shared(&disk));
    for id in 0..100 {
        life.collection.put(id, &serde_json::json!({ "v": id, "pad": "x".repeat(300) })).unwrap();
        life.rows.insert(id, id);
        life.ids.insert(id);
    }
    life.compact();
    let kind = if matches!(source, Source::Sorted | Source::Level1) {
        FileKind::Sorted
    } else {
        FileKind::Log
    };
    if source == Source::Sorted {
        // Between two others: only documents can be merged then.
        life.put(80, -80);
        life.roll();
    }
    if source == Source::Level1 {
        // What has it merged again.
        (1..100).step_by(10).for_each(|id| life.put(id, -id));
    } else {
        let other = life.db.database.collection("other").unwrap();
        write_round(&mut life, 1);
        for id in 200..204 {
            put(&other, id, id).unwrap();
        }
        life.roll();
        if source == Source::Sorted {
            let (file, place) = sorted::find(&disk, 202);
            flip(&disk, &file, place.id + 8, 4);
        }
    }
    if matches!(source, Source::Member | Source::Sorted) {
        let rolls = if source == Source::Member { 4 } else { 1 };
        for id in 81..81 + rolls {
            life.put(id, -id);
            life.roll();
        }
        life.db.database.close().unwrap();
        life = life.again(setup, &shared(&disk)).unwrap();
        life.step();
        let reason = match source {
            Source::Member => CompactionReason::Indexes,
            _ => CompactionReason::Documents,
        };
        assert!(life.count(reason) > 0, "{source:?}: {:?}", life.stats());
        assert_eq!(life.count(CompactionReason::Level0), 0, "{source:?}: {:?}", life.stats());
    }
    life.db.database.close().unwrap();
    let newest = segments(&disk).into_iter().rev();
    let found = newest.filter(|path| file_kind(&read(&disk, path)) == Some(kind));
    let (file, place) = found
        .filter_map(|path| Some((path.clone(), find_in(&disk, &path, VICTIM)?)))
        .next()
        .unwrap();
    Stage { disk, life, setup: Setup { level0_runs: 64, ..setup.manual() }, file, place }
}

/// What a flip hits: the header, the id, or the document. In the padding it is harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Header,
    Id,
    Document,
}

impl Part {
    fn of(offset: usize, place: &Place) -> Self {
        match offset {
            offset if offset < place.id => Self::Header,
            offset if offset < place.id_end() => Self::Id,
            _ => Self::Document,
        }
    }
}

/// The bits to flip: of each structural field all, of the document a sample.
fn bits(place: &Place, is_log: bool) -> Vec<(usize, u32)> {
    let start = place.record.offset;
    // Of a log record the header's own check serves only those who search the log.
    let first = if is_log { start + 4 } else { start };
    let structure = (first..place.id_end()).flat_map(|byte| (0..8).map(move |bit| (byte, bit)));
    let document = (place.id_end()..place.used_end()).step_by(5).map(|byte| (byte, 3));
    structure.chain(document).collect()
}

/// The victim reports damage, by get and by scans that pass it; everything else is right.
fn check_damaged(life: &Life, what: &str) {
    check_damaged_within(life, 1, what);
}

/// As before, where scans may meet the damage so many rows early: while a sweep is under way, a
/// record without an id that can be trusted may be anywhere in what is not swept.
fn check_damaged_within(life: &Life, early: usize, what: &str) {
    let victim = i64::from(VICTIM);
    let error = life.collection.get(victim).map(|found| found.is_some());
    assert!(matches!(error, Err(Error::Corrupt { .. })), "{what}: the victim is {error:?}");
    for &id in life.ids.iter().filter(|id| **id != victim) {
        let found = life.collection.get(id).unwrap_or_else(|e| panic!("{what}: {id}: {e}"));
        let found = found.map(|document| document.get_i64("v").unwrap().unwrap());
        assert_eq!(found, life.rows.get(&id).copied(), "{what}: {id}");
    }
    let before: Vec<i64> = life.rows.range(..victim).map(|(id, _)| *id).collect();
    let behind: Vec<i64> = life.rows.range(victim + 1..).map(|(id, _)| *id).rev().collect();
    let mut scan = life.collection.scan(..).unwrap();
    // A run that moves on meets the damage before the others have yielded what precedes it.
    check_scan(|| scan.next(), &before, early, &format!("{what}, forward"));
    assert!(scan.next_back().is_none(), "{what}: an error ends both ends");
    let mut scan = life.collection.scan(..).unwrap();
    // And looks at one more record before it yields a row.
    let early = early.saturating_add(1);
    check_scan(|| scan.next_back(), &behind, early, &format!("{what}, reverse"));
    // Ranges that begin or end right there.
    for range in [victim..victim + 1, victim - 1..victim + 1, victim..victim + 2] {
        let forward = life.collection.scan(range.clone()).unwrap().filter(Result::is_err).count();
        assert_eq!(forward, 1, "{what}, forward over {range:?}");
        let reverse = life.collection.scan(range.clone()).unwrap().rev().filter(Result::is_err);
        assert_eq!(reverse.count(), 1, "{what}, reverse over {range:?}");
    }
}

/// The rows up to the error, of which the last few may be missing.
fn check_scan(
    mut next: impl FnMut() -> Option<engine::Result<(Id<'static>, engine::Document)>>,
    expected: &[i64],
    missing: usize,
    what: &str,
) {
    let mut seen = Vec::new();
    let mut failed = false;
    while let Some(row) = next() {
        assert!(!failed, "{what}: a row behind the error");
        match row {
            Ok((Id::Integer(id), _)) => seen.push(id),
            Ok((id, _)) => panic!("{what}: an id that nobody wrote: {id}"),
            Err(e) => {
                assert!(matches!(e, Error::Corrupt { .. }), "{what}: {e:?}");
                failed = true;
            }
        }
    }
    assert!(failed, "{what}: no error, {} of {} rows", seen.len(), expected.len());
    assert!(next().is_none(), "{what}: once");
    let least = expected.len().saturating_sub(missing);
    assert!(seen.len() >= least && seen == expected[..seen.len()], "{what}: {seen:?}");
}

#[test]
fn c24_a_damaged_record_neither_stops_compaction_nor_vanishes_in_it() {
    let mut random = Random::new(0xc24);
    for source in SOURCES {
        let reads = if random.below(2) == 0 { Reads::Mapped } else { Reads::Pread };
        let Stage { disk, life, setup, file, place } = stage(source, reads);
        let is_log = file_kind(&read(&disk, &file)) == Some(FileKind::Log);
        life.again(setup, &shared(&disk)).unwrap().check("undamaged");
        let bits = bits(&place, is_log);
        println!("{source:?}: {} bits", bits.len());
        for (n, (byte, bit)) in bits.into_iter().enumerate() {
            let part = Part::of(byte, &place);
            let what = format!("{source:?}, bit {bit} of byte {byte}, {part:?}");
            let disk = kill(&disk);
            let merging = Setup { level0_runs: if n % 2 == 0 { 2 } else { 64 }, ..setup };
            let mut again = life.again(merging, &shared(&disk)).unwrap();
            if n % 3 == 0 {
                // The index is known and checked by then.
                again.check(&what);
            }
            flip(&disk, &file, byte, bit);
            check_damaged(&again, &format!("{what}, before"));
            again.compact();
            check_damaged(&again, &format!("{what}, swept"));
            again.db.database.close().unwrap();
            again = again.again(merging, &shared(&disk)).unwrap();
            check_damaged(&again, &format!("{what}, reopened"));
            if n % 7 != 0 {
                continue;
            }
            for sweep in 0..2 {
                for id in (1..100).filter(|id| *id != i64::from(VICTIM)).step_by(5) {
                    again.put(id, -id);
                }
                again.compact();
                check_damaged(&again, &format!("{what}, sweep {sweep} after it"));
            }
            again.db.database.close().unwrap();
            heal(&again, merging, &disk, part, &what);
        }
    }
}

/// What is written anew is right again, and so is what is deleted.
fn heal(life: &Life, setup: Setup, disk: &MemoryDisk, part: Part, what: &str) {
    let victim = i64::from(VICTIM);
    for heal in ["overwritten", "deleted"] {
        let disk = kill(disk);
        let mut again = life.again(setup, &shared(&disk)).unwrap();
        match heal {
            "overwritten" => again.put(victim, -1),
            _ => again.delete(victim),
        }
        for then in ["at once", "swept", "swept again"] {
            let what = format!("{what}, {heal}, {then}");
            let found = again.collection.get(victim).unwrap_or_else(|e| panic!("{what}: {e}"));
            let found = found.map(|document| document.get_i64("v").unwrap().unwrap());
            assert_eq!(found, again.rows.get(&victim).copied(), "{what}");
            // Of a record whose id is not known scans cannot tell that it is superseded.
            if part == Part::Document {
                again.check(&what);
            }
            again.compact();
        }
    }
}

/// Takes what crashes would leave, after each change.
#[derive(Debug)]
struct Images {
    disk: MemoryDisk,
    random: Mutex<Random>,
    taken: Mutex<Vec<MemoryDisk>>,
}

impl Hook for Images {
    fn end(&self, _: Call, _: &Path) {
        let (random, mut taken) = (&mut *self.random.lock().unwrap(), self.taken.lock().unwrap());
        taken.push(kill(&self.disk));
        taken.push(power_cut(&self.disk));
        taken.push(self.disk.power_cut(|_| random.below(2) == 0).unwrap());
    }
}

/// A kill and power cuts at every change of a sweep that passes a damaged record: what they leave
/// has the damage, and all the rest.
#[test]
fn c24_a_crash_in_a_sweep_past_a_damaged_record_leaves_it_damaged_and_the_others_right() {
    let mut opened = 0;
    for source in SOURCES {
        let Stage { disk, life, setup, file, place } = stage(source, Reads::Pread);
        let parts = [place.record.offset + 5, place.id, place.id_end() + 9];
        for (n, byte) in parts.into_iter().enumerate() {
            let disk = kill(&disk);
            let merging = Setup { level0_runs: if n % 2 == 0 { 2 } else { 64 }, ..setup };
            flip(&disk, &file, byte, 2);
            let hook = Arc::new(Images {
                disk: disk.clone(),
                random: Mutex::new(Random::new(0xc24)),
                taken: Mutex::default(),
            });
            let watched: Arc<dyn Disk> = Arc::new(HookDisk::new(shared(&disk), &hook));
            let swept = life.again(merging, &watched).unwrap();
            swept.compact();
            swept.db.database.close().unwrap();
            let taken = std::mem::take(&mut *hook.taken.lock().unwrap());
            for (image, left) in taken.iter().enumerate() {
                let what = format!("{source:?}, byte {byte}, image {image} of {}", taken.len());
                let again = swept.again(merging, &shared(left)).unwrap();
                check_damaged_within(&again, usize::MAX, &what);
                if image % 8 == 0 {
                    again.compact();
                    check_damaged(&again, &format!("{what}, swept"));
                }
                opened += 1;
            }
        }
    }
    println!("{opened} images");
    assert!(opened > 300, "{opened}");
}

/// Flips a bit of the victim's copy once it is written, before it is read back.
#[derive(Debug)]
struct FlipCopy {
    below: MemoryDisk,
    /// Files that are no copies.
    known: Mutex<Vec<PathBuf>>,
    /// From the id's first byte on, and the bit; until it is done.
    at: Mutex<Option<(isize, u32)>>,
}

impl Hook for FlipCopy {
    fn begin(&self, call: Call, path: &Path) {
        let is_copy = path.extension().is_some_and(|extension| extension == "seg")
            && !self.known.lock().unwrap().iter().any(|known| known == path);
        let mut at = self.at.lock().unwrap();
        let Some((offset, bit)) = *at else { return };
        if call != Call::Read || !is_copy {
            return;
        }
        let bytes = read(&self.below, path);
        let id = [2, 0x80, 0, 0, 0, 0, 0, 0, VICTIM];
        let found = bytes.windows(id.len()).position(|window| window[1..] == id[1..]);
        if let Some(id) = found {
            flip(&self.below, path, id.strict_add_signed(offset), bit);
            *at = None;
        }
    }
}

#[test]
fn c25_a_flip_between_the_read_and_the_write_of_a_merge_is_detected() {
    // The header of eight bytes, the id, the document.
    let bytes = (-8..30).chain([60, 200]);
    for source in SOURCES {
        let Stage { disk, life, setup, .. } = stage(source, Reads::Mapped);
        for (n, offset) in bytes.clone().enumerate() {
            let bit = u32::try_from(n % 8).unwrap();
            let what = format!("{source:?}, bit {bit} of byte {offset} from the id");
            let below = kill(&disk);
            let hook = Arc::new(FlipCopy {
                below: below.clone(),
                known: Mutex::default(),
                at: Mutex::default(),
            });
            let hooked: Arc<dyn Disk> = Arc::new(HookDisk::new(shared(&below), &hook));
            let again = life.again(setup, &hooked).unwrap();
            again.step();
            *hook.known.lock().unwrap() = segments(&below);
            *hook.at.lock().unwrap() = Some((offset, bit));
            let outcome = again.db.database.compact();
            assert!(hook.at.lock().unwrap().is_none(), "{what}: the victim was not copied");
            assert!(matches!(outcome, Err(Error::Corrupt { .. })), "{what}: {outcome:?}");
            // Nothing refers to the copy; the original is what it was.
            again.check(&what);
            again.compact();
            again.check(&format!("{what}, tried again"));
            again.db.database.close().unwrap();
            life.again(setup, &shared(&below)).unwrap().check(&format!("{what}, reopened"));
        }
    }
}

/// Flips a bit in the document of each record of a log segment whose id is wanted. How many.
fn damage_in_level0(disk: &MemoryDisk, wanted: impl Fn(i64) -> bool) -> usize {
    let mut damaged = 0;
    for file in sorted::files_of(disk, FileKind::Log) {
        let bytes = read(disk, &file);
        for place in sorted::places(&bytes) {
            let is_wanted = sorted::integer(&bytes, &place).is_some_and(&wanted);
            if place.record.kind == PUT && is_wanted {
                flip(disk, &file, place.id_end() + 5, 3);
                damaged += 1;
            }
        }
    }
    damaged
}

/// A disk loses, while a sweep is under way, what the sweep has merged and not yet removed: nobody
/// needs that any more.
#[test]
fn c24_what_a_sweep_has_merged_is_not_read_in_level_0_again() {
    for reads in [Reads::Mapped, Reads::Pread] {
        let disk = MemoryDisk::new();
        let setup = Setup { reads, level0_runs: 64, ..DURABLE.tiny() };
        let mut life = Life::new(setup.manual(), &shared(&disk));
        for round in 0..2 {
            for id in 0..400 {
                life.put(id, 1000 * round + id);
            }
            if round == 0 {
                life.compact();
            }
        }
        life.roll();
        life.db.database.close().unwrap();
        let before = sorted::files_of(&disk, FileKind::Sorted);
        let life = life.again(setup, &shared(&disk)).unwrap();
        let made = || {
            let files = sorted::files_of(&disk, FileKind::Sorted).into_iter();
            files.filter(|file| !before.contains(file)).collect::<Vec<_>>()
        };
        while made().is_empty() {
            life.db.executor.step().expect("a sweep is due");
        }
        let last_of = |file: &PathBuf| {
            let bytes = read(&disk, file);
            sorted::integer(&bytes, sorted::places(&bytes).last().unwrap()).unwrap()
        };
        let merged = made().iter().map(last_of).max().unwrap();
        assert!((20..380).contains(&merged), "the sweep has come as far as {merged}");
        let damaged = damage_in_level0(&disk, |id| id <= merged);
        assert!(damaged > 20, "{damaged}");
        let what = format!("{reads:?}, the sweep has come to {merged}");
        for (id, value) in &life.rows {
            let found = life.collection.get(*id).unwrap_or_else(|e| panic!("{what}: {id}: {e}"));
            assert_eq!(found.unwrap().get_i64("v").unwrap(), Some(*value), "{what}: {id}");
        }
        assert_eq!(life.db.try_rows().expect(&what), life.rows, "{what}");
        // In reverse a walk may read one record beyond where it ends, so it begins below.
        let below = || life.collection.scan(..merged).unwrap();
        assert!(below().rev().all(|row| row.is_ok()), "{what}, in reverse");
        assert!(both_ways(below).into_iter().eq((0..merged).map(|id| (id, 1000 + id))), "{what}");
        // What it has not passed is needed.
        assert_eq!(damage_in_level0(&disk, |id| id == 390), 1);
        let error = life.collection.get(390).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
        assert_eq!(damage_in_level0(&disk, |id| id == 390), 1, "healed");
        life.compact();
        assert_eq!(life.stats().level0_segments, 0);
        life.check(&format!("{reads:?}, swept"));
    }
}

/// What a reader of each version of the victim, oldest first, is told: the version, or damage.
fn check_versions(life: &Life, readers: &[(u64, i64)], damaged: usize, what: &str) -> usize {
    let mut right = 0;
    for (n, (at, value)) in readers.iter().enumerate() {
        let snapshot = life.db.database.snapshot_at(*at).unwrap();
        match snapshot.get(&life.collection, i64::from(VICTIM)) {
            Ok(found) => {
                let found = found.map(|document| document.get_i64("v").unwrap().unwrap());
                assert_eq!(found, Some(*value), "{what}: version {n}");
                assert!(n != damaged, "{what}: version {n} is damaged");
                right += 1;
            }
            Err(e) => assert!(matches!(e, Error::Corrupt { .. }), "{what}: {e:?}"),
        }
        for id in [10, 49, 51, 90] {
            let found = snapshot.get(&life.collection, id).unwrap().unwrap();
            assert_eq!(found.get_i64("v").unwrap(), Some(id), "{what}: {id}");
        }
    }
    right
}

#[test]
fn c24_a_damaged_version_of_an_id_is_no_other_version() {
    const VERSIONS: i64 = 3;
    let setup = Setup { history: 1 << 20, ..DURABLE.tiny().manual() };
    for is_merged in [false, true] {
        let disk = MemoryDisk::new();
        let mut life = Life::new(setup, &shared(&disk));
        let mut readers = Vec::new();
        (0..VICTIM.into()).for_each(|id| life.put(id, id));
        (i64::from(VICTIM) + 1..100).for_each(|id| life.put(id, id));
        life.roll();
        for version in 0..VERSIONS {
            life.put(VICTIM.into(), version);
            readers.push((life.stats().visible_sequence, version));
        }
        life.roll();
        if is_merged {
            life.compact();
        }
        life.db.database.close().unwrap();
        let (file, versions) = segments(&disk)
            .into_iter()
            .map(|file| {
                let bytes = read(&disk, &file);
                let mut all = sorted::places(&bytes);
                all.retain(|place| sorted::is_of(&bytes, place, VICTIM));
                (file, all)
            })
            .max_by_key(|(_, all)| all.len())
            .unwrap();
        assert_eq!(versions.len(), 3, "all of them are kept");
        let mut right = 0;
        for (n, place) in versions.iter().enumerate() {
            // In a log the oldest comes first, in a sorted segment the newest.
            let damaged = if is_merged { 2 - n } else { n };
            for byte in place.record.offset + usize::from(!is_merged) * 4..place.used_end() {
                let what = format!("merged: {is_merged}, version {damaged}, byte {byte}");
                let below = kill(&disk);
                flip(&below, &file, byte, u32::try_from(byte % 8).unwrap());
                let mut again = life.again(setup, &shared(&below)).unwrap();
                for then in ["at once", "merged", "merged again"] {
                    let what = format!("{what}, {then}");
                    right += check_versions(&again, &readers, damaged, &what);
                    again.put(1000, 1);
                    again.put(0, -1);
                    again.compact();
                }
                again.db.database.close().unwrap();
                let again = again.again(setup, &shared(&below)).unwrap();
                check_versions(&again, &readers, damaged, &format!("{what}, reopened"));
            }
        }
        println!("merged: {is_merged}: {right} right");
        assert!(right > 100, "{right} answers of undamaged versions");
    }
}
