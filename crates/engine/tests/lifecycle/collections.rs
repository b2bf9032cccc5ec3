//! Collections dropped and made again, and what each kind of write does to a document.

use engine::disk::MemoryDisk;
use engine::{Batch, Database, Error, Id};
use serde_json::json;

use super::common::{DB, READS, killed, tiny_on};
use super::{content, every_call, n, open, rows};

#[test]
fn a_dropped_collection_refuses_reads_and_writes_while_a_snapshot_still_reads_it() {
    for sealing in [false, true] {
        let disk = MemoryDisk::new();
        let database = open(&disk);
        let things = database.collection("things").unwrap();
        let others = database.collection("others").unwrap();
        for id in 0..5 {
            things.put(id, &json!({ "n": id })).unwrap();
        }
        let expected: Vec<_> = (0..5).map(|id| (Id::from(id), i64::from(id))).collect();
        let snapshot = database.snapshot().unwrap();
        let scan = things.scan(..).unwrap();
        let mut batch = Batch::new();
        batch.put(&others, 1, &json!({ "n": 1 })).unwrap();
        batch.put(&things, 9, &json!({ "n": 9 })).unwrap();
        assert!(database.drop_collection("things").unwrap());
        let after = database.snapshot().unwrap();

        refused!(database.write(batch), CollectionDropped);
        assert!(content(&others).is_empty(), "the other half of a refused batch was written");
        for (call, error) in every_call(&database, &things, &after)
            .into_iter()
            .skip_while(|(call, _)| *call != "get")
        {
            assert!(matches!(error, Some(Error::CollectionDropped { .. })), "{call}: {error:?}");
        }
        // `every_call` made it anew, and dropped that one too; here is a third.
        let recreated = database.collection("things").unwrap();
        recreated.put(3, &json!({ "n": 300 })).unwrap();
        if sealing {
            for id in 0..200 {
                others.put(id, &json!({ "n": id })).unwrap();
            }
            database.wait_idle().unwrap();
            assert!(database.stats().seals > 1);
        }
        assert_eq!(rows(snapshot.scan(&things, ..).unwrap()), expected, "sealing: {sealing}");
        assert_eq!(snapshot.get(&things, 3).unwrap().map(|d| n(&d)), Some(3));
        assert_eq!(rows(scan), expected, "a scan begun before sees what it saw");
        assert_eq!(content(&recreated), [(Id::from(3), 300)]);
        assert_eq!(rows(snapshot.scan(&recreated, ..).unwrap()), [], "it did not exist then");
        refused!(things.get(3), CollectionDropped);
    }
}

#[test]
fn a_collection_made_again_is_empty_also_after_a_reopen() {
    let disk = MemoryDisk::new();
    for round in 0..4 {
        let database = open(&disk);
        // Dropped in the round before, in one that was sealed by the close.
        assert_eq!(database.collections().unwrap(), Vec::<String>::new());
        for part in 0..3 {
            let things = database.collection("things").unwrap();
            assert_eq!(content(&things), [], "round {round}, part {part}");
            for id in 0..70 {
                things.insert(id, &json!({ "n": id })).unwrap();
            }
            assert_eq!(content(&things).len(), 70);
            assert!(database.drop_collection("things").unwrap());
        }
        database.close().unwrap();
    }
    // What a kill leaves says the same.
    let database = open(&disk);
    let things = database.collection("things").unwrap();
    things.put(1, &json!({ "n": 1 })).unwrap();
    assert!(database.drop_collection("things").unwrap());
    database.collection("things").unwrap().put(2, &json!({ "n": 2 })).unwrap();
    let killed = killed(&disk);
    assert_eq!(content(&open(&killed).collection("things").unwrap()), [(Id::from(2), 2)]);
}

#[test]
fn an_update_replaces_in_place_appends_and_keeps_the_rest_in_order() {
    let disk = MemoryDisk::new();
    let database = open(&disk);
    let things = database.collection("things").unwrap();
    // Where the document is: in the memtable, in a sealed segment, in one of an earlier life.
    let fields = || {
        let document = things.get("doc").unwrap().unwrap();
        let raw = document.as_raw().unwrap();
        raw.iter().map(|field| field.unwrap().0.as_str().to_owned()).collect::<Vec<_>>()
    };
    let value = || things.get("doc").unwrap().unwrap().to_json().unwrap();
    let document = engine::bson::rawdoc! { "c": 1, "a": { "x": 1, "y": 2 }, "b": "text" };
    things.put_raw("doc", document.as_bytes()).unwrap();
    for sealed in [false, true] {
        if sealed {
            for id in 0..100 {
                things.put(id, &json!({ "n": id })).unwrap();
            }
            things.put_raw("doc", document.as_bytes()).unwrap();
            for id in 0..100 {
                things.put(id, &json!({ "n": id })).unwrap();
            }
            database.wait_idle().unwrap();
        }
        let update = engine::bson::rawdoc! { "z": 9, "a": { "x": 7 }, "d": null };
        things.update("doc", &update).unwrap();
        assert_eq!(fields(), ["c", "a", "b", "z", "d"], "sealed: {sealed}");
        let expected = json!({ "c": 1, "a": { "x": 7 }, "b": "text", "z": 9, "d": null });
        assert_eq!(value(), expected, "a nested document is replaced as a whole");
        things.update("doc", &json!({})).unwrap();
        assert_eq!(value(), expected, "no fields change nothing");
        things.update("doc", &json!({ "b": [1, 2], "c": "another type" })).unwrap();
        assert_eq!(fields(), ["c", "a", "b", "z", "d"]);
        assert_eq!(value()["b"], json!([1, 2]));
    }
    things.delete("doc").unwrap();
    refused!(things.update("doc", &json!({ "a": 1 })), NotFound);
    assert!(things.get("doc").unwrap().is_none(), "a refused update made a document");
}

