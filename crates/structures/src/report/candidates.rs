//! The tables that put structures beside each other.

use super::counts::{self, OfSize, Precision};
use super::estimates::{Estimates, Missing};
use super::markdown::{Table, figure, percent, spaced};
use super::names::{
    LARGE_SHAPES, LAYOUTS, LOOKUPS, MEMTABLE_SIZES, OTHERS, PASSED, PASSED_GROUP, READERS,
    SEGMENT_MIB, SEGMENT_SIZES, SHAPES, SIZES_GROUP, TOTAL_MIB, memtable_group, placement_group,
    segment_group,
};
use crate::each_memtable;
use crate::memtable::{Candidate, NAMES};
use crate::placement::{InlineLeaf, Layout, LogPlaced, NodeInline, PlacesLeaf};
use crate::records::Records;
use crate::segment::SortedFile;

const READS: [&str; 3] = ["hit", "miss", "scan step"];

/// A cell for each kind of read and number of readers.
fn reads(
    estimates: &Estimates,
    name: &str,
    records: usize,
    suffix: &str,
) -> Result<Vec<String>, Missing> {
    let mut cells = Vec::new();
    for operation in READS {
        let group = memtable_group(&format!("{operation}{suffix}"), records);
        for readers in READERS {
            cells.push(figure(estimates.ns(&group, name, &readers.to_string())?));
        }
    }
    Ok(cells)
}

fn read_heads() -> Vec<String> {
    READS.iter().flat_map(|read| READERS.map(|readers| format!("{read}, {readers}"))).collect()
}

pub(super) fn memtable(estimates: &Estimates, records: usize) -> Result<String, Missing> {
    fn add<C: Candidate>(_: &str, bytes: &mut Vec<f64>, log: &'static Records, records: usize) {
        bytes.push(counts::memtable_bytes::<C>(log, records));
    }
    let mut bytes = Vec::new();
    let log = Records::leak(records);
    each_memtable!(add(&mut bytes, log, records));

    let mut heads = vec!["structure".to_owned(), "insert".to_owned()];
    heads.extend(read_heads());
    heads.push("bytes an entry".to_owned());
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = Table::new(&heads, 1);
    for (name, bytes) in NAMES.into_iter().zip(bytes) {
        let insert = estimates.ns(&memtable_group("insert", records), name, "1")?;
        let mut cells = vec![name.to_owned(), figure(insert)];
        cells.extend(reads(estimates, name, records, "")?);
        cells.push(figure(bytes));
        table.row(cells);
    }
    Ok(table.finish())
}

pub(super) fn beside_a_writer(estimates: &Estimates) -> Result<String, Missing> {
    let heads = read_heads();
    let heads: Vec<&str> =
        std::iter::once("structure").chain(heads.iter().map(String::as_str)).collect();
    let mut table = Table::new(&heads, 1);
    for name in NAMES {
        let mut cells = vec![name.to_owned()];
        cells.extend(reads(estimates, name, MEMTABLE_SIZES[0], " beside a writer")?);
        table.row(cells);
    }
    Ok(table.finish())
}

pub(super) fn segment(estimates: &Estimates, records: usize) -> Result<String, Missing> {
    let is_small = records == SEGMENT_SIZES[0];
    let lookups = if is_small { &LOOKUPS[..] } else { &LOOKUPS[..2] };
    let shapes = if is_small { &SHAPES[..] } else { &LARGE_SHAPES[..] };
    let file = SortedFile::new(records);
    let hashes = file.hashes();
    let tables = shapes.iter().map(|&(name, bucket, shape)| {
        let precision = match bucket {
            32 => counts::table::<32>(shape, &hashes),
            64 => counts::table::<64>(shape, &hashes),
            _ => counts::table::<128>(shape, &hashes),
        };
        (name, precision)
    });
    let others = counts::others(&file, &hashes)
        .ok_or_else(|| Missing { name: "binary fuse filter".to_owned() })?;
    let mut heads = vec!["lookup"];
    heads.extend(lookups);
    heads.extend(["bytes an id", "records read in vain", "buckets, absent"]);
    let mut table = Table::new(&heads, 1);
    for (name, precision) in tables.chain(OTHERS.into_iter().zip(others)) {
        let Precision { bytes, false_positives, buckets } = precision;
        let mut cells = vec![name.to_owned()];
        for lookup in lookups {
            cells.push(figure(estimates.ns(&segment_group(lookup, records), name, "")?));
        }
        cells.push(figure(bytes));
        cells.push(false_positives.map_or_else(|| "a page".to_owned(), percent));
        cells.push(buckets.map_or_else(String::new, figure));
        table.row(cells);
    }
    Ok(table.finish())
}

pub(super) fn passed(estimates: &Estimates) -> Result<String, Missing> {
    let mut table = Table::new(&["segments passed", "ns", "ns a segment"], 0);
    for segments in PASSED {
        let ns = estimates.ns(PASSED_GROUP, &segments.to_string(), "")?;
        table.row([segments.to_string(), figure(ns), figure(ns / segments as f64)]);
    }
    Ok(table.finish())
}

pub(super) fn sizes(estimates: &Estimates) -> Result<String, Missing> {
    let total = format!("miss in {TOTAL_MIB} MiB, ns");
    let heads = [
        "segment, MiB",
        "records",
        "place bits",
        "fingerprint bits",
        "bytes a slot",
        "bytes an id",
        "read in vain, expected",
        "counted",
        "segments",
        "read in vain by all",
        &total,
    ];
    let mut table = Table::new(&heads, 0);
    for mib in SEGMENT_MIB {
        let size = OfSize::count(mib);
        let segments = TOTAL_MIB / mib;
        let ns = estimates.ns(SIZES_GROUP, &mib.to_string(), "")?;
        table.row([
            mib.to_string(),
            spaced(size.records as f64),
            size.place_bits.to_string(),
            size.fingerprint_bits.to_string(),
            size.slot_bytes.to_string(),
            figure(size.bytes),
            percent(size.expected),
            percent(size.false_positives),
            segments.to_string(),
            figure(size.false_positives * segments as f64),
            figure(ns),
        ]);
    }
    Ok(table.finish())
}

pub(super) fn placement(estimates: &Estimates) -> Result<String, Missing> {
    let bytes = [
        LogPlaced::bytes_a_document(),
        NodeInline::bytes_a_document(),
        PlacesLeaf::bytes_a_document(),
        InlineLeaf::bytes_a_document(),
    ];
    let heads = ["documents", "get", "scan step", "bytes in the index", "bytes of the record"];
    let mut table = Table::new(&heads, 1);
    for (name, (index, record)) in LAYOUTS.into_iter().zip(bytes) {
        table.row([
            name.to_owned(),
            figure(estimates.ns(&placement_group("get"), name, "")?),
            figure(estimates.ns(&placement_group("scan step"), name, "")?),
            index.to_string(),
            record.to_string(),
        ]);
    }
    Ok(table.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_figure_is_an_error_and_not_a_blank() {
        let mut estimates = Estimates::default();
        for segments in PASSED {
            assert!(passed(&estimates).is_err());
            estimates.set(PASSED_GROUP, &segments.to_string(), "", 100.0);
        }
        let table = passed(&estimates).unwrap();
        assert_eq!(table.lines().count(), 2 + PASSED.len());
        assert!(table.ends_with("| 64 | 100 | 1.56 |"), "{table}");
    }
}
