//! Scans over ranges that are easy to get wrong, in both directions, over every kind of run.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::ops::Bound;

use common::{DB, DURABILITIES, READS, Random, Seed, tiny_on};
use engine::disk::MemoryDisk;
use engine::{Collection, Database, Id, IdRange, prefix};
use serde_json::json;

const TEXTS: [&str; 13] = [
    "",
    "a",
    "aa",
    "ab",
    "a\u{10FFFF}",
    "a\u{10FFFF}b",
    "b",
    "\u{10FFFF}",
    "\u{10FFFF}\u{10FFFF}",
    "\0",
    "\0\0",
    "z",
    "zz",
];

fn all_ids() -> Vec<Id<'static>> {
    let mut ids: Vec<Id<'static>> =
        [i64::MIN, -1, 0, 1, 255, 256, i64::MAX].into_iter().map(Id::from).collect();
    ids.extend(TEXTS.map(|text| Id::from(text.to_owned())));
    // Longer than what nodes and index blocks hold of an id, equal up to there.
    ids.extend(["", "a", "b"].map(|end| Id::from(format!("{}{end}", "long".repeat(40)))));
    for len in 0..5 {
        ids.push(Id::from(vec![0xFF; len]));
        ids.push(Id::from([vec![0xFF; len], vec![0]].concat()));
        ids.push(Id::from(vec![0; len + 1]));
    }
    ids.push(Id::from(vec![0xFF; 300]));
    ids.sort();
    ids.dedup();
    ids
}

/// A collection with these ids in sealed segments, the frozen and the active one, among superseded
/// versions, tombstones and two neighbours that a scan must not reach.
fn collection(database: &Database, random: &mut Random, ids: &[Id<'static>]) -> Collection {
    let [before, collection, after] =
        ["before", "scanned", "after"].map(|name| database.collection(name).unwrap());
    for version in 0..8 {
        for id in ids {
            for neighbour in [&before, &after] {
                if random.percent(30) {
                    neighbour.put(id, &json!({})).unwrap();
                }
            }
            match random.below(4) {
                0 => collection.delete(id).unwrap(),
                1 => {}
                _ => collection.put(id, &json!({ "version": version })).unwrap(),
            }
        }
    }
    // Each id's last version lands in some segment.
    for id in ids {
        collection.put(id, &json!({ "version": 8 })).unwrap();
        if random.percent(20) {
            for filler in 0..20_i64 {
                before.put(filler, &json!({ "pad": "x".repeat(100) })).unwrap();
            }
        }
    }
    for filler in ["only", "for", "deletion"] {
        collection.put(filler, &json!({})).unwrap();
        collection.delete(filler).unwrap();
    }
    collection
}

fn everywhere(test: impl Fn(&Collection, &[Id<'static>])) {
    let seed = Seed::or(5);
    for durability in DURABILITIES {
        for reads in READS {
            let disk = MemoryDisk::new();
            let options = tiny_on(&disk).durability(durability).reads(reads);
            let database = Database::open(DB, options.clone()).unwrap();
            let ids = all_ids();
            let scanned = collection(&database, &mut seed.random(), &ids);
            test(&scanned, &ids);
            assert!(database.stats().seals > 3, "{:?}", database.stats());
            // And once more when all is sealed.
            drop(scanned);
            database.close().unwrap();
            let database = Database::open(DB, options).unwrap();
            test(&database.collection("scanned").unwrap(), &ids);
        }
    }
}

fn scan<'a>(collection: &Collection, range: impl IdRange<'a>) -> Vec<Id<'static>> {
    let rows = collection.scan(range).unwrap().map(|row| row.unwrap());
    rows.map(|(id, document)| {
        assert_eq!(document.get_i64("version").unwrap(), Some(8), "{id}");
        id
    })
    .collect()
}

fn scan_back<'a>(collection: &Collection, range: impl IdRange<'a>) -> Vec<Id<'static>> {
    let mut ids: Vec<_> = collection.scan(range).unwrap().rev().map(|row| row.unwrap().0).collect();
    ids.reverse();
    ids
}

/// Fault case D1.
#[test]
fn d1_a_reverse_scan_is_the_forward_scan_reversed_for_every_prefix() {
    everywhere(|collection, ids| {
        assert_eq!(scan(collection, ..), ids);
        assert_eq!(scan_back(collection, ..), ids);
        let longer = ["long", "longlon", "none", "a\u{10FFFE}"];
        for text in TEXTS.into_iter().chain(longer) {
            let expected: Vec<_> = ids
                .iter()
                .filter(|id| matches!(id, Id::String(id) if id.starts_with(text)))
                .cloned()
                .collect();
            assert_eq!(scan(collection, prefix(text)), expected, "{text:?}");
            assert_eq!(scan_back(collection, prefix(text)), expected, "{text:?} in reverse");
        }
        // Bytes have no prefix of their own; a range says the same, and 0xFF has no successor.
        for len in 0..5 {
            let from = vec![0xFF; len];
            let expected: Vec<_> =
                ids.iter().filter(|id| **id >= Id::from(&from)).cloned().collect();
            assert_eq!(scan(collection, Id::from(&from)..), expected);
            assert_eq!(scan_back(collection, Id::from(&from)..), expected);
        }
    });
}

