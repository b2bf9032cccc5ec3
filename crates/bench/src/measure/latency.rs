//! Latencies: a log-linear histogram for each kind of operation and client, and the exact maximum.
//!
//! Recording takes no lock and allocates nothing; the histograms of the clients are merged when
//! the cell ends.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use crate::error::{Context, Failure, Result};

/// Values above it are counted as this one in the percentiles; the maximum stays exact.
const NANOSECONDS_MAX: u64 = 60_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
/// Longer operations are counted as stalls.
const STALL_NANOSECONDS: u64 = 20_000_000;

/// The latencies of one kind of operation.
#[derive(Debug)]
pub(crate) struct Latencies {
    histogram: Histogram<u64>,
    sum: u64,
    min: u64,
    max: u64,
    stalls: u64,
}

impl Latencies {
    pub(crate) fn new() -> Result<Self> {
        let histogram = Histogram::new_with_bounds(1, NANOSECONDS_MAX, SIGNIFICANT_DIGITS)
            .context(|| "cannot make a histogram")?;
        Ok(Self { histogram, sum: 0, min: u64::MAX, max: 0, stalls: 0 })
    }

    pub(crate) fn record(&mut self, nanoseconds: u64) {
        self.histogram.saturating_record(nanoseconds);
        self.sum += nanoseconds;
        self.min = self.min.min(nanoseconds);
        self.max = self.max.max(nanoseconds);
        self.stalls += u64::from(nanoseconds > STALL_NANOSECONDS);
    }

    pub(crate) fn merge(&mut self, other: &Self) -> Result<()> {
        self.histogram.add(&other.histogram).context(|| "cannot merge histograms")?;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.stalls += other.stalls;
        Ok(())
    }

    /// Operations that took more than 20 ms, counted exactly.
    pub(crate) fn stalls(&self) -> u64 {
        self.stalls
    }

    /// The figures of a row; of no latencies they are all zero.
    pub(crate) fn summary(&self) -> LatencySummary {
        let count = self.histogram.len();
        let quantile = |q: f64| self.histogram.value_at_quantile(q).min(self.max);
        LatencySummary {
            count,
            mean: if count == 0 { 0.0 } else { self.sum as f64 / count as f64 },
            min: Some(if count == 0 { 0 } else { self.min }),
            p50: quantile(0.5),
            p90: Some(quantile(0.9)),
            p95: quantile(0.95),
            p99: quantile(0.99),
            p999: quantile(0.999),
            p9999: quantile(0.9999),
            max: self.max,
        }
    }

    /// The histogram as a row keeps it: HdrHistogram's V2 encoding, deflated, in base64, which its
    /// implementations in other languages read too. Some KiB; values have three digits.
    pub(crate) fn encoded(&self) -> Result<String> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.histogram, &mut bytes)
            .context(|| "cannot encode a histogram")?;
        Ok(STANDARD.encode(bytes))
    }
}

/// The histogram that a row keeps; those of several rows can be added.
pub(crate) fn decoded(text: &str) -> Result<Histogram<u64>> {
    let what = || "not a histogram of a row";
    let bytes = STANDARD.decode(text).context(what)?;
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| Failure::new(format_args!("{}: {error:?}", what())))
}

/// Nanoseconds. Percentiles have three significant digits; `mean` and `max` are exact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LatencySummary {
    pub(crate) count: u64,
    pub(crate) mean: f64,
    // Rows of the first runs lack the two optional ones.
    pub(crate) min: Option<u64>,
    pub(crate) p50: u64,
    pub(crate) p90: Option<u64>,
    pub(crate) p95: u64,
    pub(crate) p99: u64,
    pub(crate) p999: u64,
    pub(crate) p9999: u64,
    pub(crate) max: u64,
}

/// By the kind of operation, as a row has it.
pub(crate) type LatencyTable = BTreeMap<String, LatencySummary>;

/// Encoded histograms by the kind of operation.
pub(crate) type HistogramTable = BTreeMap<String, String>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_have_three_digits_and_the_maximum_is_exact() {
        let mut latencies = Latencies::new().unwrap();
        (1..=10_000).for_each(|n| latencies.record(n * 1_000));
        latencies.record(123_456_789);
        let summary = latencies.summary();
        assert_eq!((summary.count, summary.max), (10_001, 123_456_789));
        assert!((summary.p50 as f64 - 5e6).abs() < 5e6 * 0.002, "{}", summary.p50);
        assert!((summary.p99 as f64 - 9.9e6).abs() < 9.9e6 * 0.002, "{}", summary.p99);
    }

    #[test]
    fn a_stall_beyond_the_histogram_keeps_its_length() {
        let mut latencies = Latencies::new().unwrap();
        latencies.record(3 * NANOSECONDS_MAX);
        assert_eq!(latencies.summary().max, 3 * NANOSECONDS_MAX);
        assert_eq!(latencies.summary().count, 1);
    }

    #[test]
    fn merging_adds_up_clients() {
        let (mut first, mut second) = (Latencies::new().unwrap(), Latencies::new().unwrap());
        first.record(10);
        second.record(30);
        first.merge(&second).unwrap();
        let summary = first.summary();
        assert_eq!((summary.count, summary.max), (2, 30));
        assert!((summary.mean - 20.0).abs() < 1e-9);
    }

    #[test]
    fn stalls_are_longer_than_20_ms_and_add_up() {
        let (mut first, mut second) = (Latencies::new().unwrap(), Latencies::new().unwrap());
        [20_000_000, 20_000_001, 1].into_iter().for_each(|n| first.record(n));
        second.record(3 * NANOSECONDS_MAX);
        first.merge(&second).unwrap();
        assert_eq!(first.stalls(), 2);
    }

    #[test]
    fn nothing_recorded_is_all_zero() {
        let summary = Latencies::new().unwrap().summary();
        assert_eq!((summary.min, summary.p99, summary.max), (Some(0), 0, 0));
    }

    #[test]
    fn histograms_of_rows_can_be_added() {
        let (mut first, mut second) = (Latencies::new().unwrap(), Latencies::new().unwrap());
        (1..=1_000).for_each(|n| first.record(n * 1_000));
        (1..=3_000).for_each(|n| second.record(n * 7_000));
        let mut added = decoded(&first.encoded().unwrap()).unwrap();
        added.add(decoded(&second.encoded().unwrap()).unwrap()).unwrap();
        first.merge(&second).unwrap();
        assert_eq!(added, first.histogram);
        assert!(decoded("AAAA").is_err() && decoded("~").is_err());
    }

    #[test]
    fn the_minimum_is_exact_and_survives_merging() {
        let (mut first, second) = (Latencies::new().unwrap(), Latencies::new().unwrap());
        [123_457, 99_001].into_iter().for_each(|n| first.record(n));
        first.merge(&second).unwrap();
        assert_eq!(first.summary().min, Some(99_001));
    }
}
