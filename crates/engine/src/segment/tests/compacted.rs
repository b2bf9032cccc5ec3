//! Sorted segments, and index segments over others, read as log segments are.

use std::ops::Range;

use super::cursors::check_walks;
use super::damage::{absent_ids, check, open, with_flip};
use super::lookups::check_gets;
use super::*;
use crate::format::{Direction, ID_BYTES_MAX};
use crate::scan::Cursor;

const SORTED: SegmentId = SegmentId(100);
const INDEX: SegmentId = SegmentId(200);
pub(super) const DATABASE: [u8; 16] = *b"sixteen bytes id";

pub(super) fn new_segment(fixture: &Fixture, id: SegmentId) -> NewSegment<'_> {
    NewSegment {
        disk: &fixture.disk,
        dir: fixture.folder.path(),
        id,
        incarnation: INCARNATION ^ id.0,
        database_id: DATABASE,
        reaper: &fixture.reaper,
    }
}

/// Header, id and document of a record in a sorted segment, by the format's description.
fn used_len(written: &Written, default_collection: CollectionId) -> u64 {
    let narrow = written.id.len() <= 255 && written.document.len() <= 65_535;
    let header = if narrow { 8 } else { 16 }
        + if written.sequence == Sequence(0) { 0 } else { 8 }
        + if written.collection == default_collection { 0 } else { 4 };
    header + written.content_len()
}

/// Sorts a segment's records as compaction does: the oldest version of each id needs no sequence.
pub(super) fn sorted(source: Fixture, id: SegmentId) -> Fixture {
    let new = new_segment(&source, id);
    let mut writer = SortedWriter::create(&new, 8 << 20, Access::Once).unwrap();
    let mut cursor = source.open().sequential(Access::Once);
    cursor.seek(cursors::FIRST, Direction::Forward).unwrap();
    let ordered = source.ordered();
    let default_collection = ordered[0].collection;
    let (mut model, mut offset) = (Model::new(), LOG_START);
    for (i, written) in ordered.iter().enumerate() {
        let is_oldest = ordered.get(i + 1).is_none_or(|next| next.id != written.id);
        let sequence = if is_oldest { Sequence(0) } else { written.sequence };
        let record = cursor.current().unwrap();
        assert!(written.is(record));
        writer.push(record, sequence).unwrap();
        let copy = Written { sequence, offset, ..(*written).clone() };
        offset += used_len(&copy, default_collection).next_multiple_of(8);
        assert_eq!(writer.data_bytes(), offset - LOG_START);
        model.insert((copy.collection, copy.id.clone(), Reverse(sequence)), copy);
        cursor.step(Direction::Forward).unwrap();
    }
    assert!(cursor.current().is_none());
    let (meta, _) = writer.finish().unwrap();
    let Fixture { folder, disk, reaper, .. } = source;
    Fixture { folder, disk, reaper, meta, members: Vec::new(), model }
}

/// An index segment over `count` logs that have the records in turn, and a sorted one that has the
/// first of them.
pub(super) fn indexed(records: Vec<AnyRecord>, count: usize) -> Fixture {
    let share = records.len() / (count + 1);
    let (oldest, rest) = records.split_at(share);
    let mut fixture = if oldest.is_empty() {
        Fixture::new(Vec::new())
    } else {
        sorted(Fixture::new(oldest.to_vec()), SORTED)
    };
    let mut members = Vec::new();
    let mut by_member: BTreeMap<_, (usize, Written)> = BTreeMap::new();
    if !oldest.is_empty() {
        members.push(fixture.meta.clone());
        by_member
            .extend(std::mem::take(&mut fixture.model).into_iter().map(|(key, w)| (key, (0, w))));
    }
    let numbered: Vec<_> = (share as u64 + 1..).zip(rest.iter().cloned()).collect();
    for i in 0..count {
        let id = SegmentId(101 + i as u64);
        let name = (id, INCARNATION ^ id.0);
        let dir = fixture.folder.path();
        let format = RecordFormat::Log;
        let file = SegmentFile::create(&fixture.disk, dir, name, format, 1 << 20, &fixture.reaper)
            .unwrap();
        let mine = numbered.iter().skip(i).step_by(count).cloned();
        let (log_end, model) = write_log(&file, mine);
        let member = members.len();
        members.push(seal(&file, log_end, &model));
        by_member.extend(model.into_iter().map(|(key, w)| (key, (member, w))));
    }
    fixture.members = members;
    let metas: Vec<_> = fixture.members.iter().collect();
    let new = new_segment(&fixture, INDEX);
    let mut writer = IndexWriter::create(&new, &metas, by_member.len()).unwrap();
    for (member, written) in by_member.values() {
        writer.push(*member, &written.entry()).unwrap();
    }
    let (meta, _) = writer.finish().unwrap();
    let model = by_member.into_iter().map(|(key, (_, written))| (key, written)).collect();
    Fixture { meta, model, ..fixture }
}

