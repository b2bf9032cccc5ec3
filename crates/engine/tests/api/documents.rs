//! Every method that takes a document: the smallest and the largest, and what is none.

use std::collections::{BTreeMap, HashMap};

use engine::bson::rawdoc;
use engine::{Batch, Collection, Database, Document};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::Calls;
use super::calls::database;

const MIB: usize = 1 << 20;
const EMPTY: [u8; 5] = [5, 0, 0, 0, 0];

pub(crate) fn table(calls: &Calls) {
    let (database, things) = database();
    for (name, bytes) in well_formed() {
        raw_is_taken(calls, &database, &things, name, &bytes);
    }
    for (name, bytes) in malformed() {
        raw_is_refused(&things, name, &bytes);
    }
    serialized(&things);
    merged(calls, &things);
    batches(&database, &things);
}

/// `{ "b": <binary> }` of this many bytes in all.
fn of_len(len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    bytes.extend_from_slice(&u32::try_from(len).unwrap().to_le_bytes());
    bytes.extend_from_slice(b"\x05b\0");
    bytes.extend_from_slice(&u32::try_from(len - 13).unwrap().to_le_bytes());
    bytes.push(0);
    bytes.resize(len, 0);
    bytes
}

/// Documents in documents, of this many levels, the last one empty.
fn nested(levels: usize, kind: u8) -> Vec<u8> {
    let mut bytes = EMPTY.to_vec();
    for _ in 1..levels {
        let len = bytes.len() + 8;
        let mut outer = u32::try_from(len).unwrap().to_le_bytes().to_vec();
        outer.extend_from_slice(&[kind, b'0', 0]);
        outer.append(&mut bytes);
        outer.push(0);
        bytes = outer;
    }
    bytes
}

fn well_formed() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("empty", EMPTY.to_vec()),
        ("one field without a name", rawdoc! { "": 1 }.into_bytes()),
        ("100 levels of documents", nested(100, 0x03)),
        ("100 levels of arrays", nested(100, 0x04)),
        ("one byte less than 16 MiB", of_len(16 * MIB - 1)),
        ("16 MiB", of_len(16 * MIB)),
    ]
}

fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let field = |content: &[u8]| {
        let len = u32::try_from(content.len() + 5).unwrap();
        [&len.to_le_bytes(), content, &[0]].concat()
    };
    vec![
        ("nothing", Vec::new()),
        ("a length alone", vec![4, 0, 0, 0]),
        ("a length below the least", vec![4, 0, 0, 0, 0]),
        ("a length of zero", vec![0; 5]),
        ("a length beyond the bytes", vec![6, 0, 0, 0, 0]),
        ("a negative length", vec![0xFF; 5]),
        ("bytes behind the end", vec![5, 0, 0, 0, 0, 0]),
        ("no terminator", vec![5, 0, 0, 0, 1]),
        ("an unknown type", field(b"\x20a\0")),
        ("a name without an end", field(b"\x0Aaaaa")),
        ("a name that is not UTF-8", field(b"\x0A\xFF\0")),
        ("a value cut short", field(b"\x12a\0\x01\0\0\0")),
        ("a boolean of 2", field(b"\x08a\0\x02")),
        ("a string that is not UTF-8", field(b"\x02a\0\x02\0\0\0\xFF\0")),
        ("a string without its NUL", field(b"\x02a\0\x01\0\0\0x")),
        ("a string of length zero", field(b"\x02a\0\0\0\0\0")),
        ("a nested length beyond the bytes", field(b"\x03a\0\xFF\0\0\0\0")),
        ("a nested document without a terminator", field(b"\x03a\0\x05\0\0\0\x01")),
        ("a malformed inside", field(b"\x03a\0\x08\0\0\0\x20b\0\0")),
        ("JSON", br#"{"a":1}"#.to_vec()),
        ("101 levels of documents", nested(101, 0x03)),
        ("101 levels of arrays", nested(101, 0x04)),
        ("10 000 levels", nested(10_000, 0x03)),
        ("one byte more than 16 MiB", of_len(16 * MIB + 1)),
    ]
}

