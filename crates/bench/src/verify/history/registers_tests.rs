//! Histories made by hand, and histories of a simulated store.

use std::collections::BTreeMap;

use super::super::entry::{Actor, Call, Interval, Met, UNANSWERED};
use super::*;
use crate::workload::{InsertOrder, Random};

const KEY: u64 = 7;

/// A history of records.
#[derive(Clone, Debug, Default)]
struct Made {
    /// Key, field, hash and interval.
    writes: Vec<(u64, u32, u64, Interval)>,
    /// A document's hashes; none where there was no record.
    reads: Vec<(u64, Interval, Vec<u64>)>,
}

impl Made {
    fn write(mut self, field: u32, hash: u64, start: u64, end: u64) -> Self {
        self.writes.push((KEY, field, hash, Interval { start, end }));
        self
    }

    fn read(mut self, hashes: &[u64], start: u64, end: u64) -> Self {
        self.reads.push((KEY, Interval { start, end }, hashes.to_vec()));
        self
    }

    fn kinds(&self) -> Vec<(Kind, u64)> {
        let format = KeyFormat { order: InsertOrder::Hashed, zero_padding: 1 };
        let writes = self
            .writes
            .iter()
            .map(|&(key, field, hash, interval)| Write::new(Actor(0), key, field, hash, interval));
        let mut registers = Registers::new(format, writes.collect());
        let observations = self.reads.iter().map(|(key, interval, hashes)| {
            let met = if hashes.is_empty() { Met::Missing } else { Met::Whole };
            let (actor, call) = (Actor(1), Call::Read);
            (Observation { actor, key: *key, interval: *interval, met, call }, hashes)
        });
        let observations: Vec<_> = observations.collect();
        observations.iter().for_each(|(read, hashes)| registers.note(read, hashes));
        let mut tally = Tally::default();
        if !registers.is_explained() {
            observations.iter().for_each(|(read, hashes)| registers.tell(read, hashes, &mut tally));
            assert!(!tally.kinds.is_empty(), "the second look finds what the first one did");
        }
        registers.orders(&mut tally);
        BTreeMap::into_iter(tally.kinds).collect()
    }
}

/// A record of one field that was loaded with the value 1.
fn loaded() -> Made {
    Made::default().write(0, 1, 0, 10)
}

/// As `loaded`, with two fields of values 1 and 2.
fn loaded_pair() -> Made {
    loaded().write(1, 2, 0, 10)
}

#[test]
fn answers_that_some_order_explains_are_no_mismatch() {
    let histories = [
        ("nothing but a load", loaded()),
        ("a read beside the load", loaded().read(&[], 0, 5).read(&[1], 3, 9)),
        ("old beside an update", loaded().write(0, 3, 20, 30).read(&[1], 25, 40)),
        ("new beside an update", loaded().write(0, 3, 20, 30).read(&[3], 15, 21)),
        ("old, then new", loaded().write(0, 3, 20, 50).read(&[1], 22, 30).read(&[3], 31, 40)),
        ("moments that are equal", loaded().write(0, 3, 20, 30).read(&[1], 30, 40)),
        (
            "either of two updates at once",
            loaded().write(0, 3, 20, 40).write(0, 4, 30, 50).read(&[3], 60, 70),
        ),
        (
            "a failed update that is never seen",
            loaded().write(0, 3, 20, UNANSWERED).read(&[1], 90, 99),
        ),
        (
            "a failed update that is seen late, after another one",
            loaded().write(0, 3, 20, UNANSWERED).write(0, 4, 30, 40).read(&[4], 50, 60).read(
                &[3],
                70,
                80,
            ),
        ),
        (
            "a missing record beside its insert",
            Made::default().write(0, 1, 10, 20).read(&[], 5, 15),
        ),
        (
            "a missing record after an insert that failed",
            Made::default().write(0, 1, 10, UNANSWERED).read(&[], 30, 40),
        ),
        ("a key that nobody wrote", loaded().read(&[], 20, 30)),
        (
            "equal values of several writes",
            loaded().write(0, 3, 20, 30).write(0, 1, 40, 50).read(&[1], 60, 70),
        ),
        (
            "fields that were there together for a moment",
            loaded_pair().write(0, 3, 20, 30).write(1, 4, 25, 40).read(&[1, 4], 21, 50),
        ),
    ];
    for (name, mut history) in histories {
        if name == "a key that nobody wrote" {
            history.reads[0].0 = KEY + 1;
        }
        assert_eq!(history.kinds(), [], "{name}");
    }
}

