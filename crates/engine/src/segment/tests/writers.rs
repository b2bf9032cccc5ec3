//! What the writers of sorted and index segments leave, when they finish and when they do not.

use super::compacted::{DATABASE, few, indexed, new_segment};
use super::damage::{open, with_flip};
use super::*;
use crate::disk::faulty::{Call, FaultyDisk};
use crate::disk::{MemoryDisk, Operation};
use crate::format::{Direction, FileKind, SegmentHeader};
use crate::scan::Cursor;

const OUT: SegmentId = SegmentId(300);

/// Pushes every record of a segment, in order.
fn push_all(writer: &mut SortedWriter, segment: &Arc<SealedSegment>) -> Result<()> {
    let mut cursor = segment.sequential(Access::Keep);
    cursor.seek(cursors::FIRST, Direction::Forward)?;
    while let Some(record) = cursor.current() {
        writer.push(record, record.sequence())?;
        cursor.step(Direction::Forward)?;
    }
    Ok(())
}

/// About a megabyte of records.
fn large() -> Vec<AnyRecord> {
    (0..300u32).map(|n| (1, format!("user{n:05}").into_bytes(), Kind::Put, vec![7; 3500])).collect()
}

#[test]
fn a_sorted_segment_tells_its_counts_and_its_keys_as_it_is_written() {
    let fixture = Fixture::new(few());
    let ordered = fixture.ordered();
    let new = new_segment(&fixture, OUT);
    let mut writer = SortedWriter::create(&new, 1 << 20, Access::Once).unwrap();
    assert_eq!((writer.records(), writer.data_bytes()), (0, 0));
    assert_eq!((writer.first_key(), writer.last_key()), (None, None));
    push_all(&mut writer, &fixture.open()).unwrap();
    writer.push_damaged(CollectionId(2), b"zzz", Sequence(77)).unwrap();
    assert_eq!(writer.records(), ordered.len() + 1);
    let first = (ordered[0].collection, ordered[0].id.as_slice());
    assert_eq!(writer.first_key(), Some(first));
    assert_eq!(writer.last_key(), Some((CollectionId(2), &b"zzz"[..])));

    let data_bytes = writer.data_bytes();
    let (meta, file) = writer.finish().unwrap();
    assert_eq!(meta.log_end, LOG_START + data_bytes);
    assert_eq!((meta.id, meta.file_kind), (OUT, FileKind::Sorted));
    assert_eq!((meta.records, meta.damaged), (ordered.len() as u64 + 1, 1));
    let content: u64 = ordered.iter().map(|w| w.content_len()).sum();
    assert_eq!((meta.content_bytes, meta.superseded_bytes), (content + 3, 0));
    assert_eq!((meta.pinned_bytes, meta.tombstone_bytes), pinned(&fixture));
    assert_eq!(meta.sequence_max, Sequence(77));
    assert_eq!(meta.default_collection(), ordered[0].collection);

    let header = std::fs::read(fixture.path_of(OUT)).unwrap();
    let header = SegmentHeader::decode(&header).unwrap();
    assert_eq!((header.file_kind, header.database_id), (FileKind::Sorted, DATABASE));
    assert_eq!((header.segment, header.incarnation), (OUT, new.incarnation));
    let segment = SealedSegment::from_file(meta, file);
    assert!(segment.is_open());
    for regime in REGIMES {
        let key = Key::new(CollectionId(2), b"zzz");
        assert!(matches!(segment.get(key, Sequence::MAX, regime), Err(Error::Corrupt { .. })));
        assert!(segment.get(key, Sequence(76), regime).unwrap().is_none());
        for written in &ordered {
            let found = segment.get(written.key(), written.sequence, regime).unwrap().unwrap();
            assert_eq!(found.document(), written.document);
            assert_eq!(found.is_mapped(), regime == Regime::Mapped);
        }
    }
}

/// Bytes of older versions, and of tombstones that are newest.
fn pinned(fixture: &Fixture) -> (u64, u64) {
    let (mut pinned, mut tombstones) = (0, 0);
    for written in fixture.model.values() {
        let newest = fixture.expected(&written.key(), Sequence::MAX).unwrap();
        if newest != written {
            pinned += written.content_len();
        } else if written.kind == Kind::Delete {
            tombstones += written.content_len();
        }
    }
    (pinned, tombstones)
}

