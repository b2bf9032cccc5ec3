//! Ways to find an id's record among the sorted records of a segment.
//!
//! Every candidate finds records in the same file in memory and compares the record's own id
//! before it answers, so a hit costs the record's first cache line in each.

mod dense;
mod filtered;
mod fingerprints;
mod sorted_file;
mod sparse;

pub use dense::Dense;
pub use filtered::Filtered;
pub use fingerprints::{Fingerprints, Shape, SlotWidth};
pub use sorted_file::{InPage, SortedFile};
pub use sparse::Sparse;

pub use xorf::{BinaryFuse8, BinaryFuse16};

/// Finds records by id.
pub trait Lookup: Send + Sync {
    /// The record of an id, as its number in the file's order.
    fn find(&self, file: &SortedFile, id: &[u8]) -> Option<usize>;

    /// Memory that a lookup may touch, the records' own pages not counted, in bytes.
    fn bytes(&self) -> usize;
}

#[cfg(test)]
mod tests {
    use engine::internals::{FingerprintTable, key_hash};

    use super::*;
    use crate::ids::Probes;

    fn check(name: &str, file: &SortedFile, lookup: &dyn Lookup, present: Probes, absent: Probes) {
        let mut found: Vec<usize> = present
            .ids()
            .iter()
            .map(|id| {
                let record = lookup.find(file, id).unwrap_or_else(|| panic!("{name}: {id:?}"));
                assert_eq!(file.id(record), id, "{name}");
                record
            })
            .collect();
        found.sort_unstable();
        assert!(found.iter().copied().eq(0..file.len()), "{name}: each record once");
        for id in absent.ids() {
            assert_eq!(lookup.find(file, id), None, "{name}: {id:?}");
        }
    }

    #[test]
    fn every_candidate_finds_every_record_and_nothing_else() {
        for len in [1, 25, 26, 27, 5000] {
            let file = SortedFile::new(len);
            let (present, absent) = (Probes::present(len, len, 3), Probes::absent(3000, 3));
            let sparse = |in_page| Sparse::new(&file, in_page);
            let hashes = file.hashes();
            let check = |name, lookup: &dyn Lookup| check(name, &file, lookup, present, absent);
            check("sparse, linear", &sparse(InPage::Linear));
            check("sparse, binary", &sparse(InPage::Binary));
            check("dense", &Dense::new(&file));
            let fuse8 = BinaryFuse8::try_from(&hashes).unwrap();
            check("fuse 8, sparse", &Filtered::new(fuse8.clone(), sparse(InPage::Binary)));
            let fuse16 = BinaryFuse16::try_from(&hashes).unwrap();
            check("fuse 16, sparse", &Filtered::new(fuse16, sparse(InPage::Binary)));
            check("fuse 8, dense", &Filtered::new(fuse8, Dense::new(&file)));
            for shape in [Shape::ENGINE, Shape { fingerprint_bits: 4, ..Shape::ENGINE }] {
                for used_sixteenths in [10, 12, 14, 15] {
                    let shape = Shape { used_sixteenths, ..shape };
                    check("32", &Fingerprints::<32>::new(shape, &hashes));
                    check("64", &Fingerprints::<64>::new(shape, &hashes));
                    check("128", &Fingerprints::<128>::new(shape, &hashes));
                }
            }
            let wide = Fingerprints::<64>::new(Shape::WIDE, &hashes);
            check("wide", &wide);
        }
    }

    /// The copy with parameters writes the engine's bytes when it has the engine's parameters.
    #[test]
    fn the_copy_equals_the_engines_table() {
        for len in [1usize, 11, 12, 13, 756, 757, 20_000] {
            let hashes: Vec<u64> = (0..len as u64).map(|n| key_hash(&n.to_le_bytes())).collect();
            // The copy's places are record numbers from 1 on, the engine's offsets divided by 8.
            let narrow_end = len as u64 * 8 + 8;
            let wide_end = 1 << 30;
            for log_end in [narrow_end, wide_end] {
                let offsets = hashes.iter().enumerate().map(|(n, h)| (*h, (n as u64 + 1) * 8));
                let engine = FingerprintTable::build(log_end, offsets);
                let place_bits = u32::from(engine.place_bits());
                let shape = if engine.slot_bytes() == 4 {
                    Shape { place_bits, fingerprint_bits: 32 - place_bits, ..Shape::ENGINE }
                } else {
                    Shape::WIDE
                };
                let copy = Fingerprints::<64>::new(shape, &hashes);
                assert_eq!(copy.buckets(), engine.buckets(), "{len} ids, log end {log_end}");
                let blocks = |bytes: &[u8]| -> Vec<Vec<u8>> {
                    bytes.chunks(4096).map(|block| block[64..].to_vec()).collect()
                };
                assert_eq!(blocks(copy.blocks()), blocks(engine.blocks()));
                for (n, hash) in hashes.iter().enumerate() {
                    let offset = (n as u64 + 1) * 8;
                    assert_eq!(engine.find(*hash, |found| found == offset), Some(offset));
                    assert_eq!(copy.find_place(*hash, |record| record == n), Some(n));
                }
                let (mut seen, mut seen_by_engine) = (Vec::new(), Vec::new());
                for n in len as u64..len as u64 + 1000 {
                    let hash = key_hash(&n.to_le_bytes());
                    assert_eq!(
                        copy.find_place(hash, |r| {
                            seen.push(r);
                            false
                        }),
                        None
                    );
                    let keep = |offset| {
                        seen_by_engine.push(offset as usize / 8 - 1);
                        false
                    };
                    assert_eq!(engine.find(hash, keep), None);
                }
                assert_eq!(seen, seen_by_engine, "the same false positives");
            }
        }
    }
}