#[test]
fn insert_refuses_what_exists_and_put_replaces_it_whole() {
    let disk = MemoryDisk::new();
    let database = open(&disk);
    let things = database.collection("things").unwrap();
    let value = || things.get("id").unwrap().map(|document| document.to_json().unwrap());
    for sealed in [false, true] {
        things.insert("id", &json!({ "n": 1, "old": true })).unwrap();
        if sealed {
            for id in 0..100 {
                things.put(id, &json!({ "n": id })).unwrap();
            }
            database.wait_idle().unwrap();
        }
        let refused = things.insert("id", &json!({ "n": 2 })).unwrap_err();
        let Error::AlreadyExists { collection, id } = refused else { panic!("{refused:?}") };
        assert_eq!((collection.as_str(), id.as_str()), ("things", "\"id\""));
        assert_eq!(value(), Some(json!({ "n": 1, "old": true })));
        things.put("id", &json!({ "n": 3 })).unwrap();
        assert_eq!(value(), Some(json!({ "n": 3 })), "put merges nothing");
        things.delete("id").unwrap();
        assert_eq!(value(), None);
    }
    // An id of another kind that looks the same is another id.
    things.insert("1000", &json!({ "n": 1 })).unwrap();
    things.insert(1000, &json!({ "n": 2 })).unwrap();
    things.insert(b"1000", &json!({ "n": 3 })).unwrap();
    assert_eq!(rows(things.scan(1000..).unwrap()).len(), 3);
}

#[test]
fn integers_come_before_strings_before_bytes_wherever_they_are_stored() {
    for reads in READS {
        let disk = MemoryDisk::new();
        let database = Database::open(DB, tiny_on(&disk).reads(reads)).unwrap();
        let things = database.collection("things").unwrap();
        let mut ids: Vec<Id<'static>> = Vec::new();
        ids.extend((-50..50).map(Id::from));
        ids.extend((0..50).map(|i| Id::from(format!("{i:02}"))));
        ids.extend((0..50_u8).map(|i| Id::from(vec![i])));
        // In an order that puts every kind into every segment.
        for step in 0..ids.len() {
            let at = step * 77 % ids.len();
            things.put(&ids[at], &json!({ "n": at })).unwrap();
        }
        assert!(database.stats().rolls > 1);
        let expected: Vec<_> = (0..).zip(&ids).map(|(at, id)| (id.clone(), at)).collect();
        assert_eq!(content(&things), expected);
        let kinds = rows(things.scan(Id::from(48)..Id::from("02")).unwrap());
        assert_eq!(kinds, expected[98..102]);
        let kinds: Vec<_> = things.scan_ids("49"..).unwrap().rev().map(Result::unwrap).collect();
        assert_eq!(kinds, ids[149..].iter().rev().cloned().collect::<Vec<_>>());
    }
}

#[test]
fn single_fields_are_read_where_the_whole_cannot_be_decoded() {
    let disk = MemoryDisk::new();
    let database = open(&disk);
    let things = database.collection("things").unwrap();
    #[derive(serde::Deserialize)]
    struct Wrong {
        #[expect(dead_code, reason = "decoding fails")]
        other: String,
    }
    things.put(1, &json!({ "n": 7, "nested": { "deep": [1, "two"] }, "other": 5 })).unwrap();
    let document = things.get(1).unwrap().unwrap();
    refused!(document.decode::<Wrong>(), InvalidDocument);
    assert_eq!(n(&document), 7);
    let nested = document.get_document("nested").unwrap().unwrap();
    let two = nested.get_array("deep").unwrap().get(1).unwrap().unwrap();
    assert_eq!(two.as_str(), Some("two"));
    // What is read borrows from the document; no byte is copied.
    let place = document.as_bytes().as_ptr_range();
    assert!(place.contains(&nested.as_bytes().as_ptr()));
}
