//! Lookups in a segment: fingerprint tables of several shapes, sparse and dense indexes, filters.

mod common;

use criterion::Criterion;
use structures::ids::Probes;
use structures::report::names::{
    LARGE_SHAPES, LOOKUPS, OTHERS, SEGMENT_SIZES, SHAPES, segment_group,
};
use structures::segment::{
    BinaryFuse8, BinaryFuse16, Dense, Filtered, Fingerprints, InPage, Lookup, Shape, SortedFile,
    Sparse,
};

const LOOKUPS_AN_ITERATION: usize = 8192;
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
        let mut group =
            common::group(criterion, &segment_group(what, load.file.len()), LOOKUPS_AN_ITERATION);
        let mut first = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                probes.each(first, LOOKUPS_AN_ITERATION, |id| {
                    lookup.find(&load.file, id).map_or(0, |record| record as u64)
                });
                first += LOOKUPS_AN_ITERATION;
            });
        });
        group.finish();
    }
}

fn shape<const BUCKET: usize>(criterion: &mut Criterion, load: &Load, name: &str, shape: Shape) {
    lookups(criterion, load, name, &Fingerprints::<BUCKET>::new(shape, &load.hashes));
}

fn tables(criterion: &mut Criterion, load: &Load, shapes: &[(&str, usize, Shape)]) {
    for &(name, bucket_bytes, wanted) in shapes {
        match bucket_bytes {
            32 => shape::<32>(criterion, load, name, wanted),
            64 => shape::<64>(criterion, load, name, wanted),
            _ => shape::<128>(criterion, load, name, wanted),
        }
    }
}

fn others(criterion: &mut Criterion, load: &Load) {
    let [linear, binary, fuse8_sparse, fuse16_sparse, dense, fuse8_dense] = OTHERS;
    let sparse = |in_page| Sparse::new(&load.file, in_page);
    lookups(criterion, load, linear, &sparse(InPage::Linear));
    lookups(criterion, load, binary, &sparse(InPage::Binary));
    let fuse8 = BinaryFuse8::try_from(&load.hashes).expect("key hashes differ");
    let fuse16 = BinaryFuse16::try_from(&load.hashes).expect("key hashes differ");
    let filtered = Filtered::new(fuse8.clone(), sparse(InPage::Binary));
    lookups(criterion, load, fuse8_sparse, &filtered);
    let filtered = Filtered::new(fuse16, sparse(InPage::Binary));
    lookups(criterion, load, fuse16_sparse, &filtered);
    lookups(criterion, load, dense, &Dense::new(&load.file));
    lookups(criterion, load, fuse8_dense, &Filtered::new(fuse8, Dense::new(&load.file)));
}

fn main() {
    let mut criterion = common::criterion();
    let [small, large] = SEGMENT_SIZES;
    for size in [small, large] {
        let file = SortedFile::new(size);
        let hashes = file.hashes();
        let cold = [
            (LOOKUPS[0], Probes::present(size, COLD_IDS, 2)),
            (LOOKUPS[1], Probes::absent(COLD_IDS, 2)),
        ];
        let warm = [
            (LOOKUPS[2], Probes::present(size, WARM_IDS, 3)),
            (LOOKUPS[3], Probes::absent(WARM_IDS, 3)),
        ];
        let probes = if size == small { [cold, warm].concat() } else { cold.to_vec() };
        let load = Load { file, hashes, probes };
        tables(&mut criterion, &load, if size == small { &SHAPES } else { &LARGE_SHAPES });
        others(&mut criterion, &load);
    }
    criterion.final_summary();
}
