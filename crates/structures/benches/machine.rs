//! What the machine charges: cache misses, system calls, and bytes. The cost model's unit prices.

mod common;

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use criterion::Criterion;
use parking_lot::Mutex;
use structures::chase::Chase;
use structures::ids::encoded;
use structures::records::RECORD_BYTES;
use structures::report::names::{CHASE_KIB, MACHINE, Price};

const STEPS: usize = 10_000;
const CALLS: usize = 1000;
/// So much is written in a sync's file before it begins again, and so much is zeroed before.
const SYNCED_BYTES: u64 = 8 << 20;

fn bench(criterion: &mut Criterion, price: Price, operations: usize, mut work: impl FnMut()) {
    let mut group = common::group(criterion, MACHINE, operations);
    group.bench_function(price.name(), |bencher| bencher.iter(&mut work));
    group.finish();
}

fn memory(criterion: &mut Criterion) {
    for kib in CHASE_KIB {
        let chase = Chase::new(kib << 10);
        let mut line = 0;
        bench(criterion, Price::Line { kib }, STEPS, || line = chase.walk(line, black_box(STEPS)));
    }
    for bytes in [143, 1100, 4092] {
        let content = vec![7u8; bytes];
        bench(criterion, Price::Checksum { bytes }, 1, || {
            black_box(crc32fast::hash(black_box(&content)));
        });
    }
    for bytes in [RECORD_BYTES, 4096] {
        let (from, mut to) = (vec![7u8; bytes], vec![0u8; bytes]);
        bench(criterion, Price::Copy { bytes }, 1, || {
            to.copy_from_slice(black_box(&from));
            black_box(&to);
        });
    }
    let id = encoded(7);
    bench(criterion, Price::Hash, 1, || {
        black_box(engine::internals::key_hash(black_box(&id)));
    });
}

fn sharing(criterion: &mut Criterion) {
    let shared = Arc::new(7u64);
    bench(criterion, Price::ArcClone, 1, || drop(black_box(Arc::clone(&shared))));
    let swap = ArcSwap::from(shared);
    bench(criterion, Price::VersionLoad, 1, || drop(black_box(swap.load())));
    let lock = Mutex::new(7u64);
    bench(criterion, Price::Lock, 1, || *black_box(&lock).lock() += 1);
}

fn calls(criterion: &mut Criterion, file: &File) {
    let mut record = vec![7u8; RECORD_BYTES];
    let mut at = 0;
    let mut next = |bytes: usize| {
        at = (at + bytes as u64) % SYNCED_BYTES;
        at
    };
    bench(criterion, Price::Pwrite, CALLS, || {
        for _ in 0..CALLS {
            file.write_all_at(&record, next(RECORD_BYTES)).expect("the file can be written");
        }
    });
    let mut page = vec![0; 4096];
    for bytes in [RECORD_BYTES, 4096] {
        bench(criterion, Price::Pread { bytes }, CALLS, || {
            for _ in 0..CALLS {
                let at = next(bytes) / bytes as u64 * bytes as u64;
                file.read_exact_at(&mut page[..bytes], at).expect("the file can be read");
            }
        });
    }
    file.sync_all().expect("the file can be synced");
    let mut group = common::group(criterion, MACHINE, 1);
    group.bench_function(Price::Fdatasync.name(), |bencher| {
        bencher.iter_custom(|iterations| {
            let mut time = Duration::ZERO;
            for _ in 0..iterations {
                record[0] ^= 1;
                file.write_all_at(&record, next(RECORD_BYTES)).expect("the file can be written");
                let start = Instant::now();
                file.sync_data().expect("the file can be synced");
                time += start.elapsed();
            }
            time
        });
    });
    group.finish();
}

fn main() {
    let mut criterion = common::criterion();
    memory(&mut criterion);
    sharing(&mut criterion);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let path = folder.path().join("log");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
    let file = file.expect("a new file");
    // As the log's: zeros that were written and synced ahead.
    let zeros = vec![0; 64 << 10];
    for at in (0..SYNCED_BYTES + (64 << 10)).step_by(zeros.len()) {
        file.write_all_at(&zeros, at).expect("the file can be written");
    }
    file.sync_all().expect("the file can be synced");
    calls(&mut criterion, &file);
    criterion.final_summary();
}
