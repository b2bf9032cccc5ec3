//! Memtables: insert, hit, miss and scan step, with 1, 2 and 16 readers, alone and beside a writer.

mod common;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use structures::drive::{Writer, beside_writer, together};
use structures::each_memtable;
use structures::ids::Probes;
use structures::memtable::{Candidate, filled};
use structures::records::Records;
use structures::report::names::{READERS, memtable_group};

/// What 4 MiB of the engine's memtable hold, and a size at which all structures are out of the
/// second-level cache.
const SIZES: [usize; 2] = [65_536, 1_000_000];
const INSERTS: usize = 50_000;
const LOOKUPS: usize = 16_384;
const ROWS_A_SCAN: usize = 100;
/// Records that a writer may add while readers are measured.
const WRITER_RECORDS: usize = 200_000;

struct Workload {
    records: &'static Records,
    size: usize,
    present: Probes,
    absent: Probes,
}

fn inserts<C: Candidate>(name: &str, criterion: &mut Criterion, load: &Workload) {
    let chunk = load.size.min(INSERTS);
    let mut group = common::group(criterion, &memtable_group("insert", load.size), chunk);
    // Samples go through fills one after the other: their mean is that of a whole fill.
    let mut filling: Option<(C, usize)> = None;
    group.bench_function(BenchmarkId::new(name, 1), |bencher| {
        bencher.iter_custom(|iterations| {
            let mut time = Duration::ZERO;
            for _ in 0..iterations {
                let (candidate, from) = match filling.take() {
                    Some((candidate, from)) if from + chunk <= load.size => (candidate, from),
                    _ => (C::new(load.records, load.size), 0),
                };
                let start = Instant::now();
                for record in from..from + chunk {
                    candidate.insert(record);
                }
                time += start.elapsed();
                filling = Some((candidate, from + chunk));
            }
            time
        });
    });
    group.finish();
}

#[derive(Clone, Copy)]
enum Operation {
    Hit,
    Miss,
    Scan,
}

impl Operation {
    const ALL: [Self; 3] = [Self::Hit, Self::Miss, Self::Scan];

    fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Scan => "scan step",
        }
    }

    /// `count` operations from a place among the probes on.
    fn run<C: Candidate>(self, candidate: &C, load: &Workload, first: usize, count: usize) {
        // A hit ends with the record's header, which a store reads next: some have read it before.
        let get = |id| candidate.get(id).map_or(0, |place| load.records.sequence(place.offset));
        match self {
            Self::Hit => load.present.each(first, count, get),
            Self::Miss => load.absent.each(first, count, get),
            Self::Scan => load.present.each(first, count / ROWS_A_SCAN, |id| {
                let mut sum = 0u64;
                candidate.scan(id, ROWS_A_SCAN, |place| sum = sum.wrapping_add(place.offset));
                sum
            }),
        }
    }
}

fn reads<C: Candidate>(
    name: &str,
    criterion: &mut Criterion,
    group: &str,
    (candidate, load): (&C, &Workload),
    (operation, readers): (Operation, usize),
) {
    let mut group = common::group(criterion, group, LOOKUPS / readers * readers);
    group.bench_function(BenchmarkId::new(name, readers), |bencher| {
        bencher.iter_custom(|iterations| {
            let iterations = usize::try_from(iterations).expect("iterations are few");
            let count = LOOKUPS / readers * iterations;
            let apart = load.present.ids().len() / readers;
            together(readers, |reader| {
                operation.run(candidate, load, reader * apart, black_box(count));
            })
        });
    });
    group.finish();
}

fn alone<C: Candidate>(name: &str, criterion: &mut Criterion, load: &Workload) {
    inserts::<C>(name, criterion, load);
    let candidate: C = filled(load.records, load.size, load.size);
    for operation in Operation::ALL {
        for readers in READERS {
            let group = memtable_group(operation.name(), load.size);
            reads(name, criterion, &group, (&candidate, load), (operation, readers));
        }
    }
}

fn with_a_writer<C: Candidate>(name: &str, criterion: &mut Criterion, load: &Workload) {
    for operation in Operation::ALL {
        for readers in READERS {
            let all = load.size + WRITER_RECORDS;
            let candidate: C = filled(load.records, load.size, all);
            let group = memtable_group(&format!("{} beside a writer", operation.name()), load.size);
            let writer = beside_writer(&candidate, load.size..all, || {
                reads(name, criterion, &group, (&candidate, load), (operation, readers));
            });
            assert_eq!(writer, Writer::WroteOn, "{name}: too few records for the writer");
        }
    }
}

fn main() {
    let mut criterion = common::criterion();
    let records = Records::leak(SIZES[1]);
    for (i, size) in SIZES.into_iter().enumerate() {
        let probes = size.min(1 << 18);
        let (present, absent) = (Probes::present(size, probes, 1), Probes::absent(probes, 1));
        let load = Workload { records, size, present, absent };
        each_memtable!(alone(&mut criterion, &load));
        if i == 0 {
            each_memtable!(with_a_writer(&mut criterion, &load));
        }
    }
    criterion.final_summary();
}
