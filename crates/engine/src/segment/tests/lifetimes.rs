//! Documents outlive their segment, and files go when the last document has.

use super::compacted::{few, indexed, new_segment};
use super::cursors::FIRST;
use super::*;
use crate::format::{Direction, Position, Side};
use crate::scan::Cursor;
use crate::sync::{AtomicUsize, Ordering};

#[test]
fn a_document_outlives_its_doomed_segment_and_the_file_goes_with_it() {
    let (fixture, file) = Fixture::sealed(numbered(10), LogEnd::Exact, 8 << 20);
    let notified = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&notified);
    fixture.reaper.set_notify(Box::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
    }));
    let written = fixture.ordered()[3];
    let segment = SealedSegment::from_file(fixture.meta.clone(), file);
    assert!(segment.is_open());
    let record = segment.get(written.key(), Sequence::MAX, Regime::Mapped).unwrap().unwrap();
    let clone = record.clone();
    segment.doom();
    drop(segment);
    assert_eq!(fixture.reaper.reap(), 0);
    assert!(written.is(&record));
    drop(record);
    assert!(written.is(&clone));
    assert!(fixture.path().exists());
    assert_eq!(notified.load(Ordering::SeqCst), 0);
    drop(clone);
    assert!(fixture.path().exists(), "the last reader unlinks nothing itself");
    assert_eq!(notified.load(Ordering::SeqCst), 1);
    assert_eq!(fixture.reaper.reap(), 1);
    assert!(!fixture.path().exists());
    assert!(fixture.reaper.take_failures().is_empty());
}

#[test]
fn a_segment_that_was_never_opened_is_unlinked_too() {
    let fixture = Fixture::new(numbered(10));
    fixture.reaper.reap();
    let segment = fixture.open();
    segment.doom();
    assert!(fixture.path().exists());
    drop(segment);
    assert_eq!(fixture.reaper.reap(), 1);
    assert!(!fixture.path().exists());
}

#[test]
fn a_segment_doomed_before_its_first_use_is_still_read_and_then_unlinked() {
    let fixture = Fixture::new(numbered(10));
    fixture.reaper.reap();
    let segment = fixture.open();
    segment.doom();
    let written = fixture.ordered()[0];
    for regime in REGIMES {
        assert!(written.is(&segment.get(written.key(), Sequence::MAX, regime).unwrap().unwrap()));
    }
    drop(segment);
    assert_eq!(fixture.reaper.reap(), 1);
    assert!(!fixture.path().exists());
}

#[test]
fn a_segment_that_is_kept_stays_on_the_disk() {
    let fixture = Fixture::new(numbered(10));
    let segment = fixture.open();
    let written = fixture.ordered()[0];
    assert!(segment.get(written.key(), Sequence::MAX, Regime::Mapped).unwrap().is_some());
    drop(segment);
    assert!(fixture.reaper.reap() > 0);
    assert!(fixture.path().exists());
}

#[test]
fn owned_documents_pin_no_file() {
    let (fixture, file) = Fixture::sealed(numbered(10), LogEnd::Exact, 8 << 20);
    let written = fixture.ordered()[0];
    let record = file.read(written.offset, fixture.meta.log_end, Regime::Pread).unwrap();
    file.doom();
    drop(file);
    assert_eq!(fixture.reaper.reap(), 1);
    assert!(!fixture.path().exists());
    assert!(written.is(&record) && !record.is_mapped());
}

#[test]
fn a_cursor_keeps_its_segment() {
    let (fixture, file) = Fixture::sealed(numbered(10), LogEnd::Exact, 8 << 20);
    let segment = SealedSegment::from_file(fixture.meta.clone(), file);
    let mut cursor = segment.cursor(Regime::Mapped);
    segment.doom();
    drop(segment);
    let first = Position { collection: CollectionId(0), id: b"", side: Side::Before };
    cursor.seek(first, Direction::Forward).unwrap();
    for written in fixture.ordered() {
        assert!(written.is(cursor.current().unwrap()));
        cursor.step(Direction::Forward).unwrap();
    }
    drop(cursor);
    assert_eq!(fixture.reaper.reap(), 1);
    assert!(!fixture.path().exists());
}

