//! The figures of a section: medians over the repeats, how far the repeats are apart, and ratios
//! to the oracle, each the median of the ratios within a repeat.

use std::collections::{BTreeMap, BTreeSet};

use super::sections::Section;
use crate::measure::latency::LatencySummary;
use crate::report::row::Row;
use crate::report::table::{cells, fold, median, own_memory, ratios};
use crate::store::StoreKind;

/// A median over the repeats, with the lowest and the highest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The figures of one workload.
#[derive(Clone, Debug)]
pub(super) struct WorkloadFigures {
    /// "load" or the workload's letter.
    pub(super) name: String,
    /// The engine, the oracle, then the others by name.
    pub(super) stores: Vec<StoreFigures>,
}

/// The figures of one store under one workload; memory and disk in bytes.
#[derive(Clone, Debug)]
pub(super) struct StoreFigures {
    pub(super) store: String,
    pub(super) rate: Against,
    pub(super) own: Against,
    pub(super) mapped: Against,
    pub(super) disk: Against,
    /// By the kind of operation.
    pub(super) latencies: BTreeMap<String, LatencyFigures>,
}

/// A figure, and its ratio to the oracle's; none for the oracle itself, or without one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Against {
    pub(super) figure: Spread,
    pub(super) ratio: Option<Spread>,
}

/// Latencies in nanoseconds: medians over the repeats, but the maximum of all.
#[derive(Clone, Debug)]
pub(super) struct LatencyFigures {
    pub(super) p50: f64,
    pub(super) p95: f64,
    pub(super) p99: Against,
    pub(super) p999: f64,
    pub(super) max: f64,
}

impl Spread {
    fn of(values: Vec<f64>) -> Option<Self> {
        let (low, high) = (fold(&values, f64::min), fold(&values, f64::max));
        (!values.is_empty()).then(|| Self { median: median(values), low, high })
    }
}

impl WorkloadFigures {
    pub(super) fn store(&self, name: &str) -> Option<&StoreFigures> {
        self.stores.iter().find(|store| store.store == name)
    }

    pub(super) fn store_names(&self) -> impl Iterator<Item = &str> {
        self.stores.iter().map(|store| store.store.as_str())
    }

    /// The kinds of operations of any store, once each.
    pub(super) fn operations(&self) -> BTreeSet<&str> {
        let operations = self.stores.iter().flat_map(|store| store.latencies.keys());
        operations.map(String::as_str).collect()
    }
}

impl Section {
    /// The figures, workload by workload in the order in which they ran.
    pub(super) fn figures(&self) -> Vec<WorkloadFigures> {
        let mut workloads: Vec<WorkloadFigures> = Vec::new();
        for stores in cells(&self.rows).into_values() {
            let oracle = stores.get(StoreKind::ORACLE.name()).map(Vec::as_slice);
            let figures = stores.iter().filter_map(|(store, rows)| {
                let others = oracle.filter(|_| *store != StoreKind::ORACLE.name());
                store_figures(store, rows, others)
            });
            let mut figures: Vec<StoreFigures> = figures.collect();
            figures.sort_by_key(|figures| rank(&figures.store));
            let Some(row) = stores.values().flatten().next() else { continue };
            workloads.push(WorkloadFigures { name: display_name(&row.workload), stores: figures });
        }
        workloads
    }

    pub(super) fn repeats(&self) -> usize {
        let repeats: BTreeSet<_> = self.rows.iter().map(|row| (&row.run, row.repeat)).collect();
        repeats.len()
    }
}

fn rank(store: &str) -> usize {
    let first = [StoreKind::Sediment.name(), StoreKind::ORACLE.name()];
    first.iter().position(|name| *name == store).unwrap_or(first.len())
}

fn display_name(workload: &str) -> String {
    if workload == "load" { workload.to_owned() } else { workload.to_uppercase() }
}