#[test]
fn every_pair_of_bounds_gives_what_lies_between_from_both_ends() {
    everywhere(|collection, ids| {
        let seed = Seed::or(6);
        let mut random = seed.random();
        for _ in 0..300 {
            let bound = |random: &mut Random| {
                let id = random.pick(ids).clone();
                if random.percent(50) { Bound::Included(id) } else { Bound::Excluded(id) }
            };
            let range = (bound(&mut random), bound(&mut random));
            let expected: Vec<_> = ids
                .iter()
                .filter(|id| std::ops::RangeBounds::contains(&range, *id))
                .cloned()
                .collect();
            assert_eq!(scan(collection, range.clone()), expected, "{range:?}");
            assert_eq!(scan_back(collection, range.clone()), expected, "{range:?}");
            // From both ends until they meet: each row once.
            let mut rows = collection.scan_ids(range.clone()).unwrap();
            let (mut front, mut back) = (Vec::new(), Vec::new());
            loop {
                let from_front = random.percent(50);
                let row = if from_front { rows.next() } else { rows.next_back() };
                match row {
                    None => break,
                    Some(id) if from_front => front.push(id.unwrap()),
                    Some(id) => back.push(id.unwrap()),
                }
            }
            assert!(rows.next().is_none() && rows.next_back().is_none(), "{range:?}");
            front.extend(back.into_iter().rev());
            assert_eq!(front, expected, "{range:?} from both ends");
        }
    });
}

/// Fault case D9.
#[test]
#[expect(clippy::reversed_empty_ranges, reason = "that they are empty is the point")]
fn d9_inverted_equal_and_doubly_excluded_ranges_are_empty() {
    everywhere(|collection, ids| {
        let empty = |range: (Bound<Id<'static>>, Bound<Id<'static>>)| {
            assert_eq!(scan(collection, range.clone()), [], "{range:?}");
            assert_eq!(scan_back(collection, range.clone()), [], "{range:?}");
            assert_eq!(collection.scan_ids(range.clone()).unwrap().count(), 0, "{range:?}");
        };
        for (n, id) in ids.iter().enumerate() {
            let (included, excluded) = (Bound::Included(id.clone()), Bound::Excluded(id.clone()));
            empty((excluded.clone(), excluded.clone()));
            empty((included.clone(), excluded.clone()));
            empty((excluded.clone(), included.clone()));
            assert_eq!(
                scan(collection, (included.clone(), included.clone())),
                std::slice::from_ref(id)
            );
            for lower in &ids[..n] {
                for end in [Bound::Included(lower.clone()), Bound::Excluded(lower.clone())] {
                    empty((included.clone(), end.clone()));
                    empty((excluded.clone(), end));
                }
            }
            if let Some(next) = ids.get(n + 1) {
                empty((excluded.clone(), Bound::Excluded(next.clone())));
            }
        }
        assert_eq!(scan(collection, 5..1), []);
        assert_eq!(scan(collection, "b".."a"), []);
        assert_eq!(scan(collection, ..i64::MIN), []);
    });
}

/// Fault case E1.
#[test]
fn e1_an_iterator_held_through_writes_and_rolls_sees_the_moment_it_began() {
    everywhere(|collection, ids| {
        let mut forward = collection.scan(..).unwrap();
        let mut reverse = collection.scan(..).unwrap();
        let untouched = collection.scan(..).unwrap();
        assert_eq!(forward.next().unwrap().unwrap().0, ids[0]);
        assert_eq!(reverse.next_back().unwrap().unwrap().0, *ids.last().unwrap());
        let mut seen = (1, 1);
        for round in 0..30_i64 {
            // Each round overwrites, deletes and adds more than a memtable holds.
            for id in ids {
                collection.put(id, &json!({ "version": 100 + round })).unwrap();
            }
            for id in ids.iter().step_by(2) {
                collection.delete(id).unwrap();
            }
            for n in 0..30 {
                collection.put(10_000 + round * 100 + n, &json!({ "version": 100 })).unwrap();
            }
            if let Some(row) = forward.next() {
                let (id, document) = row.unwrap();
                assert_eq!(id, ids[seen.0]);
                assert_eq!(document.get_i64("version").unwrap(), Some(8));
                seen.0 += 1;
            }
            if let Some(row) = reverse.next_back() {
                seen.1 += 1;
                assert_eq!(row.unwrap().0, ids[ids.len() - seen.1]);
            }
        }
        let rest: Vec<_> = forward.map(|row| row.unwrap().0).collect();
        assert_eq!(rest, ids[seen.0..]);
        let rest: Vec<_> = reverse.map(|row| row.unwrap().0).collect();
        assert_eq!(rest, ids[..ids.len() - seen.1]);
        let all: Vec<_> = untouched.map(|row| row.unwrap().0).collect();
        assert_eq!(all, ids);
        // What comes next in `everywhere` finds the collection as it was.
        for n in collection.scan_ids(10_000..20_000).unwrap().collect::<Vec<_>>() {
            collection.delete(n.unwrap()).unwrap();
        }
        for id in ids {
            collection.put(id, &json!({ "version": 8 })).unwrap();
        }
    });
}

#[test]
fn scans_of_an_empty_collection_and_of_one_where_all_is_deleted_are_empty() {
    let disk = MemoryDisk::new();
    let database = Database::open(DB, tiny_on(&disk)).unwrap();
    let collection = database.collection("c").unwrap();
    assert_eq!(collection.scan(..).unwrap().count(), 0);
    assert_eq!(collection.scan(..).unwrap().rev().count(), 0);
    for id in 0..200_i64 {
        collection.put(id, &json!({})).unwrap();
    }
    for id in 0..200_i64 {
        collection.delete(id).unwrap();
    }
    let mut scan = collection.scan(..).unwrap();
    assert!(scan.next().is_none() && scan.next_back().is_none() && scan.next().is_none());
    assert_eq!(collection.scan(..).unwrap().rev().count(), 0);
}
