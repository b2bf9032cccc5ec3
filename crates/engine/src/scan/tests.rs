mod chain;
mod chain_cursor;
mod clipped;
mod fence;
mod segments;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::error::{Error, Result};
use crate::format::{CollectionId, Direction, Kind, Position, Sequence, Side};
use crate::segment::Record;

const COLLECTION: CollectionId = CollectionId(5);

/// Counts the calls to all cursors of a scan and fails one of them.
#[derive(Default)]
struct Calls {
    made: AtomicU64,
    /// The call that fails, from 1; 0 for none.
    fails: AtomicU64,
}

impl Calls {
    fn call(&self) -> Result<()> {
        let call = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        if call == self.fails.load(Ordering::Relaxed) {
            return Err(Error::corrupt(Path::new("injected"), call, "injected"));
        }
        Ok(())
    }

    fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }
}

/// A cursor over records in memory that insists on its contract.
struct MemoryCursor {
    records: Arc<Vec<Record>>,
    /// `None`: past either end.
    at: Option<usize>,
    usable: bool,
    calls: Arc<Calls>,
}

impl MemoryCursor {
    fn call(&mut self) -> Result<()> {
        assert!(self.usable, "used after an error");
        self.usable = false;
        self.calls.call()?;
        self.usable = true;
        Ok(())
    }
}

impl Cursor for MemoryCursor {
    fn seek(&mut self, position: Position<'_>, direction: Direction) -> Result<()> {
        self.call()?;
        let place = (position.collection, position.id);
        let split = self.records.partition_point(|record| {
            let order = (record.collection(), record.id()).cmp(&place);
            order.is_lt() || (order.is_eq() && position.side == Side::After)
        });
        self.at = match direction {
            Direction::Forward => Some(split).filter(|&at| at < self.records.len()),
            Direction::Reverse => split.checked_sub(1),
        };
        Ok(())
    }

    fn step(&mut self, direction: Direction) -> Result<()> {
        self.call()?;
        let at = self.at.expect("stands on an entry");
        self.at = match direction {
            Direction::Forward => Some(at + 1).filter(|&at| at < self.records.len()),
            Direction::Reverse => at.checked_sub(1),
        };
        Ok(())
    }

    fn current(&self) -> Option<&Record> {
        self.at.map(|at| &self.records[at])
    }
}

#[derive(Default)]
struct MemoryRuns {
    runs: Vec<Arc<Vec<Record>>>,
    calls: Arc<Calls>,
    opened: Cell<u32>,
}

impl Runs for &MemoryRuns {
    type Cursor = MemoryCursor;

    fn cursors(&self, take: &mut impl FnMut(MemoryCursor)) -> Result<()> {
        self.opened.set(self.opened.get() + 1);
        self.calls.call()?;
        let cursor = |records: &Arc<Vec<Record>>| {
            let (records, calls) = (Arc::clone(records), Arc::clone(&self.calls));
            MemoryCursor { records, at: None, usable: true, calls }
        };
        self.runs.iter().map(cursor).for_each(take);
        Ok(())
    }

    fn file(&self, run: usize) -> PathBuf {
        PathBuf::from(format!("run {run}"))
    }
}

impl MemoryRuns {
    fn new(mut runs: Vec<Vec<Record>>) -> Self {
        for run in &mut runs {
            run.sort_by(|a, b| {
                let place = |r: &Record| (r.collection(), r.id().to_vec());
                place(a).cmp(&place(b)).then(b.sequence().cmp(&a.sequence()))
            });
        }
        Self { runs: runs.into_iter().map(Arc::new).collect(), ..Self::default() }
    }

    fn scan(&self, range: &Range, at: u64) -> Merge<&Self> {
        Merge::new(self, range.clone(), Sequence(at))
    }
}

fn record(collection: CollectionId, id: &[u8], sequence: u64, kind: Kind) -> Record {
    let document = sequence.to_le_bytes();
    let document = if kind == Kind::Put { &document[..] } else { b"" };
    Record::owned_for_test(collection, id, document, Sequence(sequence), kind)
}

fn put(id: &[u8], sequence: u64) -> Record {
    record(COLLECTION, id, sequence, Kind::Put)
}

