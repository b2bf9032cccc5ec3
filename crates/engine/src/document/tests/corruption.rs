use serde_json::Value;

use super::{element, every_type, raw_document, string};
use crate::document::{Document, encode, json, merge, validate};

/// Whatever passes the validator decodes in every way; and no bytes make any reader panic.
fn check(bytes: &[u8], what: &dyn Fn() -> String) {
    let valid = validate(bytes).is_ok();
    let direct = bson::RawDocument::from_bytes(bytes)
        .and_then(|raw| bson::Document::try_from(raw).map(|document| (raw, document)));
    if valid {
        let (raw, document) = direct.unwrap_or_else(|error| panic!("{}: {error}", what()));
        bson::deserialize_from_slice::<bson::Document>(bytes)
            .unwrap_or_else(|error| panic!("{}: {error}", what()));
        json::document(raw).unwrap_or_else(|error| panic!("{}: {error}", what()));
        encode(&document).unwrap_or_else(|error| panic!("{}: {error}", what()));
    }
    let fields = raw_document(&element(0x10, b'n', &[1, 0, 0, 0]));
    if let Ok(merged) = merge(bytes, &fields) {
        assert!(!valid || validate(&merged).is_ok(), "{}", what());
    }
    let _ = merge(&fields, bytes);
}

#[test]
fn a_document_of_every_type_passes() {
    validate(&every_type()).unwrap();
    check(&every_type(), &String::new);
}

#[test]
fn no_truncation_passes() {
    let bytes = every_type();
    for len in 0..bytes.len() {
        assert!(validate(&bytes[..len]).is_err(), "{len}");
        check(&bytes[..len], &|| format!("cut to {len}"));
        // Cut, with a length that agrees.
        if let Some(rest) = bytes[..len].get(4..) {
            check(&raw_document(rest), &|| format!("closed at {len}"));
        }
    }
    assert!(validate(&[&bytes[..], &[0]].concat()).is_err());
}

#[test]
fn every_bit_flip_errs_or_decodes() {
    let mut bytes = every_type();
    let mut refused = 0;
    for at in 0..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            check(&bytes, &|| format!("byte {at}, bit {bit}"));
            refused += usize::from(validate(&bytes).is_err());
            bytes[at] ^= 1 << bit;
        }
    }
    // Content is free, structure is not.
    assert!(refused > bytes.len(), "{refused} of {}", bytes.len() * 8);
}

#[test]
fn telling_byte_values_at_every_place_err_or_decode() {
    let mut bytes = every_type();
    for at in 0..bytes.len() {
        let original = bytes[at];
        for value in [0, 1, 2, 3, 4, 5, 0x0C, 0x0F, 0x7F, 0x80, 0xFF] {
            bytes[at] = value;
            check(&bytes, &|| format!("byte {at} as {value}"));
        }
        bytes[at] = original;
    }
}

