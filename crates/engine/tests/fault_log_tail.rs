//! Fault cases of the log's tail: torn records, short writes, stale bytes, segments whose
//! predecessor lost its end.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod faults;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use engine::disk::faulty::{Call, Fault, FaultyDisk, Outcome, Repeat};
use engine::disk::{Disk, MemoryDisk, Unsynced};
use engine::{Batch, WriteDurability};
use faults::*;

#[test]
fn a1_writes_after_a_recovered_torn_tail_survive_the_second_reopen() {
    for setup in [DURABLE, BUFFERED] {
        let disk = MemoryDisk::new();
        let db = setup.open_memory(&disk).unwrap();
        put(&db.collection(), 1, 10).unwrap();
        let disk = kill(&disk);
        let log = log_segment(&disk);
        let end = records(&read(&disk, &log)).last().unwrap().end();
        overwrite(&disk, &log, end, &[0x5a]);

        let db = setup.open_memory(&disk).unwrap();
        assert_eq!(db.rows(), expected([1]), "{setup:?}");
        put(&db.collection(), 2, 20).unwrap();
        db.database.sync().unwrap();
        let killed = kill(&disk);
        db.database.close().unwrap();
        for disk in [killed, disk] {
            let db = setup.open_memory(&disk).unwrap();
            assert_eq!(db.rows(), expected([1, 2]), "{setup:?}");
        }
    }
}

#[test]
fn a2_a_record_cut_at_any_byte_is_a_torn_tail_at_every_reopening() {
    let disk = MemoryDisk::new();
    let db = BUFFERED.open_memory(&disk).unwrap();
    for id in 1..=3 {
        put(&db.collection(), id, 10 * id).unwrap();
    }
    let killed = kill(&disk);
    let log = log_segment(&killed);
    let last = *records(&read(&killed, &log)).last().unwrap();
    for cut in last.offset..last.end() {
        let disk = kill(&killed);
        truncate(&disk, &log, cut);
        // The padding carries nothing.
        let mut rows = expected(if cut < last.offset + last.used { 1..=2 } else { 1..=3 });
        for round in 0..3 {
            let db = BUFFERED.open_memory(&disk).unwrap();
            assert_eq!(db.rows(), rows, "cut at {cut}, round {round}");
            assert_eq!(db.database.stats().recovery.damage, None);
            put(&db.collection(), 100 + round, 7).unwrap();
            rows.insert(100 + round, 7);
            db.database.close().unwrap();
        }
    }
}

#[test]
fn a2_a_record_with_any_suffix_zeroed_is_a_torn_tail_too() {
    let disk = MemoryDisk::new();
    let db = BUFFERED.open_memory(&disk).unwrap();
    for id in 1..=3 {
        put(&db.collection(), id, 10 * id).unwrap();
    }
    let killed = kill(&disk);
    let log = log_segment(&killed);
    let bytes = read(&killed, &log);
    let last = *records(&bytes).last().unwrap();
    for cut in last.offset..last.offset + last.used {
        let disk = kill(&killed);
        let zeros = vec![0; last.end() - cut];
        overwrite(&disk, &log, cut, &zeros);
        // Zeros at the end of the content may be the content itself.
        let same = bytes[cut..last.end()] == zeros;
        let expected = expected(if same { 1..=3 } else { 1..=2 });
        for _ in 0..2 {
            let db = BUFFERED.open_memory(&disk).unwrap();
            assert_eq!(db.rows(), expected, "cut at {cut}");
            db.database.close().unwrap();
        }
    }
}

#[test]
fn a8_a_preallocated_log_whose_last_record_is_partial_opens() {
    let below = MemoryDisk::new();
    let faulty = FaultyDisk::new(shared(&below));
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let db = DURABLE.open(&disk).unwrap();
    let collection = db.collection();
    put(&collection, 1, 10).unwrap();
    // Zeros stand ahead of the log now.
    db.step();
    for bytes in [1, 27, 28, 40] {
        let outcome = Outcome::ShortThenError(bytes, libc::EIO);
        let calls = vec![Call::Write];
        faulty.inject(Fault { calls, skip: 0, outcome, repeat: Repeat::Once });
        put(&collection, 2, 20).unwrap_err();
        let disk = kill(&below);
        for _ in 0..2 {
            let db = DURABLE.open_memory(&disk).unwrap();
            assert_eq!(db.rows(), expected([1]), "{bytes} bytes of the record");
            db.database.close().unwrap();
        }
        // Repairs the log, so that the next round begins with a whole one.
        put(&collection, 1, 10).unwrap();
        db.step();
    }
}

