//! Every method that takes an id, with the shortest, the longest, and those beyond.

use std::ops::Bound;

use engine::{Batch, Collection, Database, Document, Error, Id, Snapshot};
use serde_json::json;

use super::Calls;
use super::calls::database;

pub(crate) fn table(calls: &Calls) {
    conversions(calls);
    let (database, things) = database();
    for (name, id) in allowed() {
        fits(calls, &database, &things, name, &id);
    }
    for (name, id) in too_long() {
        does_not_fit(&database, &things, name, &id);
    }
    assert_eq!(things.scan_ids(..).unwrap().count(), 0, "every row cleaned up after itself");
}

/// An id's encoding is its content and one byte, so the shortest takes one byte and none takes
/// zero.
fn allowed() -> Vec<(&'static str, Id<'static>)> {
    vec![
        ("the least integer", Id::from(i64::MIN)),
        ("minus one", Id::from(-1)),
        ("zero", Id::from(0)),
        ("the largest integer", Id::from(i64::MAX)),
        ("a string of 0 bytes", Id::from("")),
        ("a string of 1 byte", Id::from("x")),
        ("a NUL", Id::from("\0")),
        ("the last character", Id::from("\u{10FFFF}")),
        ("a string of 65 535 bytes encoded", Id::from("x".repeat(65_534))),
        ("0 bytes", Id::from(b"")),
        ("1 byte", Id::from(b"\0")),
        ("255 bytes", Id::from(vec![0xFF; 255])),
        ("256 bytes", Id::from(vec![0xFF; 256])),
        ("65 535 bytes encoded", Id::from(vec![0xFF; 65_534])),
    ]
}

fn too_long() -> Vec<(&'static str, Id<'static>)> {
    vec![
        ("a string of 65 536 bytes encoded", Id::from("x".repeat(65_535))),
        ("a string of 65 537 bytes encoded", Id::from("x".repeat(65_536))),
        ("wide characters", Id::from("ÿ".repeat(32_768))),
        ("65 536 bytes encoded", Id::from(vec![0; 65_535])),
        ("65 537 bytes encoded", Id::from(vec![0; 65_536])),
        ("1 MiB", Id::from(vec![0; 1 << 20])),
    ]
}

fn fits(calls: &Calls, database: &Database, things: &Collection, name: &str, id: &Id<'_>) {
    let n = |document: Option<Document>| {
        document.map(|document| document.get_i64("n").unwrap().unwrap())
    };
    let get = || n(call!(calls, Collection::get(things, id)).unwrap());
    let raw = |n: i32| engine::bson::rawdoc! { "n": n }.into_bytes();
    assert_eq!(get(), None, "{name}");
    refused!(call!(calls, Collection::update(things, id, &json!({ "n": 0 }))), NotFound, name);
    refused!(call!(calls, Collection::update_raw(things, id, &raw(0))), NotFound, name);
    call!(calls, Collection::insert(things, id, &json!({ "n": 1 }))).unwrap();
    assert_eq!(get(), Some(1), "{name}");
    refused!(Collection::insert(things, id, &json!({ "n": 0 })), AlreadyExists, name);
    refused!(call!(calls, Collection::insert_raw(things, id, &raw(0))), AlreadyExists, name);
    Collection::update(things, id, &json!({ "n": 2 })).unwrap();
    assert_eq!(get(), Some(2), "{name}");
    Collection::update_raw(things, id, &raw(3)).unwrap();
    assert_eq!(get(), Some(3), "{name}");
    call!(calls, Collection::put(things, id, &json!({ "n": 4 }))).unwrap();
    assert_eq!(get(), Some(4), "{name}");
    call!(calls, Collection::put_raw(things, id, &raw(5))).unwrap();
    assert_eq!(get(), Some(5), "{name}");

    let snapshot = database.snapshot().unwrap();
    call!(calls, Collection::delete(things, id)).unwrap();
    Collection::delete(things, id).unwrap();
    assert_eq!(get(), None, "{name}");
    Collection::insert_raw(things, id, &raw(6)).unwrap();
    let mut batch = Batch::new();
    call!(calls, Batch::delete(&mut batch, things, id)).unwrap();
    call!(calls, Batch::put_raw(&mut batch, things, id, &raw(7))).unwrap();
    call!(calls, Batch::put(&mut batch, things, id, &json!({ "n": 8 }))).unwrap();
    assert_eq!(batch.len(), 3);
    database.write(batch).unwrap();
    assert_eq!(get(), Some(8), "{name}: the last of a batch counts");
    assert_eq!(n(Snapshot::get(&snapshot, things, id).unwrap()), Some(5), "{name}");

    let only = |ids: Vec<Id<'static>>| assert_eq!(ids, std::slice::from_ref(id), "{name}");
    let rows = call!(calls, Collection::scan(things, id..=id)).unwrap();
    only(rows.map(|row| row.unwrap().0).collect());
    only(call!(calls, Collection::scan_ids(things, id..)).unwrap().map(Result::unwrap).collect());
    only(Snapshot::scan_ids(&snapshot, things, ..=id).unwrap().map(Result::unwrap).collect());
    assert_eq!(things.scan(..id).unwrap().count(), 0, "{name}");
    let after = (Bound::Excluded(id), Bound::Unbounded);
    assert_eq!(Snapshot::scan(&snapshot, things, after).unwrap().count(), 0, "{name}");
    things.delete(id).unwrap();
}