#[test]
fn answers_that_no_order_explains_have_a_kind() {
    let updated = || loaded().write(0, 3, 20, 30);
    let histories = [
        ("overwritten", updated().read(&[3], 31, 35).read(&[1], 40, 50), Kind::Stale),
        ("overwritten, which nobody saw", updated().read(&[1], 31, 50), Kind::LostUpdate),
        ("not written yet", updated().read(&[3], 11, 19), Kind::Future),
        ("written never", loaded().read(&[9], 20, 30), Kind::Unwritten),
        ("no longer there", loaded().read(&[], 11, 20), Kind::LostRecord),
        (
            "no longer there, after it was found beside its insert",
            Made::default().write(0, 1, 10, 90).read(&[1], 20, 30).read(&[], 40, 50),
            Kind::LostRecord,
        ),
        (
            "new, then old, beside an update",
            loaded().write(0, 3, 20, 90).read(&[3], 30, 40).read(&[1], 50, 60),
            Kind::Order,
        ),
        (
            "two orders of the same updates",
            loaded()
                .write(0, 3, 20, 40)
                .write(0, 4, 21, 41)
                .read(&[3], 50, 60)
                .read(&[4], 70, 80)
                .read(&[3], 90, 99),
            Kind::Order,
        ),
        (
            "an update of one document with a field from before another",
            loaded_pair().write(0, 3, 20, 30).write(1, 4, 40, 50).read(&[1, 4], 15, 60),
            Kind::Torn,
        ),
    ];
    for (name, history, kind) in histories {
        assert_eq!(history.kinds(), [(kind, 1)], "{name}");
    }
}

#[test]
fn a_document_with_a_stale_and_a_lost_field_is_stale() {
    let history = loaded_pair().write(0, 3, 20, 30).write(1, 4, 20, 30);
    let history = history.read(&[1, 4], 22, 24).read(&[1, 2], 40, 50);
    assert_eq!(history.kinds(), [(Kind::Stale, 1)]);
}

fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).unwrap()
}

/// An operation of a simulated client.
#[derive(Clone, Debug)]
enum Pending {
    Read {
        key: u64,
        start: u64,
        found: Option<Vec<u64>>,
    },
    /// `fails` tells whether it is answered; such a write may take effect late or never.
    Write {
        key: u64,
        start: u64,
        fields: Vec<(u32, u64)>,
        fails: bool,
        done: bool,
    },
}

const FIELDS: u32 = 2;

/// A history of clients of a store in which each operation takes effect at one moment between its
/// beginning and its end. Time passes in small steps, so that many moments are equal.
fn simulated(seed: u64) -> Made {
    let mut random = Random::new(seed);
    let (keys, clients) = (1 + random.below(3), 2 + below(&mut random, 4));
    let mut store: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut pending: Vec<Option<Pending>> = vec![None; clients];
    let mut late: Vec<(u64, Vec<(u32, u64)>)> = Vec::new();
    let (mut made, mut next_value, mut now) = (Made::default(), 1_000, 0);
    let mut inserted = 0;
    for _ in 0..400 {
        now += random.below(3);
        let client = below(&mut random, clients);
        if !late.is_empty() && random.below(20) == 0 {
            let (key, fields) = late.swap_remove(below(&mut random, late.len()));
            apply(&mut store, key, &fields);
        }
        let Some(operation) = &mut pending[client] else {
            let is_insert = inserted < keys && random.below(4) == 0;
            let key = if is_insert { inserted } else { random.below(inserted.max(1)) };
            // An update is of a record that is there, as the workloads' are.
            let is_update = store.contains_key(&key) && random.below(2) == 0;
            pending[client] = Some(if is_insert || is_update {
                let field = u32::try_from(random.below(u64::from(FIELDS))).unwrap();
                let range = if is_insert { 0..FIELDS } else { field..field + 1 };
                inserted += u64::from(is_insert);
                next_value += u64::from(FIELDS);
                let fields = range.map(|field| (field, next_value + u64::from(field))).collect();
                let fails = !is_insert && random.below(10) == 0;
                Pending::Write { key, start: now, fields, fails, done: false }
            } else {
                Pending::Read { key, start: now, found: None }
            });
            continue;
        };
        match operation {
            Pending::Write { key, fields, fails, done, .. } if !*done => {
                *done = true;
                match (*fails, random.below(3)) {
                    (true, 0) => {}
                    (true, 1) => late.push((*key, fields.clone())),
                    _ => apply(&mut store, *key, fields),
                }
            }
            Pending::Read { key, found, .. } if found.is_none() => {
                *found = Some(store.get(key).cloned().unwrap_or_default());
            }
            Pending::Read { key, start, found } => {
                let interval = Interval { start: *start, end: now };
                made.reads.push((*key, interval, found.clone().unwrap()));
                pending[client] = None;
            }
            Pending::Write { key, start, fields, fails, .. } => {
                let interval =
                    Interval { start: *start, end: if *fails { UNANSWERED } else { now } };
                let writes = fields.iter().map(|&(field, hash)| (*key, field, hash, interval));
                made.writes.extend(writes);
                pending[client] = None;
            }
        }
    }
    // Clients that are stopped in the middle have not been answered.
    for operation in pending.into_iter().flatten() {
        if let Pending::Write { key, start, fields, .. } = operation {
            let interval = Interval { start, end: UNANSWERED };
            made.writes.extend(fields.iter().map(|&(field, hash)| (key, field, hash, interval)));
        }
    }
    made
}

