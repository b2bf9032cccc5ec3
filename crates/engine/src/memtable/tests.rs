use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::node::{HEIGHT_MAX, Head, Nodes};
use super::*;
use crate::format::Side;

/// The records of a segment: record n, of sequence n + 1, stands at offset 8 n.
#[derive(Default)]
struct Records(Vec<(CollectionId, Vec<u8>, Kind)>);

impl Ids for Records {
    fn id_at(&self, offset: u64) -> &[u8] {
        &self.0[usize::try_from(offset / 8).unwrap()].1
    }
}

impl Records {
    fn entry(&self, n: usize) -> Entry {
        let n64 = n as u64;
        Entry { offset: n64 * 8, sequence: Sequence(n64 + 1), kind: self.0[n].2 }
    }

    fn add(&mut self, memtable: &Memtable, collection: u32, id: &[u8]) -> Result<Entry, Full> {
        let kind = if self.0.len().is_multiple_of(5) { Kind::Delete } else { Kind::Put };
        self.0.push((CollectionId(collection), id.to_vec(), kind));
        let entry = self.entry(self.0.len() - 1);
        memtable.insert(Key::new(CollectionId(collection), id), entry, self).map(|()| entry)
    }
}

/// (collection, id, newest first), as the memtable orders.
type Place = (CollectionId, Vec<u8>, std::cmp::Reverse<Sequence>);
type Model = BTreeMap<Place, Entry>;

fn place(collection: u32, id: &[u8], sequence: u64) -> Place {
    (CollectionId(collection), id.to_vec(), std::cmp::Reverse(Sequence(sequence)))
}

fn key(collection: u32, id: &[u8]) -> Key<'_> {
    Key::new(CollectionId(collection), id)
}

/// Ids that meet every case of the comparison: shorter than the heads, zeros at the end, equal
/// heads.
fn id(random: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let prefix: &[u8] = match random.random_range(0..4) {
        0 => b"",
        1 => b"\x20user",
        2 => b"sixteen bytes...",
        _ => b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    };
    let mut id = prefix.to_vec();
    for _ in 0..random.random_range(0..4) {
        id.push([0, 1, b'a', 0xFF][random.random_range(0..4)]);
    }
    id
}

/// Everything from a seek on, as (collection, id, entry).
fn walk(
    memtable: &Memtable,
    records: &Records,
    position: Position<'_>,
    direction: Direction,
) -> Vec<(CollectionId, Vec<u8>, Entry)> {
    let mut all = Vec::new();
    let mut at = memtable.seek(position, direction, records);
    while let Some(node) = at {
        let (collection, entry) = memtable.entry(node);
        all.push((collection, records.id_at(entry.offset).to_vec(), entry));
        at = memtable.step(node, direction, records);
    }
    all
}

fn flat(model: &Model) -> Vec<(CollectionId, Vec<u8>, Entry)> {
    model.iter().map(|(place, &entry)| (place.0, place.1.clone(), entry)).collect()
}

