//! Fault cases of damaged bytes: in the log, in sealed segments and their indexes, in the manifest.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod faults;

use std::path::{Path, PathBuf};

use engine::disk::{Disk, MemoryDisk};
use engine::{Compaction, Database, Durability, Error, Options, Reads};
use faults::*;

/// Everything in the folder but the lock file.
fn content(disk: &MemoryDisk) -> Vec<(String, Vec<u8>)> {
    let names = names(disk).into_iter().filter(|name| name != "LOCK");
    names.map(|name| (name.clone(), read(disk, &path(&name)))).collect()
}

#[test]
fn a6_a_flipped_bit_in_the_synced_log_is_reported_wherever_it_is() {
    let disk = MemoryDisk::new();
    let db = DURABLE.open_memory(&disk).unwrap();
    let collection = db.collection();
    for id in 1..=24 {
        put(&collection, id, 10 * id).unwrap();
    }
    let killed = kill(&disk);
    drop((collection, db));
    let log = log_segment(&killed);
    let all = records(&read(&killed, &log));
    // The last group is a mark and the last record.
    let last_group = all[all.len() - 2];
    assert_eq!(last_group.kind, MARK);
    let is_padding = |offset: usize| {
        (128..LOG_START).contains(&offset)
            || all.iter().any(|r| (r.offset + r.used..r.end()).contains(&offset))
    };
    let mut random = Random::new(0xa6);
    let header_and_some = (0..160).chain((160..LOG_START).step_by(211));
    let (mut reported, mut harmless) = (0, 0);
    for offset in header_and_some.chain(LOG_START..last_group.offset) {
        let bit = random.bit();
        let what = format!("byte {offset} bit {bit}");
        let disk = kill(&killed);
        flip(&disk, &log, offset, bit);
        // What follows a refusal costs several opens: for a part of them.
        let is_sample = offset % 5 == 0;
        let before = if is_sample { content(&disk) } else { Vec::new() };
        match DURABLE.open_memory(&disk) {
            Ok(db) => {
                assert!(is_padding(offset), "{what}: opened");
                assert_eq!(db.rows(), expected(1..=24), "{what}");
                assert_eq!(db.database.stats().recovery.damage, None, "{what}");
                harmless += 1;
            }
            Err(e) => {
                assert!(!is_padding(offset), "{what}: {e}");
                assert_eq!(corrupt_file(&e), log, "{what}");
                reported += 1;
                if !is_sample {
                    continue;
                }
                assert!(content(&disk) == before, "{what}: Strict changes nothing");
                let db = DURABLE.cut_at_damage().open_memory(&disk).unwrap();
                let rows = db.rows();
                let kept = i64::try_from(rows.len()).unwrap();
                assert!(kept < 24, "{what}");
                assert_eq!(rows, expected(1..=kept), "{what}: a prefix");
                let (file, at) = db.database.stats().recovery.damage.unwrap();
                assert_eq!(file, log, "{what}");
                assert!(at <= offset as u64, "{what}: damage at {at}");
                // For good: the next open is an ordinary one.
                drop(db);
                assert_eq!(DURABLE.open_memory(&disk).unwrap().rows(), rows, "{what}");
            }
        }
    }
    assert!(reported > 1500 && harmless > 10, "{reported} reported, {harmless} harmless");
}

/// The log goes on in a second segment; the first one is not sealed yet. `groups` are written to
/// the second.
fn two_unsealed_segments(groups: i64) -> (MemoryDisk, PathBuf, PathBuf, i64) {
    let disk = MemoryDisk::new();
    let db = DURABLE.open_memory(&disk).unwrap();
    let collection = db.collection();
    let mut id = 0;
    while db.database.stats().rolls == 0 {
        id += 1;
        put_large(&collection, id, 10 * id).unwrap();
    }
    for _ in 1..groups {
        id += 1;
        put_large(&collection, id, 10 * id).unwrap();
    }
    let killed = kill(&disk);
    let logs: Vec<_> = segments(&killed)
        .into_iter()
        .filter(|path| !records(&read(&killed, path)).is_empty())
        .collect();
    assert_eq!(logs.len(), 2);
    (killed, logs[0].clone(), logs[1].clone(), id)
}

