//! Sequential cursors go past damaged records, and say what is known of them.

use std::os::unix::fs::FileExt;

use super::compacted::{few, indexed, sorted};
use super::cursors::{FIRST, check_walks};
use super::damage::open;
use super::*;
use crate::disk::faulty::{Call, FaultyDisk};
use crate::format::{Direction, Position, Side};
use crate::scan::Cursor;

/// What a walk met at each entry.
#[derive(Debug)]
enum Met {
    Record(Record),
    Damaged(DamagedEntry),
}

/// Goes through a segment from a position on, past damaged records.
fn walk(segment: &Arc<SealedSegment>, position: Position<'_>) -> Vec<Met> {
    let mut cursor = segment.sequential(Access::Once);
    let mut met = Vec::new();
    let mut outcome = cursor.seek(position, Direction::Forward);
    loop {
        match outcome {
            Ok(()) => match cursor.current() {
                Some(record) => met.push(Met::Record(record.clone())),
                None => return met,
            },
            Err(_) => {
                let damaged = cursor.damaged().expect("it is a record that is damaged").clone();
                assert!(cursor.current().is_none());
                assert_eq!(cursor.place().unwrap(), damaged.place);
                met.push(Met::Damaged(damaged));
            }
        }
        outcome = cursor.step(Direction::Forward);
    }
}

/// Flips a bit of a record while a segment is walked: all others are met in order, and the damaged
/// one in its place.
fn damaged(fixture: &Fixture, number: usize, path: &Path, byte: u64) -> DamagedEntry {
    let ordered = fixture.ordered();
    let file = open(path);
    let mut found = [0];
    file.read_exact_at(&mut found, ordered[number].offset + byte).unwrap();
    file.write_all_at(&[found[0] ^ 1], ordered[number].offset + byte).unwrap();
    let met = walk(&fixture.open(), FIRST);
    file.write_all_at(&found, ordered[number].offset + byte).unwrap();
    assert_eq!(met.len(), ordered.len());
    let mut damaged = None;
    for (i, (met, written)) in met.into_iter().zip(ordered).enumerate() {
        match met {
            Met::Record(record) => assert!(written.is(&record) && i != number),
            Met::Damaged(entry) => {
                assert_eq!((i, entry.place.offset), (number, written.offset));
                assert!(damaged.replace(entry).is_none());
            }
        }
    }
    damaged.unwrap_or_else(|| panic!("byte {byte} of entry {number} was not noticed"))
}

/// Ids with two versions each, so that even entries are newest ones.
fn pairs() -> Vec<AnyRecord> {
    let one = |n: u8| (1, format!("user{:05}", n % 6).into_bytes(), Kind::Put, vec![n; 20]);
    (0..12).map(one).collect()
}

fn key_of(written: &Written) -> Option<(CollectionId, Vec<u8>)> {
    Some((written.collection, written.id.clone()))
}

#[test]
fn of_a_damaged_document_in_a_log_everything_is_known() {
    let fixture = Fixture::new(pairs());
    for (number, written) in fixture.ordered().into_iter().enumerate() {
        let entry = damaged(&fixture, number, &fixture.path(), 28 + 9 + 5);
        assert_eq!((entry.key, entry.sequence), (key_of(written), written.sequence));
        assert_eq!(entry.place.member, 0);
    }
}

#[test]
fn of_a_damaged_id_in_a_log_the_sequence_is_known() {
    let fixture = Fixture::new(pairs());
    for (number, written) in fixture.ordered().into_iter().enumerate() {
        // Among others into the id of another record: the last byte decides.
        for byte in 28..28 + 9 {
            let entry = damaged(&fixture, number, &fixture.path(), byte);
            assert_eq!((entry.key, entry.sequence), (None, written.sequence), "{byte}");
        }
    }
}