#[test]
fn random_operations_equal_a_btreemap() {
    for seed in 0..40 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let memtable = Memtable::with_capacity(600);
        let mut records = Records::default();
        let mut model = Model::new();
        for _ in 0..600 {
            let (collection, id) = (random.random_range(1..4), id(&mut random));
            let entry = records.add(&memtable, collection, &id).unwrap();
            model.insert(place(collection, &id, entry.sequence.0), entry);

            let (collection, probe) = (random.random_range(0..5), self::id(&mut random));
            let at = random.random_range(0..=entry.sequence.0);
            let first = place(collection, &probe, at);
            let last = place(collection, &probe, 0);
            let expected = model.range(first..=last).next().map(|(_, &entry)| entry);
            let found = memtable.get(key(collection, &probe), Sequence(at), &records);
            assert_eq!(found, expected, "seed {seed}, {collection} {probe:?} at {at}");
            let newest = place(collection, &probe, u64::MAX);
            let expected =
                model.range(newest..=place(collection, &probe, 0)).next().map(|(_, &e)| e);
            let found = memtable.newest(key(collection, &probe), &records);
            assert_eq!(found, expected, "seed {seed}, {collection} {probe:?}");
        }
        assert_eq!(memtable.len(), model.len());

        let all = flat(&model);
        for _ in 0..200 {
            let (collection, probe) = (random.random_range(0..5), id(&mut random));
            let side = if random.random() { Side::Before } else { Side::After };
            let position = Position { collection: CollectionId(collection), id: &probe, side };
            let split = all.partition_point(|(c, id, _)| {
                match (*c, &id[..]).cmp(&(CollectionId(collection), &probe)) {
                    std::cmp::Ordering::Less => true,
                    std::cmp::Ordering::Equal => side == Side::After,
                    std::cmp::Ordering::Greater => false,
                }
            });
            let forward = walk(&memtable, &records, position, Direction::Forward);
            assert_eq!(forward, all[split..], "seed {seed}, forward from {position:?}");
            let mut reverse = walk(&memtable, &records, position, Direction::Reverse);
            reverse.reverse();
            assert_eq!(reverse, all[..split], "seed {seed}, in reverse from {position:?}");
        }
    }
}

#[test]
fn ids_that_differ_in_zeros_at_the_end_are_different() {
    let memtable = Memtable::with_capacity(10);
    let mut records = Records::default();
    let ids: [&[u8]; 6] = [b"a\0\0", b"a", &[b'a'; 16], b"aaaaaaaaaaaaaaaa\0", b"", b"a\0"];
    let entries = ids.map(|id| records.add(&memtable, 1, id).unwrap());
    for (id, entry) in ids.iter().zip(entries) {
        assert_eq!(memtable.newest(key(1, id), &records), Some(entry), "{id:?}");
        assert_eq!(memtable.newest(key(2, id), &records), None, "{id:?}");
    }
    let start = Position { collection: CollectionId(0), id: b"", side: Side::Before };
    let order = walk(&memtable, &records, start, Direction::Forward);
    let mut sorted = ids.map(<[u8]>::to_vec);
    sorted.sort();
    assert_eq!(order.into_iter().map(|(_, id, _)| id).collect::<Vec<_>>(), sorted);
}

#[test]
fn keys_of_equal_hash_are_told_apart() {
    let memtable = Memtable::with_capacity(100);
    let mut records = Records::default();
    let ids: Vec<_> =
        (0..100).map(|n| format!("a common prefix of more than the heads {n}")).collect();
    let collide = |id| Key { collection: CollectionId(1), id, hash: u64::MAX };
    for (n, id) in ids.iter().enumerate() {
        records.0.push((CollectionId(1), id.clone().into_bytes(), Kind::Put));
        assert_eq!(memtable.newest(collide(id.as_bytes()), &records), None);
        memtable.insert(collide(id.as_bytes()), records.entry(n), &records).unwrap();
    }
    for (n, id) in ids.iter().enumerate() {
        let found = memtable.newest(collide(id.as_bytes()), &records);
        assert_eq!(found, Some(records.entry(n)));
    }
}

#[test]
fn a_full_memtable_refuses_and_stays_as_it_was() {
    for (capacity, ids) in [(0, 1), (1, 1), (64, 64), (1000, 1000), (1000, 3)] {
        let memtable = Memtable::with_capacity(capacity);
        let mut records = Records::default();
        for n in 0..capacity {
            records.add(&memtable, 1, format!("{}", n % ids).as_bytes()).unwrap();
        }
        assert_eq!((memtable.len(), memtable.capacity()), (capacity, capacity));
        let start = Position { collection: CollectionId(0), id: b"", side: Side::Before };
        let before = walk(&memtable, &records, start, Direction::Forward);
        assert_eq!(before.len(), capacity);

        assert_eq!(records.add(&memtable, 1, b"0"), Err(Full));
        assert_eq!(records.add(&memtable, 1, b"another"), Err(Full));
        assert_eq!(walk(&memtable, &records, start, Direction::Forward), before);
        assert_eq!(memtable.newest(key(1, b"another"), &records), None);
        assert_eq!(memtable.len(), capacity);
    }
}

