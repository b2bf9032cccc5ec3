//! Lookups in a segment: fingerprint tables of several shapes, sparse and dense indexes, filters.

mod common;

use criterion::Criterion;
use structures::ids::Probes;
use structures::report::names::{SEGMENT_SIZES, SHAPES, segment_group};
use structures::segment::{
    BinaryFuse8, BinaryFuse16, Dense, Filtered, Fingerprints, InPage, Lookup, Shape, SortedFile,
    Sparse,
};

const LOOKUPS: usize = 8192;
/// So few that all they touch stays in the first two caches.
const WARM_IDS: usize = 1024;
const COLD_IDS: usize = 1 << 18;

struct Load {
    file: SortedFile,
    hashes: Vec<u64>,
    probes: Vec<(&'static str, Probes)>,
}

fn lookups(criterion: &mut Criterion, load: &Load, name: &str, lookup: &impl Lookup) {
    for (what, probes) in &load.probes {
        let mut group = common::group(criterion, &segment_group(what, load.file.len()), LOOKUPS);
        let mut first = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                probes.each(first, LOOKUPS, |id| {
                    lookup.find(&load.file, id).map_or(0, |record| record as u64)
                });
                first += LOOKUPS;
            });
        });
        group.finish();
    }
}

fn shape<const BUCKET: usize>(criterion: &mut Criterion, load: &Load, name: &str, shape: Shape) {
    lookups(criterion, load, name, &Fingerprints::<BUCKET>::new(shape, &load.hashes));
}

fn tables(criterion: &mut Criterion, load: &Load) {
    for (name, bucket_bytes, wanted) in SHAPES {
        match bucket_bytes {
            32 => shape::<32>(criterion, load, name, wanted),
            64 => shape::<64>(criterion, load, name, wanted),
            _ => shape::<128>(criterion, load, name, wanted),
        }
    }
}

fn others(criterion: &mut Criterion, load: &Load) {
    let sparse = |in_page| Sparse::new(&load.file, in_page);
    lookups(criterion, load, "sparse index, linear in the page", &sparse(InPage::Linear));
    lookups(criterion, load, "sparse index, binary in the page", &sparse(InPage::Binary));
    let fuse8 = BinaryFuse8::try_from(&load.hashes).expect("key hashes differ");
    let fuse16 = BinaryFuse16::try_from(&load.hashes).expect("key hashes differ");
    let filtered = Filtered::new(fuse8.clone(), sparse(InPage::Binary));
    lookups(criterion, load, "binary fuse 8 + sparse, binary", &filtered);
    let filtered = Filtered::new(fuse16, sparse(InPage::Binary));
    lookups(criterion, load, "binary fuse 16 + sparse, binary", &filtered);
    lookups(criterion, load, "dense index", &Dense::new(&load.file));
    let filtered = Filtered::new(fuse8, Dense::new(&load.file));
    lookups(criterion, load, "binary fuse 8 + dense", &filtered);
}

fn main() {
    let mut criterion = common::criterion();
    for size in SEGMENT_SIZES {
        let file = SortedFile::new(size);
        let hashes = file.hashes();
        let cold = [
            ("hit, cold", Probes::present(size, COLD_IDS, 2)),
            ("miss, cold", Probes::absent(COLD_IDS, 2)),
        ];
        let warm = [
            ("hit, warm", Probes::present(size, WARM_IDS, 3)),
            ("miss, warm", Probes::absent(WARM_IDS, 3)),
        ];
        if size == SEGMENT_SIZES[0] {
            let load = Load { file, hashes, probes: [cold, warm].concat() };
            tables(&mut criterion, &load);
            others(&mut criterion, &load);
        } else {
            let load = Load { file, hashes, probes: cold.to_vec() };
            // A place of 24 bits is the least that names ten million records.
            let large = Shape { place_bits: 24, fingerprint_bits: 8, ..Shape::ENGINE };
            shape::<64>(&mut criterion, &load, "fingerprints, 8 bits", large);
            shape::<64>(&mut criterion, &load, "fingerprints, wide slots", Shape::WIDE);
            others(&mut criterion, &load);
        }
    }
    criterion.final_summary();
}