/// (id, sequence) of a row.
fn row(row: Result<Record>) -> (Vec<u8>, u64) {
    let row = row.unwrap();
    assert_eq!((row.collection(), row.kind()), (COLLECTION, Kind::Put));
    assert_eq!(row.document(), row.sequence().0.to_le_bytes());
    (row.id().to_vec(), row.sequence().0)
}

fn id(random: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let prefix: &[u8] = match random.random_range(0..3) {
        0 => b"",
        1 => b"sixteen bytes...",
        _ => b"\xFF\xFF",
    };
    let mut id = prefix.to_vec();
    for _ in 0..random.random_range(0..3) {
        id.push([0, b'a', 0xFE, 0xFF][random.random_range(0..4)]);
    }
    id
}

/// Versions by id: what a merge must equal.
#[derive(Default)]
struct Model(BTreeMap<Vec<u8>, BTreeMap<u64, Kind>>);

impl Model {
    fn rows(&self, is_within: impl Fn(&[u8]) -> bool, at: u64) -> Vec<(Vec<u8>, u64)> {
        let newest = |versions: &BTreeMap<u64, Kind>| {
            versions.range(..=at).next_back().map(|(&sequence, &kind)| (sequence, kind))
        };
        let rows = self.0.iter().filter(|(id, _)| is_within(id));
        rows.filter_map(|(id, versions)| match newest(versions) {
            Some((sequence, Kind::Put)) => Some((id.clone(), sequence)),
            _ => None,
        })
        .collect()
    }
}

/// Random versions of few ids in random runs, some ids with many, and records of the collections
/// beside.
fn random_runs(random: &mut Xoshiro256PlusPlus, records: u64) -> (MemoryRuns, Model) {
    let mut runs = vec![Vec::new(); random.random_range(1..12)];
    let mut model = Model::default();
    let ids: Vec<_> = (0..random.random_range(1..40)).map(|_| id(random)).collect();
    let hot = id(random);
    for sequence in 1..=records {
        let run = random.random_range(0..runs.len());
        let id = match random.random_range(0..3) {
            0 => &hot,
            _ => &ids[random.random_range(0..ids.len())],
        };
        let kind = if random.random_range(0..4) == 0 { Kind::Delete } else { Kind::Put };
        let collection = match random.random_range(0..10) {
            0 => CollectionId(COLLECTION.0 - 1),
            1 => CollectionId(COLLECTION.0 + 1),
            _ => COLLECTION,
        };
        runs[run].push(record(collection, id, sequence, kind));
        if collection == COLLECTION {
            model.0.entry(id.clone()).or_default().insert(sequence, kind);
        }
    }
    (MemoryRuns::new(runs), model)
}

/// A range, and what it means.
type RangeAndMeaning = (Range, Box<dyn Fn(&[u8]) -> bool>);

fn random_range(random: &mut Xoshiro256PlusPlus) -> RangeAndMeaning {
    match random.random_range(0..4) {
        0 => (Range::all(COLLECTION), Box::new(|_| true)),
        1 => {
            let mut prefix = id(random);
            prefix.truncate(random.random_range(0..=prefix.len()));
            (Range::prefix(COLLECTION, &prefix), Box::new(move |id| id.starts_with(&prefix)))
        }
        _ => {
            let mut edge =
                || (id(random), if random.random() { Side::Before } else { Side::After });
            let (lower, upper) = (edge(), edge());
            let position = |edge: &(Vec<u8>, Side)| {
                let id = edge.0.clone().leak();
                Position { collection: COLLECTION, id, side: edge.1 }
            };
            let range = Range::between(position(&lower), position(&upper));
            let is_within = move |id: &[u8]| {
                let after_lower = match lower.1 {
                    Side::Before => id >= &lower.0[..],
                    Side::After => id > &lower.0[..],
                };
                let before_upper = match upper.1 {
                    Side::Before => id < &upper.0[..],
                    Side::After => id <= &upper.0[..],
                };
                after_lower && before_upper
            };
            (range, Box::new(is_within))
        }
    }
}