#[test]
fn a_writer_knows_how_much_fits_into_its_map() {
    let fixture = Fixture::new(large());
    let ordered = fixture.ordered();
    let record = fixture.open().find_newest(ordered[0].key(), Regime::Pread).unwrap().unwrap();
    let capacity = 512 << 10;
    let new = new_segment(&fixture, OUT);
    let mut writer = SortedWriter::create(&new, capacity, Access::Keep).unwrap();
    let mut cursor = fixture.open().sequential(Access::Keep);
    cursor.seek(cursors::FIRST, Direction::Forward).unwrap();
    while writer.room_for(cursor.current().unwrap()) {
        let next = cursor.current().unwrap();
        writer.push(next, Sequence(0)).unwrap();
        cursor.step(Direction::Forward).unwrap();
    }
    assert!(writer.records() > 100 && !writer.room_for(&record));
    let (meta, file) = writer.finish().unwrap();
    assert!(meta.file_bytes() <= capacity && meta.file_bytes() > capacity / 2);
    assert!(SealedSegment::from_file(meta, file).is_open());
}

#[test]
fn a_record_that_does_not_fit_is_written_and_read_all_the_same() {
    let fixture = Fixture::new(vec![(1, b"id".to_vec(), Kind::Put, vec![5; 600_000])]);
    let new = new_segment(&fixture, OUT);
    let mut writer = SortedWriter::create(&new, 128 << 10, Access::Keep).unwrap();
    push_all(&mut writer, &fixture.open()).unwrap();
    let (meta, file) = writer.finish().unwrap();
    let segment = SealedSegment::from_file(meta, file);
    for regime in REGIMES {
        let key = Key::new(CollectionId(1), b"id");
        let found = segment.get(key, Sequence::MAX, regime).unwrap().unwrap();
        assert_eq!(found.document(), [5; 600_000]);
    }
}

#[test]
fn bytes_that_change_between_push_and_finish_are_found() {
    let fixture = Fixture::new(large());
    let mut random = rng(70);
    for _ in 0..8 {
        let new = new_segment(&fixture, OUT);
        let mut writer = SortedWriter::create(&new, 4 << 20, Access::Keep).unwrap();
        push_all(&mut writer, &fixture.open()).unwrap();
        // Of what is written by then; records are back to back, so that three bytes of padding are
        // never hit: 8 + 8 + 9 + 3500 bytes.
        let record = random.random_range(0..200u64);
        let at = LOG_START + record * 3528 + random.random_range(0..3525);
        let file = open(&fixture.path_of(OUT));
        with_flip(&file, at * 8 + random.random_range(0..8), || {
            let error = writer.finish().unwrap_err();
            let Error::Corrupt { offset, .. } = error else { panic!("{error:?}") };
            assert_eq!(offset, LOG_START + record * 3528, "byte {at}");
        });
        fixture.reaper.reap();
        assert!(!fixture.path_of(OUT).exists());
    }
}

#[test]
fn a_record_in_the_place_of_another_is_found() {
    let fixture = Fixture::new(large());
    let new = new_segment(&fixture, OUT);
    let mut writer = SortedWriter::create(&new, 4 << 20, Access::Keep).unwrap();
    push_all(&mut writer, &fixture.open()).unwrap();
    // Another record of the same length that verifies at this very place.
    let mut other = SortedWriter::create(
        &NewSegment { id: SegmentId(301), ..new_segment(&fixture, OUT) },
        4 << 20,
        Access::Keep,
    )
    .unwrap();
    let mut id = large()[0].1.clone();
    id[8] = b'9';
    let record = Record::owned_for_test(CollectionId(1), &id, &[7; 3500], Sequence(1), Kind::Put);
    other.push(&record, Sequence(1)).unwrap();
    other.finish().unwrap();
    let forged = std::fs::read(fixture.path_of(SegmentId(301))).unwrap();
    let file = open(&fixture.path_of(OUT));
    std::os::unix::fs::FileExt::write_all_at(&file, &forged[4096..4096 + 3528], 4096).unwrap();
    let error = writer.finish().unwrap_err();
    assert!(matches!(error, Error::Corrupt { offset: LOG_START, .. }), "{error:?}");
}