#[test]
fn a24_stale_bytes_never_return_while_zeroing_ahead_is_on_off_and_on() {
    let mut disk = MemoryDisk::new();
    let mut rows = Rows::new();
    for round in 0..8 {
        let setup = if round % 2 == 0 { DURABLE } else { BUFFERED };
        let db = setup.open_memory(&disk).unwrap();
        assert_eq!(db.rows(), rows, "round {round}");
        let collection = db.collection();
        for id in 0..20 {
            put(&collection, id, round).unwrap();
            rows.insert(id, round);
            db.step();
        }
        db.database.sync().unwrap();
        disk = if round % 3 == 0 { power_cut(&disk) } else { kill(&disk) };
    }
    assert_eq!(BUFFERED.open_memory(&disk).unwrap().rows(), rows);
}

/// The blocks of a deleted database are given to the segment of another one, which is written alike
/// and then killed: behind its last record stand whole ones, with the right offsets and the right
/// sequences, and none of them is its own.
#[test]
fn a24_records_of_an_earlier_use_of_the_same_blocks_do_not_verify() {
    for setup in [DURABLE, BUFFERED] {
        let written = |last: i64, value: i64| {
            let disk = MemoryDisk::new();
            let db = setup.open_memory(&disk).unwrap();
            for id in 1..=last {
                put(&db.collection(), id, value).unwrap();
            }
            let disk = kill(&disk);
            let log = log_segment(&disk);
            (disk, log)
        };
        let (earlier, earlier_log) = written(10, 1);
        let stale = read(&earlier, &earlier_log);
        let (disk, log) = written(5, 2);
        let last = *records(&read(&disk, &log)).last().unwrap();
        let behind: Vec<_> =
            records(&stale).into_iter().filter(|record| record.offset >= last.end()).collect();
        assert_eq!(behind[0].offset, last.end(), "the two logs are laid out alike");
        let stale_end = behind.last().unwrap().end();
        overwrite(&disk, &log, last.end(), &stale[last.end()..stale_end]);

        let mut rows: Rows = (1..=5).map(|id| (id, 2)).collect();
        let db = setup.open_memory(&disk).unwrap();
        assert_eq!(db.rows(), rows, "none of the earlier ones, {:?}", setup.durability);
        let recovery = db.database.stats().recovery;
        assert!(!recovery.torn_tail && recovery.damage.is_none(), "{recovery:?}");
        put(&db.collection(), 6, 2).unwrap();
        rows.insert(6, 2);
        let disk = kill(&disk);
        assert_eq!(setup.open_memory(&disk).unwrap().rows(), rows, "{:?}", setup.durability);
    }
}

/// Seven buffered records of one size, the fifth of which is lost.
#[test]
fn a33_records_behind_a_lost_one_stay_gone_when_one_of_equal_length_takes_its_place() {
    let disk = MemoryDisk::new();
    let db = BUFFERED.open_memory(&disk).unwrap();
    let collection = db.collection();
    for id in 1..=7 {
        put(&collection, id, 10 * id).unwrap();
    }
    let disk = kill(&disk);
    let log = log_segment(&disk);
    let puts: Vec<_> =
        records(&read(&disk, &log)).into_iter().filter(|record| record.kind == PUT).collect();
    assert!(puts.windows(2).all(|pair| pair[0].len == pair[1].len));
    overwrite(&disk, &log, puts[4].offset, &vec![0; puts[4].len]);

    let db = BUFFERED.open_memory(&disk).unwrap();
    assert_eq!(db.rows(), expected(1..=4));
    assert!(db.database.stats().recovery.torn_tail);
    put(&db.collection(), 8, 80).unwrap();
    let disk = kill(&disk);
    for _ in 0..2 {
        let db = BUFFERED.open_memory(&disk).unwrap();
        assert_eq!(db.rows(), expected([1, 2, 3, 4, 8]), "6 and 7 stay gone");
        db.database.close().unwrap();
    }
}

