//! The tables of a section, each the text of the picture beside it.

use super::figures::{Against, LatencyFigures, Spread, StoreFigures, WorkloadFigures};
use crate::report::table::thousands;
use crate::store::StoreKind;

/// Throughput by workload and store.
pub(super) fn throughput(workloads: &[WorkloadFigures]) -> String {
    let oracle = StoreKind::ORACLE.name();
    let mut table = header(
        &["workload", "store"],
        &["ops/s, median", "min - max", &format!("ratio to {oracle}, median"), "min - max"],
    );
    for (workload, store) in lines(workloads) {
        let Against { figure, ratio } = store.rate;
        let cells = [thousands(figure.median), range(figure, thousands)];
        table += &line(&[&workload.name, &store.store], cells.into_iter().chain(ratios(ratio)));
    }
    table
}

/// Latencies of one workload, by operation and store, in microseconds.
pub(super) fn latency(workload: &WorkloadFigures) -> String {
    let oracle = StoreKind::ORACLE.name();
    let ratio = format!("p99, ratio to {oracle}");
    let figures = ["p50 µs", "p95 µs", "p99 µs", "p99, min - max", &ratio, "p99.9 µs", "max µs"];
    let mut table = header(&["operation", "store"], &figures);
    for operation in workload.operations() {
        for store in &workload.stores {
            let Some(figures) = store.latencies.get(operation) else { continue };
            let LatencyFigures { p50, p95, p99, p999, max } = figures;
            let [ratio, _] = ratios(p99.ratio);
            let cells = [
                microseconds(*p50),
                microseconds(*p95),
                microseconds(p99.figure.median),
                range(p99.figure, microseconds),
                ratio,
                microseconds(*p999),
                microseconds(*max),
            ];
            table += &line(&[operation, &store.store], cells.into_iter());
        }
    }
    table
}

/// Memory and disk by workload and store.
pub(super) fn memory_and_disk(workloads: &[WorkloadFigures]) -> String {
    let figures = [
        "own MiB",
        "min - max",
        "ratio",
        "mapped MiB",
        "min - max",
        "disk MiB",
        "min - max",
        "ratio",
    ];
    let mut table = header(&["workload", "store"], &figures);
    for (workload, store) in lines(workloads) {
        let middle_and_range =
            |figure: Spread| [mebibytes(figure.median), range(figure, mebibytes)];
        let [own_ratio, _] = ratios(store.own.ratio);
        let [disk_ratio, _] = ratios(store.disk.ratio);
        let cells = middle_and_range(store.own.figure)
            .into_iter()
            .chain([own_ratio])
            .chain(middle_and_range(store.mapped.figure))
            .chain(middle_and_range(store.disk.figure))
            .chain([disk_ratio]);
        table += &line(&[&workload.name, &store.store], cells);
    }
    table
}

fn lines(workloads: &[WorkloadFigures]) -> impl Iterator<Item = (&WorkloadFigures, &StoreFigures)> {
    workloads.iter().flat_map(|workload| workload.stores.iter().map(move |store| (workload, store)))
}

/// The head of a table whose figures are aligned to the right.
pub(super) fn header(names: &[&str], figures: &[&str]) -> String {
    let columns = [names, figures].concat().join(" | ");
    format!("| {columns} |\n|{}{}\n", "---|".repeat(names.len()), "--:|".repeat(figures.len()))
}

pub(super) fn line(names: &[&str], figures: impl Iterator<Item = String>) -> String {
    let names = names.iter().map(|name| name.replace('|', "\\|"));
    let cells: Vec<String> = names.chain(figures).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn range(spread: Spread, format: fn(f64) -> String) -> String {
    format!("{} - {}", format(spread.low), format(spread.high))
}

/// The median ratio and its range.
fn ratios(ratio: Option<Spread>) -> [String; 2] {
    let none = || ["-".to_owned(), "-".to_owned()];
    ratio.map_or_else(none, |spread| [times(spread.median), range(spread, times)])
}

/// A ratio, to two digits at least.
pub(super) fn times(ratio: f64) -> String {
    let digits = match ratio {
        ratio if ratio >= 99.95 => 0,
        ratio if ratio >= 9.995 => 1,
        ratio if ratio >= 0.0995 => 2,
        _ => 3,
    };
    format!("{ratio:.digits$}")
}

fn microseconds(nanoseconds: f64) -> String {
    let microseconds = nanoseconds / 1e3;
    if microseconds < 99.95 { format!("{microseconds:.1}") } else { thousands(microseconds) }
}

pub(super) fn mebibytes(bytes: f64) -> String {
    let mebibytes = bytes / f64::from(1 << 20);
    if mebibytes < 999.95 { format!("{mebibytes:.1}") } else { thousands(mebibytes) }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{section, small_run};
    use super::*;

    fn line_of<'a>(table: &'a str, start: &str) -> &'a str {
        table.lines().find(|line| line.starts_with(start)).expect(start)
    }

    #[test]
    fn a_line_of_throughput_has_medians_spreads_and_ratios() {
        let table = throughput(&section(small_run()).figures());
        assert_eq!(
            line_of(&table, "| C | sediment"),
            "| C | sediment | 5 000 | 4 000 - 6 000 | 5.00 | 4.00 - 6.00 |"
        );
        assert_eq!(
            line_of(&table, "| A | sediment"),
            "| A | sediment | 650 | 400 - 900 | 0.65 | 0.40 - 0.90 |"
        );
        assert_eq!(
            line_of(&table, "| C | rocksdb"),
            "| C | rocksdb | 1 000 | 1 000 - 1 000 | - | - |"
        );
        assert_eq!(table.lines().count(), 2 + 6);
    }

    #[test]
    fn a_line_of_latencies_is_in_microseconds() {
        let mut rows = small_run();
        for row in rows.iter_mut().filter(|row| row.store == "sediment") {
            row.measurement.latency_ns.get_mut("READ").unwrap().p99 = 1_000;
        }
        let figures = section(rows).figures();
        let table = latency(&figures[2]);
        assert_eq!(
            line_of(&table, "| READ | sediment"),
            "| READ | sediment | 1.5 | 2.0 | 1.0 | 1.0 - 1.0 | 0.40 | 3.0 | 250 |"
        );
        assert_eq!(
            line_of(&table, "| READ | rocksdb"),
            "| READ | rocksdb | 1.5 | 2.0 | 2.5 | 2.5 - 2.5 | - | 3.0 | 250 |"
        );
    }

    #[test]
    fn a_line_of_memory_and_disk_is_in_mebibytes() {
        let mut rows = small_run();
        for row in rows.iter_mut().filter(|row| row.store == "sediment") {
            row.measurement.disk_bytes = 14 << 20;
            row.measurement.rss_file_end_bytes = u64::from(row.repeat) << 20;
        }
        let table = memory_and_disk(&section(rows).figures());
        assert_eq!(
            line_of(&table, "| A | sediment"),
            "| A | sediment | 4.0 | 4.0 - 4.0 | 1.00 | 1.5 | 1.0 - 2.0 | 14.0 | 14.0 - 14.0 | \
             2.00 |"
        );
    }

    #[test]
    fn figures_keep_their_digits() {
        assert_eq!(
            [312.4, 31.24, 3.124, 0.3124, 0.03124].map(times),
            ["312", "31.2", "3.12", "0.31", "0.031"]
        );
        assert_eq!([1_540.0, 212_000.0, 4e9].map(microseconds), ["1.5", "212", "4 000 000"]);
        assert_eq!(mebibytes(1.5 * f64::from(1 << 30)), "1 536");
    }
}