/// A few ids with several versions, documents and tombstones.
pub(super) fn few() -> Vec<AnyRecord> {
    (0..10u8)
        .map(|n| {
            let id = format!("user{:05}", n % 5).into_bytes();
            match n {
                3 => (1, id, Kind::Delete, Vec::new()),
                6 | 8 => (2, id, Kind::Put, vec![n; 5]),
                _ => (1, id, Kind::Put, vec![n; 10]),
            }
        })
        .collect()
}

#[test]
fn random_sets_are_found_and_walked_in_sorted_segments() {
    for (seed, count) in (50..).zip([1, 2, 40, 337, 2000]) {
        let fixture = sorted(Fixture::new(any_records(seed, count)), SORTED);
        check_gets(&fixture, seed);
        check_walks(&fixture, seed);
    }
}

#[test]
fn random_sets_are_found_and_walked_in_index_segments() {
    for (seed, (count, members)) in (60..).zip([(1, 1), (40, 3), (700, 2), (3000, 8)]) {
        let fixture = indexed(any_records(seed, count), members);
        check_gets(&fixture, seed);
        check_walks(&fixture, seed);
    }
}

#[test]
fn as_many_members_as_can_be_are_told_apart() {
    let fixture = indexed(any_records(65, 900), crate::format::MEMBERS_MAX - 1);
    assert_eq!(fixture.open().members().len(), 64);
    check_gets(&fixture, 65);
    check_walks(&fixture, 65);
}

#[test]
fn ids_and_documents_at_the_limits_of_the_narrow_form_come_back() {
    let mut records = Vec::new();
    // Of each id a version for each length, the oldest without a sequence.
    for (n, id_len) in (0u8..).zip([0, 1, 255, 256, ID_BYTES_MAX]) {
        for document_len in [0, 1, 65_535, 65_536, 300_000] {
            records.push((u32::from(n % 2), vec![n; id_len], Kind::Put, vec![n; document_len]));
        }
    }
    let fixture = sorted(Fixture::new(records), SORTED);
    check_gets(&fixture, 0);
    for mut cursor in REGIMES.map(|regime| fixture.open().cursor(regime)) {
        cursor.seek(cursors::FIRST, Direction::Forward).unwrap();
        for written in fixture.model.values() {
            assert!(written.is(cursor.current().unwrap()));
            cursor.step(Direction::Forward).unwrap();
        }
    }
}

#[test]
fn a_record_without_a_sequence_is_seen_by_every_reader() {
    let fixture = sorted(Fixture::new(numbered(10)), SORTED);
    assert_eq!((fixture.meta.sequence_min, fixture.meta.sequence_max), Default::default());
    let segment = fixture.open();
    for written in fixture.model.values() {
        let found = segment.get(written.key(), Sequence(0), Regime::Mapped).unwrap();
        assert!(written.is(&found.unwrap()));
    }
}

#[test]
fn the_newest_version_is_found_whatever_its_kind() {
    let mut records = few();
    records.push((1, b"marked".to_vec(), Kind::Damaged, Vec::new()));
    for fixture in [Fixture::new(records.clone()), indexed(records, 2)] {
        let segment = fixture.open();
        for regime in REGIMES {
            for written in fixture.model.values() {
                let newest = fixture.expected(&written.key(), Sequence::MAX).unwrap();
                let found = segment.find_newest(written.key(), regime).unwrap().unwrap();
                assert!(newest.is(&found), "{found:?}");
            }
            for id in absent_ids() {
                let absent = Key::new(CollectionId(1), &id);
                assert!(segment.find_newest(absent, regime).unwrap().is_none());
            }
            let marked = Key::new(CollectionId(1), b"marked");
            let error = segment.get(marked, Sequence::MAX, regime).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
        }
    }
}