#[test]
fn writers_that_are_dropped_leave_no_file() {
    let fixture = indexed(few(), 2);
    let new = new_segment(&fixture, OUT);
    let mut writer = SortedWriter::create(&new, 1 << 20, Access::Keep).unwrap();
    push_all(&mut writer, &fixture.open()).unwrap();
    assert!(fixture.path_of(OUT).exists());
    drop(writer);
    fixture.reaper.reap();
    assert!(!fixture.path_of(OUT).exists());

    let metas: Vec<_> = fixture.members.iter().collect();
    let mut writer = IndexWriter::create(&new, &metas, 3).unwrap();
    let of_the_first = fixture.model.values().find(|written| written.sequence == Sequence(0));
    writer.push(0, &of_the_first.unwrap().entry()).unwrap();
    assert!(fixture.path_of(OUT).exists());
    drop(writer);
    fixture.reaper.reap();
    assert!(!fixture.path_of(OUT).exists());
    assert!(fixture.reaper.take_failures().is_empty());
}

#[test]
fn writers_that_fail_at_any_call_leave_no_file() {
    const CALLS: [Call; 6] =
        [Call::Open, Call::Read, Call::Write, Call::SetLen, Call::Map, Call::SyncData];
    let source = Fixture::new(large());
    let faulty = FaultyDisk::new(Arc::clone(&source.disk));
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let new = NewSegment { disk: &disk, ..new_segment(&source, OUT) };
    let sort = || {
        let mut writer = SortedWriter::create(&new, 4 << 20, Access::Keep)?;
        push_all(&mut writer, &source.open())?;
        writer.finish()
    };
    let index = || {
        let mut writer = IndexWriter::create(&new, &[&source.meta], 300)?;
        source.model.values().try_for_each(|written| writer.push(0, &written.entry()))?;
        writer.finish()
    };
    type Attempt<'a> = &'a dyn Fn() -> Result<(SealedMeta, Arc<SegmentFile>)>;
    let attempts: [Attempt<'_>; 2] = [&sort, &index];
    for attempt in attempts {
        let mut failed = 0;
        loop {
            faulty.fail_once(&CALLS, failed, libc::EIO);
            let outcome = attempt();
            faulty.heal();
            match outcome {
                Ok((_, file)) => {
                    assert!(source.path_of(OUT).exists());
                    file.doom();
                    break;
                }
                Err(error) => assert!(matches!(error, Error::Io { .. }), "{error:?}"),
            }
            failed += 1;
            source.reaper.reap();
            assert!(!source.path_of(OUT).exists(), "after {failed} calls");
        }
        // Open, set the length, map, write, set the length, sync; at least.
        assert!(failed >= 6, "{failed} calls");
        source.reaper.reap();
        assert!(!source.path_of(OUT).exists());
    }
}

#[test]
fn data_is_written_in_aligned_pieces_and_synced_last() {
    let source = Fixture::new(large());
    let memory = MemoryDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let new = NewSegment { disk: &disk, dir: Path::new("/"), ..new_segment(&source, OUT) };
    memory.start_trace();
    let mut writer = SortedWriter::create(&new, 4 << 20, Access::Once).unwrap();
    push_all(&mut writer, &source.open()).unwrap();
    let (meta, _) = writer.finish().unwrap();
    let trace = memory.trace();
    let mut end = 0;
    for operation in &trace {
        let Operation::Write { offset, bytes, .. } = operation else { continue };
        if *offset < meta.log_end {
            assert_eq!(*offset, end, "without a gap");
            assert!(offset.is_multiple_of(256 << 10) && bytes.len() <= 256 << 10);
        }
        end = offset + bytes.len() as u64;
    }
    assert_eq!(end, meta.file_bytes());
    assert!(matches!(trace.last(), Some(Operation::SyncData { .. })));
}