fn raw_is_taken(calls: &Calls, database: &Database, things: &Collection, name: &str, bytes: &[u8]) {
    let stored = || things.get(1).unwrap().unwrap();
    things.put_raw(1, bytes).unwrap();
    let document = stored();
    assert!(call!(calls, Document::as_bytes(&document)) == bytes, "{name}: put");
    assert_eq!(call!(calls, Document::len(&document)), bytes.len(), "{name}");
    assert!(call!(calls, Document::as_raw(&document)).unwrap().as_bytes() == bytes, "{name}");
    things.delete(1).unwrap();
    things.insert_raw(1, bytes).unwrap();
    assert!(stored().as_bytes() == bytes, "{name}: insert");
    things.put_raw(1, &EMPTY).unwrap();
    things.update_raw(1, bytes).unwrap();
    assert!(stored().as_bytes() == bytes, "{name}: update");
    let mut batch = Batch::new();
    batch.put_raw(things, 1, bytes).unwrap();
    database.write(batch).unwrap();
    assert!(stored().as_bytes() == bytes, "{name}: batch");

    let document = call!(calls, Document::from_bytes(bytes)).unwrap();
    assert!(document.as_bytes() == bytes, "{name}");
    let again: bson::Document = call!(calls, Document::to_bson(&document)).unwrap();
    things.put(1, &again).unwrap();
    assert!(stored().as_bytes() == bytes, "{name}: decoded and encoded again");
    assert!(call!(calls, Document::to_json(&document)).unwrap().is_object());
    let _: BTreeMap<String, serde::de::IgnoredAny> =
        call!(calls, Document::decode(&document)).unwrap();
    assert!(format!("{document:?}").len() < 1000, "{name}");
}

fn raw_is_refused(things: &Collection, name: &str, bytes: &[u8]) {
    things.put(1, &json!({ "kept": true })).unwrap();
    let mut batch = Batch::new();
    refused!(things.put_raw(1, bytes), InvalidDocument, name);
    refused!(things.insert_raw(2, bytes), InvalidDocument, name);
    refused!(things.insert_raw(1, bytes), InvalidDocument, name);
    refused!(things.update_raw(1, bytes), InvalidDocument, name);
    refused!(batch.put_raw(things, 1, bytes), InvalidDocument, name);
    refused!(Document::from_bytes(bytes), InvalidDocument, name);
    assert!(batch.is_empty(), "{name}");
    assert_eq!(things.scan_ids(..).unwrap().count(), 1, "{name}");
    assert_eq!(things.get(1).unwrap().unwrap().get_bool("kept").unwrap(), Some(true), "{name}");
}

fn is_taken(things: &Collection, name: &str, value: &(impl Serialize + ?Sized), as_json: &Value) {
    let stored = || things.get(1).unwrap().unwrap().to_json().unwrap();
    let mut batch = Batch::new();
    things.delete(1).unwrap();
    things.insert(1, value).unwrap();
    assert_eq!(stored(), *as_json, "{name}: insert");
    things.put(1, value).unwrap();
    things.update(1, value).unwrap();
    batch.put(things, 1, value).unwrap();
    assert_eq!(stored(), *as_json, "{name}: put and update");
}

fn is_refused(things: &Collection, name: &str, value: &(impl Serialize + ?Sized)) {
    things.put(1, &json!({ "kept": true })).unwrap();
    let mut batch = Batch::new();
    refused!(things.put(1, value), InvalidDocument, name);
    refused!(things.insert(2, value), InvalidDocument, name);
    refused!(things.update(1, value), InvalidDocument, name);
    refused!(batch.put(things, 1, value), InvalidDocument, name);
    assert!(batch.is_empty(), "{name}");
    assert_eq!(
        things.get(1).unwrap().unwrap().to_json().unwrap(),
        json!({ "kept": true }),
        "{name}"
    );
}

/// A value that nests documents to this depth.
struct Levels(usize);

impl Serialize for Levels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let inner = (self.0 > 1).then(|| ("d", Levels(self.0 - 1)));
        serializer.collect_map(inner)
    }
}

struct Bytes(&'static [u8]);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

struct Refuses;

impl Serialize for Refuses {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("it does not want to"))
    }
}

