//! The fingerprint table costs what its documentation says.

use super::super::fingerprints::{BUCKET_BYTES, TableBuilder};
use super::*;
use crate::format::{BLOCK_BYTES, FingerprintLayout, key_hash};

struct Table {
    layout: FingerprintLayout,
    blocks: Vec<u8>,
}

/// What one lookup looked at.
#[derive(Default)]
struct Cost {
    buckets: u64,
    candidates: u64,
}

impl Table {
    fn new(log_end: u64, ids: u64) -> Self {
        let mut builder = TableBuilder::new(log_end, usize::try_from(ids).unwrap());
        for n in 0..ids {
            let offset = LOG_START + n * ((log_end - LOG_START) / ids / 8 * 8);
            builder.push(key_hash(CollectionId(1), &n.to_be_bytes()), offset);
        }
        let (layout, blocks) = builder.finish(INCARNATION, 8192);
        Self { layout, blocks }
    }

    fn look_up(&self, n: u64, mut found: impl FnMut(u64)) -> Cost {
        let hash = key_hash(CollectionId(1), &n.to_be_bytes());
        let mut cost = Cost::default();
        let mut number = self.layout.bucket_of(hash);
        loop {
            let (block, at) = FingerprintLayout::place_of(number);
            let start = block as usize * BLOCK_BYTES + at;
            let bucket: &[u8; BUCKET_BYTES] =
                self.blocks[start..start + BUCKET_BYTES].try_into().unwrap();
            let matches = self.layout.matches(bucket, hash);
            cost.buckets += 1;
            cost.candidates += u64::from(matches.slots.count_ones());
            for slot in (0..16).filter(|slot| matches.slots & 1 << slot != 0) {
                found(self.layout.offset_in(bucket, slot));
            }
            if matches.is_last {
                return cost;
            }
            number = self.layout.next_bucket(number);
        }
    }
}

const IDS: u64 = 65_000;
const LOOKUPS: u64 = 100_000;

/// Mean buckets and false positives of lookups of absent ids, in thousandths.
fn measure(log_end: u64) -> (u64, u64) {
    let table = Table::new(log_end, IDS);
    let bytes = table.blocks.len() as u64;
    assert!(bytes * 10 <= IDS * 55 || table.layout.place_bits == 40, "5.5 bytes an id: {bytes}");
    let mut total = Cost::default();
    for n in IDS..IDS + LOOKUPS {
        let cost = table.look_up(n, |_| {});
        total.buckets += cost.buckets;
        total.candidates += cost.candidates;
    }
    (total.buckets * 1000 / LOOKUPS, total.candidates * 1000 / LOOKUPS)
}

#[test]
fn absent_ids_cost_about_a_cache_line_and_few_records() {
    for (log_end, thousandths_max) in [(11 << 20, 10), (63 << 20, 37), (127 << 20, 74)] {
        let (buckets, candidates) = measure(log_end);
        println!("log of {log_end}: {buckets}/1000 buckets, {candidates}/1000 false positives");
        assert!(buckets <= 1400, "{buckets} thousandths of a bucket");
        assert!(candidates <= thousandths_max, "{candidates} thousandths at {log_end}");
    }
    let (buckets, candidates) = measure(1 << 30);
    println!("wide: {buckets}/1000 buckets, {candidates}/1000 false positives");
    assert!(buckets <= 1900 && candidates == 0, "{buckets}, {candidates}");
}

#[test]
fn every_id_is_found_at_its_place_in_tables_of_every_size() {
    for ids in (1..200).chain([755, 756, 757, 5000]) {
        for log_end in [1 << 20, 1 << 30] {
            let table = Table::new(log_end, ids);
            for n in 0..ids {
                let offset = LOG_START + n * ((log_end - LOG_START) / ids / 8 * 8);
                let mut seen = false;
                table.look_up(n, |found| seen |= found == offset);
                assert!(seen, "{n} of {ids} in a log of {log_end}");
            }
        }
    }
}

#[test]
fn a_narrow_slot_is_a_fingerprint_above_a_place() {
    let mut builder = TableBuilder::new(4176, 2);
    builder.push(0x8000_0000_003A_BCDE, 4096);
    builder.push(0x0000_0000_003A_BCDE, 4136);
    let (layout, block) = builder.finish(0x1122_3344_5566_7788, 12_288);
    assert_eq!((layout.buckets, layout.blocks, layout.place_bits), (1, 1, 10));
    let mut expected = vec![0; BLOCK_BYTES];
    expected[..8].copy_from_slice(&[0x2B, 0x52, 0x81, 0x63, 1, 0, 1, 0]);
    expected[64..72].copy_from_slice(&[0x00, 0x7A, 0xF3, 0xEA, 0x05, 0x7A, 0xF3, 0xEA]);
    assert_eq!(block, expected);
}

#[test]
fn a_search_of_the_smallest_table_wraps_round_and_ends() {
    let table = Table::new(1 << 20, 12);
    assert_eq!(table.layout.buckets, 1);
    assert_eq!(table.look_up(1000, |_| {}).buckets, 1);
    let two = Table::new(1 << 20, 13);
    assert_eq!(two.layout.buckets, 2);
    assert_eq!((two.layout.next_bucket(0), two.layout.next_bucket(1)), (1, 0));
}
