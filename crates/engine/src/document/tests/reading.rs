use bson::{Bson, doc};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{element, encode, every_type, raw_document, string};
use crate::document::Document;
use crate::error::Error;

fn document(bytes: &[u8]) -> Document {
    Document::unchecked(bytes)
}

#[test]
fn a_field_of_every_type_reads_as_the_bson_crate_reads_it() {
    let bytes = every_type();
    let document = document(&bytes);
    let raw = bson::RawDocument::from_bytes(&bytes).unwrap();
    let mut fields = 0;
    for field in raw {
        let (name, value) = field.unwrap();
        assert_eq!(document.get(name.as_str()).unwrap(), Some(value), "{name}");
        fields += 1;
    }
    assert_eq!(fields, 24);
    assert_eq!(document.get("absent").unwrap(), None);
    assert_eq!(document.get("").unwrap(), None);
    assert_eq!(document.len(), bytes.len());
    assert_eq!(document.as_bytes(), bytes);
    assert_eq!(document.as_raw().unwrap().as_bytes(), bytes);
}

#[test]
fn typed_reads_convert_and_refuse() {
    let document = document(&every_type());
    assert_eq!(document.get_str("string").unwrap(), Some("grüße"));
    assert_eq!(document.get_i64("int32").unwrap(), Some(7));
    assert_eq!(document.get_i64("int64").unwrap(), Some(i64::MAX));
    assert_eq!(document.get_f64("double").unwrap(), Some(1.5));
    assert_eq!(document.get_f64("int32").unwrap(), Some(7.0));
    assert_eq!(document.get_bool("true").unwrap(), Some(true));
    assert_eq!(document.get_bytes("binary").unwrap(), Some(&[1, 2, 3][..]));
    assert_eq!(document.get_bytes("old").unwrap(), Some(&[4, 5][..]));
    let nested = document.get_document("document").unwrap().unwrap();
    assert_eq!(nested.get_document("a").unwrap().get_str("b").unwrap(), "c");
    assert_eq!(document.get_array("array").unwrap().unwrap().get_str(1).unwrap(), "two");
    assert_eq!(document.get_str("absent").unwrap(), None);
    let message = document.get_str("int32").unwrap_err().to_string();
    assert!(message.contains("`int32` is an integer of 32 bits, not a string"), "{message}");
    assert!(matches!(document.get_i64("double"), Err(Error::InvalidDocument { .. })));
    assert!(matches!(document.get_document("array"), Err(Error::InvalidDocument { .. })));
}

#[test]
fn of_a_repeated_name_the_first_is_read() {
    let elements =
        [element(0x10, b'a', &[1, 0, 0, 0]), element(0x10, b'a', &[2, 0, 0, 0])].concat();
    let document = document(&raw_document(&elements));
    assert_eq!(document.get_i64("a").unwrap(), Some(1));
    assert_eq!(document.to_json().unwrap(), json!({ "a": 1 }));
}

#[test]
fn a_field_before_the_damage_can_be_read_and_one_behind_it_not() {
    let elements =
        [element(0x10, b'a', &[1, 0, 0, 0]), element(0x77, b'b', &[]), element(10, b'c', &[])];
    let document = document(&raw_document(&elements.concat()));
    assert_eq!(document.get_i64("a").unwrap(), Some(1));
    assert!(matches!(document.get("c"), Err(Error::InvalidDocument { .. })));
    assert!(matches!(document.decode::<Value>(), Err(Error::InvalidDocument { .. })));
    assert!(matches!(document.to_json(), Err(Error::InvalidDocument { .. })));
    let not_utf8 = document_of_string(b"\xFF");
    assert!(matches!(not_utf8.get_str("s"), Err(Error::InvalidDocument { .. })));
}

fn document_of_string(content: &[u8]) -> Document {
    document(&raw_document(&element(2, b's', &string(content))))
}

#[test]
fn a_document_decodes_to_owned_and_borrowed_values() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Borrowed<'a> {
        name: &'a str,
        age: u8,
    }
    let document = document(&encode(&doc! { "name": "Ada", "age": 36, "more": true }).unwrap());
    let borrowed: Borrowed<'_> = document.decode().unwrap();
    assert_eq!(borrowed, Borrowed { name: "Ada", age: 36 });
    assert_eq!(
        document.decode::<Value>().unwrap(),
        json!({ "name": "Ada", "age": 36, "more": true })
    );
    let message = document.decode::<Vec<u8>>().unwrap_err().to_string();
    assert!(message.starts_with("invalid document: "), "{message}");
}

