//! Every reader of one field, on fields of every type.

use engine::bson::oid::ObjectId;
use engine::bson::spec::BinarySubtype;
use engine::bson::{
    Binary, Bson, DateTime, Decimal128, JavaScriptCodeWithScope, Regex, Timestamp, doc,
};
use engine::{Document, Error};

use super::Calls;

/// Each type by its name, with one value.
fn fields() -> bson::Document {
    let regex = Regex { pattern: "a".try_into().unwrap(), options: "i".try_into().unwrap() };
    doc! {
        "double": 1.5,
        "nan": f64::NAN,
        "string": "text",
        "no text": "",
        "document": { "a": 1 },
        "array": [1, 2],
        "binary": Binary { subtype: BinarySubtype::Uuid, bytes: vec![1, 2] },
        "no bytes": Binary { subtype: BinarySubtype::Generic, bytes: vec![] },
        "undefined": Bson::Undefined,
        "object id": ObjectId::from_bytes([7; 12]),
        "boolean": true,
        "date": DateTime::from_millis(-1),
        "null": null,
        "regex": regex,
        "code": Bson::JavaScriptCode("f()".into()),
        "symbol": Bson::Symbol("s".into()),
        "scope": JavaScriptCodeWithScope { code: "f()".into(), scope: doc! { "x": 1 } },
        "int32": i32::MIN,
        "timestamp": Timestamp { time: 1, increment: 2 },
        "int64": i64::MIN,
        "decimal": Decimal128::from_bytes([1; 16]),
        "max": Bson::MaxKey,
        "min": Bson::MinKey,
        "": "no name",
    }
}

/// Calls one getter on every field: those named have the values given; for every other it is an
/// error, and for a missing one `None`.
macro_rules! getter {
    ($calls:expr, $document:expr, $name:ident, { $($field:literal => $value:expr),* $(,)? }) => {{
        let document: &Document = $document;
        let mut expected = vec![$($field),*];
        $(
            let found = call!($calls, Document::$name(document, $field)).unwrap().unwrap();
            assert_eq!(found, $value, "{} of {}", stringify!($name), $field);
        )*
        for field in fields().keys() {
            if let Some(at) = expected.iter().position(|name| name == field) {
                expected.remove(at);
            } else {
                refused!(Document::$name(document, field), InvalidDocument, field);
            }
        }
        assert!(expected.is_empty(), "{expected:?} are no fields");
        for missing in ["missing", "Double", "strin", "string ", "\0", "string\0"] {
            assert!(Document::$name(document, missing).unwrap().is_none(), "{missing:?}");
        }
    }};
}

pub(crate) fn table(calls: &Calls) {
    let (_database, things) = super::calls::database();
    things.put(1, &fields()).unwrap();
    // From the log, and from bytes of the user's own.
    let stored = things.get(1).unwrap().unwrap();
    let own = Document::from_bytes(stored.as_bytes()).unwrap();
    for document in [&stored, &own] {
        getters(calls, document);
    }

    let long = "n".repeat(1 << 20);
    let document = Document::from_bytes(doc! { long.as_str(): 1 }.to_vec().unwrap()).unwrap();
    refused!(document.get_str(&long), InvalidDocument, "a long name");
    assert_eq!(document.get_i64(&long).unwrap(), Some(1));

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Some2<'a> {
        string: &'a str,
        int64: i64,
    }
    let decoded: Some2<'_> = call!(calls, Document::decode(&stored)).unwrap();
    assert_eq!(decoded, Some2 { string: "text", int64: i64::MIN });
    #[derive(Debug, serde::Deserialize)]
    struct Wrong {
        #[expect(dead_code, reason = "decoding fails")]
        string: i64,
    }
    refused!(Document::decode::<Wrong>(&stored), InvalidDocument, "another type");
    refused!(Document::decode::<Vec<i64>>(&stored), InvalidDocument, "another form");
}

fn getters(calls: &Calls, document: &Document) {
    getter!(calls, document, get_str, { "string" => "text", "no text" => "", "" => "no name" });
    getter!(calls, document, get_i64, { "int32" => i64::from(i32::MIN), "int64" => i64::MIN });
    getter!(calls, document, get_bool, { "boolean" => true });
    getter!(calls, document, get_bytes, { "binary" => [1, 2], "no bytes" => [] as [u8; 0] });
    let nested = engine::bson::rawdoc! { "a": 1 };
    getter!(calls, document, get_document, { "document" => &*nested });
    let array = engine::bson::rawbson!([1, 2]);
    getter!(calls, document, get_array, { "array" => array.as_array().unwrap() });

    // A NaN equals nothing, so this getter has its rows by hand.
    assert_eq!(call!(calls, Document::get_f64(document, "double")).unwrap(), Some(1.5));
    assert!(document.get_f64("nan").unwrap().unwrap().is_nan());
    assert_eq!(document.get_f64("int32").unwrap(), Some(f64::from(i32::MIN)));
    assert_eq!(document.get_f64("missing").unwrap(), None);
    for field in fields().keys() {
        if !["double", "nan", "int32"].contains(&field.as_str()) {
            assert!(
                matches!(document.get_f64(field), Err(Error::InvalidDocument { .. })),
                "{field}"
            );
        }
    }

    for (field, value) in &fields() {
        let found = call!(calls, Document::get(document, field)).unwrap().unwrap();
        assert_eq!(found.element_type(), value.element_type(), "{field}");
    }
    assert!(document.get("missing").unwrap().is_none());
}