#[test]
fn a6_a_flipped_bit_at_the_end_of_a_segment_is_reported_once_the_log_goes_on_in_the_next() {
    for groups in 1..=3 {
        let (killed, older, newer, last) = two_unsealed_segments(groups);
        assert_eq!(DURABLE.open_memory(&kill(&killed)).unwrap().rows(), expected(1..=last));
        let record = *records(&read(&killed, &older)).last().unwrap();
        for offset in (record.offset..record.offset + record.used).step_by(97) {
            let disk = kill(&killed);
            flip(&disk, &older, offset, 3);
            let error = DURABLE.open_memory(&disk).unwrap_err();
            assert_eq!(corrupt_file(&error), older, "{groups} groups behind, byte {offset}");
            let db = DURABLE.cut_at_damage().open_memory(&disk).unwrap();
            assert_eq!(db.rows(), expected(1..=last - groups - 1));
            assert_eq!(db.database.stats().recovery.damage.unwrap().0, older);
        }
        // The newer segment's own header; with one group it is part of the last group.
        if groups > 1 {
            for offset in 0..128 {
                let disk = kill(&killed);
                flip(&disk, &newer, offset, 5);
                let error = DURABLE.open_memory(&disk).unwrap_err();
                assert_eq!(corrupt_file(&error), newer, "{groups} groups, header byte {offset}");
            }
        }
    }
}

/// A closed database: 24 rows in one sealed segment, whose path comes with it.
fn closed() -> (MemoryDisk, PathBuf) {
    let disk = MemoryDisk::new();
    let db = DURABLE.open_memory(&disk).unwrap();
    let collection = db.collection();
    for id in 1..=24 {
        put(&collection, id, 10 * id).unwrap();
    }
    db.database.close().unwrap();
    let files = segments(&disk);
    assert_eq!(files.len(), 1, "{files:?}");
    (disk, files[0].clone())
}

fn open_reading(disk: &MemoryDisk, reads: Reads) -> Result<Database, Error> {
    let clock = std::sync::Arc::new(engine::clock::ManualClock::default());
    let executor = engine::executor::Stepped::new(std::sync::Arc::clone(&clock));
    let options = Options::default()
        .durability(Durability::Durable)
        .memtable_bytes(64 << 10)
        .segment_bytes(64 << 10)
        .memory_budget(128 << 10)
        .reads(reads)
        // Of a log segment's records, index and trailer.
        .compaction(Compaction::Manual)
        .disk(shared(disk))
        .clock(clock)
        .executor(std::sync::Arc::new(executor));
    Database::open(DIR, options)
}

/// Reads all there is, in every way. How many reads reported damage; panics on a wrong answer, and
/// on damage in another file.
fn read_all(database: &Database, file: &Path) -> usize {
    let collection = database.collection("c").unwrap();
    let mut reported = 0;
    let mut report = |error: &Error| {
        assert_eq!(corrupt_file(error), file);
        reported += 1;
    };
    for id in -3..30 {
        match collection.get(id) {
            Ok(Some(document)) => assert_eq!(document.get_i64("v").unwrap(), Some(10 * id)),
            Ok(None) => assert!(!(1..=24).contains(&id), "{id}: not found"),
            Err(e) => report(&e),
        }
    }
    for reverse in [false, true] {
        let mut scan = collection.scan(..).unwrap();
        let mut seen = Vec::new();
        let mut next = || if reverse { scan.next_back() } else { scan.next() };
        let mut failed = false;
        while let Some(row) = next() {
            assert!(!failed, "a row behind the error");
            match row {
                Ok((engine::Id::Integer(id), document)) => {
                    assert_eq!(document.get_i64("v").unwrap(), Some(10 * id));
                    seen.push(id);
                }
                Ok((id, _)) => panic!("an id that nobody wrote: {id}"),
                Err(e) => {
                    report(&e);
                    failed = true;
                }
            }
        }
        assert!(next().is_none());
        let len = i64::try_from(seen.len()).unwrap();
        assert!(failed || len == 24, "fewer rows, quietly");
        let first: Vec<i64> =
            if reverse { (25 - len..=24).rev().collect() } else { (1..=len).collect() };
        assert_eq!(seen, first);
    }
    reported
}

#[test]
fn a34_after_a_clean_close_every_flip_in_a_record_is_reported_when_it_is_read() {
    let (disk, file) = closed();
    let all = records(&read(&disk, &file));
    let mut random = Random::new(0xa34);
    for record in all.iter().filter(|record| record.kind == PUT) {
        for offset in record.offset..record.end() {
            let bit = random.bit();
            let disk = kill(&disk);
            flip(&disk, &file, offset, bit);
            let reads = if offset % 2 == 0 { Reads::Mapped } else { Reads::Pread };
            let database = open_reading(&disk, reads).unwrap();
            let reported = read_all(&database, &file);
            // The header's own check serves those who search the log of a crash; a reader is served
            // by the checksum of all fields.
            let is_idle = offset < record.offset + 4 || offset >= record.offset + record.used;
            // The get of its id, and both scans.
            let least = if is_idle { 0 } else { 3 };
            assert!(reported >= least, "byte {offset} bit {bit} {reads:?}: {reported} reports");
            assert!(!is_idle || reported == 0, "byte {offset} bit {bit} {reads:?} is harmless");
        }
    }
}