#[test]
fn of_a_damaged_header_in_a_log_at_most_the_key_is_known() {
    let fixture = Fixture::new(pairs());
    for (number, written) in fixture.ordered().into_iter().enumerate() {
        for byte in 4..24 {
            let entry = damaged(&fixture, number, &fixture.path(), byte);
            assert!(entry.sequence <= written.sequence, "{byte}: the least that it may be");
            // The length of the document and the sequence are no part of the key. (The kind is not
            // either, but this one becomes one that does not exist.)
            let is_in_key = !matches!(byte, 8..12 | 16..24);
            let key = if is_in_key { None } else { key_of(written) };
            assert_eq!(entry.key, key, "byte {byte} of entry {number}");
        }
    }
}

#[test]
fn of_a_damaged_document_in_a_sorted_segment_the_key_is_known() {
    let fixture = sorted(Fixture::new(pairs()), SegmentId(100));
    for (number, written) in fixture.ordered().into_iter().enumerate() {
        let header = if written.sequence == Sequence(0) { 8 } else { 16 };
        let entry = damaged(&fixture, number, &fixture.path(), header + 9 + 5);
        assert_eq!(entry.key, key_of(written));
        assert!(entry.sequence <= written.sequence, "the least that it may be");
        let entry = damaged(&fixture, number, &fixture.path(), header + 8);
        assert_eq!(entry.key, None, "its id");
        assert!(entry.sequence <= written.sequence, "the least that it may be");
    }
}

#[test]
fn damage_in_a_member_is_told_with_its_place_there() {
    let fixture = indexed(pairs(), 2);
    let ordered = fixture.ordered();
    let mut members = [0; 3];
    for (number, written) in ordered.iter().enumerate() {
        let Met::Record(_) = &walk(&fixture.open(), FIRST)[number] else { panic!("no damage yet") };
        let mut cursor = fixture.open().sequential(Access::Keep);
        cursor.seek(FIRST, Direction::Forward).unwrap();
        (0..number).for_each(|_| cursor.step(Direction::Forward).unwrap());
        let place = cursor.place().unwrap();
        members[place.member] += 1;
        let path = fixture.path_of(fixture.members[place.member].id);
        let header = if written.sequence == Sequence(0) { 8 } else { 28 };
        let entry = damaged(&fixture, number, &path, header + 9 + 5);
        assert_eq!((entry.place, entry.key), (place, key_of(written)));
        assert!(entry.sequence <= written.sequence, "the least that it may be");
        let is_known = place.member > 0;
        assert!(!is_known || entry.sequence == written.sequence, "logs have a check of the header");
    }
    assert!(members.iter().all(|count| *count > 0), "{members:?}");
}

#[test]
fn a_seek_finds_its_place_among_damaged_records_whose_keys_it_would_need() {
    // Heads end within the shared bytes, so that every search needs the records' own keys.
    let id = |n: u16| [&[b'p'; 70][..], &n.to_be_bytes()].concat();
    let records = (0..700).map(|n| (1, id(2 * n), Kind::Put, vec![1; 30])).collect();
    let fixture = Fixture::new(records);
    let ordered = fixture.ordered();
    let file = open(&fixture.path());
    let mut random = rng(80);
    let mut lost: Vec<usize> = (0..60).map(|_| random.random_range(0..700)).collect();
    lost.extend([0, 336, 337, 672, 699]);
    for number in &lost {
        file.write_all_at(b"q", ordered[*number].offset + 28 + 72).unwrap();
    }
    for n in 0..=1400u16 {
        let id = id(n);
        let position = Position { collection: CollectionId(1), id: &id, side: Side::Before };
        let met = walk_few(&fixture.open(), position, 6);
        let expected = usize::from(n.div_ceil(2));
        // Those that are damaged and stand just before count as not before.
        let first = (0..expected).rev().take_while(|i| lost.contains(i)).last();
        let first = first.unwrap_or(expected);
        let until = ordered.len().min(first + 6);
        assert_eq!(met, (first..until).map(|i| ordered[i].offset).collect::<Vec<_>>(), "{n}");
    }
}

