//! Searches in a chain, and gets through it.

use std::cmp::Reverse;

use super::segments::{Folder, Rows, any_key, key, row};
use super::*;
use crate::format::{Bound, FullKey, Key};
use crate::segment::Regime;

/// Entries with these ranges, all over one segment and clipped.
fn chain(folder: &Folder, ranges: &[(FullKey, FullKey)]) -> Chain {
    let segment = folder.seal(&Rows::from([((key(5, b"a"), Reverse(Sequence(1))), Kind::Put)]));
    let entry = |(first, last): &(FullKey, FullKey)| {
        let segment = Arc::clone(&segment);
        ChainEntry::new(first.clone(), Bound::Clipped, last.clone(), Bound::Clipped, segment)
    };
    Chain::new(ranges.iter().map(entry).collect())
}

/// The number of the entry that a chain finds for a key.
fn found(chain: &Chain, key: &FullKey) -> Option<usize> {
    let entry = chain.find(key.collection(), key.id())?;
    chain.entries().iter().position(|other| std::ptr::eq(other, entry))
}

#[test]
fn an_entry_is_a_cache_line() {
    assert_eq!((size_of::<ChainEntry>(), align_of::<ChainEntry>()), (64, 64));
}

#[test]
fn an_empty_chain_finds_nothing() {
    let chain = Arc::new(Chain::default());
    assert!(chain.is_empty());
    assert!(chain.find(COLLECTION, b"a").is_none());
    let (first, last) = (key(0, b""), key(u32::MAX, b"z"));
    let (lower, upper) = (first.position(Side::Before), last.position(Side::After));
    let mut cursor = chain.cursor(Regime::Mapped);
    for (place, direction) in [(lower, Direction::Forward), (upper, Direction::Reverse)] {
        cursor.approach(place, direction).unwrap();
        cursor.seek(place, direction).unwrap();
        assert!(cursor.current().is_none());
    }
}

#[test]
fn keys_whose_heads_tie_are_told_apart() {
    let folder = Folder::new();
    // All heads are equal: "a" and zeros.
    let ranges = [
        (key(5, b"a"), key(5, b"a")),
        (key(5, b"a\0"), key(5, b"a\0\0")),
        (key(5, b"a\0\0\0\0\0\0\0\0\0\0\0"), key(5, b"a\0\0\0\0\0\0\0\0\0\0\0\x01")),
        (key(5, b"a\0\0\0\0\0\0\0\0\0\0\0\x03"), key(5, b"a\0\0\0\0\0\0\0\0\0\0\0\x03\0")),
        (key(5, b"a\0\0\0\0\0\0\0\0\0\0\0\x05"), key(5, b"b")),
    ];
    let chain = chain(&folder, &ranges);
    assert!(chain.entries().iter().all(|entry| entry.first().head() == key(5, b"a").head()));
    let cases: [(&[u8], Option<usize>); 14] = [
        (b"", None),
        (b"a", Some(0)),
        (b"a\0", Some(1)),
        (b"a\0\0", Some(1)),
        (b"a\0\0\0", None),
        (b"a\0\0\0\0\0\0\0\0\0\0\0", Some(2)),
        (b"a\0\0\0\0\0\0\0\0\0\0\0\0\xFF", Some(2)),
        (b"a\0\0\0\0\0\0\0\0\0\0\0\x02", None),
        (b"a\0\0\0\0\0\0\0\0\0\0\0\x03", Some(3)),
        (b"a\0\0\0\0\0\0\0\0\0\0\0\x03\x01", None),
        (b"a\0\0\0\0\0\0\0\0\0\0\0\x06", Some(4)),
        (b"a\0\0\x01", Some(4)),
        (b"b", Some(4)),
        (b"b\0", None),
    ];
    for (id, expected) in cases {
        assert_eq!(found(&chain, &key(5, id)), expected, "{}", id.escape_ascii());
        assert_eq!(found(&chain, &key(4, id)), None);
        assert_eq!(found(&chain, &key(6, id)), None);
    }
}

#[test]
fn searches_equal_a_walk_over_the_entries() {
    let folder = Folder::new();
    let (mut hits, mut misses) = (0, 0);
    for seed in 0..300 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let count = random.random_range(0..60);
        let keys: BTreeSet<_> = (0..count).map(|_| any_key(&mut random)).collect();
        let mut ranges = Vec::new();
        let mut keys = keys.into_iter().peekable();
        while let Some(first) = keys.next() {
            let last = match random.random() {
                true => keys.next().unwrap_or_else(|| first.clone()),
                false => first.clone(),
            };
            ranges.push((first, last));
        }
        let chain = chain(&folder, &ranges);
        for _ in 0..100 {
            let key = any_key(&mut random);
            let expected = ranges.iter().position(|(first, last)| (first..=last).contains(&&key));
            assert_eq!(found(&chain, &key), expected, "seed {seed}, {key:?}");
            match expected {
                Some(_) => hits += 1,
                None => misses += 1,
            }
        }
    }
    assert!(hits > 1000 && misses > 1000, "{hits} hits, {misses} misses");
}

#[test]
fn entries_out_of_order_or_overlapping_are_no_chain() {
    let folder = Folder::new();
    let range = |first: &[u8], last: &[u8]| (key(5, first), key(5, last));
    let chain = chain(&folder, &[range(b"a", b"c"), range(b"d", b"d"), range(b"e", b"g")]);
    let [a, d, e] = chain.entries() else { panic!("three entries") };
    let is_ordered = |entries: &[&ChainEntry]| {
        Chain::is_ordered(&entries.iter().map(|e| (*e).clone()).collect::<Vec<_>>())
    };
    assert!(is_ordered(&[]) && is_ordered(&[d]) && is_ordered(&[a, d, e]) && is_ordered(&[a, e]));
    assert!(!is_ordered(&[d, a]) && !is_ordered(&[a, e, d]) && !is_ordered(&[a, a]));
    let segment = Arc::clone(d.segment());
    let (first, last) = range(b"c", b"d");
    let touching = ChainEntry::new(first, Bound::Clipped, last, Bound::Clipped, segment);
    assert!(!is_ordered(&[a, &touching]) && !is_ordered(&[&touching, d]));
    assert!(is_ordered(&[&touching, e]));
}

#[test]
fn gets_see_nothing_outside_of_an_entrys_range() {
    let folder = Folder::new();
    let model: Rows = [b"a", b"b", b"c", b"d"]
        .into_iter()
        .zip(1..)
        .map(|(id, sequence)| ((key(5, id), Reverse(Sequence(sequence))), Kind::Put))
        .collect();
    let segment = folder.seal(&model);
    let entry = ChainEntry::new(
        key(5, b"aa"),
        Bound::Clipped,
        key(5, b"c"),
        Bound::Clipped,
        Arc::clone(&segment),
    );
    assert_eq!((entry.lower(), entry.upper()), (Bound::Clipped, Bound::Clipped));
    let chain = Chain::new(vec![entry]);
    for regime in [Regime::Mapped, Regime::Pread] {
        for (id, is_seen) in [(b"a", false), (b"b", true), (b"c", true), (b"d", false)] {
            let get = |at| chain.get(Key::new(COLLECTION, id), Sequence(at), regime).unwrap();
            let expected = is_seen.then(|| (COLLECTION, id.to_vec(), segment_sequence(&model, id)));
            assert_eq!(get(9).as_ref().map(row), expected);
            assert!(get(0).is_none(), "older than the record");
        }
    }
}

fn segment_sequence(model: &Rows, id: &[u8]) -> Sequence {
    let found = model.keys().find(|(key, _)| key.id() == id);
    found.expect("in the model").1.0
}