#[test]
fn names_that_look_like_extended_json_are_names() {
    let value = json!({ "a": { "$oid": 5 }, "b": { "$date": "never" } });
    let document = document(&encode(&value).unwrap());
    assert_eq!(document.to_json().unwrap(), value);
    assert_eq!(document.decode::<Value>().unwrap(), value);
    assert_eq!(
        document.to_bson().unwrap(),
        doc! { "a": { "$oid": 5_i64 }, "b": { "$date": "never" } }
    );
}

#[test]
fn json_has_a_form_for_every_type() {
    let id = "030303030303030303030303";
    assert_eq!(
        document(&every_type()).to_json().unwrap(),
        json!({
            "double": 1.5,
            "string": "grüße",
            "document": { "a": { "b": "c" } },
            "array": [1, "two", [3.0, null]],
            "binary": { "$binary": { "base64": "AQID", "subType": "00" } },
            "uuid": { "$binary": { "base64": "BwcHBwcHBwcHBwcHBwcHBw==", "subType": "04" } },
            "old": { "$binary": { "base64": "BAU=", "subType": "02" } },
            "undefined": { "$undefined": true },
            "id": { "$oid": "090909090909090909090909" },
            "true": true,
            "false": false,
            "date": { "$date": "2023-11-14T22:13:20.123Z" },
            "null": null,
            "regex": { "$regularExpression": { "pattern": "^ä+$", "options": "im" } },
            "code": { "$code": "f()" },
            "symbol": { "$symbol": "sym" },
            "scoped": { "$code": "g()", "$scope": { "in": { "scope": [1, true] } } },
            "int32": 7,
            "timestamp": { "$timestamp": { "t": 5, "i": 6 } },
            "int64": i64::MAX,
            "decimal": { "$numberDecimal": "1.25" },
            "min": { "$minKey": 1 },
            "max": { "$maxKey": 1 },
            "p": { "$dbPointer": { "$ref": "db.c", "$id": { "$oid": id } } },
        })
    );
}

#[test]
fn json_keeps_what_its_own_types_cannot_say() {
    let extreme = doc! {
        "nan": f64::NAN, "up": f64::INFINITY, "down": f64::NEG_INFINITY,
        "early": bson::DateTime::from_millis(-1), "late": bson::DateTime::MAX,
        "last": bson::DateTime::from_millis(253_402_300_799_999),
    };
    assert_eq!(
        document(&encode(&extreme).unwrap()).to_json().unwrap(),
        json!({
            "nan": { "$numberDouble": "NaN" },
            "up": { "$numberDouble": "Infinity" },
            "down": { "$numberDouble": "-Infinity" },
            "early": { "$date": { "$numberLong": "-1" } },
            "late": { "$date": { "$numberLong": i64::MAX.to_string() } },
            "last": { "$date": "9999-12-31T23:59:59.999Z" },
        })
    );
}

#[test]
fn debug_shows_the_first_fields_shortened() {
    let few =
        document(&encode(&doc! { "a": 1, "t": "x".repeat(50), "d": {}, "n": Bson::Null }).unwrap());
    let shown = format!(
        "Document({} bytes) {{\"a\": 1, \"t\": \"{}…\", \"d\": {{5 bytes}}, \"n\": null}}",
        few.len(),
        "x".repeat(40)
    );
    assert_eq!(format!("{few:?}"), shown);
    let many: bson::Document = (0..1_000).map(|i| (format!("f{i}"), Bson::Int32(i))).collect();
    let shown = format!("{:?}", document(&encode(&many).unwrap()));
    assert!(shown.len() < 200 && shown.contains("f7") && !shown.contains("f8"), "{shown}");
    assert!(format!("{:?}", document(b"xxxx")).contains("malformed"));
}

#[test]
fn bytes_from_elsewhere_are_checked() {
    assert_eq!(Document::from_bytes(every_type()).unwrap().as_bytes(), every_type());
    let malformed = raw_document(&element(8, b'b', &[2]));
    assert!(matches!(Document::from_bytes(malformed), Err(Error::InvalidDocument { .. })));
}

#[test]
fn documents_can_be_sent_and_shared() {
    fn sendable<T: Clone + Send + Sync + 'static>() {}
    sendable::<Document>();
}
