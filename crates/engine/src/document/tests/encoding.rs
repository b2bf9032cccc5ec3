use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use super::{encode, nested_raw, raw_document, string};
use crate::document::validate;
use crate::error::Error;

fn refusal<T: Serialize + ?Sized>(value: &T) -> String {
    match encode(value) {
        Err(Error::InvalidDocument { what }) => what,
        other => panic!("not refused: {other:?}"),
    }
}

#[derive(Serialize)]
enum Shape {
    Unit,
    Newtype(i32),
    Tuple(i32, String),
    Struct { a: Option<i32> },
}

#[derive(Serialize)]
struct Wrapper<T>(T);

#[derive(Serialize)]
struct Sample<'a> {
    text: &'a str,
    shapes: Vec<Shape>,
    pair: (u8, char),
    wrapped: Wrapper<Option<u64>>,
    none: Option<bool>,
    map: BTreeMap<String, f32>,
}

#[test]
fn the_guard_changes_no_byte() {
    let sample = Sample {
        text: "x",
        shapes: vec![
            Shape::Unit,
            Shape::Newtype(1),
            Shape::Tuple(2, "t".to_owned()),
            Shape::Struct { a: Some(3) },
        ],
        pair: (4, 'ü'),
        wrapped: Wrapper(Some(5)),
        none: None,
        map: BTreeMap::from([("k".to_owned(), 0.5)]),
    };
    assert_eq!(encode(&sample).unwrap(), bson::serialize_to_vec(&sample).unwrap());
    let every_type =
        bson::Document::try_from(bson::RawDocument::from_bytes(&super::every_type()).unwrap())
            .unwrap();
    assert_eq!(encode(&every_type).unwrap(), super::every_type());
    let json = json!({ "a": [1, "b", null, { "c": 1.5, "d": false }], "e": {} });
    assert_eq!(encode(&json).unwrap(), bson::serialize_to_vec(&json).unwrap());
}

#[test]
fn a_raw_document_is_taken_as_it_is_and_checked() {
    let bytes = super::every_type();
    assert_eq!(encode(&bson::RawDocument::from_bytes(&bytes).unwrap()).unwrap(), bytes);
    let owned = bson::RawDocumentBuf::from_bytes(bytes.clone()).unwrap();
    assert_eq!(encode(&owned).unwrap(), bytes);
    let malformed = bson::RawDocumentBuf::from_bytes(raw_document(b"\x08b\0\x02")).unwrap();
    assert!(refusal(&malformed).contains("boolean"));
    assert!(refusal(&BTreeMap::from([("in", malformed)])).contains("boolean"));
    let deep = bson::RawDocumentBuf::from_bytes(nested_raw(100, 3)).unwrap();
    assert!(encode(&deep).is_ok());
    assert!(refusal(&BTreeMap::from([("in", deep)])).contains("101"));
}

#[test]
fn a_top_level_that_is_no_document_is_refused() {
    assert!(refusal(&5).contains("an integer"), "{}", refusal(&5));
    assert!(refusal("text").contains("a string"));
    assert!(refusal(&1.5).contains("a number"));
    assert!(refusal(&true).contains("a boolean"));
    assert!(refusal(&()).contains("null"));
    assert!(refusal(&None::<i32>).contains("null"));
    assert!(refusal(&vec![1]).contains("a sequence"));
    assert!(refusal(&(1, 2)).contains("a sequence"));
    assert!(refusal(&json!([{}])).contains("a sequence"));
    assert!(refusal(&Shape::Unit).contains("a string"));
    assert!(refusal(&bson::oid::ObjectId::from_bytes([1; 12])).contains("top level"));
    assert!(refusal(&bson::DateTime::from_millis(1)).contains("top level"));
    assert!(encode(&Some(Wrapper(json!({})))).is_ok());
    assert!(encode(&Shape::Newtype(1)).is_ok());
}

#[test]
fn integers_that_bson_cannot_hold_are_refused() {
    assert!(encode(&json!({ "n": i64::MAX })).is_ok());
    let what = refusal(&json!({ "n": u64::MAX }));
    assert!(
        what.contains("18446744073709551615") && what.contains("9223372036854775807"),
        "{what}"
    );
    assert!(refusal(&BTreeMap::from([("n", 1_u128)])).contains("128"));
}

#[test]
fn names_that_bson_cannot_hold_are_refused() {
    assert!(refusal(&json!({ "a\0b": 1 })).contains("null"), "{}", refusal(&json!({ "a\0b": 1 })));
    assert!(refusal(&BTreeMap::from([(1, 2)])).contains("key"));
    let long = format!("\0{}", "x".repeat(100_000));
    assert!(refusal(&BTreeMap::from([(long, 2)])).len() < 400);
}

#[test]
fn a_document_takes_up_to_16_mib() {
    // Length, type, name, string length, string, two terminators.
    let overhead = 4 + 1 + 2 + 4 + 1 + 1;
    let limit = 16 << 20;
    for (len, fits) in [(limit - 1, true), (limit, true), (limit + 1, false), (80 << 20, false)] {
        let text = "x".repeat(len - overhead);
        let bytes = raw_document(&[b"\x02a\0", &string(text.as_bytes())[..]].concat());
        assert_eq!(bytes.len(), len);
        let (encoded, validated) = (encode(&BTreeMap::from([("a", &text)])), validate(&bytes));
        assert_eq!(validated.is_ok(), fits);
        if fits {
            assert_eq!(encoded.unwrap(), bytes);
        } else {
            assert!(validated.unwrap_err().to_string().contains(&len.to_string()));
            assert!(encoded.unwrap_err().to_string().contains("16777216"));
        }
    }
}

#[test]
fn values_with_a_long_serialized_form_may_fill_a_document() {
    // Dates and decimals are handed to the serializer as text that is longer than their BSON.
    let dates = vec![bson::DateTime::MIN; 900_000];
    assert!(encode(&BTreeMap::from([("a", dates)])).is_ok());
    let ids = vec![bson::oid::ObjectId::from_bytes([7; 12]); 700_000];
    assert!(encode(&BTreeMap::from([("a", ids)])).is_ok());
    let decimals = vec!["1".parse::<bson::Decimal128>().unwrap(); 600_000];
    assert!(encode(&BTreeMap::from([("a", decimals)])).is_ok());
}

#[test]
fn a_serializer_error_of_the_value_is_passed_on() {
    struct Refuses;
    impl Serialize for Refuses {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("not today"))
        }
    }
    assert!(refusal(&BTreeMap::from([("a", Refuses)])).contains("not today"));
}
