//! Segment size: what passing segments costs a lookup, and what a size does to the table.

mod common;

use criterion::Criterion;
use engine::internals::{FingerprintTable, Ids, key_hash};
use structures::ids::{Probes, encoded};
use structures::records::{RECORD_BYTES, Records};
use structures::report::names::{
    PASSED, PASSED_GROUP, SEGMENT_MIB, SIZES_GROUP, TOTAL_MIB, records_of,
};

const LOOKUPS: usize = 1024;
/// The records of a segment whose memtable has the default size.
const PASSED_RECORDS: usize = 262_144;

/// Segments of different ids, whose places are in one and the same log: a false positive costs the
/// record that it names, verified, and the record is never the one that is looked for.
struct Level {
    tables: Vec<FingerprintTable>,
    log: &'static Records,
}

impl Level {
    fn new(segments: usize, records: usize, log: &'static Records) -> Self {
        let table = |segment: usize| {
            let ids = (0..records).map(|record| {
                let hash = key_hash(&encoded((segment * records + record) as u64));
                (hash, Records::offset(record))
            });
            FingerprintTable::build((records + 1) as u64 * RECORD_BYTES as u64, ids)
        };
        Self { tables: (0..segments).map(table).collect(), log }
    }

    /// A get that finds nothing in the first `segments`.
    fn pass(&self, segments: usize, id: &[u8]) -> u64 {
        let hash = key_hash(id);
        let found = self.tables[..segments].iter().find_map(|table| {
            table.find(hash, |offset| {
                let (_, checksum) = self.log.verified(offset);
                checksum != 0 && self.log.id_at(offset) == id
            })
        });
        found.unwrap_or(0)
    }
}

fn passes(criterion: &mut Criterion, name: &str, label: &str, level: &Level, segments: usize) {
    let absent = Probes::absent(1 << 16, 4);
    let mut group = common::group(criterion, name, LOOKUPS);
    let mut first = 0;
    group.bench_function(label, |bencher| {
        bencher.iter(|| {
            absent.each(first, LOOKUPS, |id| level.pass(segments, id));
            first += LOOKUPS;
        });
    });
    group.finish();
}

fn main() {
    let mut criterion = common::criterion();
    let largest = SEGMENT_MIB.into_iter().map(records_of).max().unwrap_or(0);
    let log = Records::leak(largest.max(PASSED_RECORDS));
    let level = Level::new(PASSED[PASSED.len() - 1], PASSED_RECORDS, log);
    for segments in PASSED {
        passes(&mut criterion, PASSED_GROUP, &segments.to_string(), &level, segments);
    }
    drop(level);
    for mib in SEGMENT_MIB {
        let segments = TOTAL_MIB / mib;
        let level = Level::new(segments, records_of(mib), log);
        passes(&mut criterion, SIZES_GROUP, &mib.to_string(), &level, segments);
    }
    criterion.final_summary();
}