#[test]
fn each_rule_of_the_format_is_enforced() {
    let one = |kind, value: &[u8]| raw_document(&element(kind, b'a', value));
    let i32 = |value: i32| value.to_le_bytes();
    let scoped = |len: i32| [&i32(len)[..], &string(b"f"), &raw_document(&[])].concat();
    let pass: &[(&str, Vec<u8>)] = &[
        ("empty", raw_document(&[])),
        ("string with a NUL", one(2, &string(b"a\0b"))),
        (
            "array with any keys",
            one(4, &raw_document(&[element(10, b'x', &[]), element(10, b'x', &[])].concat())),
        ),
        ("empty name", raw_document(b"\x0A\0")),
        ("scope", one(15, &scoped(15))),
        ("old binary", one(5, b"\x05\0\0\0\x02\x01\0\0\0\x09")),
        ("any subtype", one(5, b"\x01\0\0\0\x77\x09")),
    ];
    for (name, bytes) in pass {
        validate(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        check(bytes, &|| (*name).to_owned());
    }
    let fail: &[(&str, Vec<u8>, &str)] = &[
        ("no bytes", vec![], "past the end"),
        ("short length", vec![4, 0, 0, 0], "less than 5"),
        ("negative length", vec![0xFF, 0xFF, 0xFF, 0xFF, 0], "negative"),
        ("no terminator", vec![5, 0, 0, 0, 1], "terminator"),
        ("trailing", [raw_document(&[]), vec![0]].concat(), "follow"),
        ("unknown type", one(0x14, &[0; 16]), "type"),
        ("type 0", one(0, &[]), "type"),
        ("unterminated name", raw_document(b"\x0Aab"), "terminator"),
        ("name not UTF-8", raw_document(b"\x0A\xFF\0"), "UTF-8"),
        ("string length 0", one(2, &i32(0)), "room"),
        ("string length negative", one(2, &i32(-1)), "negative"),
        ("string past end", one(2, &[&i32(3)[..], b"a\0"].concat()), "past the end"),
        ("string unterminated", one(2, &[&i32(2)[..], b"ab"].concat()), "terminator"),
        ("string not UTF-8", one(2, &string(b"\xC3")), "UTF-8"),
        ("code not UTF-8", one(13, &string(b"\xC3")), "UTF-8"),
        ("symbol not UTF-8", one(14, &string(b"\xC3")), "UTF-8"),
        ("pointer not UTF-8", one(12, &[string(b"\xC3"), vec![0; 12]].concat()), "UTF-8"),
        ("pointer cut", one(12, &[string(b"a"), vec![1; 11]].concat()), "past the end"),
        ("boolean 2", one(8, &[2]), "boolean"),
        ("int cut", one(16, &[1, 1, 1]), "past the end"),
        ("decimal cut", one(19, &[1; 15]), "past the end"),
        ("binary past end", one(5, b"\x02\0\0\0\0a"), "past the end"),
        ("binary negative", one(5, b"\xFF\xFF\xFF\xFF\0"), "negative"),
        ("old binary, wrong length", one(5, b"\x05\0\0\0\x02\x02\0\0\0\x09"), "disagree"),
        ("old binary, no length", one(5, b"\x03\0\0\0\x02\x01\0\0"), "disagree"),
        ("regex unterminated", one(11, b"a\0b"), "past the end"),
        ("regex not UTF-8", one(11, b"a\0\xFF\0"), "UTF-8"),
        ("scope too long", one(15, &scoped(16)), "past the end"),
        ("scope too short", one(15, &scoped(14)), "past the end"),
        ("scope disagrees", one(15, &[scoped(16), vec![0]].concat()), "disagree"),
        (
            "scoped code not UTF-8",
            one(15, &[&i32(15)[..], &string(b"\xC3"), &raw_document(&[])].concat()),
            "UTF-8",
        ),
        ("nested past end", one(3, &[6, 0, 0, 0, 0]), "past the end"),
        ("nested fault", one(3, &one(8, &[2])), "boolean"),
    ];
    for (name, bytes, expected) in fail {
        let message = validate(bytes).expect_err(name).to_string();
        assert!(message.contains(expected), "{name}: {message}");
        check(bytes, &|| (*name).to_owned());
    }
}

#[test]
fn reads_of_corrupt_documents_never_panic() {
    let original = every_type();
    let names: Vec<String> = {
        let raw = bson::RawDocument::from_bytes(&original).unwrap();
        raw.iter().map(|field| field.unwrap().0.as_str().to_owned()).collect()
    };
    let mut bytes = original.clone();
    for at in 0..bytes.len() {
        for bit in [0, 3, 7] {
            bytes[at] ^= 1 << bit;
            let document = Document::unchecked(&bytes);
            for name in &names {
                let _ = document.get(name);
            }
            let _ = document.decode::<Value>();
            let _ = document.to_json();
            let _ = document.to_bson();
            let _ = format!("{document:?}");
            bytes[at] ^= 1 << bit;
        }
    }
}
