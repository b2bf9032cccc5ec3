use std::mem::ManuallyDrop;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{element, encode, nested_raw, raw_document, string};
use crate::document::validate;
use crate::error::Result;

/// What a spawned thread gets by default.
const SMALL_STACK_BYTES: usize = 2 << 20;

/// What the `bson` crate's own deserializer needs for its own documents, when it is compiled
/// without optimisation.
const LARGE_STACK_BYTES: usize = 8 << 20;

fn on_a_small_stack<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    on_a_stack(SMALL_STACK_BYTES, run)
}

fn on_a_stack<T: Send>(bytes: usize, run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(bytes)
            .spawn_scoped(scope, run)
            .unwrap()
            .join()
            .unwrap()
    })
}

/// Puts a value into another.
type Wrap = fn(Value) -> Value;

fn nested_json(levels: usize, empty: Value, wrap: Wrap) -> Value {
    let inner = (2..levels).fold(empty, |inner, _| wrap(inner));
    object(inner)
}

fn object(inner: Value) -> Value {
    // Not by `json!`, which would serialize what it is given, and recurse.
    Value::Object(Map::from_iter([("0".to_owned(), inner)]))
}

fn array(inner: Value) -> Value {
    Value::Array(vec![inner])
}

fn assert_limit(levels: usize, outcome: Result<()>) {
    if levels <= 100 {
        outcome.unwrap();
    } else {
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains("101") && message.contains("100 are allowed"), "{message}");
    }
}

#[test]
fn raw_documents_nest_up_to_100_levels() {
    for levels in [99, 100, 101, 10_000] {
        for kind in [3, 4] {
            let bytes = nested_raw(levels, kind);
            assert_limit(levels, on_a_small_stack(|| validate(&bytes)));
        }
    }
}

#[test]
fn json_nests_up_to_100_levels_on_a_small_stack() {
    for levels in [99, 100, 101, 10_000] {
        let kinds: [(u8, Value, Wrap); 2] =
            [(3, Value::Object(Map::new()), object), (4, Value::Array(Vec::new()), array)];
        for (kind, empty, wrap) in kinds {
            // Dropping it would recurse.
            let value = ManuallyDrop::new(nested_json(levels, empty, wrap));
            let outcome = on_a_small_stack(|| encode(&*value));
            if let Ok(bytes) = &outcome {
                assert_eq!(*bytes, nested_raw(levels, kind));
            }
            assert_limit(levels, outcome.map(drop));
        }
    }
}

#[test]
fn a_list_of_nodes_nests_up_to_100_levels_on_a_small_stack() {
    #[derive(Serialize)]
    struct Node {
        next: Link,
    }
    #[derive(Serialize)]
    struct Link(Option<Box<Node>>);
    for levels in [99, 100, 101, 10_000] {
        let list = (1..levels)
            .fold(Node { next: Link(None) }, |next, _| Node { next: Link(Some(Box::new(next))) });
        let list = ManuallyDrop::new(list);
        assert_limit(levels, on_a_small_stack(|| encode(&*list)).map(drop));
    }
}

#[test]
fn the_deepest_document_decodes_on_a_small_stack() {
    for kind in [3, 4] {
        let bytes = nested_raw(100, kind);
        on_a_small_stack(|| {
            let raw = bson::RawDocument::from_bytes(&bytes).unwrap();
            let direct = bson::Document::try_from(raw).unwrap();
            assert_eq!(encode(&direct).unwrap(), bytes);
            let json: Value = bson::deserialize_from_slice(&bytes).unwrap();
            assert_eq!(encode(&json).unwrap(), bytes);
            assert_eq!(crate::document::json::document(raw).unwrap(), json);
        });
        on_a_stack(LARGE_STACK_BYTES, || {
            bson::deserialize_from_slice::<bson::Document>(&bytes).unwrap()
        });
    }
}

#[test]
fn scopes_of_code_count_as_levels() {
    let scoped = |levels: usize| {
        (1..levels).fold(raw_document(&[]), |scope, _| {
            let parts = [string(b"f()"), scope].concat();
            let len = i32::try_from(parts.len() + 4).unwrap();
            raw_document(&element(0x0F, b'0', &[&len.to_le_bytes(), &parts[..]].concat()))
        })
    };
    for levels in [99, 100, 101, 10_000] {
        let bytes = scoped(levels);
        assert_limit(levels, on_a_small_stack(|| validate(&bytes)));
        if levels <= 101 {
            let value = bson::Document::try_from(bson::RawDocument::from_bytes(&bytes).unwrap());
            let value = value.unwrap();
            assert_limit(levels, on_a_small_stack(|| encode(&value)).map(drop));
        }
    }
    let bytes = scoped(100);
    on_a_stack(LARGE_STACK_BYTES, || {
        bson::deserialize_from_slice::<bson::Document>(&bytes).unwrap()
    });
}

#[test]
fn values_in_the_deepest_level_may_be_of_any_type() {
    // These go through the serializer as structs within structs, which must not count as levels.
    let uuid = bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: vec![1; 16] };
    let date = bson::DateTime::from_millis(1);
    let decimal = "1".parse::<bson::Decimal128>().unwrap();
    let regex = bson::Regex { pattern: "a".try_into().unwrap(), options: "i".try_into().unwrap() };
    let leaves = bson::doc! { "a": uuid, "b": date, "c": decimal, "d": regex };
    let deep = |levels| (1..levels).fold(leaves.clone(), |inner, _| bson::doc! { "0": inner });
    for levels in [100, 101] {
        assert_limit(levels, on_a_small_stack(|| encode(&deep(levels))).map(drop));
    }
}

#[test]
fn enum_variants_count_the_levels_that_they_write() {
    #[derive(Serialize)]
    enum Nest {
        Newtype(Box<Nest>),
        Tuple(Box<Nest>, i32),
        Struct { inner: Box<Nest> },
        End(i32),
    }
    // `End` is one level.
    let build = |count: usize, wrap: fn(Box<Nest>) -> Nest| {
        (0..count).fold(Nest::End(1), |inner, _| wrap(Box::new(inner)))
    };
    let newtype = |count| encode(&build(count, Nest::Newtype)).map(drop);
    let tuple = |count| encode(&build(count, |inner| Nest::Tuple(inner, 1))).map(drop);
    let structure = |count| encode(&build(count, |inner| Nest::Struct { inner })).map(drop);
    assert_limit(100, newtype(99));
    assert_limit(101, newtype(100));
    assert_limit(99, tuple(49));
    assert_limit(101, tuple(50));
    assert_limit(99, structure(49));
    assert_limit(101, structure(50));
}

#[test]
fn wrappers_that_leave_no_trace_do_not_overflow_the_stack() {
    #[derive(Serialize)]
    struct Onion(Option<Box<Onion>>);
    #[derive(Serialize)]
    struct Top {
        onion: Onion,
    }
    let build = |layers: usize| {
        let onion = (0..layers).fold(Onion(None), |inner, _| Onion(Some(Box::new(inner))));
        Top { onion }
    };
    assert!(on_a_small_stack(|| encode(&build(100))).is_ok());
    let deep = ManuallyDrop::new(build(100_000));
    let message = on_a_small_stack(|| encode(&*deep)).unwrap_err().to_string();
    assert!(message.contains("257"), "{message}");
}