#[test]
fn a33_a_power_cut_in_the_middle_of_buffered_records_leaves_a_prefix_for_good() {
    let mut random = Random::new(0xa33);
    for _ in 0..60 {
        let disk = MemoryDisk::new();
        let db = BUFFERED.open_memory(&disk).unwrap();
        let collection = db.collection();
        db.database.sync().unwrap();
        for id in 1..=60 {
            put(&collection, id, 10 * id).unwrap();
        }
        let disk = disk.power_cut(|_| random.below(3) > 0).unwrap();
        let db = BUFFERED.open_memory(&disk).unwrap();
        let rows = db.rows();
        let kept = i64::try_from(rows.len()).unwrap();
        assert_eq!(rows, expected(1..=kept), "a prefix");
        put(&db.collection(), 100, 1000).unwrap();
        let disk = kill(&disk);
        let rows = BUFFERED.open_memory(&disk).unwrap().rows();
        assert_eq!(rows, expected((1..=kept).chain([100])));
    }
}

#[test]
fn a33_records_behind_a_short_group_write_stay_gone() {
    for setup in [DURABLE, BUFFERED] {
        // Framing and records, each of a length that is a multiple of 8: every kind of place is
        // met.
        for bytes in (0..260).step_by(12) {
            let below = MemoryDisk::new();
            let faulty = FaultyDisk::new(shared(&below));
            let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
            let db = setup.open(&disk).unwrap();
            let collection = db.collection();
            for id in 1..=4 {
                put(&collection, id, 10 * id).unwrap();
            }
            let calls = vec![Call::Write];
            let outcome = Outcome::Short(bytes);
            faulty.inject(Fault { calls, skip: 0, outcome, repeat: Repeat::Once });
            let mut batch = Batch::new();
            for id in 5..=7 {
                batch.put(&collection, id, &document(10 * id)).unwrap();
            }
            db.database.write(batch).unwrap_err();
            assert_eq!(db.rows(), expected(1..=4));
            let before_repair = kill(&below);
            put(&collection, 8, 80).unwrap();
            let after_repair = kill(&below);

            let rows = expected([1, 2, 3, 4, 8]);
            assert_eq!(db.rows(), rows);
            for _ in 0..2 {
                let db = setup.open_memory(&after_repair).unwrap();
                assert_eq!(db.rows(), rows, "{setup:?}, {bytes} bytes written");
                db.database.close().unwrap();
            }
            let db = setup.open_memory(&before_repair).unwrap();
            assert_eq!(db.rows(), expected(1..=4));
            put(&db.collection(), 8, 80).unwrap();
            let again = kill(&before_repair);
            assert_eq!(setup.open_memory(&again).unwrap().rows(), rows);
        }
    }
}

/// Buffered writes across a roll. The background work does not run, so that nothing is synced.
fn across_a_roll() -> (MemoryDisk, i64) {
    let disk = MemoryDisk::new();
    let db = BUFFERED.open_memory(&disk).unwrap();
    let collection = db.collection();
    db.database.sync().unwrap();
    let mut id = 0;
    while db.database.stats().rolls == 0 || id % 10 != 0 {
        id += 1;
        put(&collection, id, 10 * id).unwrap();
    }
    for _ in 0..20 {
        id += 1;
        put(&collection, id, 10 * id).unwrap();
    }
    (kill_keeping_unsynced(&disk, db), id)
}

/// Lets the database go without a close, so that the disk stays as it was with all that is
/// unsynced.
fn kill_keeping_unsynced(disk: &MemoryDisk, db: Opened) -> MemoryDisk {
    std::mem::forget(db);
    disk.clone()
}

#[test]
fn a11_a_power_cut_across_a_roll_leaves_a_prefix() {
    let mut random = Random::new(0xa11);
    let (disk, last) = across_a_roll();
    let mut lengths = BTreeSet::new();
    for _ in 0..60 {
        // Mostly kept, so that the loss is anywhere in the log.
        let often = 1 + random.below(200);
        let cut = disk.power_cut(|_| random.below(often) != 1).unwrap();
        let db = BUFFERED.open_memory(&cut).unwrap();
        let rows = db.rows();
        let kept = i64::try_from(rows.len()).unwrap();
        assert_eq!(rows, expected(1..=kept), "a prefix of the commit order");
        lengths.insert(kept);
        put(&db.collection(), last + 1, 1).unwrap();
        let again = kill(&cut);
        let mut rows = rows;
        rows.insert(last + 1, 1);
        assert_eq!(BUFFERED.open_memory(&again).unwrap().rows(), rows);
    }
    assert!(lengths.len() > 10, "the cuts are not all alike: {lengths:?}");
}

