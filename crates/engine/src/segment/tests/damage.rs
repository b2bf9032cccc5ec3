//! Damage is an error that says where, and never an answer.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use super::*;
use crate::format::{Direction, Position, Side};
use crate::scan::Cursor;

/// Flips a bit of the fixture's file while `check` runs.
pub(super) fn with_flip(file: &File, bit: u64, check: impl FnOnce()) {
    let mut byte = [0];
    file.read_exact_at(&mut byte, bit / 8).unwrap();
    file.write_all_at(&[byte[0] ^ 1 << (bit % 8)], bit / 8).unwrap();
    check();
    file.write_all_at(&byte, bit / 8).unwrap();
}

fn file_of(fixture: &Fixture) -> File {
    open(&fixture.path())
}

pub(super) fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

fn walk(segment: &Arc<SealedSegment>, regime: Regime) -> Result<Vec<Record>> {
    let mut cursor = segment.cursor(regime);
    let first = Position { collection: CollectionId(0), id: b"", side: Side::Before };
    cursor.seek(first, Direction::Forward)?;
    let mut seen = Vec::new();
    while let Some(record) = cursor.current() {
        seen.push(record.clone());
        cursor.step(Direction::Forward)?;
    }
    Ok(seen)
}

/// What reads of everything ran into.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) corrupt: u32,
    right: u32,
}

impl Outcome {
    fn count(&mut self, error: &Error, places: std::ops::Range<u64>, context: &str) {
        match error {
            Error::Corrupt { offset, .. } if places.contains(offset) => self.corrupt += 1,
            other => panic!("{context}: {other:?} is not damage within {places:?}"),
        }
    }
}

/// Reads everything, in both ways: each answer is right, or an error within `places`.
pub(super) fn check(
    fixture: &Fixture,
    places: &std::ops::Range<u64>,
    absent: &[Vec<u8>],
    bit: u64,
) -> Outcome {
    let mut outcome = Outcome::default();
    fixture.reaper.reap();
    for regime in REGIMES {
        let context = format!("bit {} of byte {}, {regime:?}", bit % 8, bit / 8);
        let segment = fixture.open();
        for written in fixture.model.values() {
            for at in [Sequence::MAX, written.sequence] {
                let expected = fixture.expected(&written.key(), at).unwrap();
                match segment.get(written.key(), at, regime) {
                    Ok(Some(record)) if expected.is(&record) => outcome.right += 1,
                    Ok(other) => panic!("{context}: {other:?}, not {expected:?}"),
                    Err(e) => outcome.count(&e, places.clone(), &context),
                }
            }
        }
        for id in absent {
            match segment.get(Key::new(CollectionId(1), id), Sequence::MAX, regime) {
                Ok(None) => outcome.right += 1,
                Ok(other) => panic!("{context}: {other:?} for an absent id"),
                Err(e) => outcome.count(&e, places.clone(), &context),
            }
        }
        match walk(&fixture.open(), regime) {
            Ok(seen) => {
                assert_eq!(seen.len(), fixture.model.len(), "{context}");
                assert!(fixture.model.values().zip(&seen).all(|(w, r)| w.is(r)), "{context}");
                outcome.right += 1;
            }
            Err(e) => outcome.count(&e, places.clone(), &context),
        }
    }
    outcome
}

pub(super) fn absent_ids() -> Vec<Vec<u8>> {
    (0..20u32).map(|n| format!("user{n:05}-absent").into_bytes()).collect()
}

#[test]
fn any_flipped_bit_of_a_small_index_is_found_or_harmless() {
    let records = (0..12u8).map(|n| {
        let id = format!("user{:05}", n / 2).into_bytes();
        (1, id, Kind::Put, vec![n; 10])
    });
    let fixture = Fixture::new(records.collect());
    let file = file_of(&fixture);
    let index = fixture.meta.index_offset..fixture.meta.file_bytes();
    assert_eq!(index.end - index.start, 3 * 4096, "a sorted block, a table and the trailer");
    // Every bit of every header and of what is used behind it, and every 37th of the zeros.
    let bits = index.start * 8..index.end * 8;
    for bit in bits.filter(|bit| bit % (4096 * 8) < 300 * 8 || bit % 37 == 0) {
        with_flip(&file, bit, || {
            let outcome = check(&fixture, &index, &absent_ids(), bit);
            assert!(outcome.corrupt > 0, "bit {bit} was not noticed");
        });
    }
    assert_eq!(check(&fixture, &index, &absent_ids(), 0).corrupt, 0);
}