#[test]
fn the_meta_of_an_index_segment_counts_what_its_members_have() {
    let fixture = indexed(any_records(66, 500), 3);
    let meta = &fixture.meta;
    assert_eq!(meta.records, 500);
    let content: u64 = fixture.model.values().map(Written::content_len).sum();
    assert_eq!((meta.content_bytes, meta.superseded_bytes), (content, 3 * SUPERSEDED));
    assert_eq!(meta.log_end, fixture.members.iter().map(|member| member.log_end).sum::<u64>());
    assert_eq!(std::fs::metadata(fixture.path()).unwrap().len(), meta.file_bytes());
}

#[test]
fn an_index_segment_over_other_members_than_its_own_is_refused() {
    let mut fixture = indexed(few(), 2);
    let any = fixture.ordered()[0].clone();
    let members = fixture.members.clone();
    let refused = |fixture: &Fixture| {
        for regime in REGIMES {
            let error = fixture.open().get(any.key(), Sequence::MAX, regime).unwrap_err();
            let Error::Corrupt { offset, .. } = error else { panic!("{error:?}") };
            assert_eq!(offset, fixture.meta.trailer_offset);
        }
    };
    fixture.members.swap(0, 1);
    refused(&fixture);
    fixture.members.truncate(1);
    refused(&fixture);
    fixture.members.clear();
    refused(&fixture);
    fixture.members = members;
    check_gets(&fixture, 0);
}

/// Flips every bit of some ranges of a file: each must be noticed.
fn check_flips(fixture: &Fixture, path: &Path, ranges: &[Range<u64>]) {
    let file = open(path);
    for bit in ranges.iter().flat_map(|range| range.start * 8..range.end * 8) {
        with_flip(&file, bit, || {
            let outcome = check(fixture, &(0..u64::MAX), &absent_ids()[..2], bit);
            assert!(outcome.corrupt > 0, "bit {bit} was not noticed");
        });
    }
    assert_eq!(check(fixture, &(0..0), &absent_ids(), 0).corrupt, 0);
}

/// What is used of each block of an index, about.
fn index_ranges(meta: &SealedMeta) -> Vec<Range<u64>> {
    let blocks = (meta.index_offset..meta.file_bytes()).step_by(4096);
    blocks.map(|block| block..block + 320).collect()
}

#[test]
fn any_flipped_bit_of_a_small_sorted_segment_is_found() {
    let fixture = sorted(Fixture::new(few()), SORTED);
    let default_collection = fixture.ordered()[0].collection;
    let records = fixture.model.values();
    let records: Vec<_> =
        records.map(|w| w.offset..w.offset + used_len(w, default_collection)).collect();
    check_flips(&fixture, &fixture.path(), &records);
    check_flips(&fixture, &fixture.path(), &index_ranges(&fixture.meta));
}

#[test]
fn any_flipped_bit_of_a_small_index_segment_is_found() {
    let fixture = indexed(few(), 2);
    check_flips(&fixture, &fixture.path(), &index_ranges(&fixture.meta));
    // The indexes of members are not used: it is their records that must be found damaged.
    let default_collection = fixture.members[0].default_collection();
    let first = fixture.model.values().find(|w| w.sequence == Sequence(0)).unwrap();
    let record = first.offset..first.offset + used_len(first, default_collection);
    check_flips(&fixture, &fixture.path_of(SORTED), &[record]);
}

#[test]
fn turning_round_in_a_sorted_segment_goes_back_over_the_same_records() {
    let fixture = sorted(Fixture::new(any_records(66, 1500)), SORTED);
    let ordered = fixture.ordered();
    for regime in REGIMES {
        let mut rng = rng(67);
        let mut cursor = fixture.open().cursor(regime);
        cursor.seek(cursors::FIRST, Direction::Forward).unwrap();
        let (mut at, mut left, mut forward) = (0, 0, true);
        for _ in 0..20_000 {
            assert!(ordered[at].is(cursor.current().unwrap()));
            assert_eq!(cursor.place().unwrap().offset, ordered[at].offset);
            if left == 0 {
                (left, forward) = (rng.random_range(1..12), rng.random());
            }
            left -= 1;
            forward = at == 0 || (forward && at + 1 < ordered.len());
            cursor.step(if forward { Direction::Forward } else { Direction::Reverse }).unwrap();
            if forward { at += 1 } else { at -= 1 }
        }
    }
}
