//! What a writer does: its n-th operation follows from the seed, so that the victim, which carries
//! it out, and the oracle, which knows what it adds up to, need not talk about it.

use engine::{Id, bson};

use crate::common::Random;
use crate::setup::Mode;

pub(crate) const WRITERS: usize = 4;
/// Ids of a writer in each of the two collections that all share.
pub(crate) const SLOTS: usize = 60;
/// Documents that all writers update, each one a field of its own.
pub(crate) const SHARED: usize = 3;

/// The collections that all writers write to.
pub(crate) const COLLECTIONS: [&str; 2] = ["first", "second"];

/// The collection that a writer has for itself, and drops now and then.
pub(crate) fn fleeting(writer: usize) -> String {
    format!("fleeting {writer}")
}

/// A put or, without a document, a delete.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// Which of [`COLLECTIONS`].
    pub(crate) collection: usize,
    pub(crate) slot: usize,
    pub(crate) document: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Change(Change),
    /// Several at once, of both collections; a later one of the same id wins.
    Batch(Vec<Change>),
    /// As [`Operation::Batch`], answered after a sync whatever the database's durability is.
    Durable(Vec<Change>),
    Insert(Change),
    /// Replaces the field `n` of a document in the first collection.
    Update {
        slot: usize,
    },
    /// Replaces the writer's field of a document that others update at the same time.
    Share {
        shared: usize,
    },
    PutFleeting {
        slot: usize,
        document: Vec<u8>,
    },
    DropFleeting,
    Sync,
    Compact,
    /// Reads what the last snapshot saw once more, and takes another one.
    Snapshot,
}

/// What an operation was answered. Errors other than these two end the victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    /// An insert found the id taken.
    Taken,
    /// An update found no document.
    Missing,
}

pub(crate) const ANSWERS: [(Answer, &str); 3] =
    [(Answer::Done, "done"), (Answer::Taken, "taken"), (Answer::Missing, "missing")];

/// The ids of all writers lie between each other, in every type of id.
pub(crate) fn id_of(writer: usize, slot: usize) -> Id<'static> {
    match slot % 3 {
        0 => Id::Integer(i64::try_from(slot * WRITERS + writer).unwrap() - 100),
        1 => Id::from(format!("slot {slot:03} of {writer}")),
        _ => Id::from(vec![u8::try_from(slot).unwrap(), u8::try_from(writer).unwrap()]),
    }
}

pub(crate) fn shared_id(shared: usize) -> Id<'static> {
    Id::from(format!("shared {shared}"))
}

/// A shared document with the number of each writer's last update.
pub(crate) fn shared_document(numbers: &[i64; WRITERS]) -> Vec<u8> {
    let fields = numbers.iter().enumerate().map(|(w, n)| (field_of(w), bson::Bson::Int64(*n)));
    bson::serialize_to_vec(&fields.collect::<bson::Document>()).unwrap()
}

pub(crate) fn field_of(writer: usize) -> String {
    format!("w{writer}")
}

/// The field that an update replaces, as a document.
pub(crate) fn field(name: &str, n: u64) -> Vec<u8> {
    bson::serialize_to_vec(&bson::doc! { name: n.cast_signed() }).unwrap()
}

/// What a put writes: `n` stands first, so that an update of it moves nothing.
fn document(writer: usize, n: u64, random: &mut Random) -> Vec<u8> {
    let len = if random.percent(4) { 5000 } else { random.below(400) };
    let pad: Vec<u8> =
        (0..len).map(|at| u8::try_from((at ^ len ^ writer) % 251).unwrap()).collect();
    let pad = bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: pad };
    let document = bson::doc! {
        "n": n.cast_signed(),
        "writer": i64::try_from(writer).unwrap(),
        "pad": pad,
    };
    bson::serialize_to_vec(&document).unwrap()
}

impl Operation {
    /// A writer's `n`-th, from 1 on.
    pub(crate) fn of(seed: u64, mode: Mode, writer: usize, n: u64) -> Self {
        let mut seeds = Random::new(seed ^ (writer as u64) << 56 ^ n);
        let mut random = Random::new(seeds.next());
        let random = &mut random;
        let change = |random: &mut Random, deletes: usize| Change {
            collection: random.below(2),
            slot: random.below(SLOTS),
            document: (!random.percent(deletes)).then(|| document(writer, n, random)),
        };
        let batch = |random: &mut Random| {
            let count = 1 + random.below(6);
            (0..count).map(|_| change(random, 30)).collect()
        };
        if mode == Mode::Mixed && random.percent(15) {
            return Self::Durable(batch(random));
        }
        match random.below(1000) {
            0..410 => Self::Change(change(random, 25)),
            410..710 => Self::Batch(batch(random)),
            710..760 => Self::Insert(change(random, 0)),
            760..840 => Self::Update { slot: random.below(SLOTS) },
            840..920 => Self::Share { shared: random.below(SHARED) },
            920..965 => Self::PutFleeting {
                slot: random.below(SLOTS),
                document: document(writer, n, random),
            },
            965..975 => Self::DropFleeting,
            975..985 => Self::Sync,
            985..990 => Self::Compact,
            _ => Self::Snapshot,
        }
    }
}
