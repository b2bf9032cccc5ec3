//! The engine itself, through its public interface: what the cost model is held against.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use engine::{Batch, Collection, Compaction, Database, Durability, Error, Options};
use structures::ids::{ABSENT, hashed, text, wait};
use structures::report::names::{ENGINE, Operation, Store};

/// What 4 MiB of memtable hold.
const RECORDS: usize = 65_536;
const LOOKUPS: usize = 4096;
const ROWS_A_SCAN: usize = 100;
const PUTS: usize = 1000;

/// The BSON document of one field of 100 bytes.
fn document(number: u64) -> Vec<u8> {
    let byte = char::from(b'a' + (number % 26) as u8);
    let field = byte.to_string().repeat(100);
    engine::bson::serialize_to_vec(&engine::bson::doc! { "field0": field }).expect("a string")
}

/// Compaction is called for, so that nothing but the calls that are measured runs.
fn options(memtable_mib: u64) -> Options {
    Options::default()
        .compaction(Compaction::Manual)
        .level0_runs(64)
        .durability(Durability::BUFFERED)
        .memory_budget(memtable_mib << 21)
        .memtable_bytes(memtable_mib << 20)
}

fn open(path: &Path, options: Options) -> Result<(Database, Collection), Error> {
    let database = Database::open(path, options)?;
    let collection = database.collection("users")?;
    Ok((database, collection))
}

fn load(database: &Database, collection: &Collection, records: usize) -> Result<(), Error> {
    let all: Vec<u64> = (0..records as u64).collect();
    for numbers in all.chunks(1024) {
        let mut batch = Batch::new();
        for number in numbers {
            batch.put_raw(collection, &*text(*number), &document(*number))?;
        }
        database.write(batch)?;
    }
    database.sync()?;
    database.wait_idle()
}

fn ids(records: usize) -> (Vec<String>, Vec<String>) {
    // In the order of their hashes' low bits, which is no order of anything that is stored.
    let mut present: Vec<u64> = (0..records as u64).collect();
    present.sort_unstable_by_key(|number| hashed(*number).reverse_bits());
    let absent = (0..records as u64).map(|number| text(ABSENT + number));
    (present.iter().map(|number| text(*number)).collect(), absent.collect())
}

/// Calls in turn with the next id. An iteration has so many operations, in so many calls.
fn bench(
    criterion: &mut Criterion,
    name: BenchmarkId,
    (operations, calls): (usize, usize),
    ids: &[String],
    mut call: impl FnMut(&str) -> usize,
) {
    let mut group = common::group(criterion, ENGINE, operations);
    let mut at = 0;
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            for _ in 0..calls {
                std::hint::black_box(call(&ids[at % ids.len()]));
                wait();
                at += 1;
            }
        });
    });
    group.finish();
}

/// Gets and scans in a database that holds the numbers below `records`.
fn reads(
    criterion: &mut Criterion,
    (database, collection): &(Database, Collection),
    records: usize,
    store: Store,
) {
    let (present, absent) = ids(records);
    // The figures of several segments depend on how many there are.
    let stats = database.stats();
    let segments = stats.level0_runs + stats.level1_segments;
    let name = |operation: Operation| BenchmarkId::new(operation.name(), segments);
    let get = |id: &str| {
        let document = collection.get(id).expect("a get");
        document.map_or(0, |document| usize::from(document.as_bytes()[20]))
    };
    bench(criterion, name(Operation::Hit(store)), (LOOKUPS, LOOKUPS), &present, get);
    bench(criterion, name(Operation::Miss(store)), (LOOKUPS, LOOKUPS), &absent, get);
    let scans = LOOKUPS / ROWS_A_SCAN;
    let counts = (scans * ROWS_A_SCAN, scans);
    bench(criterion, name(Operation::Step(store)), counts, &present, |id| {
        let rows = collection.scan(id..).expect("a scan").take(ROWS_A_SCAN);
        rows.map(|row| usize::from(row.expect("a row").1.as_bytes()[20])).sum()
    });
}

fn writes(criterion: &mut Criterion, path: &Path) -> Result<(), Error> {
    let name = |operation: Operation| BenchmarkId::new(operation.name(), 0);
    let (database, collection) = open(path, options(64))?;
    // More than are put, so that every id is new.
    let (new, _) = ids(12 * RECORDS);
    let value = document(1);
    let put = |id: &str| {
        collection.put_raw(id, &value).expect("a put");
        0
    };
    bench(criterion, name(Operation::PutBuffered), (PUTS, PUTS), &new, put);
    let mut group = common::group(criterion, ENGINE, 1);
    let mut at = 0;
    group.bench_function(name(Operation::Sync), |bencher| {
        bencher.iter_custom(|iterations| {
            let mut time = Duration::ZERO;
            for _ in 0..iterations {
                put(&new[at % new.len()]);
                at += 1;
                let start = Instant::now();
                database.sync().expect("a sync");
                time += start.elapsed();
            }
            time
        });
    });
    group.finish();
    database.close()?;
    let (database, collection) = open(path, options(64).durability(Durability::Durable))?;
    bench(criterion, name(Operation::PutDurable), (1, 1), &new, |id| {
        collection.put_raw(id, &value).expect("a put");
        0
    });
    database.close()
}

fn main() -> Result<(), Error> {
    let mut criterion = common::criterion();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);

    let opened = open(&path("one"), options(16))?;
    load(&opened.0, &opened.1, RECORDS)?;
    reads(&mut criterion, &opened, RECORDS, Store::Memtable);
    opened.0.close()?;
    // Closed, the log is one sealed segment.
    let opened = open(&path("one"), options(16))?;
    reads(&mut criterion, &opened, RECORDS, Store::Segment);
    opened.0.close()?;

    let opened = open(&path("several"), options(4))?;
    load(&opened.0, &opened.1, 8 * RECORDS)?;
    opened.0.close()?;
    let opened = open(&path("several"), options(4))?;
    reads(&mut criterion, &opened, 8 * RECORDS, Store::Segments);
    opened.0.compact()?;
    let stats = opened.0.stats();
    assert_eq!((stats.level0_runs, stats.level1_segments > 0), (0, true), "all is in level 1");
    reads(&mut criterion, &opened, 8 * RECORDS, Store::Level1);
    opened.0.close()?;

    writes(&mut criterion, &path("writes"))?;
    criterion.final_summary();
    Ok(())
}