/// The places of the first few entries from a position on.
fn walk_few(segment: &Arc<SealedSegment>, position: Position<'_>, count: usize) -> Vec<u64> {
    let mut cursor = segment.sequential(Access::Keep);
    let mut places = Vec::new();
    let mut outcome = cursor.seek(position, Direction::Forward);
    while places.len() < count {
        if outcome.is_ok() && cursor.current().is_none() {
            break;
        }
        assert!(outcome.is_ok() || cursor.damaged().is_some(), "{outcome:?}");
        places.push(cursor.place().unwrap().offset);
        outcome = cursor.step(Direction::Forward);
    }
    places
}

#[test]
fn everything_is_met_once_through_the_window() {
    let mut records = any_records(81, 900);
    records.push((1, b"long".to_vec(), Kind::Put, vec![3; 400_000]));
    let fixture = sorted(Fixture::new(records), SegmentId(100));
    assert!(fixture.meta.log_end > 1 << 20, "several windows");
    let met = walk(&fixture.open(), FIRST);
    assert_eq!(met.len(), fixture.model.len());
    for (met, written) in met.iter().zip(fixture.model.values()) {
        let Met::Record(record) = met else { panic!("{met:?}") };
        assert!(written.is(record) && !record.is_mapped());
    }
}

#[test]
fn a_window_saves_calls() {
    let fixture = sorted(Fixture::new(numbered(3000)), SegmentId(100));
    let faulty = FaultyDisk::new(Arc::clone(&fixture.disk));
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let dir = fixture.folder.path();
    let segment = SealedSegment::new(fixture.meta.clone(), &disk, dir, &fixture.reaper);
    assert_eq!(walk(&segment, FIRST).len(), 3000);
    // 96 KB of records in one, ten index blocks, the trailer.
    assert!(faulty.calls(Call::Read) <= 15, "{} reads", faulty.calls(Call::Read));
}

#[test]
fn a_failure_of_the_disk_is_no_damage() {
    for fixture in [Fixture::new(few()), sorted(Fixture::new(few()), SegmentId(100))] {
        let faulty = FaultyDisk::new(Arc::clone(&fixture.disk));
        let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
        let dir = fixture.folder.path();
        let mut failures = 0;
        for failing in 0.. {
            let segment = SealedSegment::new(fixture.meta.clone(), &disk, dir, &fixture.reaper);
            let mut cursor = segment.sequential(Access::Once);
            faulty.fail_once(&[Call::Open, Call::Read], failing, libc::EIO);
            let mut outcome = cursor.seek(FIRST, Direction::Forward);
            while outcome.is_ok() && cursor.current().is_some() {
                outcome = cursor.step(Direction::Forward);
            }
            faulty.heal();
            let Err(error) = outcome else { break };
            assert!(matches!(error, Error::Io { .. }), "{error:?}");
            assert!(cursor.damaged().is_none());
            failures += 1;
        }
        assert!(failures >= 3, "the open, the trailer, a block, and records: {failures}");
    }
}

#[test]
fn a_cursor_that_is_not_sequential_tells_nothing_of_damage() {
    let fixture = sorted(Fixture::new(pairs()), SegmentId(100));
    open(&fixture.path()).write_all_at(b"\xFF", LOG_START + 20).unwrap();
    for regime in REGIMES {
        let mut cursor = fixture.open().cursor(regime);
        assert!(cursor.seek(FIRST, Direction::Forward).is_err());
        assert!(cursor.damaged().is_none());
    }
}

#[test]
fn turning_round_leaves_the_window_aside() {
    let fixture = sorted(Fixture::new(numbered(50)), SegmentId(100));
    check_walks(&fixture, 82);
    let mut cursor = fixture.open().sequential(Access::Keep);
    let ordered = fixture.ordered();
    cursor.seek(FIRST, Direction::Forward).unwrap();
    for i in 1..50 {
        cursor.step(Direction::Forward).unwrap();
        cursor.step(Direction::Reverse).unwrap();
        assert!(ordered[i - 1].is(cursor.current().unwrap()));
        cursor.step(Direction::Forward).unwrap();
    }
}