fn serialized(things: &Collection) {
    #[derive(Serialize)]
    struct Unit;
    #[derive(Serialize)]
    struct Empty {}
    #[derive(Serialize)]
    struct Pair(i32, i32);
    #[derive(Serialize)]
    enum Shape {
        Point,
        Circle { r: i32 },
    }

    is_taken(things, "an empty struct", &Empty {}, &json!({}));
    is_taken(things, "an empty object", &json!({}), &json!({}));
    is_taken(things, "an option of a struct", &Some(Empty {}), &json!({}));
    is_taken(things, "a map", &HashMap::from([("a", 1)]), &json!({ "a": 1 }));
    is_taken(things, "an enum's struct", &Shape::Circle { r: 2 }, &json!({ "Circle": { "r": 2 } }));
    is_taken(things, "a BSON document", &bson::doc! { "a": null }, &json!({ "a": null }));
    is_taken(things, "a raw document", &rawdoc! { "a": 1 }, &json!({ "a": 1 }));
    let largest = json!({ "n": i64::MAX, "u": u64::try_from(i64::MAX).unwrap(), "m": i64::MIN });
    is_taken(things, "the largest integers", &largest, &largest);
    let document = |levels| things.put(1, &Levels(levels));
    document(100).unwrap();
    things.put(1, &BTreeMap::from([("s", "x".repeat(16 * MIB - 13))])).unwrap();
    assert_eq!(things.get(1).unwrap().unwrap().len(), 16 * MIB);

    is_refused(things, "null", &Value::Null);
    is_refused(things, "a boolean", &true);
    is_refused(things, "a number", &json!(1));
    is_refused(things, "a string", "text");
    is_refused(things, "an array", &json!([1, 2]));
    is_refused(things, "a sequence of objects", &[json!({})][..]);
    is_refused(things, "nothing", &());
    is_refused(things, "no option", &None::<Empty>);
    is_refused(things, "a unit struct", &Unit);
    is_refused(things, "a tuple struct", &Pair(1, 2));
    is_refused(things, "an enum without fields", &Shape::Point);
    is_refused(things, "an integer above i64::MAX", &json!({ "n": u64::MAX }));
    is_refused(things, "an integer of 128 bits", &HashMap::from([("n", i128::MAX)]));
    is_refused(things, "a small integer of 128 bits", &HashMap::from([("n", 1_u128)]));
    is_refused(things, "a name that is no text", &HashMap::from([([1, 2], 1)]));
    is_refused(things, "raw bytes at the top", &Bytes(b"\x05\0\0\0"));
    is_refused(things, "a name with a NUL", &json!({ "a\0b": 1 }));
    is_refused(things, "a nested name with a NUL", &json!({ "a": { "b\0": 1 } }));
    is_refused(things, "an object id of another's making", &json!({ "$oid": 1 }).as_array());
    is_refused(things, "101 levels", &Levels(101));
    is_refused(things, "10 000 levels", &Levels(10_000));
    is_refused(
        things,
        "one byte more than 16 MiB",
        &BTreeMap::from([("s", "x".repeat(16 * MIB - 12))]),
    );
    is_refused(things, "a value that refuses", &Refuses);
    is_refused(things, "a field that refuses", &HashMap::from([("a", Refuses)]));
}

/// Two documents within the limits, and what an update makes of them.
fn merged(calls: &Calls, things: &Collection) {
    let half = |name: &str, len| {
        let mut bytes = of_len(len);
        bytes[5] = name.as_bytes()[0];
        bytes
    };
    things.put_raw(1, &half("a", 8 * MIB)).unwrap();
    refused!(things.update_raw(1, &half("b", 8 * MIB + 6)), InvalidDocument, "the two together");
    let fields: HashMap<&str, String> = HashMap::from([("s", "x".repeat(8 * MIB))]);
    refused!(things.update(1, &fields), InvalidDocument, "the two together");
    assert_eq!(things.get(1).unwrap().unwrap().len(), 8 * MIB, "a refused update changes nothing");
    things.update_raw(1, &half("b", 8 * MIB + 5)).unwrap();
    assert_eq!(things.get(1).unwrap().unwrap().len(), 16 * MIB);
    things.update_raw(1, &half("a", 13)).unwrap();
    assert_eq!(things.get(1).unwrap().unwrap().len(), 8 * MIB + 13);

    use engine::merge_documents;
    let merged = call!(calls, merge_documents(&half("a", 20), &half("b", 20))).unwrap();
    assert_eq!(merged.len(), 35);
    refused!(merge_documents(&half("a", 16 * MIB), &half("b", 20)), InvalidDocument, "too large");
    refused!(merge_documents(b"", &half("b", 20)), InvalidDocument, "no document");
}

/// A batch at its limit is written and read; one byte of a document more is refused and leaves the
/// batch usable.
fn batches(database: &Database, things: &Collection) {
    let limit = 256 * MIB as u64;
    let mut batch = Batch::new();
    let large = of_len(16 * MIB);
    for id in 0..15 {
        batch.put_raw(things, id, &large).unwrap();
    }
    let refuse = |batch: &mut Batch, bytes: &[u8]| {
        let before = (batch.len(), batch.bytes());
        refused!(batch.put_raw(things, 15, bytes), BatchTooLarge, "beyond the limit");
        assert_eq!(
            (batch.len(), batch.bytes()),
            before,
            "a refused call leaves the batch as it was"
        );
    };
    refuse(&mut batch, &large);
    // The largest document that still fits, found from how much is left.
    let mut len = usize::try_from(limit - batch.bytes()).unwrap();
    while batch.put_raw(things, 15, &of_len(len)).is_err() {
        len -= 8;
    }
    assert!(limit - batch.bytes() <= 64, "{} bytes are left unused", limit - batch.bytes());
    refuse(&mut batch, &large);
    refuse(&mut batch, &EMPTY);
    refused!(batch.delete(things, 99), BatchTooLarge, "beyond the limit");
    assert_eq!(batch.len(), 16);
    database.write(batch).unwrap();
    let lens: Vec<_> = things.scan(..).unwrap().map(|row| row.unwrap().1.len()).collect();
    assert_eq!(lens.len(), 16);
    assert!(lens[..15].iter().all(|&len| len == 16 * MIB) && lens[15] == len, "{lens:?}");
}
