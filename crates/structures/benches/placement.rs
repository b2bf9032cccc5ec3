//! Where 100-byte documents live: in the log, or with what finds them.

mod common;

use criterion::Criterion;
use structures::ids::Probes;
use structures::placement::{InlineLeaf, Layout, LogPlaced, NodeInline, PlacesLeaf};
use structures::records::Records;
use structures::report::names::{LAYOUTS, PLACEMENT_RECORDS, placement_group};

const LOOKUPS: usize = 8192;
const ROWS_A_SCAN: usize = 100;

fn layout<L: Layout>(criterion: &mut Criterion, name: &str, records: &'static Records) {
    let layout = L::new(records);
    let present = Probes::present(records.len(), records.len().min(1 << 18), 5);
    let mut first = 0;
    let mut group = common::group(criterion, &placement_group("get"), LOOKUPS);
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            present.each(first, LOOKUPS, |id| u64::from(layout.get(id)));
            first += LOOKUPS;
        });
    });
    group.finish();
    let scans = LOOKUPS / ROWS_A_SCAN;
    let mut group = common::group(criterion, &placement_group("scan step"), scans * ROWS_A_SCAN);
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            present.each(first, scans, |id| u64::from(layout.scan(id, ROWS_A_SCAN)));
            first += scans;
        });
    });
    group.finish();
}

fn main() {
    let mut criterion = common::criterion();
    let records = Records::leak(PLACEMENT_RECORDS);
    let [log, node, places, inline] = LAYOUTS;
    layout::<LogPlaced>(&mut criterion, log, records);
    layout::<NodeInline>(&mut criterion, node, records);
    layout::<PlacesLeaf>(&mut criterion, places, records);
    layout::<InlineLeaf>(&mut criterion, inline, records);
    criterion.final_summary();
}
