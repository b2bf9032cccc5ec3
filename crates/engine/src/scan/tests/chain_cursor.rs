//! Walks over chains of real segments, with clipped bounds.

use std::cmp::Reverse;

use super::segments::{
    Folder, Row, Rows, any_key, any_place, any_rows, key, row, rows, rows_before,
};
use super::*;
use crate::format::{Bound, FullKey, Key};
use crate::segment::{Regime, SegmentCursor};

const REGIMES: [Regime; 2] = [Regime::Mapped, Regime::Pread];

/// A chain, and the rows that may be seen through it.
struct Fixture {
    chain: Arc<Chain>,
    visible: Rows,
    /// The rows that may not.
    hidden: Rows,
    /// Bounds that clip a segment.
    clipped: usize,
    _folder: Folder,
}

impl Fixture {
    /// Cuts random rows into segments, clips some of these, and leaves some out.
    fn random(random: &mut Xoshiro256PlusPlus, count: usize) -> Self {
        let folder = Folder::new();
        let model = any_rows(random, count);
        let keys: BTreeSet<_> = model.keys().map(|(key, _)| key.clone()).collect();
        let keys: Vec<_> = keys.into_iter().collect();
        let mut entries = Vec::new();
        let (mut visible, mut hidden, mut clipped) = (Rows::new(), Rows::new(), 0);
        let mut rest = keys.as_slice();
        while !rest.is_empty() {
            let (part, after) = rest.split_at(random.random_range(1..=rest.len().min(20)));
            rest = after;
            let (first, last) = (&part[0], &part[part.len() - 1]);
            let mut bound = |own: &FullKey| match random.random_range(0..4) {
                0 => (part[random.random_range(0..part.len())].clone(), Bound::Clipped),
                1 => (any_key(random).clamp(first.clone(), last.clone()), Bound::Clipped),
                _ => (own.clone(), Bound::Own),
            };
            let ((from, lower), (to, upper)) = (bound(first), bound(last));
            let content: Rows = model
                .iter()
                .filter(|((key, _), _)| (first..=last).contains(&key))
                .map(|(row, kind)| (row.clone(), *kind))
                .collect();
            let range = from.clone()..=to.clone();
            if !range.is_empty() {
                clipped += [lower, upper].iter().filter(|b| **b == Bound::Clipped).count();
                let segment = folder.seal(&content);
                entries.push(ChainEntry::new(from, lower, to, upper, segment));
            }
            for (row, kind) in content {
                let side = if range.contains(&row.0) { &mut visible } else { &mut hidden };
                side.insert(row, kind);
            }
        }
        let chain = Arc::new(Chain::new(entries));
        Self { chain, visible, hidden, clipped, _folder: folder }
    }

    fn expected(&self) -> Vec<Row> {
        rows(&self.visible, &(key(0, b"")..=key(u32::MAX, &[0xFF; 99])))
    }
}

/// Walks on from where a cursor stands, and must see these rows and then the end.
fn assert_walk(cursor: &mut impl Cursor, direction: Direction, expected: &[Row], context: &str) {
    let mut seen = Vec::new();
    while let Some(record) = cursor.current() {
        seen.push(row(record));
        cursor.step(direction).unwrap();
    }
    match direction {
        Direction::Forward => {}
        Direction::Reverse => seen.reverse(),
    }
    assert_eq!(seen, expected, "{context}, {direction:?}");
}