#[test]
fn a35_a_flipped_bit_in_an_index_is_the_right_answer_or_corrupt() {
    let (disk, file) = closed();
    let bytes = read(&disk, &file);
    let log_end = records(&bytes).last().unwrap().end();
    let index = log_end.next_multiple_of(4096);
    assert_eq!((bytes.len() - index) / 4096, 3, "a sorted block, a fingerprint block, the trailer");
    let mut random = Random::new(0xa35);
    let dense = |block: usize| (index + 4096 * block..index + 4096 * block + 512).step_by(3);
    let sparse = (log_end..bytes.len()).step_by(37);
    for offset in dense(0).chain(dense(1)).chain(dense(2)).chain(sparse) {
        let bit = random.bit();
        for reads in [Reads::Mapped, Reads::Pread] {
            let disk = kill(&disk);
            flip(&disk, &file, offset, bit);
            let database = open_reading(&disk, reads).unwrap();
            let reported = read_all(&database, &file);
            assert_eq!(
                reported > 0,
                offset >= index,
                "byte {offset} bit {bit} {reads:?}: {reported} reports"
            );
        }
    }
}

#[test]
fn a7_a_truncated_or_missing_sealed_segment_is_named_by_every_read_that_needs_it() {
    let disk = MemoryDisk::new();
    let db = DURABLE.manual().open_memory(&disk).unwrap();
    let collection = db.collection();
    for id in 1..=50 {
        put_large(&collection, id, 10 * id).unwrap();
        db.step();
    }
    db.database.close().unwrap();
    let files = segments(&disk);
    assert!(files.len() >= 3);
    let victim = &files[1];
    let len = read(&disk, victim).len();
    for cut in [Some(0), Some(1), Some(4096), Some(len / 2), Some(len - 4096), Some(len - 1), None]
    {
        for reads in [Reads::Mapped, Reads::Pread] {
            let disk = kill(&disk);
            match cut {
                Some(cut) => truncate(&disk, victim, cut),
                None => disk.remove(victim).unwrap(),
            }
            // Opening visits no sealed segment; what it holds is refused when asked for, and
            // nothing fills the hole.
            let database = open_reading(&disk, reads).unwrap();
            let collection = database.collection("c").unwrap();
            let (mut whole, mut refused) = (0, 0);
            for id in 1..=50 {
                match collection.get(id) {
                    Ok(document) => {
                        let document = document.unwrap_or_else(|| panic!("{id} is gone, quietly"));
                        assert_eq!(document.get_i64("v").unwrap(), Some(10 * id));
                        whole += 1;
                    }
                    Err(e) => {
                        assert!(e.to_string().contains(victim.to_str().unwrap()), "{e}");
                        refused += 1;
                    }
                }
            }
            assert!(whole > 0 && refused > 5, "cut {cut:?}: {whole} whole, {refused} refused");
            for row in [
                collection.scan(..).unwrap().find(Result::is_err),
                collection.scan(..).unwrap().rfind(Result::is_err),
            ] {
                let error = row.expect("the scan reports it").unwrap_err();
                assert!(error.to_string().contains(victim.to_str().unwrap()), "{error}");
            }
        }
    }
}

#[test]
fn b16_a_scan_that_meets_damage_yields_one_error_and_ends() {
    for sealed in [true, false] {
        let disk = MemoryDisk::new();
        let db = DURABLE.open_memory(&disk).unwrap();
        let collection = db.collection();
        for id in 1..=24 {
            put(&collection, id, 10 * id).unwrap();
        }
        let file = log_segment(&disk);
        let puts: Vec<_> =
            records(&read(&disk, &file)).into_iter().filter(|r| r.kind == PUT).collect();
        let db = if sealed {
            db.database.close().unwrap();
            DURABLE.open_memory(&disk).unwrap()
        } else {
            db
        };
        flip(&disk, &file, puts[11].offset + puts[11].used - 1, 0);
        let collection = db.collection();
        let ids = |rows: &[Result<_, Error>]| -> Vec<Option<i64>> {
            rows.iter()
                .map(|row| match row {
                    Ok((engine::Id::Integer(id), _)) => Some(*id),
                    Ok(_) => panic!("an id that nobody wrote"),
                    Err(e) => {
                        assert_eq!(corrupt_file(e), file);
                        None
                    }
                })
                .collect()
        };
        let mut forward: Vec<Option<i64>> = (1..=11).map(Some).collect();
        forward.push(None);
        // Backwards a scan looks at one more record before it yields a row: it meets an id's oldest
        // version first.
        let mut reverse: Vec<Option<i64>> = (14..=24).rev().map(Some).collect();
        reverse.push(None);
        let mut scan = collection.scan(..).unwrap();
        assert_eq!(ids(&scan.by_ref().collect::<Vec<_>>()), forward, "sealed: {sealed}");
        assert!(scan.next().is_none() && scan.next_back().is_none() && scan.next().is_none());
        let mut scan = collection.scan(..).unwrap();
        assert_eq!(ids(&scan.by_ref().rev().collect::<Vec<_>>()), reverse, "sealed: {sealed}");
        assert!(scan.next_back().is_none() && scan.next().is_none());
        // From both ends: the error ends both.
        let mut scan = collection.scan(..).unwrap();
        assert!(scan.next().unwrap().is_ok() && scan.next_back().unwrap().is_ok());
        assert_eq!(scan.by_ref().filter(Result::is_err).count(), 1);
        assert!(scan.next_back().is_none());
        let mut ids_only = collection.scan_ids(..).unwrap();
        assert_eq!(ids_only.by_ref().filter(Result::is_err).count(), 1);
        assert!(ids_only.next().is_none() && ids_only.next_back().is_none());
        // Other records stay readable.
        assert!(collection.get(11).unwrap().is_some() && collection.get(13).unwrap().is_some());
        assert_eq!(corrupt_file(&collection.get(12).unwrap_err()), file);
        assert_eq!(collection.scan(13..).unwrap().filter(Result::is_ok).count(), 12);
    }
}