#[test]
fn both_directions_and_any_interleaving_equal_a_btreemap() {
    for seed in 0..400 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let records = random.random_range(0..300);
        let (runs, model) = random_runs(&mut random, records);
        for _ in 0..10 {
            let (range, is_within) = random_range(&mut random);
            let at = random.random_range(0..=records + 1);
            let expected = model.rows(is_within, at);

            let forward: Vec<_> = runs.scan(&range, at).map(row).collect();
            assert_eq!(forward, expected, "seed {seed}, {range:?} at {at}");
            let mut reverse: Vec<_> = runs.scan(&range, at).rev().map(row).collect();
            reverse.reverse();
            assert_eq!(reverse, expected, "seed {seed}, {range:?} at {at}, in reverse");

            let (mut front, mut back) = (Vec::new(), Vec::new());
            let mut scan = runs.scan(&range, at);
            loop {
                let (next, rows) = match random.random() {
                    true => (scan.next(), &mut front),
                    false => (scan.next_back(), &mut back),
                };
                match next {
                    Some(next) => rows.push(row(next)),
                    None => break,
                }
            }
            assert!(scan.next().is_none() && scan.next_back().is_none());
            front.extend(back.into_iter().rev());
            assert_eq!(front, expected, "seed {seed}, {range:?} at {at}, interleaved");
        }
    }
}

#[test]
fn prefixes_of_the_highest_byte_and_none_reach_the_collections_end() {
    let ids: [&[u8]; 8] =
        [b"", b"a", b"\xFE", b"\xFF", b"\xFF\0", b"\xFF\xFE", b"\xFF\xFF", b"\xFF\xFF\xFF"];
    for collection in [COLLECTION, CollectionId(u32::MAX)] {
        let records = ids.iter().zip(1..).map(|(id, s)| record(collection, id, s, Kind::Put));
        let beside = record(CollectionId(6), b"\xFF\xFF", 100, Kind::Put);
        let runs = MemoryRuns::new(vec![records.collect(), vec![beside]]);
        for prefix in ids {
            let expected: Vec<_> = ids.into_iter().filter(|id| id.starts_with(prefix)).collect();
            let range = Range::prefix(collection, prefix);
            let forward: Vec<_> = runs.scan(&range, 1000).map(Result::unwrap).collect();
            let forward: Vec<_> = forward.iter().map(Record::id).collect();
            assert_eq!(forward, expected, "{prefix:?}");
            let reverse: Vec<_> = runs.scan(&range, 1000).rev().map(Result::unwrap).collect();
            let reverse: Vec<_> = reverse.iter().rev().map(Record::id).collect();
            assert_eq!(reverse, expected, "{prefix:?} in reverse");
        }
    }
}

#[test]
fn empty_ranges_touch_no_run() {
    let runs = MemoryRuns::new(vec![vec![put(b"a", 1), put(b"b", 2), put(b"c", 3)]]);
    let position =
        |collection, id, side| Position { collection: CollectionId(collection), id, side };
    use Side::{After, Before};
    for (lower, upper) in [
        (position(5, b"b", Before), position(5, b"b", Before)),
        (position(5, b"b", After), position(5, b"b", After)),
        (position(5, b"b", After), position(5, b"b", Before)),
        (position(5, b"c", Before), position(5, b"a", After)),
        (position(5, b"a", Before), position(4, b"z", After)),
    ] {
        let range = Range::between(lower, upper);
        assert!(range.is_empty());
        assert!(runs.scan(&range, 9).next().is_none());
        assert!(runs.scan(&range, 9).next_back().is_none());
    }
    assert_eq!((runs.opened.get(), runs.calls.made()), (0, 0));

    let one = Range::between(position(5, b"b", Before), position(5, b"b", After));
    assert_eq!(runs.scan(&one, 9).map(row).collect::<Vec<_>>(), [(b"b".to_vec(), 2)]);
    let rest = Range::between(position(5, b"b", Before), position(6, b"", Before));
    assert_eq!(runs.scan(&rest, 9).count(), 2);
}