fn store_figures(store: &str, rows: &[&Row], oracle: Option<&[&Row]>) -> Option<StoreFigures> {
    let against = |figure: &dyn Fn(&Row) -> Option<f64>| {
        let figures = Spread::of(rows.iter().filter_map(|row| figure(row)).collect())?;
        Some(Against { figure: figures, ratio: Spread::of(ratios(rows, oracle, figure)) })
    };
    let bytes = |figure: fn(&Row) -> u64| against(&|row| Some(figure(row) as f64));
    let operations = rows.iter().flat_map(|row| &row.measurement.latency_ns);
    let operations = operations.filter(|(_, summary)| summary.count > 0);
    let operations: BTreeSet<&String> = operations.map(|(operation, _)| operation).collect();
    let latencies = operations.into_iter().filter_map(|operation| {
        let summary = |row: &Row| measured(row, operation).cloned();
        let middle = |percentile: fn(&LatencySummary) -> u64| {
            against(&|row| summary(row).map(|summary| percentile(&summary) as f64))
        };
        let figures = LatencyFigures {
            p50: middle(|summary| summary.p50)?.figure.median,
            p95: middle(|summary| summary.p95)?.figure.median,
            p99: middle(|summary| summary.p99)?,
            p999: middle(|summary| summary.p999)?.figure.median,
            max: middle(|summary| summary.max)?.figure.high,
        };
        Some((operation.clone(), figures))
    });
    Some(StoreFigures {
        store: store.to_owned(),
        rate: against(&|row| Some(row.measurement.ops_per_sec))?,
        own: bytes(own_memory)?,
        mapped: bytes(|row| row.measurement.rss_file_end_bytes)?,
        disk: bytes(|row| row.measurement.disk_bytes)?,
        latencies: latencies.collect(),
    })
}

/// The latencies of an operation that the row has at all.
fn measured<'a>(row: &'a Row, operation: &str) -> Option<&'a LatencySummary> {
    row.measurement.latency_ns.get(operation).filter(|summary| summary.count > 0)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{Cell, row, section};
    use super::*;

    #[test]
    fn a_ratio_is_the_median_of_the_repeats_own_ratios() {
        let rates = [("sediment", [10.0, 20.0, 30.0]), ("rocksdb", [10.0, 5.0, 15.0])];
        let rows = rates.into_iter().flat_map(|(store, rates)| {
            let cell = move |(repeat, rate)| row(Cell { store, repeat, rate, ..Cell::default() });
            (1..).zip(rates).map(cell)
        });
        let figures = section(rows.collect()).figures();
        let [ours, oracle] = figures[0].stores.as_slice() else { panic!("{figures:?}") };
        assert_eq!(ours.rate.figure, Spread { median: 20.0, low: 10.0, high: 30.0 });
        assert_eq!(ours.rate.ratio, Some(Spread { median: 2.0, low: 1.0, high: 4.0 }));
        assert_eq!((oracle.store.as_str(), oracle.rate.ratio), ("rocksdb", None));
    }

    #[test]
    fn the_engine_and_the_oracle_stand_first_and_workloads_in_the_order_of_the_run() {
        let stores = ["lmdb", "rocksdb", "sediment", "canopydb"];
        let workloads = ["e", "d", "a", "load"];
        let rows = workloads.into_iter().flat_map(|workload| {
            stores.map(|store| row(Cell { workload, store, ..Cell::default() }))
        });
        let figures = section(rows.collect()).figures();
        let names: Vec<&str> = figures.iter().map(|workload| workload.name.as_str()).collect();
        assert_eq!(names, ["load", "A", "D", "E"]);
        let order: Vec<&str> = figures[0].stores.iter().map(|s| s.store.as_str()).collect();
        assert_eq!(order, ["sediment", "rocksdb", "canopydb", "lmdb"]);
    }

    #[test]
    fn latencies_are_medians_and_the_longest_of_all() {
        let rows = [(1, 100, 900), (2, 300, 5_000), (3, 200, 700)].map(|(repeat, p99, max)| {
            let mut row = row(Cell { repeat, ..Cell::default() });
            let summary = row.measurement.latency_ns.get_mut("READ").unwrap();
            (summary.p99, summary.max) = (p99, max);
            row
        });
        let figures = section(rows.to_vec()).figures();
        let read = &figures[0].stores[0].latencies["READ"];
        assert_eq!((read.p99.figure.median, read.max), (200.0, 5_000.0));
        assert_eq!((read.p99.figure.low, read.p99.figure.high), (100.0, 300.0));
    }

    #[test]
    fn an_operation_that_never_ran_has_no_figures() {
        let mut row = row(Cell::default());
        row.measurement.latency_ns.get_mut("READ").unwrap().count = 0;
        assert!(section(vec![row]).figures()[0].stores[0].latencies.is_empty());
    }
}