fn does_not_fit(database: &Database, things: &Collection, name: &str, id: &Id<'_>) {
    let document = json!({ "n": 1 });
    let raw = [5, 0, 0, 0, 0];
    let snapshot = database.snapshot().unwrap();
    let mut batch = Batch::new();
    refused!(things.get(id), InvalidId, name);
    refused!(things.put(id, &document), InvalidId, name);
    refused!(things.put_raw(id, &raw), InvalidId, name);
    refused!(things.insert(id, &document), InvalidId, name);
    refused!(things.insert_raw(id, &raw), InvalidId, name);
    refused!(things.update(id, &document), InvalidId, name);
    refused!(things.update_raw(id, &raw), InvalidId, name);
    refused!(things.delete(id), InvalidId, name);
    refused!(things.scan(id..), InvalidId, name);
    refused!(things.scan(..=id), InvalidId, name);
    refused!(things.scan_ids(..id), InvalidId, name);
    refused!(things.scan_ids(id..=id), InvalidId, name);
    refused!(snapshot.get(things, id), InvalidId, name);
    refused!(snapshot.scan(things, id..id), InvalidId, name);
    refused!(snapshot.scan_ids(things, (Bound::Excluded(id), Bound::Unbounded)), InvalidId, name);
    refused!(batch.put(things, id, &document), InvalidId, name);
    refused!(batch.put_raw(things, id, &raw), InvalidId, name);
    refused!(batch.delete(things, id), InvalidId, name);
    assert_eq!(
        (batch.len(), batch.bytes()),
        (0, 0),
        "{name}: a refused call leaves the batch as it was"
    );
}

/// Everything that converts into an id, and the largest unsigned integers, which do not.
fn conversions(calls: &Calls) {
    macro_rules! from {
        ($($of:literal, $value:expr => $id:expr;)*) => {$(
            calls.note(concat!("Id: From<", $of, ">"));
            assert_eq!(Id::from($value), $id);
        )*};
    }
    let text = || Id::String("é".into());
    let bytes = || Id::Bytes(vec![1, 0].into());
    from! {
        "i64", i64::MIN => Id::Integer(i64::MIN);
        "i64", i64::MAX => Id::Integer(i64::MAX);
        "i32", i32::MIN => Id::Integer(-2_147_483_648);
        "i32", i32::MAX => Id::Integer(2_147_483_647);
        "u32", u32::MAX => Id::Integer(4_294_967_295);
        "&'a str", "é" => text();
        "String", String::from("é") => text();
        "&'a String", &String::from("é") => text();
        "&'a [u8]", &[1_u8, 0][..] => bytes();
        "&'a [u8; N]", b"\x01\x00" => bytes();
        "&'a [u8; N]", b"" => Id::Bytes(Vec::new().into());
        "Vec<u8>", vec![1_u8, 0] => bytes();
        "&'a Vec<u8>", &vec![1_u8, 0] => bytes();
        "&'a Id<'_>", &text() => text();
        "&'a Id<'_>", &bytes() => bytes();
        "&'a Id<'_>", &Id::Integer(3) => Id::Integer(3);
    }
    calls.note("Id: TryFrom<u64>");
    let largest = u64::try_from(i64::MAX).unwrap();
    assert_eq!(Id::try_from(0_u64).unwrap(), Id::Integer(0));
    assert_eq!(Id::try_from(largest).unwrap(), Id::Integer(i64::MAX));
    for beyond in [largest + 1, u64::MAX] {
        refused!(Id::try_from(beyond), InvalidId, beyond);
    }

    let borrowed = String::from("x");
    let owned: Id<'static> = call!(calls, Id::into_owned(Id::from(&borrowed)));
    drop(borrowed);
    assert_eq!(owned, Id::from("x"));
    assert_eq!(Id::into_owned(Id::from(7)), Id::Integer(7));
    assert_eq!(Id::into_owned(Id::from(b"")), Id::Bytes(Vec::new().into()));
    assert!(matches!(Id::try_from(u64::MAX), Err(Error::InvalidId { .. })));
}