#[test]
fn a_scan_reads_when_it_is_asked_and_no_further() {
    let runs = MemoryRuns::new(vec![vec![put(b"a", 1), put(b"b", 2), put(b"c", 3)]]);
    let mut scan = runs.scan(&Range::all(COLLECTION), 9);
    assert_eq!((runs.opened.get(), runs.calls.made()), (0, 0));
    // Opening and the seek; then a step a row.
    for (id, calls) in [(b"a", 2), (b"b", 3), (b"c", 4)] {
        assert_eq!(row(scan.next().unwrap()).0, id);
        assert_eq!(runs.calls.made(), calls);
    }
    assert_eq!(runs.opened.get(), 1, "the back was not used");
}

#[test]
fn an_error_at_any_call_is_yielded_once_and_ends_the_scan() {
    for seed in 0..30 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (runs, model) = random_runs(&mut random, 60);
        let (range, is_within) = random_range(&mut random);
        let expected: BTreeSet<_> = model.rows(is_within, 50).into_iter().collect();
        for pattern in [0, u64::MAX, random.random(), random.random()] {
            let drain = |fails: u64| {
                runs.calls.fails.store(fails, Ordering::Relaxed);
                runs.calls.made.store(0, Ordering::Relaxed);
                let (mut rows, mut errors) = (0, 0);
                let mut scan = runs.scan(&range, 50);
                for turn in 0..1000 {
                    let next = match pattern >> (turn % 64) & 1 {
                        0 => scan.next(),
                        _ => scan.next_back(),
                    };
                    match next {
                        Some(Err(Error::Corrupt { .. })) => errors += 1,
                        Some(next) => {
                            assert_eq!(errors, 0, "a row after an error");
                            assert!(expected.contains(&row(next)));
                            rows += 1;
                        }
                        None => break,
                    }
                }
                for _ in 0..3 {
                    assert!(scan.next().is_none() && scan.next_back().is_none());
                }
                (rows, errors, runs.calls.made())
            };
            let (rows, errors, calls) = drain(0);
            assert_eq!((rows, errors), (expected.len(), 0));
            for fails in 1..=calls {
                let (rows, errors, made) = drain(fails);
                assert!(rows <= expected.len());
                assert_eq!((errors, made), (1, fails), "seed {seed}, call {fails} of {calls}");
            }
        }
    }
}

#[test]
fn damaged_and_reserved_records_end_the_scan_with_their_error() {
    for kind in [Kind::Damaged, Kind::RangeDelete, Kind::Expiry, Kind::Patch, Kind::Mark] {
        let runs = MemoryRuns::new(vec![
            vec![put(b"a", 1), put(b"b", 2), put(b"c", 3)],
            vec![record(COLLECTION, b"b", 7, kind)],
        ]);
        let is_expected = |error: &Error| match (kind, error) {
            (Kind::Damaged | Kind::Mark, Error::Corrupt { file, .. })
            | (_, Error::UnsupportedFormat { file, .. }) => file == Path::new("run 1"),
            _ => false,
        };
        let range = Range::all(COLLECTION);
        let mut scan = runs.scan(&range, 9);
        assert_eq!(row(scan.next().unwrap()).0, b"a");
        assert_eq!(row(scan.next_back().unwrap()).0, b"c");
        assert!(is_expected(&scan.next_back().unwrap().unwrap_err()), "{kind:?}");
        assert!(scan.next().is_none() && scan.next_back().is_none());
        let mut scan = runs.scan(&range, 9).skip(1);
        assert!(is_expected(&scan.next().unwrap().unwrap_err()), "{kind:?}");
        assert_eq!(runs.scan(&range, 6).map(row).count(), 3, "the snapshot is older");
    }
}

#[test]
fn many_versions_of_an_id_are_passed_by_a_seek() {
    let versions = |id: &[u8]| (1..=1000).map(|s| put(id, s)).collect::<Vec<_>>();
    let runs = MemoryRuns::new(vec![[versions(b"a"), versions(b"b")].concat()]);
    let range = Range::all(COLLECTION);
    assert_eq!(runs.scan(&range, 1000).map(row).count(), 2);
    assert_eq!(runs.scan(&range, 1000).rev().map(row).count(), 2);
    assert!(runs.calls.made() < 100, "{} calls", runs.calls.made());
}
