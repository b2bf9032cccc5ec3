//! Fault cases at the limits: ids of every length, documents nested too deep, the empty document.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod faults;

use std::time::Duration;

use engine::bson::Document as Bson;
use engine::disk::MemoryDisk;
use engine::{Batch, Collection, Database, Error, Id, Options};
use faults::*;
use serde_json::json;

/// `{ "v": 1 }` in BSON: the length, a 64-bit integer called `v`, the end.
const RAW: [u8; 16] = *b"\x10\0\0\0\x12v\0\x01\0\0\0\0\0\0\0\0";

/// One of the methods that take an id, as a call with that id.
type Call = Box<dyn Fn(&Id<'_>) -> Result<(), Error>>;

/// Every method that takes an id.
fn methods(database: &Database, collection: &Collection) -> Vec<(&'static str, Call)> {
    fn method(
        collection: &Collection,
        call: impl Fn(&Collection, &Id<'_>) -> Result<(), Error> + 'static,
    ) -> Call {
        let collection = collection.clone();
        Box::new(move |id| call(&collection, id))
    }
    let snapshot = || database.snapshot().unwrap();
    let (first, second, third) = (snapshot(), snapshot(), snapshot());
    let writer = database.clone();
    vec![
        ("put", method(collection, |c, id| c.put(id, &json!({ "v": 1 })))),
        ("put_raw", method(collection, move |c, id| c.put_raw(id, &RAW))),
        ("get", method(collection, |c, id| c.get(id).map(drop))),
        ("update", method(collection, |c, id| c.update(id, &json!({ "w": 2 })))),
        ("update_raw", method(collection, move |c, id| c.update_raw(id, &RAW))),
        ("scan from", method(collection, |c, id| c.scan(id..).map(drop))),
        ("scan to", method(collection, |c, id| c.scan(..id).map(drop))),
        ("scan through", method(collection, |c, id| c.scan(..=id).map(drop))),
        ("scan_ids", method(collection, |c, id| c.scan_ids(id..=id).map(drop))),
        ("snapshot get", method(collection, move |c, id| first.get(c, id).map(drop))),
        ("snapshot scan", method(collection, move |c, id| second.scan(c, id..).map(drop))),
        ("snapshot scan_ids", method(collection, move |c, id| third.scan_ids(c, ..id).map(drop))),
        (
            "batch put, put_raw and delete",
            method(collection, move |c, id| {
                let mut batch = Batch::new();
                batch.put(c, id, &json!({ "v": 1 }))?;
                batch.put_raw(c, id, &RAW)?;
                batch.delete(c, id)?;
                writer.write(batch)
            }),
        ),
        ("delete", method(collection, |c, id| c.delete(id))),
        ("insert", method(collection, |c, id| c.insert(id, &json!({ "v": 1 })))),
        ("delete again", method(collection, |c, id| c.delete(id))),
        ("insert_raw", method(collection, |c, id| c.insert_raw(id, &RAW))),
    ]
}

/// Ids whose encoding takes one byte more than this.
fn ids(len: usize) -> [Id<'static>; 2] {
    [Id::from("i".repeat(len)), Id::from(vec![0xff; len])]
}

#[test]
fn e8_an_id_of_any_length_is_stored_or_refused_by_every_method() {
    let disk = MemoryDisk::new();
    let db = DURABLE.open_memory(&disk).unwrap();
    let collection = db.collection();
    let lengths = [0, 1, 255, 256, 65_533, 65_534, 65_535, 65_536, 1 << 20];
    for id in lengths.into_iter().flat_map(ids) {
        let fits = match &id {
            Id::String(text) => text.len() < 65_535,
            Id::Bytes(bytes) => bytes.len() < 65_535,
            Id::Integer(_) => true,
        };
        for (name, call) in methods(&db.database, &collection) {
            match call(&id) {
                Ok(()) => assert!(fits, "{name} of {id} succeeded"),
                Err(Error::InvalidId { what }) => {
                    assert!(!fits, "{name} of {id}: {what}");
                    assert!(what.contains("65535") && what.len() < 300, "{what}");
                }
                Err(e) => panic!("{name} of {id}: {e:?}"),
            }
        }
        assert!(!fits || collection.get(&id).unwrap().is_some());
    }
    let check = |collection: &Collection| {
        let found: Vec<_> = collection.scan_ids(..).unwrap().map(Result::unwrap).collect();
        let expected: Vec<_> = [0, 1, 255, 256, 65_533, 65_534]
            .into_iter()
            .map(|len| ids(len)[0].clone())
            .chain([0, 1, 255, 256, 65_533, 65_534].into_iter().map(|len| ids(len)[1].clone()))
            .collect();
        assert!(found == expected, "{} ids", found.len());
        for id in &expected {
            assert_eq!(collection.get(id).unwrap().unwrap().get_i64("v").unwrap(), Some(1));
        }
    };
    check(&collection);
    // From a recovered log, and from a sealed segment.
    let killed = kill(&disk);
    check(&DURABLE.open_memory(&killed).unwrap().collection());
    db.database.close().unwrap();
    check(&DURABLE.open_memory(&disk).unwrap().collection());
}

#[test]
fn e8_ids_that_begin_alike_up_to_the_last_of_65_534_bytes_are_told_apart() {
    let disk = MemoryDisk::new();
    let db = DURABLE.open_memory(&disk).unwrap();
    let collection = db.collection();
    let id = |last: u8| {
        let mut bytes = vec![7; 65_534];
        bytes[65_533] = last;
        bytes
    };
    for last in [9, 3, 200] {
        collection.put(id(last), &json!({ "v": i64::from(last) })).unwrap();
    }
    db.database.close().unwrap();
    let db = DURABLE.open_memory(&disk).unwrap();
    let collection = db.collection();
    for last in [3, 9, 200] {
        let found = collection.get(id(last)).unwrap().unwrap();
        assert_eq!(found.get_i64("v").unwrap(), Some(i64::from(last)));
    }
    assert!(collection.get(id(4)).unwrap().is_none());
    assert_eq!(collection.scan(id(4)..).unwrap().count(), 2);
}

/// A document that nests this deep, as raw BSON, made without recursion.
fn nested_raw(levels: usize) -> Vec<u8> {
    // From the inside out: a document with the field `a`, of the document before.
    let mut bytes = vec![5, 0, 0, 0, 0];
    for _ in 1..levels {
        let len = i32::try_from(bytes.len() + 8).unwrap();
        let mut outer = len.to_le_bytes().to_vec();
        outer.extend_from_slice(b"\x03a\0");
        outer.extend_from_slice(&bytes);
        outer.push(0);
        bytes = outer;
    }
    bytes
}

/// The same as JSON. Leaked: dropping it would recurse as deep.
fn nested_json(levels: usize) -> &'static serde_json::Value {
    let mut value = json!({});
    for _ in 1..levels {
        let mut map = serde_json::Map::new();
        map.insert("a".to_owned(), value);
        value = serde_json::Value::Object(map);
    }
    Box::leak(Box::new(value))
}

#[test]
fn e8_documents_nested_too_deep_are_refused_without_overflowing_the_stack() {
    // The limit is 100 levels; on a small stack, so that recursion as deep as the document would be
    // noticed.
    let test = || {
        let disk = MemoryDisk::new();
        let db = DURABLE.open_memory(&disk).unwrap();
        let collection = db.collection();
        put(&collection, 1, 10).unwrap();
        for levels in [101, 102, 10_000] {
            let raw = nested_raw(levels);
            let json = nested_json(levels);
            let mut batch = Batch::new();
            let refused = [
                collection.put_raw(1, &raw),
                collection.insert_raw(2, &raw),
                collection.update_raw(1, &raw),
                batch.put_raw(&collection, 1, &raw),
                collection.put(1, json),
                collection.insert(2, json),
                collection.update(1, json),
                batch.put(&collection, 1, json),
            ];
            for (number, refused) in refused.into_iter().enumerate() {
                let error = refused.expect_err("too deep");
                let is_clear =
                    matches!(&error, Error::InvalidDocument { what } if what.contains("100"));
                assert!(is_clear, "{levels} levels, method {number}: {error:?}");
            }
            assert!(batch.is_empty());
        }
        for levels in [99, 100] {
            collection.put_raw(2, &nested_raw(levels)).unwrap();
            collection.put(3, nested_json(levels)).unwrap();
            for id in [2, 3] {
                assert_eq!(collection.get(id).unwrap().unwrap().as_bytes(), nested_raw(levels));
            }
        }
        assert_eq!(collection.get(1).unwrap().unwrap().get_i64("v").unwrap(), Some(10));
        assert_eq!(collection.scan(..).unwrap().count(), 3);
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(test).unwrap().join().unwrap();
}

#[test]
fn e8_collection_names_at_the_limits_are_stored_or_refused() {
    let disk = MemoryDisk::new();
    let db = DURABLE.open_memory(&disk).unwrap();
    let longest = "n".repeat(255);
    for name in ["", "a\0b", &"n".repeat(256), &"ü".repeat(128)] {
        for error in [
            db.database.collection(name).unwrap_err(),
            db.database.drop_collection(name).unwrap_err(),
        ] {
            assert!(matches!(error, Error::InvalidCollectionName { .. }), "{error:?}");
        }
    }
    let collection = db.database.collection(&longest).unwrap();
    put(&collection, 1, 10).unwrap();
    let killed = kill(&disk);
    db.database.close().unwrap();
    for disk in [disk, killed] {
        let db = DURABLE.open_memory(&disk).unwrap();
        assert_eq!(db.database.collections().unwrap().join(" "), longest);
        let collection = db.database.collection(&longest).unwrap();
        assert_eq!(collection.get(1).unwrap().unwrap().get_i64("v").unwrap(), Some(10));
    }
}

/// The empty document is a document: not a tombstone, not absent.
fn check_empty(collection: &Collection) {
    for id in ["put", "raw", "batch"] {
        let document = collection.get(id).unwrap().unwrap_or_else(|| panic!("{id} is absent"));
        assert_eq!(document.as_bytes(), [5, 0, 0, 0, 0]);
        assert_eq!(document.get("v").unwrap(), None);
        assert_eq!(document.to_json().unwrap(), json!({}));
    }
    assert!(collection.get("deleted").unwrap().is_none());
    assert_eq!(collection.scan(..).unwrap().map(Result::unwrap).count(), 3);
    assert_eq!(collection.scan(..).unwrap().rev().map(Result::unwrap).count(), 3);
    assert!(matches!(collection.insert("put", &json!({})), Err(Error::AlreadyExists { .. })));
    assert!(matches!(collection.update("deleted", &json!({})), Err(Error::NotFound { .. })));
}

#[test]
fn e9_the_empty_document_is_there_in_memtable_and_segment_and_after_reopening() {
    for setup in [DURABLE, BUFFERED] {
        let disk = MemoryDisk::new();
        let db = setup.open_memory(&disk).unwrap();
        let collection = db.collection();
        let empty = vec![5, 0, 0, 0, 0];
        collection.put("put", &json!({})).unwrap();
        collection.put_raw("raw", &empty).unwrap();
        collection.insert("deleted", &json!({})).unwrap();
        let mut batch = Batch::new();
        batch.put(&collection, "batch", &Bson::new()).unwrap();
        batch.delete(&collection, "deleted").unwrap();
        db.database.write(batch).unwrap();
        check_empty(&collection);
        collection.update("put", &json!({})).unwrap();
        check_empty(&collection);
        let killed = kill(&disk);
        check_empty(&setup.open_memory(&killed).unwrap().collection());
        // Sealed while open, by filling the segment with another collection.
        let other = db.database.collection("other").unwrap();
        for id in 0..20 {
            put_large(&other, id, id).unwrap();
        }
        db.pass(Duration::from_millis(1));
        assert!(db.database.stats().segments_sealed > 0);
        check_empty(&collection);
        db.database.close().unwrap();
        for _ in 0..2 {
            let db = setup.open_memory(&disk).unwrap();
            check_empty(&db.collection());
            db.database.close().unwrap();
        }
    }
}

#[test]
fn e8_a_batch_of_any_size_up_to_the_limit_gets_a_segment_that_holds_it() {
    let disk = MemoryDisk::new();
    let db = DURABLE.open_memory(&disk).unwrap();
    let collection = db.collection();
    let mut ids = 0;
    // Around the size of a segment, byte by byte: with and without room for a mark, and for the
    // framing.
    for len in (65_300..65_700).step_by(4).chain([1 << 20]) {
        let mut batch = Batch::new();
        ids += 1;
        batch.put(&collection, ids, &json!({ "v": 10 * ids, "pad": "p".repeat(len) })).unwrap();
        db.database.write(batch).unwrap();
        // With a segment prepared, and without one.
        if len % 8 == 0 {
            db.step();
        }
    }
    assert!(db.rows() == expected(1..=ids));
    // More records than a memtable holds.
    let mut batch = Batch::new();
    for id in 1..=5000 {
        batch.put(&collection, id, &document(10 * id)).unwrap();
    }
    db.database.write(batch).unwrap();
    let killed = kill(&disk);
    assert!(DURABLE.open_memory(&killed).unwrap().rows() == expected(1..=5000));
    db.database.close().unwrap();
    assert!(DURABLE.open_memory(&disk).unwrap().rows() == expected(1..=5000));
    // Limits of the options are checked as well.
    let error = Database::open("/nowhere", Options::default().memtable_bytes(1)).unwrap_err();
    assert!(matches!(error, Error::InvalidOptions { .. }), "{error:?}");
}