#[test]
fn a_flipped_bit_in_the_manifest_is_reported_or_harmless() {
    let disk = MemoryDisk::new();
    let db = DURABLE.open_memory(&disk).unwrap();
    let collection = db.collection();
    for id in 1..=40 {
        put_large(&collection, id, 10 * id).unwrap();
        db.step();
    }
    db.database.close().unwrap();
    assert!(segments(&disk).len() > 2);
    let manifest = path("MANIFEST");
    let bytes = read(&disk, &manifest);
    let end = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let (mut reported, mut harmless) = (0, 0);
    for offset in 0..end {
        for bit in 0..8 {
            // All bits of some bytes, one of the others.
            if offset % 8 != bit && offset % 13 != 0 {
                continue;
            }
            let disk = kill(&disk);
            flip(&disk, &manifest, offset, u32::try_from(bit).unwrap());
            let before = content(&disk);
            match DURABLE.open_memory(&disk) {
                Ok(db) => {
                    assert!(db.rows() == expected(1..=40), "byte {offset} bit {bit}: other rows");
                    harmless += 1;
                }
                Err(Error::Corrupt { .. } | Error::UnsupportedFormat { .. }) => {
                    assert!(
                        content(&disk) == before,
                        "byte {offset} bit {bit}: nothing is changed"
                    );
                    reported += 1;
                }
                Err(e) => panic!("byte {offset} bit {bit}: {e:?}"),
            }
        }
    }
    println!("{reported} reported, {harmless} harmless, {end} bytes");
    assert!(reported > end / 2, "{reported} reported, {harmless} harmless");
}

#[test]
fn a_flipped_bit_in_the_manifest_of_a_killed_database_costs_no_synced_write_quietly() {
    // With the manifest's last edit naming the active segment, a prepared one, and a sealed one.
    for (puts, step) in [(5, false), (5, true), (20, false), (20, true)] {
        let disk = MemoryDisk::new();
        let db = DURABLE.open_memory(&disk).unwrap();
        let collection = db.collection();
        for id in 1..=puts {
            put_large(&collection, id, 10 * id).unwrap();
        }
        if step {
            db.step();
        }
        let killed = kill(&disk);
        let manifest = path("MANIFEST");
        let bytes = read(&killed, &manifest);
        let end = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
        let mut reported = 0;
        for offset in 0..end {
            let bit = u32::try_from(offset % 8).unwrap();
            let what = format!("{puts} puts, stepped: {step}, byte {offset} of {end}");
            let disk = kill(&killed);
            flip(&disk, &manifest, offset, bit);
            let before = content(&disk);
            match DURABLE.open_memory(&disk) {
                Ok(db) => assert!(db.rows() == expected(1..=puts), "{what}: other rows"),
                Err(Error::Corrupt { .. } | Error::UnsupportedFormat { .. }) => {
                    assert!(content(&disk) == before, "{what}: nothing is changed");
                    reported += 1;
                }
                Err(e) => panic!("{what}: {e:?}"),
            }
        }
        assert!(reported > 0);
    }
}

#[test]
fn a_missing_manifest_beside_segments_is_corrupt_and_changes_nothing() {
    let (disk, _) = closed();
    disk.remove(&path("MANIFEST")).unwrap();
    let before = content(&disk);
    let error = DURABLE.open_memory(&disk).unwrap_err();
    assert_eq!(corrupt_file(&error), path("MANIFEST"));
    assert!(content(&disk) == before);
}
