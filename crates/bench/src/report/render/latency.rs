//! The latencies of a row, from its summaries and, where it has them, its histograms.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::error::{Context, Result};
use crate::measure::latency::{LatencySummary, decoded};
use crate::report::Row;

/// Its reads and updates are counted by themselves.
const COMPOSITE: &str = "READ-MODIFY-WRITE";

/// Nanoseconds. What neither a summary nor a histogram tells is absent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Latency {
    pub(super) count: u64,
    pub(super) mean: f64,
    pub(super) min: Option<u64>,
    pub(super) p50: Option<u64>,
    pub(super) p90: Option<u64>,
    pub(super) p95: Option<u64>,
    pub(super) p99: Option<u64>,
    pub(super) p999: Option<u64>,
    pub(super) p9999: Option<u64>,
    pub(super) max: u64,
}

/// Of each kind that occurred.
pub(super) fn by_kind(row: &Row) -> Result<BTreeMap<&str, Latency>> {
    let occurred = occurred(row);
    occurred.map(|(kind, summary)| Ok((kind, of_kind(summary, histogram(row, kind)?)))).collect()
}

/// Of all operations together; a read-modify-write counts as its read and its update. Percentiles
/// need the histograms, unless there is one kind only.
pub(super) fn total(row: &Row) -> Result<Option<Latency>> {
    let parts: Vec<_> = occurred(row).filter(|(kind, _)| *kind != COMPOSITE).collect();
    if let [(kind, summary)] = parts.as_slice() {
        return Ok(Some(of_kind(summary, histogram(row, kind)?)));
    }
    let Some(max) = parts.iter().map(|(_, summary)| summary.max).max() else { return Ok(None) };
    let count: u64 = parts.iter().map(|(_, summary)| summary.count).sum();
    let sum: f64 = parts.iter().map(|(_, summary)| summary.mean * summary.count as f64).sum();
    let mut mins = Vec::new();
    let mut merged: Option<Histogram<u64>> = None;
    let mut whole = true;
    for (kind, summary) in &parts {
        let histogram = histogram(row, kind)?;
        mins.push(of_kind(summary, histogram.clone()).min);
        match (histogram, &mut merged) {
            (None, _) => whole = false,
            (Some(histogram), None) => merged = Some(histogram),
            (Some(histogram), Some(merged)) => {
                merged.add(histogram).context(|| "cannot merge histograms")?;
            }
        }
    }
    let merged = merged.filter(|_| whole);
    let quantile = |q| merged.as_ref().map(|histogram| histogram.value_at_quantile(q).min(max));
    Ok(Some(Latency {
        count,
        mean: sum / count as f64,
        min: mins.into_iter().min().flatten(),
        p50: quantile(0.5),
        p90: quantile(0.9),
        p95: quantile(0.95),
        p99: quantile(0.99),
        p999: quantile(0.999),
        p9999: quantile(0.9999),
        max,
    }))
}

fn occurred(row: &Row) -> impl Iterator<Item = (&str, &LatencySummary)> {
    let kinds = row.measurement.latency_ns.iter().filter(|(_, summary)| summary.count > 0);
    kinds.map(|(kind, summary)| (kind.as_str(), summary))
}

fn of_kind(summary: &LatencySummary, histogram: Option<Histogram<u64>>) -> Latency {
    let recorded = |figure: fn(&Histogram<u64>) -> u64| histogram.as_ref().map(figure);
    let p90 = recorded(|histogram| histogram.value_at_quantile(0.9));
    Latency {
        count: summary.count,
        mean: summary.mean,
        min: summary.min.or_else(|| recorded(Histogram::min)),
        p50: Some(summary.p50),
        p90: summary.p90.or_else(|| p90.map(|p90| p90.min(summary.max))),
        p95: Some(summary.p95),
        p99: Some(summary.p99),
        p999: Some(summary.p999),
        p9999: Some(summary.p9999),
        max: summary.max,
    }
}

fn histogram(row: &Row, kind: &str) -> Result<Option<Histogram<u64>>> {
    let Some(text) = row.measurement.histograms.as_ref().and_then(|all| all.get(kind)) else {
        return Ok(None);
    };
    let what = || format!("{} repeat {}: the histogram of {kind}", row.cell, row.repeat);
    decoded(text).map(Some).context(what)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{old_row, row, row_with_histograms};
    use super::*;

    fn close(found: Option<u64>, expected: u64) -> bool {
        found.is_some_and(|found| found.abs_diff(expected) * 500 <= expected)
    }

    #[test]
    fn an_old_row_has_neither_minimum_nor_p90_but_its_histograms_tell_them() {
        let mut row = old_row();
        let read = by_kind(&row).unwrap().remove("READ").unwrap();
        assert_eq!((read.min, read.p90, read.max), (None, None, 4_000));
        row.measurement.histograms = row_with_histograms().measurement.histograms;
        let read = by_kind(&row).unwrap().remove("READ").unwrap();
        assert!(close(read.min, 1_000) && close(read.p90, 4_000), "{read:?}");
    }

    #[test]
    fn the_total_counts_a_read_modify_write_as_its_parts() {
        let total = total(&row()).unwrap().unwrap();
        assert_eq!((total.count, total.min, total.max), (6, Some(1_000), 20_500));
        assert!((total.mean - 40_500.0 / 6.0).abs() < 1e-9, "{total:?}");
        assert_eq!((total.p50, total.p9999), (None, None), "no histograms");
    }

    #[test]
    fn the_totals_percentiles_are_those_of_the_merged_histograms() {
        let total = total(&row_with_histograms()).unwrap().unwrap();
        assert!(close(total.p50, 3_000) && close(total.p90, 20_500), "{total:?}");
        assert_eq!(total.p9999, Some(20_500), "no percentile is above the maximum");
    }

    #[test]
    fn one_minimum_that_is_not_known_makes_the_totals_unknown() {
        let mut row = row();
        row.measurement.latency_ns.get_mut("UPDATE").unwrap().min = None;
        assert_eq!(total(&row).unwrap().unwrap().min, None);
    }

    #[test]
    fn the_total_of_one_kind_is_its_own() {
        let mut row = old_row();
        row.measurement.latency_ns.retain(|kind, _| kind == "READ");
        let read = by_kind(&row).unwrap().remove("READ");
        assert_eq!(total(&row).unwrap(), read);
        row.measurement.latency_ns.clear();
        assert_eq!(total(&row).unwrap(), None);
    }

    #[test]
    fn a_broken_histogram_is_named() {
        for broken in ["?", "AAAA"] {
            let mut row = row_with_histograms();
            let histograms = row.measurement.histograms.as_mut().unwrap();
            histograms.insert("READ".to_owned(), broken.to_owned());
            let failure = by_kind(&row).unwrap_err().to_string();
            assert!(failure.contains("the histogram of READ"), "{failure}");
        }
    }
}
