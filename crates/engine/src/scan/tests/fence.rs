//! One run holds most ids, and others hold a few: what a fence is for. Held against a merge that
//! sorts everything.

use std::collections::VecDeque;

use super::*;

/// Ids in order: most differ in their first 16 bytes, some only behind them, and some end there.
fn ids(random: &mut Xoshiro256PlusPlus, count: usize) -> Vec<Vec<u8>> {
    let mut ids = BTreeSet::new();
    while ids.len() < count {
        let stem = format!("{:016}", random.random_range(0..count as u64));
        let end: &[u8] = [&b""[..], b"\0", b"a", b"\xFF"][random.random_range(0..4)];
        ids.insert([stem.as_bytes(), end].concat());
    }
    // The greatest head there is, at which a fence may stand.
    ids.extend([vec![0xFF; 15], vec![0xFF; 16], vec![0xFF; 17]]);
    ids.into_iter().collect()
}

/// A run with documents that every reader sees under most ids, as level 1 has; and up to five with
/// versions and tombstones of a few, some of which it does not have. `odd` are kinds of records
/// that end a scan.
fn skewed(random: &mut Xoshiro256PlusPlus, odd: &[Kind]) -> Vec<Vec<Record>> {
    let count = random.random_range(1..150);
    let ids = ids(random, count);
    let mut runs = vec![Vec::new(); random.random_range(1..6)];
    let mut sequence = 0;
    for id in &ids {
        for _ in 0..[0, 0, 0, 0, 0, 0, 1, 2, 12][random.random_range(0..9)] {
            sequence += 1;
            let kind = match random.random_range(0..20) {
                0 if !odd.is_empty() => odd[random.random_range(0..odd.len())],
                0..8 => Kind::Delete,
                _ => Kind::Put,
            };
            let run = random.random_range(0..runs.len());
            runs[run].push(record(COLLECTION, id, sequence, kind));
        }
    }
    let level1 = ids.iter().filter(|_| random.random_range(0..10) > 0).map(|id| put(id, 0));
    runs.push(level1.collect());
    let at = random.random_range(0..runs.len());
    let last = runs.len() - 1;
    runs.swap(at, last);
    runs
}

/// What a scan of a range yields from the front, by looking at everything: rows, and whether an
/// error ends them.
fn naive(runs: &MemoryRuns, range: &Range, at: u64) -> Vec<Option<(Vec<u8>, u64)>> {
    let mut all: Vec<&Record> = runs.runs.iter().flat_map(|run| run.iter()).collect();
    all.retain(|record| record.sequence().0 <= at);
    all.retain(|record| range.is_after_start(record.id()) && range.is_before_end(record.id()));
    all.sort_by(|a, b| a.id().cmp(b.id()).then(b.sequence().cmp(&a.sequence())));
    all.dedup_by(|next, first| next.id() == first.id());
    all.retain(|record| record.kind() != Kind::Delete);
    all.into_iter()
        .map(|record| {
            (record.kind() == Kind::Put).then(|| (record.id().to_vec(), record.sequence().0))
        })
        .collect()
}

/// A part of the collection between two places that are an id's, or share its head, or are where no
/// id is: what ends a stretch of one run besides other runs.
fn part(random: &mut Xoshiro256PlusPlus, runs: &MemoryRuns) -> Range {
    let records: Vec<&Record> = runs.runs.iter().flat_map(|run| run.iter()).collect();
    let mut edge = || {
        let mut id = match records.is_empty() {
            true => Vec::new(),
            false => records[random.random_range(0..records.len())].id().to_vec(),
        };
        match random.random_range(0..4) {
            0 => id.truncate(random.random_range(0..=id.len())),
            1 => id.push([0, b'a', 0xFF][random.random_range(0..3)]),
            _ => {}
        }
        (id, if random.random() { Side::Before } else { Side::After })
    };
    let mut edges = [edge(), edge()];
    edges.sort();
    let position = |edge: usize| {
        let (id, side) = &edges[edge];
        Position { collection: COLLECTION, id, side: *side }
    };
    Range::between(position(0), position(1))
}

/// Takes rows from either end as `backwards` says, and holds each against the naive merge.
fn check_walk(
    runs: &MemoryRuns,
    range: &Range,
    at: u64,
    mut backwards: impl FnMut() -> bool,
    context: &str,
) {
    let mut expected: VecDeque<_> = naive(runs, range, at).into();
    let mut scan = runs.scan(range, at);
    loop {
        let (next, expected) = match backwards() {
            true => (scan.next_back(), expected.pop_back()),
            false => (scan.next(), expected.pop_front()),
        };
        match (next, expected) {
            (Some(next), Some(Some(expected))) => assert_eq!(row(next), expected, "{context}"),
            (Some(Err(_)), Some(None)) | (None, None) => break,
            (next, expected) => panic!("{context}: {next:?} instead of {expected:?}"),
        }
    }
    for _ in 0..2 {
        assert!(scan.next().is_none() && scan.next_back().is_none(), "{context}");
    }
}

fn check_walks(odd: &[Kind], seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let runs = MemoryRuns::new(skewed(&mut random, odd));
        for at in [0, random.random_range(0..80), u64::MAX] {
            let range = match random.random_range(0..3) {
                0 => Range::all(COLLECTION),
                _ => part(&mut random, &runs),
            };
            let context = format!("seed {seed} at {at}, {range:?}");
            check_walk(&runs, &range, at, || false, &context);
            check_walk(&runs, &range, at, || true, &context);
            let mut turns = Xoshiro256PlusPlus::seed_from_u64(seed);
            check_walk(&runs, &range, at, || turns.random(), &context);
            // Long stretches from one end, then from the other.
            let (mut left, mut back) = (0, false);
            let stretches = || {
                if left == 0 {
                    (left, back) = (random.random_range(1..40), !back);
                }
                left -= 1;
                back
            };
            check_walk(&runs, &range, at, stretches, &context);
        }
    }
}

#[test]
fn a_run_with_most_ids_and_runs_with_few_equal_a_naive_merge() {
    check_walks(&[], 0..400);
}

#[test]
fn a_record_that_cannot_be_served_ends_the_scan_in_any_run_at_any_position() {
    check_walks(&[Kind::Damaged, Kind::RangeDelete, Kind::Mark], 1000..1400);
}

#[test]
fn an_error_at_any_call_comes_behind_the_rows_before_it() {
    for seed in 0..40 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let runs = MemoryRuns::new(skewed(&mut random, &[]));
        let range = part(&mut random, &runs);
        let expected = naive(&runs, &range, u64::MAX);
        let drain = |fails: u64| {
            runs.calls.fails.store(fails, Ordering::Relaxed);
            runs.calls.made.store(0, Ordering::Relaxed);
            let mut scan = runs.scan(&range, u64::MAX);
            let mut rows = Vec::new();
            let error = loop {
                match scan.next() {
                    Some(Ok(next)) => rows.push(Some(row(Ok(next)))),
                    Some(Err(_)) => break true,
                    None => break false,
                }
            };
            assert!(scan.next().is_none() && scan.next_back().is_none(), "seed {seed}");
            (rows, error, runs.calls.made())
        };
        let (rows, error, calls) = drain(0);
        assert_eq!((&rows, error), (&expected, false), "seed {seed}");
        for fails in 1..=calls {
            let (rows, error, made) = drain(fails);
            assert_eq!((error, made), (true, fails), "seed {seed}, call {fails} of {calls}");
            assert!(expected.starts_with(&rows), "seed {seed}, call {fails} of {calls}");
        }
    }
}