#[test]
fn a11_a_durable_write_behind_a_roll_makes_the_older_segment_durable_first() {
    for way in ["durable write", "sync", "flush"] {
        let disk = MemoryDisk::new();
        let db = BUFFERED.open_memory(&disk).unwrap();
        let collection = db.collection();
        let mut id = 0;
        while db.database.stats().rolls == 0 {
            id += 1;
            put_large(&collection, id, 10 * id).unwrap();
        }
        // The older segment is neither synced nor sealed.
        assert_eq!(db.database.stats().segments_unsealed, 2);
        assert!(BUFFERED.open_memory(&power_cut(&disk)).unwrap().rows().len() < 5);
        match way {
            "sync" => db.database.sync().unwrap(),
            "flush" => {
                db.clock.advance(Duration::from_millis(300));
                while db.executor.step() != Some("flush") {}
            }
            _ => {
                id += 1;
                let mut batch = Batch::new();
                batch.put(&collection, id, &document(10 * id)).unwrap();
                db.database.write_with(batch, WriteDurability::Durable).unwrap();
            }
        }
        let disk = power_cut(&disk);
        assert_eq!(BUFFERED.open_memory(&disk).unwrap().rows(), expected(1..=id), "{way}");
    }
}

#[test]
fn a36_a_segment_is_discarded_for_good_when_its_predecessor_lost_its_end() {
    let (disk, last) = across_a_roll();
    let files = segments(&disk);
    let (older, newer) = (&files[0], &files[files.len() - 1]);
    let older_end = records(&read(&disk, older)).last().unwrap().end();
    assert!(!records(&read(&disk, newer)).is_empty(), "the log went on in the newer segment");
    // The newer file was written back, the older one lost its last sectors.
    let lost_from = (older_end - 600) as u64;
    let cut = disk
        .power_cut(|unsynced| match unsynced {
            Unsynced::Sector { file, offset } => {
                *file != first_segment_number(&disk) || *offset < lost_from
            }
            _ => true,
        })
        .unwrap();
    let db = BUFFERED.open_memory(&cut).unwrap();
    let rows = db.rows();
    let kept = i64::try_from(rows.len()).unwrap();
    assert!(kept > 0 && kept < last - 20, "{kept} of {last}");
    assert_eq!(rows, expected(1..=kept), "nothing of the newer segment");
    assert!(db.database.stats().recovery.torn_tail);
    assert_eq!(db.database.stats().recovery.damage, None, "nothing of it was synced");
    // Durably: neither now nor after the next crash.
    let killed = kill(&cut);
    assert_eq!(BUFFERED.open_memory(&killed).unwrap().rows(), rows);
    let cut = power_cut(&cut);
    assert_eq!(BUFFERED.open_memory(&cut).unwrap().rows(), rows);
}

/// The number by which a power cut names the first segment's file: found by cutting only the
/// sectors of one file.
fn first_segment_number(disk: &MemoryDisk) -> u64 {
    let mut numbers = BTreeMap::new();
    disk.power_cut(|unsynced| {
        if let Unsynced::Sector { file, .. } = unsynced {
            *numbers.entry(*file).or_insert(0) += 1;
        }
        true
    })
    .unwrap();
    numbers.into_iter().max_by_key(|(_, sectors)| *sectors).unwrap().0
}

#[test]
fn a34_an_idle_mark_closes_the_gap_of_the_last_group() {
    for setup in [DURABLE, BUFFERED] {
        let disk = MemoryDisk::new();
        let db = setup.open_memory(&disk).unwrap();
        let collection = db.collection();
        for id in 1..=5 {
            put(&collection, id, 10 * id).unwrap();
        }
        let busy = kill(&disk);
        // Past the flush's interval, then past the idle time before a mark.
        db.pass(Duration::from_millis(300));
        db.pass(Duration::from_millis(300));
        let idle = kill(&disk);
        drop(db);

        let log = log_segment(&idle);
        let last_put = |disk: &MemoryDisk| {
            let all = records(&read(disk, &log));
            *all.iter().rfind(|record| record.kind == PUT).unwrap()
        };
        let last = last_put(&idle);
        assert_eq!(last, last_put(&busy));
        for offset in last.offset..last.offset + last.used {
            let bit = u32::try_from(offset % 8).unwrap();
            // A kill in the middle of writing: the last group cannot be told from a torn one.
            let disk = kill(&busy);
            flip(&disk, &log, offset, bit);
            let db = setup.open_memory(&disk).unwrap();
            assert_eq!(db.rows(), expected(1..=4), "the documented exception");
            // A kill of an idle process: it can.
            let disk = kill(&idle);
            flip(&disk, &log, offset, bit);
            let error = setup.open_memory(&disk).unwrap_err();
            assert_eq!(corrupt_file(&error), log, "byte {offset} bit {bit}");
        }
    }
}