#[test]
fn flipped_bits_of_a_large_index_are_found_or_harmless() {
    let fixture = Fixture::new(any_records(40, 1200));
    let file = file_of(&fixture);
    let index = fixture.meta.index_offset..fixture.meta.file_bytes();
    let mut rng = rng(41);
    for _ in 0..60 {
        let bit = rng.random_range(index.start * 8..index.end * 8);
        with_flip(&file, bit, || {
            check(&fixture, &index, &absent_ids(), bit);
        });
    }
}

#[test]
fn a_flipped_bit_of_a_record_is_an_error_of_that_record_alone() {
    let fixture = Fixture::new(any_records(42, 60));
    let file = file_of(&fixture);
    let mut rng = rng(43);
    for written in fixture.model.values() {
        let used = 28 + written.id.len() + written.document.len();
        // The first four bytes are the header's own check, which finds records and is not part of a
        // read.
        let bit = rng.random_range((written.offset + 4) * 8..(written.offset + used as u64) * 8);
        let place = written.offset..written.offset + 1;
        with_flip(&file, bit, || {
            let outcome = check(&fixture, &place, &[], bit);
            assert!(outcome.corrupt > 0, "bit {bit} was not noticed");
        });
    }
}

#[test]
fn a_cut_file_is_damage_that_names_it() {
    let fixture = Fixture::new(numbered(3000));
    let whole = std::fs::read(fixture.path()).unwrap();
    let any = fixture.ordered()[0].clone();
    for len in [0, 4096, fixture.meta.index_offset, fixture.meta.file_bytes() - 1] {
        let file = file_of(&fixture);
        file.set_len(len).unwrap();
        for regime in REGIMES {
            let error = fixture.open().get(any.key(), Sequence::MAX, regime).unwrap_err();
            let Error::Corrupt { file, offset, .. } = &error else { panic!("{error:?}") };
            assert_eq!((file, *offset), (&fixture.path(), len));
            assert!(walk(&fixture.open(), regime).is_err());
        }
        file.write_all_at(&whole, 0).unwrap();
    }
}

#[test]
fn a_missing_file_is_an_io_error_and_heals_when_it_is_back() {
    let fixture = Fixture::new(numbered(10));
    let segment = fixture.open();
    let any = fixture.ordered()[0];
    let aside = fixture.folder.path().join("aside");
    std::fs::rename(fixture.path(), &aside).unwrap();
    let error = segment.get(any.key(), Sequence::MAX, Regime::Mapped).unwrap_err();
    assert!(matches!(error, Error::Io { action: "open", .. }), "{error:?}");
    std::fs::rename(&aside, fixture.path()).unwrap();
    assert!(segment.get(any.key(), Sequence::MAX, Regime::Mapped).unwrap().is_some());
}

#[test]
fn a_segment_that_is_not_the_manifests_is_refused() {
    let fixture = Fixture::new(numbered(10));
    let any = fixture.ordered()[0];
    let other_file = SealedMeta { incarnation: 1, ..fixture.meta.clone() };
    let other_counts = SealedMeta { tombstones: 1, ..fixture.meta.clone() };
    for meta in [other_file, other_counts] {
        let segment =
            SealedSegment::new(meta, &fixture.disk, fixture.folder.path(), &fixture.reaper);
        let error = segment.get(any.key(), Sequence::MAX, Regime::Mapped).unwrap_err();
        let Error::Corrupt { offset, .. } = error else { panic!("{error:?}") };
        assert_eq!(offset, fixture.meta.trailer_offset);
    }
}

#[test]
fn places_outside_the_log_are_damage() {
    let (fixture, file) = Fixture::sealed(numbered(10), LogEnd::Exact, 8 << 20);
    let end = fixture.meta.log_end;
    for offset in [0, 8, LOG_START - 8, LOG_START + 4, end - 8, end, end + 8, u64::MAX - 7] {
        for regime in REGIMES {
            let error = file.read(offset, end, regime).unwrap_err();
            assert!(matches!(error, Error::Corrupt { offset: at, .. } if at == offset));
        }
        assert!(file.id_at(offset).len() <= 14);
    }
    // A record that is whole in the file, and of which the published part has only the beginning.
    let last = fixture.model.values().max_by_key(|w| w.offset).unwrap();
    for regime in REGIMES {
        assert!(file.read(last.offset, end - 8, regime).is_err());
        assert!(last.is(&file.read(last.offset, end, regime).unwrap()));
    }
    assert_eq!(file.id_at(last.offset), last.id);
}
