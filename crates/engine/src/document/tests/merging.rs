use bson::{Bson, doc};
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{element, encode, every_type, raw_document, string};
use crate::document::{merge, validate};

const SEED: u64 = 0x3e;

fn random_document(rng: &mut impl Rng, names: u32) -> bson::Document {
    let mut document = bson::Document::new();
    for _ in 0..rng.random_range(0..=names) {
        let value = match rng.random_range(0..4) {
            0 => Bson::Int32(rng.random()),
            1 => Bson::String("x".repeat(rng.random_range(0..50))),
            2 => Bson::Document(doc! { "in": rng.random::<i64>() }),
            _ => Bson::Array(vec![Bson::Null; rng.random_range(0..3)]),
        };
        document.insert(format!("field{}", rng.random_range(0..names.max(1))), value);
    }
    document
}

#[test]
fn a_merge_equals_decoding_replacing_and_encoding() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    for round in 0..3_000 {
        let names = [1, 5, 17, 40][round % 4];
        let (existing, fields) =
            (random_document(&mut rng, names), random_document(&mut rng, names));
        let merged = merge(&encode(&existing).unwrap(), &encode(&fields).unwrap()).unwrap();
        let mut expected = existing.clone();
        for (name, value) in &fields {
            expected.insert(name, value.clone());
        }
        validate(&merged).unwrap();
        let context = format!("seed {SEED}, round {round}: {existing} with {fields}");
        assert_eq!(merged, encode(&expected).unwrap(), "{context}");
    }
}

#[test]
fn no_fields_change_nothing_and_an_empty_document_takes_all() {
    let (every, empty) = (every_type(), raw_document(&[]));
    assert_eq!(merge(&every, &empty).unwrap(), every);
    assert_eq!(merge(&empty, &every).unwrap(), every);
    assert_eq!(merge(&every, &every).unwrap(), every);
    assert_eq!(merge(&empty, &empty).unwrap(), empty);
}

#[test]
fn of_a_repeated_name_the_first_is_replaced_and_the_others_go() {
    let number = |name, value| element(0x10, name, &[value, 0, 0, 0]);
    let existing = raw_document(
        &[number(b'a', 1), number(b'b', 2), number(b'a', 3), number(b'c', 4), number(b'c', 5)]
            .concat(),
    );
    let fields = raw_document(&[number(b'a', 8), number(b'd', 7), number(b'a', 9)].concat());
    let expected = raw_document(
        &[number(b'a', 9), number(b'b', 2), number(b'c', 4), number(b'c', 5), number(b'd', 7)]
            .concat(),
    );
    assert_eq!(merge(&existing, &fields).unwrap(), expected);
}

#[test]
fn a_field_may_change_its_type() {
    let existing = encode(&doc! { "a": 1, "b": { "c": 2 } }).unwrap();
    let merged =
        merge(&existing, &encode(&doc! { "b": "text", "a": Bson::Null }).unwrap()).unwrap();
    assert_eq!(merged, encode(&doc! { "a": Bson::Null, "b": "text" }).unwrap());
}

#[test]
fn the_result_is_held_to_16_mib() {
    let with = |name, len| raw_document(&element(2, name, &string(&vec![b'x'; len])));
    let (existing, limit) = (with(b'a', 1 << 20), 16 << 20);
    let one = with(b'b', 0).len() - 5;
    for (len, fits) in [(limit, true), (limit + 1, false)] {
        let fields = with(b'b', len - existing.len() - one);
        match merge(&existing, &fields) {
            Ok(merged) => assert!(fits && merged.len() == len && validate(&merged).is_ok()),
            Err(error) => assert!(!fits && error.to_string().contains("16777217"), "{error}"),
        }
    }
}

#[test]
fn many_fields_merge_in_linear_time() {
    let wide = |value: i32| -> bson::Document {
        (0..200_000).map(|i| (format!("f{i}"), Bson::Int32(value))).collect()
    };
    let merged = merge(&encode(&wide(1)).unwrap(), &encode(&wide(2)).unwrap()).unwrap();
    assert_eq!(merged, encode(&wide(2)).unwrap());
}
