//! What needs no clock: bytes, and false positives. Counted from seeded data, the same every time.

use engine::internals::{FingerprintTable, key_hash};

use crate::allocation::bytes_of;
use crate::ids::{Probes, encoded};
use crate::memtable::{Candidate, filled};
use crate::records::{RECORD_BYTES, Records};
use crate::segment::{
    BinaryFuse8, BinaryFuse16, Dense, Filtered, Fingerprints, InPage, Lookup, Shape, SortedFile,
    Sparse,
};
use xorf::Filter;

use super::names::records_of;

/// Absent ids that false positives are counted with.
const ABSENT: usize = 1 << 20;

/// Bytes that a candidate allocates for each of `size` records. Needs the counting allocator.
pub(super) fn memtable_bytes<C: Candidate>(records: &'static Records, size: usize) -> f64 {
    let (candidate, bytes) = bytes_of(|| filled::<C>(records, size, size));
    drop(candidate);
    bytes as f64 / size as f64
}

/// What a way of lookup takes and how often it is wrong at first.
pub(super) struct Precision {
    /// Bytes an id.
    pub(super) bytes: f64,
    /// Records that an absent id makes it read, on average; none says nothing of it.
    pub(super) false_positives: Option<f64>,
    /// Buckets that an absent id makes it look at, on average.
    pub(super) buckets: Option<f64>,
}

/// Of a fingerprint table over a file's records.
pub(super) fn table<const BUCKET: usize>(shape: Shape, hashes: &[u64]) -> Precision {
    let table = Fingerprints::<BUCKET>::new(shape, hashes);
    let (mut read, mut buckets) = (0u64, 0u64);
    for id in Probes::absent(ABSENT, 6).ids() {
        let hash = key_hash(id);
        table.find_place(hash, |_| {
            read += 1;
            false
        });
        buckets += u64::from(table.buckets_passed(hash));
    }
    Precision {
        bytes: table.bytes() as f64 / hashes.len() as f64,
        false_positives: Some(read as f64 / ABSENT as f64),
        buckets: Some(buckets as f64 / ABSENT as f64),
    }
}

/// Of what tables are compared with, in the order of `names::OTHERS`.
pub(super) fn others(file: &SortedFile, hashes: &[u64]) -> Option<Vec<Precision>> {
    let of = |lookup: &dyn Lookup, false_positives| Precision {
        bytes: lookup.bytes() as f64 / file.len() as f64,
        false_positives,
        buckets: None,
    };
    let sparse = || Sparse::new(file, InPage::Binary);
    let fuse8 = BinaryFuse8::try_from(hashes).ok()?;
    let fuse16 = BinaryFuse16::try_from(hashes).ok()?;
    let (in8, in16) = (passing(&fuse8), passing(&fuse16));
    Some(vec![
        of(&Sparse::new(file, InPage::Linear), None),
        of(&sparse(), None),
        of(&Filtered::new(fuse8.clone(), sparse()), Some(in8)),
        of(&Filtered::new(fuse16, sparse()), Some(in16)),
        of(&Dense::new(file), None),
        of(&Filtered::new(fuse8, Dense::new(file)), Some(in8)),
    ])
}

/// The share of absent ids that a filter lets pass.
fn passing(filter: &impl Filter<u64>) -> f64 {
    let absent = Probes::absent(ABSENT, 6);
    let passed = absent.ids().iter().filter(|id| filter.contains(&key_hash(&id[..]))).count();
    passed as f64 / ABSENT as f64
}

/// What a segment size does to the engine's table.
pub(super) struct OfSize {
    pub(super) records: usize,
    pub(super) place_bits: u8,
    pub(super) fingerprint_bits: u32,
    pub(super) slot_bytes: usize,
    /// Bytes an id.
    pub(super) bytes: f64,
    /// By the table's arithmetic: used slots looked at, each wrong once in 2^bits.
    pub(super) expected: f64,
    /// Counted.
    pub(super) false_positives: f64,
}

impl OfSize {
    /// Of a full segment of 100-byte documents.
    pub(super) fn count(mib: usize) -> Self {
        let records = records_of(mib);
        let ids = (0..records).map(|n| (key_hash(&encoded(n as u64)), Records::offset(n)));
        let table = FingerprintTable::build((records + 1) as u64 * RECORD_BYTES as u64, ids);
        let place_bits = table.place_bits();
        let slot_bytes = table.slot_bytes();
        // A wide slot has room for more, and the format takes 24.
        let fingerprint_bits = if slot_bytes == 4 { 32 - u32::from(place_bits) } else { 24 };
        let mut read = 0u64;
        for id in Probes::absent(ABSENT, 7).ids() {
            table.find(key_hash(id), |_| {
                read += 1;
                false
            });
        }
        // Three quarters of the slots of a bucket, and 1.3 buckets a search: as many as there are
        // slots in a bucket, nearly.
        let slots = 0.75 * 1.3 * (64 / slot_bytes) as f64;
        Self {
            records,
            place_bits,
            fingerprint_bits,
            slot_bytes,
            bytes: table.blocks().len() as f64 / records as f64,
            expected: slots / f64::from(fingerprint_bits).exp2(),
            false_positives: read as f64 / ABSENT as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arithmetic of the engine's documentation, within a tenth.
    #[test]
    fn a_tables_figures_are_near_its_arithmetic() {
        let hashes: Vec<u64> = (0..100_000).map(|n| key_hash(&encoded(n))).collect();
        let shape = Shape { fingerprint_bits: 8, ..Shape::ENGINE };
        let Precision { bytes, false_positives, buckets } = table::<64>(shape, &hashes);
        let near = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 0.1;
        assert!(near(bytes, 64.0 / 12.0), "{bytes} bytes an id");
        assert!(near(buckets.unwrap(), 1.3), "{buckets:?} buckets");
        let expected = 0.75 * 1.3 * 16.0 / 256.0;
        assert!(near(false_positives.unwrap(), expected), "{false_positives:?}");
    }

    #[test]
    fn a_size_near_the_limit_of_narrow_slots_has_8_bits() {
        let count = OfSize::count(8);
        assert_eq!((count.place_bits, count.fingerprint_bits, count.slot_bytes), (20, 12, 4));
        assert!((count.false_positives / count.expected - 1.0).abs() < 0.1);
    }
}
