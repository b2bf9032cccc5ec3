//! Point lookups give what a map gives.

use super::super::reader::read_layout;
use super::*;

/// Every version of every id at, before and behind its sequence, and ids that are absent.
pub(super) fn check_gets(fixture: &Fixture, seed: u64) {
    let segment = fixture.open();
    let mut rng = rng(seed);
    let mut absent = 0;
    for regime in REGIMES {
        let check = |key: Key<'_>, at: Sequence| {
            let found = segment.get(key, at, regime).unwrap();
            let expected = fixture.expected(&key, at);
            match (&found, expected) {
                (None, None) => {}
                (Some(record), Some(written)) if written.is(record) => {
                    assert_eq!(record.is_mapped(), regime == Regime::Mapped);
                }
                _ => panic!("seed {seed}: {key:?} at {at}: {found:?}, not {expected:?}"),
            }
            found.is_none()
        };
        for written in fixture.model.values() {
            let sequence = written.sequence;
            for at in
                [Sequence(sequence.0.saturating_sub(1)), sequence, sequence.next(), Sequence::MAX]
            {
                check(written.key(), at);
            }
            let mut other = written.id.clone();
            other.push(rng.random());
            absent += u32::from(check(Key::new(written.collection, &other), Sequence::MAX));
            absent += u32::from(check(Key::new(CollectionId(3), &written.id), Sequence::MAX));
        }
    }
    assert!(fixture.model.is_empty() || absent > 0, "seed {seed}: nothing absent was looked up");
}

#[test]
fn random_sets_are_found_at_every_sequence() {
    for seed in 0..6 {
        let count = [1, 2, 17, 340, 1000, 3000][usize::try_from(seed).unwrap()];
        check_gets(&Fixture::new(any_records(seed, count)), seed);
    }
}

#[test]
fn wide_slots_are_found() {
    let fixture = Fixture::with_end(any_records(11, 900), LogEnd::At(200 << 20));
    check_gets(&fixture, 11);
}

#[test]
fn wide_places_are_found() {
    let fixture = Fixture::with_end(any_records(12, 900), LogEnd::At(33 << 30));
    check_gets(&fixture, 12);
}

#[test]
fn the_longest_ids_are_told_apart() {
    let longest = crate::format::ID_BYTES_MAX;
    let ids = (0..20u8).map(|n| {
        let mut id = vec![b'k'; longest];
        id[longest - 1] = n;
        id
    });
    let cut = vec![b'k'; longest - 1];
    let ids = ids.chain([cut]).map(|id| (1, id, Kind::Put, b"long".to_vec()));
    check_gets(&Fixture::new(ids.collect()), 0);
}

#[test]
fn a_hot_id_takes_one_slot_and_all_its_versions_are_found() {
    let mut records = numbered(2000);
    for n in 0..5000u32 {
        records.push((1, b"user-hot".to_vec(), Kind::Put, n.to_le_bytes().to_vec()));
    }
    let fixture = Fixture::new(records);
    assert_eq!(fixture.meta.ids, 2001);
    assert_eq!(fixture.meta.records, 7000);
    // 21 blocks of 336 entries and one above them, 167 buckets in three blocks, the trailer.
    assert_eq!(fixture.meta.file_bytes() - fixture.meta.index_offset, 26 * 4096);
    let segment = fixture.open();
    let hot = Key::new(CollectionId(1), b"user-hot");
    for version in [1u64, 2, 2500, 4999, 5000] {
        for regime in REGIMES {
            let record = segment.get(hot, Sequence(2000 + version), regime).unwrap().unwrap();
            assert_eq!(record.sequence(), Sequence(2000 + version));
        }
    }
}

#[test]
fn an_empty_index_finds_nothing() {
    let fixture = Fixture::new(Vec::new());
    let segment = fixture.open();
    let key = Key::new(CollectionId(0), b"");
    for regime in REGIMES {
        assert!(segment.get(key, Sequence::MAX, regime).unwrap().is_none());
    }
}

#[test]
fn two_hundred_thousand_records_are_found() {
    let fixture = Fixture::new(numbered(200_000));
    let segment = fixture.open();
    for regime in REGIMES {
        for written in fixture.model.values().step_by(7) {
            let record = segment.get(written.key(), Sequence::MAX, regime).unwrap().unwrap();
            assert!(written.is(&record), "{record:?}");
        }
    }
}