#[test]
fn seeks_and_walks_equal_a_btreemap() {
    let (mut clipped, mut segments, mut hidden) = (0, 0, 0);
    for seed in 0..60 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let count = random.random_range(0..150);
        let fixture = Fixture::random(&mut random, count);
        let expected = fixture.expected();
        clipped += fixture.clipped;
        segments += fixture.chain.entries().len();
        hidden += fixture.hidden.len();
        let mut all = fixture.visible.clone();
        all.extend(fixture.hidden.clone());
        for regime in REGIMES {
            let mut cursor = fixture.chain.cursor(regime);
            for _ in 0..40 {
                let (id, side) = any_place(&mut random, &all);
                let place = id.position(side);
                let context = format!("seed {seed}, {regime:?}, {place:?}");
                let split = rows_before(&expected, place);
                for (direction, expected) in [
                    (Direction::Forward, &expected[split..]),
                    (Direction::Reverse, &expected[..split]),
                ] {
                    if random.random() {
                        cursor.approach(place, direction).unwrap();
                    }
                    cursor.seek(place, direction).unwrap();
                    assert_walk(&mut cursor, direction, expected, &context);
                }
            }
        }
    }
    assert!(clipped > 100 && segments > 300 && hidden > 100, "{clipped} {segments} {hidden}");
}

#[test]
fn turning_round_goes_back_over_the_same_records() {
    let mut turns = 0;
    for seed in 100..140 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let fixture = Fixture::random(&mut random, 120);
        let expected = fixture.expected();
        for regime in REGIMES {
            let mut cursor = fixture.chain.cursor(regime);
            for _ in 0..30 {
                let (id, side) = any_place(&mut random, &fixture.visible);
                let split = rows_before(&expected, id.position(side));
                let mut direction = Direction::Forward;
                cursor.seek(id.position(side), direction).unwrap();
                let mut at = Some(split).filter(|at| *at < expected.len());
                for _ in 0..60 {
                    let context = format!("seed {seed}, {regime:?} from {id:?} {side:?}");
                    assert_eq!(
                        cursor.current().map(row).as_ref(),
                        at.map(|at| &expected[at]),
                        "{context}"
                    );
                    let Some(stands) = at else { break };
                    if random.random_range(0..3) == 0 {
                        turns += 1;
                        direction = match direction {
                            Direction::Forward => Direction::Reverse,
                            Direction::Reverse => Direction::Forward,
                        };
                    }
                    cursor.step(direction).unwrap();
                    at = match direction {
                        Direction::Forward => Some(stands + 1).filter(|at| *at < expected.len()),
                        Direction::Reverse => stands.checked_sub(1),
                    };
                }
            }
        }
    }
    assert!(turns > 5000, "{turns} turns");
}

#[test]
fn gets_equal_a_btreemap() {
    let (mut found, mut missed) = (0, 0);
    for seed in 200..230 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let fixture = Fixture::random(&mut random, 120);
        let mut all = fixture.visible.clone();
        all.extend(fixture.hidden.clone());
        for _ in 0..200 {
            let (id, _) = any_place(&mut random, &all);
            let at = Sequence(random.random_range(0..=121));
            let regime = REGIMES[random.random_range(0..2)];
            let expected = fixture.visible.range((id.clone(), Reverse(at))..).next();
            let expected = expected.filter(|((other, _), _)| *other == id).map(|((_, s), _)| s.0);
            let seen = fixture.chain.get(Key::new(id.collection(), id.id()), at, regime).unwrap();
            assert_eq!(seen.map(|r| r.sequence()), expected, "seed {seed}, {id:?} at {at}");
            match expected {
                Some(_) => found += 1,
                None => missed += 1,
            }
        }
    }
    assert!(found > 500 && missed > 500, "{found} found, {missed} missed");
}

/// Three segments of one collection: a to c, d to f, g to i.
fn three(folder: &Folder) -> Vec<ChainEntry> {
    let mut sequence = 0;
    let entry = |ids: &&[u8]| {
        let part: Rows = ids
            .iter()
            .map(|id| {
                sequence += 1;
                ((key(5, &[*id]), Reverse(Sequence(sequence))), Kind::Put)
            })
            .collect();
        let (first, last) = (key(5, &ids[..1]), key(5, &ids[ids.len() - 1..]));
        ChainEntry::new(first, Bound::Own, last, Bound::Own, folder.seal(&part))
    };
    [&b"abc"[..], b"def", b"ghi"].iter().map(entry).collect()
}

