//! Logs on disk, checked in one bucket and in several.

use std::collections::BTreeMap;

use super::super::entry::{Actor, Call, Entry, EntryWriter, Interval, Met};
use super::super::mismatch::Kind;
use super::*;
use crate::workload::InsertOrder;

const FORMAT: KeyFormat = KeyFormat { order: InsertOrder::Ordered, zero_padding: 3 };
const KEYS: u64 = 200;

/// A load of `KEYS` records with their own numbers as values, an update of each, a read of each,
/// and a scan of all of them; `falsify` may change or remove an entry of the clients.
fn kinds(
    buckets: u64,
    falsify: impl Fn(Entry, &mut Vec<u64>) -> Option<Entry>,
) -> Vec<(Kind, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["load", "client"].map(|name| folder.path().join(name)).to_vec();
    let mut load = EntryWriter::create(&paths[0], 1 << 10).unwrap();
    let mut client = EntryWriter::create(&paths[1], 1 << 10).unwrap();
    let mut append = |entry: Entry, mut content: Vec<u64>| {
        if let Some(entry) = falsify(entry, &mut content) {
            client.append(&entry, &content).unwrap();
        }
    };
    let actor = Actor(0);
    for key in 0..KEYS {
        let loaded = Entry::Write { actor, key, interval: Interval { start: 0, end: 1 } };
        load.append(&loaded, &[0, key, 1, key]).unwrap();
        let interval = Interval { start: 10 * key + 10, end: 10 * key + 12 };
        append(Entry::Write { actor, key, interval }, vec![1, KEYS + key]);
        let interval = Interval { start: 10 * key + 14, end: 10 * key + 16 };
        let (met, call) = (Met::Whole, Call::Read);
        append(Entry::Observation { actor, key, interval, met, call }, vec![key, KEYS + key]);
    }
    append(Entry::ScanBegin { actor, key: 0, limit: u64::MAX, start: 5_000 }, vec![]);
    for key in 0..KEYS {
        append(Entry::ScanRow { key, met: Met::Whole, end: 5_001 + key }, vec![key, KEYS + key]);
    }
    append(Entry::ScanEnd { returned: Some(KEYS), end: 6_000 }, vec![]);
    let field_writes = 3 * KEYS;
    load.finish().unwrap();
    client.finish().unwrap();
    let inserted = (0..KEYS).map(|key| Inserted { key, answered: 1 }).collect();
    let logs = Logs { paths, keys: FORMAT, inserted, field_writes };
    let tally = checked(logs, folder.path(), buckets).unwrap();
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 2, "the buckets' files are gone");
    BTreeMap::into_iter(tally.kinds).collect()
}

#[test]
fn whatever_the_number_of_buckets_the_verdict_is_the_same() {
    for buckets in [1, 2, 7, 512] {
        assert_eq!(kinds(buckets, |entry, _| Some(entry)), [], "{buckets}");
        for wrong in [0, 57, KEYS - 1] {
            let row = kinds(buckets, |entry, content| {
                if matches!(entry, Entry::ScanRow { key, .. } if key == wrong) {
                    content[1] = wrong;
                }
                Some(entry)
            });
            assert_eq!(row, [(Kind::Stale, 1)], "{buckets} {wrong}");
            let read = kinds(buckets, |entry, _| match entry {
                Entry::Observation { key, .. } if key == wrong => None,
                Entry::Write { key, .. } if key == wrong => None,
                entry => Some(entry),
            });
            assert_eq!(read, [(Kind::Unwritten, 1)], "the row's value: {buckets} {wrong}");
            let skipped = kinds(buckets, |entry, _| match entry {
                Entry::ScanRow { key, .. } if key == wrong => None,
                Entry::ScanEnd { end, .. } => {
                    Some(Entry::ScanEnd { returned: Some(KEYS - 1), end })
                }
                entry => Some(entry),
            });
            assert_eq!(skipped, [(Kind::Skipped, 1)], "{buckets} {wrong}");
        }
    }
}

#[test]
fn a_buckets_writes_stay_below_the_bound() {
    for field_writes in [0, 1, 100_000, 10_000_000, 100_000_000] {
        let buckets = bucket_count(field_writes);
        let each = field_writes.div_ceil(buckets) * size_of::<Write>() as u64;
        assert!(each <= BUCKET_BYTES + size_of::<Write>() as u64, "{field_writes}: {each}");
    }
    assert_eq!(bucket_count(u64::MAX), BUCKETS_MAX);
    let mut counts = [0_u32; 7];
    (0..70_000).for_each(|key| counts[bucket_of(key, 7)] += 1);
    assert!(counts.iter().all(|count| (9_000..11_000).contains(count)), "{counts:?}");
}