#[test]
fn keys_outside_the_bounds_open_nothing() {
    let fixture = Fixture::new(numbered(100));
    let segment = fixture.open();
    for (collection, id) in [(0, &b"user5"[..]), (1, b"a"), (1, b"userA"), (2, b"user5")] {
        let key = Key::new(CollectionId(collection), id);
        assert!(segment.get(key, Sequence::MAX, Regime::Mapped).unwrap().is_none());
    }
    let before = Key::new(CollectionId(1), b"user5");
    assert!(segment.get(before, Sequence(0), Regime::Mapped).unwrap().is_none());
    assert!(!segment.is_open());
}

#[test]
fn the_meta_counts_what_was_written() {
    let fixture = Fixture::new(any_records(5, 1000));
    let meta = &fixture.meta;
    let tombstones = fixture.model.values().filter(|w| w.kind == Kind::Delete).count();
    let mut ids: Vec<_> = fixture.model.values().map(|w| (w.collection, &w.id)).collect();
    ids.dedup();
    assert_eq!((meta.records, meta.tombstones), (1000, tombstones as u64));
    assert_eq!(meta.ids, ids.len() as u64);
    assert_eq!((meta.sequence_min, meta.sequence_max), (Sequence(1), Sequence(1000)));
    let (mut content, mut pinned, mut tombstone_bytes) = (0, 0, 0);
    let mut last = None;
    for written in fixture.model.values() {
        let len = written.content_len();
        content += len;
        if last == Some((written.collection, &written.id)) {
            pinned += len;
        } else if written.kind == Kind::Delete {
            tombstone_bytes += len;
        }
        last = Some((written.collection, &written.id));
    }
    assert!(pinned > 0 && tombstone_bytes > 0);
    assert_eq!((meta.content_bytes, meta.pinned_bytes), (content, pinned));
    assert_eq!((meta.tombstone_bytes, meta.superseded_bytes), (tombstone_bytes, SUPERSEDED));
    assert_eq!(meta.damaged, 0);
    assert_eq!(std::fs::metadata(fixture.path()).unwrap().len(), meta.file_bytes());
    let file = SegmentFile::open(
        &fixture.disk,
        fixture.folder.path(),
        (ID, INCARNATION),
        RecordFormat::Log,
        meta.file_bytes(),
        &fixture.reaper,
    );
    assert_eq!(&read_layout(&file.unwrap(), meta.trailer_offset).unwrap().0, meta);
}

#[test]
fn reserved_kinds_need_a_newer_version_and_markers_are_damage() {
    let kinds = [Kind::RangeDelete, Kind::Expiry, Kind::Patch, Kind::Damaged, Kind::Mark];
    let fixture = Fixture::new(
        kinds.iter().map(|kind| (1, vec![*kind as u8], *kind, b"body".to_vec())).collect(),
    );
    let segment = fixture.open();
    for written in fixture.model.values() {
        for regime in REGIMES {
            let found = segment.get(written.key(), Sequence::MAX, regime);
            match written.kind {
                Kind::Damaged | Kind::Mark => {
                    let Err(Error::Corrupt { offset, .. }) = found else { panic!("{found:?}") };
                    assert_eq!(offset, written.offset);
                }
                _ => assert!(matches!(found, Err(Error::UnsupportedFormat { .. })), "{found:?}"),
            }
        }
    }
}

#[test]
fn threads_that_open_a_segment_at_once_all_find_their_records() {
    let fixture = Fixture::new(numbered(5000));
    for _ in 0..8 {
        let segment = fixture.open();
        std::thread::scope(|scope| {
            for (thread, regime) in REGIMES.iter().cycle().take(6).enumerate() {
                let (segment, fixture) = (&segment, &fixture);
                scope.spawn(move || {
                    for written in fixture.model.values().skip(thread).step_by(97) {
                        let found = segment.get(written.key(), Sequence::MAX, *regime).unwrap();
                        assert!(written.is(&found.unwrap()));
                    }
                });
            }
        });
    }
}
