//! What the tests of documents share: sample documents and ways to build them.

mod corruption;
mod encoding;
mod merging;
mod nesting;
mod reading;

use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Decimal128, JavaScriptCodeWithScope, Regex, Timestamp, doc};

use super::encode;

/// A document from its elements' bytes.
fn raw_document(elements: &[u8]) -> Vec<u8> {
    let len = i32::try_from(elements.len() + 5).unwrap();
    [&len.to_le_bytes(), elements, &[0]].concat()
}

/// An element with a one-byte name.
fn element(kind: u8, name: u8, value: &[u8]) -> Vec<u8> {
    [&[kind, name, 0], value].concat()
}

/// A string value: length, content, terminator.
fn string(content: &[u8]) -> Vec<u8> {
    let len = i32::try_from(content.len() + 1).unwrap();
    [&len.to_le_bytes(), content, &[0]].concat()
}

/// Documents within each other, by raw bytes and without recursion. `kind` is that of the inner
/// ones.
fn nested_raw(levels: usize, kind: u8) -> Vec<u8> {
    (1..levels).fold(raw_document(&[]), |inner, _| raw_document(&element(kind, b'0', &inner)))
}

/// One field of every type, deprecated ones included, and some nesting.
fn every_type() -> Vec<u8> {
    let scope = doc! { "in": { "scope": [1, true] } };
    let common = doc! {
        "double": 1.5,
        "string": "grüße",
        "document": { "a": { "b": "c" } },
        "array": [1, "two", [3.0, Bson::Null]],
        "binary": Binary { subtype: BinarySubtype::Generic, bytes: vec![1, 2, 3] },
        "uuid": Binary { subtype: BinarySubtype::Uuid, bytes: vec![7; 16] },
        "old": Binary { subtype: BinarySubtype::BinaryOld, bytes: vec![4, 5] },
        "undefined": Bson::Undefined,
        "id": ObjectId::from_bytes([9; 12]),
        "true": true,
        "false": false,
        "date": DateTime::from_millis(1_700_000_000_123),
        "null": Bson::Null,
        "regex": Regex { pattern: "^ä+$".try_into().unwrap(), options: "im".try_into().unwrap() },
        "code": Bson::JavaScriptCode("f()".to_owned()),
        "symbol": Bson::Symbol("sym".to_owned()),
        "scoped": JavaScriptCodeWithScope { code: "g()".to_owned(), scope },
        "int32": 7,
        "timestamp": Timestamp { time: 5, increment: 6 },
        "int64": i64::MAX,
        "decimal": "1.25".parse::<Decimal128>().unwrap(),
        "min": Bson::MinKey,
        "max": Bson::MaxKey,
    };
    let common = encode(&common).unwrap();
    let pointer = element(0x0C, b'p', &[string(b"db.c"), vec![3; 12]].concat());
    raw_document(&[&common[4..common.len() - 1], &pointer].concat())
}