fn apply(store: &mut BTreeMap<u64, Vec<u64>>, key: u64, fields: &[(u32, u64)]) {
    let document = store.entry(key).or_insert_with(|| vec![0; FIELDS as usize]);
    fields.iter().for_each(|&(field, hash)| document[field as usize] = hash);
}

#[test]
fn a_store_without_faults_gives_no_alarm() {
    let mut reads = 0;
    for seed in 0..3_000 {
        let history = simulated(seed);
        assert_eq!(history.kinds(), [], "seed {seed}");
        reads += history.reads.len();
    }
    assert!(reads > 100_000, "{reads}");
}

/// Makes one answer certainly wrong, if the history has an occasion, and says how it is wrong.
fn falsified(history: &mut Made, random: &mut Random) -> Option<&'static [Kind]> {
    let read = below(random, history.reads.len());
    let (key, interval, hashes) = &mut history.reads[read];
    let field = below(random, FIELDS as usize);
    let of_field = || {
        let writes = history.writes.iter();
        writes.filter(|(k, f, ..)| k == key && *f as usize == field)
    };
    let begins_later = |other: &Interval, after: &Interval| other.start > after.end;
    match random.below(4) {
        0 if !hashes.is_empty() => {
            hashes[field] = 1;
            Some(&[Kind::Unwritten])
        }
        1 if !hashes.is_empty() => {
            let future = of_field().find(|(.., written)| begins_later(written, interval))?.2;
            hashes[field] = future;
            Some(&[Kind::Future])
        }
        2 if !hashes.is_empty() => {
            let before = |other: &&(u64, u32, u64, Interval)| begins_later(interval, &other.3);
            let old = of_field().find(|old| {
                of_field().filter(before).any(|newer| begins_later(&newer.3, &old.3))
            })?;
            hashes[field] = old.2;
            Some(&[Kind::Stale, Kind::LostUpdate])
        }
        3 => {
            of_field().find(|(.., written)| begins_later(interval, written))?;
            hashes.clear();
            Some(&[Kind::LostRecord])
        }
        _ => None,
    }
}

#[test]
fn an_answer_that_is_certainly_wrong_is_always_found() {
    let mut found: BTreeMap<Kind, u64> = BTreeMap::new();
    for seed in 0..6_000 {
        let mut history = simulated(seed);
        let mut random = Random::new(!seed);
        let Some(expected) = falsified(&mut history, &mut random) else { continue };
        let kinds = history.kinds();
        let kind = kinds.iter().find(|(kind, _)| expected.contains(kind));
        let (kind, _) = kind.unwrap_or_else(|| panic!("seed {seed}: {expected:?}, got {kinds:?}"));
        *found.entry(*kind).or_default() += 1;
    }
    for kind in [Kind::Unwritten, Kind::Future, Kind::Stale, Kind::LostUpdate, Kind::LostRecord] {
        assert!(found.get(&kind) > Some(&5), "{found:?}");
    }
}

/// Whether some order explains the operations on one register: tries them all.
fn is_linearizable(operations: &[(Interval, Option<u64>, u64)], value: u64) -> bool {
    operations.is_empty()
        || operations.iter().enumerate().any(|(place, &(interval, written, seen))| {
            let is_next = operations.iter().all(|(other, ..)| other.end >= interval.start);
            let rest = [&operations[..place], &operations[place + 1..]].concat();
            match written {
                _ if !is_next => false,
                Some(written) => is_linearizable(&rest, written),
                None => seen == value && is_linearizable(&rest, value),
            }
        })
}

/// For one field whose values differ, the check is exact.
#[test]
fn one_register_is_accepted_exactly_when_an_order_explains_it() {
    let mut verdicts = [0_u32; 2];
    for seed in 0..40_000 {
        let mut random = Random::new(seed);
        let mut history = loaded();
        let mut operations = Vec::new();
        let writes = 1 + random.below(3);
        for value in 2..2 + writes + 1 + random.below(4) {
            let start = 11 + random.below(12);
            let interval = Interval { start, end: start + random.below(8) };
            if value < 2 + writes {
                history = history.write(0, value, interval.start, interval.end);
                operations.push((interval, Some(value), 0));
            } else {
                let seen = 1 + random.below(1 + writes);
                history = history.read(&[seen], interval.start, interval.end);
                operations.push((interval, None, seen));
            }
        }
        let expected = is_linearizable(&operations, 1);
        assert_eq!(history.kinds().is_empty(), expected, "seed {seed}: {history:?}");
        verdicts[usize::from(expected)] += 1;
    }
    assert!(verdicts.iter().all(|&count| count > 2_000), "{verdicts:?}");
}
