//! Ids, ranges and documents that are likely to go wrong.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use engine::{Id, bson};

use crate::common::Random;

/// What the model holds of one collection.
pub(crate) type Rows = BTreeMap<Id<'static>, Arc<Stored>>;

pub(crate) type Bounds = (Bound<Id<'static>>, Bound<Id<'static>>);

/// A document as it must come back, to the byte.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) fields: bson::Document,
    pub(crate) bytes: Vec<u8>,
}

impl Stored {
    pub(crate) fn new(fields: bson::Document) -> Arc<Self> {
        let bytes = bson::serialize_to_vec(&fields).unwrap();
        Arc::new(Self { fields, bytes })
    }

    /// The document with these fields replaced or appended.
    pub(crate) fn updated(&self, fields: &bson::Document) -> Arc<Self> {
        let mut merged = self.fields.clone();
        for (name, value) in fields {
            merged.insert(name.clone(), value.clone());
        }
        Self::new(merged)
    }
}

/// The ids of a case: few, so that they are often met again.
pub(crate) fn ids(random: &mut Random) -> Vec<Id<'static>> {
    let mut ids = vec![
        Id::from(String::new()),
        Id::from(Vec::new()),
        Id::from(vec![0]),
        Id::from(vec![0, 0]),
        Id::from(vec![0xFF; 3]),
        Id::from(vec![0xFF; 4]),
        Id::from(i64::MIN),
        Id::from(i64::MAX),
        Id::from(-1_i64),
    ];
    let number = 10 + random.below(60);
    while ids.len() < number {
        ids.push(id(random));
    }
    ids
}

fn id(random: &mut Random) -> Id<'static> {
    let number = random.below(40);
    match random.below(8) {
        0..=2 => Id::from(i64::try_from(number).unwrap() - 3),
        3 => Id::from(format!("k{number}")),
        // Equal in the bytes that nodes and index blocks hold themselves.
        4 => Id::from(format!("{}{number}", "prefix-".repeat(3))),
        5 => Id::from(format!("{}{number}", "long".repeat(50))),
        6 => Id::from(vec![0xFF; number]),
        _ => Id::from(random.next().to_be_bytes()[..number % 9].to_vec()),
    }
}

/// A range, its ends in any order.
pub(crate) fn range(random: &mut Random, ids: &[Id<'static>]) -> Bounds {
    (bound(random, ids), bound(random, ids))
}

fn bound(random: &mut Random, ids: &[Id<'static>]) -> Bound<Id<'static>> {
    let id = if random.percent(80) { random.pick(ids).clone() } else { id(random) };
    match random.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(id),
        _ => Bound::Excluded(id),
    }
}

/// A document, mostly small, seldom larger than a segment.
pub(crate) fn document(random: &mut Random) -> bson::Document {
    let mut fields = bson::Document::new();
    for _ in 0..random.below(5) {
        let name = field(random);
        fields.insert(name, value(random));
    }
    match random.below(200) {
        0 => drop(fields.insert("large", "x".repeat(20_000))),
        1..=20 => drop(fields.insert("page", "y".repeat(1000 + random.below(4000)))),
        _ => {}
    }
    fields
}

/// A document of two to three kilobytes.
pub(crate) fn page(random: &mut Random) -> bson::Document {
    bson::doc! { "page": "p".repeat(2000 + random.below(1000)) }
}

/// Fields to replace or append.
pub(crate) fn fields(random: &mut Random) -> bson::Document {
    let mut fields = bson::Document::new();
    for _ in 0..random.below(4) {
        fields.insert(field(random), value(random));
    }
    fields
}

fn field(random: &mut Random) -> &'static str {
    random.pick::<&str>(&["a", "b", "c", "d", "a longer name"])
}

fn value(random: &mut Random) -> bson::Bson {
    let number = random.next().cast_signed();
    match random.below(6) {
        0 => bson::Bson::Null,
        1 => bson::Bson::Int64(number),
        2 => bson::Bson::String("z".repeat(random.below(200))),
        3 => bson::bson!({ "nested": [number, { "deeper": true }] }),
        4 => bson::Bson::Double(0.5),
        _ => bson::Bson::Boolean(number > 0),
    }
}