#[test]
fn all_records_fit_however_tall_their_nodes() {
    for capacity in [1, 2, 100] {
        let nodes = Nodes::with_capacity(capacity);
        let entry = Entry { offset: 8, sequence: Sequence(1), kind: Kind::Put };
        for left in (0..capacity).rev() {
            let head = Head::new(CollectionId(1), b"a");
            let (node, height) = nodes.add_id(&head, entry, HEIGHT_MAX, left);
            // Writes to the top level of the last node would be out of bounds.
            for level in 0..height {
                nodes.link(Nodes::HEAD, node, level);
            }
            assert_eq!(nodes.entry(node), entry);
        }
    }
}

#[test]
fn a_record_takes_about_sixty_bytes() {
    let memtable = Memtable::with_capacity(65_536);
    assert!(memtable.bytes() / 65_536 <= 60, "{} bytes", memtable.bytes());
}

/// One writer, and readers that check at each moment that they see every visible record, complete,
/// in order, and nothing that was not written.
#[test]
fn readers_see_whole_records_in_order_while_a_writer_inserts() {
    const RECORDS: usize = if cfg!(debug_assertions) { 3000 } else { 20_000 };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let records = Records(
        (0..RECORDS)
            .map(|n| {
                let id = match n % 3 {
                    0 => format!(" user{:019}", random.random::<u64>()),
                    1 => format!("an id that outlives the heads {}", random.random_range(0..500)),
                    _ => format!("{}", random.random_range(0..100)),
                };
                (CollectionId(random.random_range(1..3)), id.into_bytes(), Kind::Put)
            })
            .collect(),
    );
    let memtable = Memtable::with_capacity(RECORDS);
    let visible = AtomicU64::new(0);
    let start = Position { collection: CollectionId(0), id: b"", side: Side::Before };
    let end = Position { collection: CollectionId(9), id: b"", side: Side::Before };

    let read = |seed| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        loop {
            let at = visible.load(Ordering::Acquire);
            let mut counts = [0; 2];
            for (count, direction, from) in
                [(0, Direction::Forward, start), (1, Direction::Reverse, end)]
            {
                let mut last: Option<Place> = None;
                for (collection, id, entry) in walk(&memtable, &records, from, direction) {
                    let n = usize::try_from(entry.offset / 8).unwrap();
                    assert_eq!(entry, records.entry(n));
                    assert_eq!(collection, records.0[n].0);
                    let here = place(collection.0, &id, entry.sequence.0);
                    if let Some(last) = last {
                        let (low, high) = match direction {
                            Direction::Forward => (&last, &here),
                            Direction::Reverse => (&here, &last),
                        };
                        assert!(low < high, "{low:?} {high:?}");
                    }
                    last = Some(here);
                    counts[count] += u64::from(entry.sequence.0 <= at);
                }
            }
            assert_eq!(counts, [at; 2], "all that is visible, once, both ways");
            for _ in 0..100 {
                let n = random.random_range(0..RECORDS);
                let (collection, id, _) = &records.0[n];
                let found = memtable.get(Key::new(*collection, id), Sequence(at), &records);
                let seen = usize::try_from(at).unwrap();
                let expected = (0..seen)
                    .rev()
                    .find(|&m| records.0[m].0 == *collection && records.0[m].1 == *id);
                assert_eq!(found, expected.map(|m| records.entry(m)));
            }
            if at == RECORDS as u64 {
                return;
            }
        }
    };
    thread::scope(|scope| {
        let readers = [1, 2, 3].map(|seed| scope.spawn(move || read(seed)));
        for n in 0..RECORDS {
            let (collection, id, _) = &records.0[n];
            memtable.insert(Key::new(*collection, id), records.entry(n), &records).unwrap();
            visible.store(n as u64 + 1, Ordering::Release);
            if n.is_multiple_of(64) {
                thread::yield_now();
            }
        }
        for reader in readers {
            reader.join().unwrap();
        }
    });
}
