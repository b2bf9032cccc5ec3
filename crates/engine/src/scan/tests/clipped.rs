//! Cursors that hide what is below a key.

use std::cmp::Reverse;

use super::segments::{Rows, any_place, any_rows, key, row, rows, rows_before};
use super::*;
use crate::format::FullKey;

/// A cursor over the model's rows in memory, and the count of calls to it.
fn cursor(model: &Rows) -> (MemoryCursor, Arc<Calls>) {
    let record = |((key, Reverse(sequence)), kind): (&(FullKey, Reverse<Sequence>), &Kind)| {
        record(key.collection(), key.id(), sequence.0, *kind)
    };
    let records = Arc::new(model.iter().map(record).collect());
    let calls = Arc::new(Calls::default());
    let cursor = MemoryCursor { records, at: None, usable: true, calls: Arc::clone(&calls) };
    (cursor, calls)
}

#[test]
fn seeks_steps_and_turns_equal_a_btreemap() {
    let (mut hidden, mut steps) = (0, 0);
    for seed in 0..200 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let count = random.random_range(0..100);
        let model = any_rows(&mut random, count);
        let (lower, _) = any_place(&mut random, &model);
        let expected = rows(&model, &(lower.clone()..=key(u32::MAX, &[0xFF; 99])));
        hidden += model.len() - expected.len();
        let mut cursor = Clipped::new(cursor(&model).0, lower.clone());
        assert!(cursor.current().is_none());
        for _ in 0..40 {
            let (id, side) = any_place(&mut random, &model);
            let place = if random.random_range(0..5) == 0 { &lower } else { &id }.position(side);
            let split = rows_before(&expected, place);
            let mut direction =
                if random.random() { Direction::Forward } else { Direction::Reverse };
            let mut at = match direction {
                Direction::Forward => Some(split).filter(|at| *at < expected.len()),
                Direction::Reverse => split.checked_sub(1),
            };
            if random.random() {
                cursor.approach(place, direction).unwrap();
            }
            cursor.seek(place, direction).unwrap();
            for _ in 0..50 {
                let context = format!("seed {seed}, from {lower:?}, {place:?} {direction:?}");
                let seen = cursor.current().map(row);
                assert_eq!(seen.as_ref(), at.map(|at| &expected[at]), "{context}");
                let Some(stands) = at else { break };
                if random.random_range(0..4) == 0 {
                    direction = match direction {
                        Direction::Forward => Direction::Reverse,
                        Direction::Reverse => Direction::Forward,
                    };
                }
                cursor.step(direction).unwrap();
                steps += 1;
                at = match direction {
                    Direction::Forward => Some(stands + 1).filter(|at| *at < expected.len()),
                    Direction::Reverse => stands.checked_sub(1),
                };
            }
        }
    }
    assert!(hidden > 1000 && steps > 10_000, "{hidden} rows hidden, {steps} steps");
}

#[test]
fn a_seek_that_can_find_nothing_touches_nothing() {
    let model = Rows::from([((key(5, b"b"), Reverse(Sequence(1))), Kind::Put)]);
    let (inner, calls) = cursor(&model);
    let mut cursor = Clipped::new(inner, key(5, b"b"));
    let b = key(5, b"b");
    cursor.approach(b.position(Side::Before), Direction::Reverse).unwrap();
    cursor.seek(b.position(Side::Before), Direction::Reverse).unwrap();
    assert!(cursor.current().is_none());
    assert_eq!(calls.made(), 0);
    cursor.seek(b.position(Side::After), Direction::Reverse).unwrap();
    assert_eq!(cursor.current().unwrap().id(), b"b");
    assert_eq!(calls.made(), 1);
}