#[test]
fn segments_are_opened_when_a_walk_comes_to_them() {
    let folder = Folder::new();
    let chain = Arc::new(Chain::new(three(&folder)));
    let open = || -> Vec<_> { chain.entries().iter().map(|e| e.segment().is_open()).collect() };
    let mut cursor = chain.cursor(Regime::Mapped);
    assert!(cursor.current().is_none());
    let d = key(5, b"d");
    let beyond = key(5, b"j");
    cursor.seek(beyond.position(Side::Before), Direction::Forward).unwrap();
    assert!(cursor.current().is_none());
    assert_eq!(open(), [false; 3]);
    cursor.approach(d.position(Side::Before), Direction::Forward).unwrap();
    assert_eq!(open(), [false, true, false]);
    cursor.seek(d.position(Side::Before), Direction::Forward).unwrap();
    for id in [b"d", b"e", b"f"] {
        assert_eq!(cursor.current().unwrap().id(), id);
        assert_eq!(open(), [false, true, false]);
        cursor.step(Direction::Forward).unwrap();
    }
    assert_eq!(cursor.current().unwrap().id(), b"g");
    assert_eq!(open(), [false, true, true]);
}

#[test]
fn an_entry_without_a_record_in_its_range_is_passed() {
    let folder = Folder::new();
    let [a, d, g] = <[_; 3]>::try_from(three(&folder)).unwrap();
    let segment = Arc::clone(d.segment());
    // Between "d" and "e" the segment has nothing.
    let (first, last) = (key(5, b"d\0"), key(5, b"dz"));
    let nothing = ChainEntry::new(first, Bound::Clipped, last, Bound::Clipped, segment);
    let chain = Arc::new(Chain::new(vec![a, nothing, g]));
    for regime in REGIMES {
        let mut cursor = chain.cursor(regime);
        for (id, direction, expected) in [
            (b"c", Direction::Forward, &b"cghi"[..]),
            (b"d", Direction::Forward, b"ghi"),
            (b"g", Direction::Reverse, b"gcba"),
            (b"e", Direction::Reverse, b"cba"),
        ] {
            let key = key(5, id);
            let side = match direction {
                Direction::Forward => Side::Before,
                Direction::Reverse => Side::After,
            };
            cursor.seek(key.position(side), direction).unwrap();
            let mut seen = Vec::new();
            while let Some(record) = cursor.current() {
                seen.extend_from_slice(record.id());
                cursor.step(direction).unwrap();
            }
            assert_eq!(seen, expected, "{direction:?} from {key:?}");
        }
    }
}

#[test]
fn a_merge_goes_through_a_chain() {
    struct OneChain(Arc<Chain>);
    impl Runs for OneChain {
        type Cursor = ChainCursor<SegmentCursor>;

        fn cursors(&self, take: &mut impl FnMut(Self::Cursor)) -> Result<()> {
            take(self.0.cursor(Regime::Mapped));
            Ok(())
        }

        fn file(&self, run: usize) -> PathBuf {
            PathBuf::from(format!("run {run}"))
        }
    }
    let folder = Folder::new();
    let chain = Arc::new(Chain::new(three(&folder)));
    let scan = || Merge::new(OneChain(Arc::clone(&chain)), Range::all(COLLECTION), Sequence(8));
    let id = |row: Result<Record>| row.unwrap().id()[0];
    assert_eq!(scan().map(id).collect::<Vec<_>>(), b"abcdefgh", "i is newer");
    assert_eq!(scan().rev().map(id).collect::<Vec<_>>(), b"hgfedcba");
}

#[test]
fn damage_is_an_error_of_the_step_that_meets_it() {
    let folder = Folder::new();
    let entries = three(&folder);
    folder.damage(entries[1].segment());
    let chain = Arc::new(Chain::new(entries));
    for regime in REGIMES {
        let mut cursor = chain.cursor(regime);
        let b = key(5, b"b");
        cursor.seek(b.position(Side::After), Direction::Forward).unwrap();
        assert_eq!(cursor.current().unwrap().id(), b"c");
        let error = cursor.step(Direction::Forward).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    }
}
