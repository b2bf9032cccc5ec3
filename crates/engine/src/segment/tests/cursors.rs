//! Cursors go through a segment as through a sorted list.

use super::super::cursor::SegmentCursor;
use super::*;
use crate::format::{Direction, Position, Side};
use crate::scan::Cursor;

fn walk(cursor: &mut SegmentCursor, direction: Direction, limit: usize) -> Vec<Record> {
    let mut seen = Vec::new();
    while seen.len() < limit
        && let Some(record) = cursor.current()
    {
        seen.push(record.clone());
        cursor.step(direction).unwrap();
    }
    seen
}

fn assert_same(seen: &[Record], expected: &[&Written], context: &str) {
    assert_eq!(seen.len(), expected.len(), "{context}");
    for (record, written) in seen.iter().zip(expected) {
        assert!(written.is(record), "{context}: {record:?}, not {written:?}");
    }
}

pub(super) const FIRST: Position<'static> =
    Position { collection: CollectionId(0), id: b"", side: Side::Before };
const LAST: Position<'static> =
    Position { collection: CollectionId(u32::MAX), id: &[0xFF; 80], side: Side::After };

/// Whole walks, then seeks to ids that exist and to others, and some steps from there.
pub(super) fn check_walks(fixture: &Fixture, seed: u64) {
    let mut rng = rng(seed);
    let forward = fixture.ordered();
    let mut reverse = forward.clone();
    reverse.reverse();
    for regime in REGIMES {
        let mut cursor = fixture.open().cursor(regime);
        cursor.seek(FIRST, Direction::Forward).unwrap();
        let seen = walk(&mut cursor, Direction::Forward, usize::MAX);
        assert_same(&seen, &forward, &format!("seed {seed}, {regime:?}, forward"));
        cursor.seek(LAST, Direction::Reverse).unwrap();
        let seen = walk(&mut cursor, Direction::Reverse, usize::MAX);
        assert_same(&seen, &reverse, &format!("seed {seed}, {regime:?}, reverse"));
        for _ in 0..300 {
            let mut id = any_id(&mut rng);
            let mut collection = CollectionId([0, 1, 2, 3, u32::MAX][rng.random_range(0..5)]);
            if !forward.is_empty() && rng.random() {
                let written = forward[rng.random_range(0..forward.len())];
                (collection, id) = (written.collection, written.id.clone());
            }
            let side = if rng.random() { Side::Before } else { Side::After };
            let position = Position { collection, id: &id, side };
            let bound = forward.partition_point(|w| {
                let order = (w.collection, &w.id).cmp(&(collection, &id));
                order.is_lt() || (order.is_eq() && side == Side::After)
            });
            let context = format!("seed {seed}, {regime:?}, {position:?}");
            cursor.seek(position, Direction::Forward).unwrap();
            let seen = walk(&mut cursor, Direction::Forward, 5);
            let end = forward.len().min(bound + 5);
            assert_same(&seen, &forward[bound..end], &context);
            cursor.seek(position, Direction::Reverse).unwrap();
            let seen = walk(&mut cursor, Direction::Reverse, 5);
            let from = forward.len() - bound;
            let end = reverse.len().min(from + 5);
            assert_same(&seen, &reverse[from..end], &context);
        }
    }
}

#[test]
fn random_sets_are_walked_and_sought_in_order() {
    for seed in 20..26 {
        let count = [1, 2, 40, 336, 337, 3000][usize::try_from(seed - 20).unwrap()];
        check_walks(&Fixture::new(any_records(seed, count)), seed);
    }
}

#[test]
fn wide_places_are_walked_in_order() {
    check_walks(&Fixture::with_end(any_records(30, 900), LogEnd::At(33 << 30)), 30);
}

#[test]
fn three_levels_are_walked_in_order() {
    let fixture = Fixture::new(numbered(120_000));
    check_walks(&fixture, 31);
}

#[test]
fn an_empty_index_is_walked_without_a_record() {
    check_walks(&Fixture::new(Vec::new()), 32);
}

#[test]
fn turning_round_goes_back_over_the_same_records() {
    let fixture = Fixture::new(any_records(33, 1500));
    let ordered = fixture.ordered();
    for regime in REGIMES {
        let mut rng = rng(34);
        let mut cursor = fixture.open().cursor(regime);
        cursor.seek(FIRST, Direction::Forward).unwrap();
        let mut at = 0;
        for _ in 0..20_000 {
            assert!(ordered[at].is(cursor.current().unwrap()));
            let forward = at == 0 || (at + 1 < ordered.len() && rng.random_range(0..9) < 5);
            cursor.step(if forward { Direction::Forward } else { Direction::Reverse }).unwrap();
            if forward { at += 1 } else { at -= 1 }
        }
    }
}

#[test]
fn a_cursor_touches_no_file_before_its_first_seek() {
    let fixture = Fixture::new(numbered(10));
    let segment = fixture.open();
    let mut cursor = segment.cursor(Regime::Mapped);
    assert!(cursor.current().is_none());
    assert!(!segment.is_open());
    cursor.seek(FIRST, Direction::Forward).unwrap();
    assert!(segment.is_open());
}