#[test]
fn a_file_that_is_gone_already_is_no_failure() {
    let (fixture, file) = Fixture::sealed(numbered(10), LogEnd::Exact, 8 << 20);
    std::fs::remove_file(fixture.path()).unwrap();
    file.doom();
    drop(file);
    assert_eq!(fixture.reaper.reap(), 1);
    let failures = fixture.reaper.take_failures();
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn a_file_that_cannot_be_removed_is_a_failure_to_report_and_no_panic() {
    let (fixture, file) = Fixture::sealed(numbered(10), LogEnd::Exact, 8 << 20);
    // A folder of the same name is nothing that can be unlinked.
    std::fs::remove_file(fixture.path()).unwrap();
    std::fs::create_dir(fixture.path()).unwrap();
    file.doom();
    drop(file);
    assert_eq!(fixture.reaper.reap(), 1);
    let failures = fixture.reaper.take_failures();
    assert!(matches!(failures[..], [Error::Io { action: "remove", .. }]), "{failures:?}");
}

#[test]
fn a_document_outlives_its_database() {
    let (fixture, file) = Fixture::sealed(numbered(10), LogEnd::Exact, 8 << 20);
    let Fixture { folder, reaper, model, meta, .. } = fixture;
    let written = model.values().next().unwrap();
    let record = file.read(written.offset, meta.log_end, Regime::Mapped).unwrap();
    file.doom();
    drop(file);
    drop(reaper);
    assert!(written.is(&record));
    drop(record);
    // The folder may be another database's by now: the name is left to the next open.
    assert!(segment_path(folder.path(), ID).exists());
}

#[test]
fn an_index_beyond_the_map_is_reached_by_opening_the_file_anew() {
    let (fixture, file) = Fixture::sealed(numbered(3000), LogEnd::Exact, 64 << 10);
    let segment = SealedSegment::from_file(fixture.meta.clone(), file);
    assert!(!segment.is_open());
    for written in fixture.model.values() {
        let found = segment.get(written.key(), Sequence::MAX, Regime::Mapped).unwrap();
        assert!(written.is(&found.unwrap()));
    }
    assert!(segment.allocated_bytes().unwrap() > 0);
}

#[test]
fn creating_a_segment_twice_is_refused() {
    let (fixture, _file) = Fixture::sealed(Vec::new(), LogEnd::Exact, 64 << 10);
    let again = create(&fixture.disk, fixture.folder.path(), 4096, &fixture.reaper);
    assert!(matches!(again, Err(Error::Io { action: "create", .. })), "{again:?}");
    assert!(fixture.path().exists());
}

/// Two index segments over the same members, as while one takes the other's place.
fn twins(fixture: &Fixture) -> (Arc<SealedSegment>, Arc<SealedSegment>) {
    let members: Vec<_> = fixture.members.iter().map(|meta| fixture.data(meta)).collect();
    let new = new_segment(fixture, SegmentId(201));
    let metas: Vec<_> = fixture.members.iter().collect();
    let old = SealedSegment::over(fixture.data(&fixture.meta), members.clone());
    let mut writer = IndexWriter::create(&new, &metas, fixture.model.len()).unwrap();
    let mut cursor = old.sequential(Access::Keep);
    cursor.seek(FIRST, Direction::Forward).unwrap();
    for written in fixture.model.values() {
        writer.push(cursor.place().unwrap().member, &written.entry()).unwrap();
        cursor.step(Direction::Forward).unwrap();
    }
    let (meta, file) = writer.finish().unwrap();
    (old, SealedSegment::over(DataSegment::from_file(meta, file), members))
}

#[test]
fn members_stay_while_any_segment_or_record_has_them() {
    let fixture = indexed(few(), 2);
    let (old, new) = twins(&fixture);
    let exists = |id: SegmentId| fixture.path_of(id).exists();
    let ids: Vec<_> = fixture.members.iter().map(|member| member.id).collect();
    let members = new.members().to_vec();

    old.doom();
    drop(old);
    fixture.reaper.reap();
    assert!(!exists(fixture.meta.id), "nobody has the old index any more");
    assert!(ids.iter().all(|id| exists(*id)), "it took no member with it");
    for written in fixture.model.values() {
        let found = new.get(written.key(), written.sequence, Regime::Mapped).unwrap().unwrap();
        assert!(written.is(&found));
    }

    let written = fixture.ordered()[0];
    let record = new.get(written.key(), written.sequence, Regime::Mapped).unwrap().unwrap();
    let mut cursor = new.cursor(Regime::Mapped);
    cursor.seek(FIRST, Direction::Forward).unwrap();
    members.iter().for_each(|member| member.doom());
    new.doom();
    drop((members, new));
    fixture.reaper.reap();
    assert!(ids.iter().all(|id| exists(*id)) && exists(SegmentId(201)), "the cursor has them");
    for written in fixture.model.values() {
        assert!(written.is(cursor.current().unwrap()));
        cursor.step(Direction::Forward).unwrap();
    }
    drop(cursor);
    fixture.reaper.reap();
    let left: Vec<_> = ids.iter().filter(|id| exists(**id)).collect();
    assert_eq!(left.len(), 1, "the record has its own member: {left:?}");
    assert!(!exists(SegmentId(201)));
    assert!(written.is(&record));
    drop(record);
    fixture.reaper.reap();
    assert!(!ids.iter().any(|id| exists(*id)));
    assert!(fixture.reaper.take_failures().is_empty());
}

#[test]
fn members_that_were_never_opened_are_unlinked_when_they_are_doomed() {
    let fixture = indexed(few(), 2);
    fixture.reaper.reap();
    let segment = fixture.open();
    segment.members().iter().for_each(|member| member.doom());
    drop(segment);
    fixture.reaper.reap();
    assert!(fixture.members.iter().all(|member| !fixture.path_of(member.id).exists()));
    assert!(fixture.path().exists(), "the index itself was not doomed");
}

#[test]
fn a_member_that_is_a_segment_itself_is_one_file_for_both() {
    let fixture = indexed(few(), 2);
    fixture.reaper.reap();
    let member = SealedSegment::of(fixture.data(&fixture.members[1]));
    let data = fixture.members.iter().enumerate().map(|(i, meta)| match i {
        1 => Arc::clone(&member.members()[0]),
        _ => fixture.data(meta),
    });
    let index = SealedSegment::over(fixture.data(&fixture.meta), data.collect());
    for written in fixture.model.values() {
        assert!(index.get(written.key(), written.sequence, Regime::Mapped).unwrap().is_some());
    }
    assert!(member.is_open(), "the index opened it for both");
    member.doom();
    drop(index);
    fixture.reaper.reap();
    assert!(fixture.path_of(member.meta().id).exists());
    drop(member);
    fixture.reaper.reap();
    assert!(!fixture.path_of(fixture.members[1].id).exists());
}
