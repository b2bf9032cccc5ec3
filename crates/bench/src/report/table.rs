//! The table at the end of a run: for each cell the median over its repeats, and the ratio to the
//! oracle, which is the median of the ratios within each repeat.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table, presets};

use super::row::{Phase, Row};
use crate::measure::latency::LatencySummary;
use crate::run::Folder;
use crate::store::StoreKind;

/// All that makes rows comparable, without the store. The order is that of the table.
pub(super) type Comparable = (String, u64, u32, u32, Phase, String, u32, usize, String);

const HEADER: [&str; 13] = [
    "workload",
    "clients",
    "store",
    "ops/s",
    "min-max",
    "ratio",
    "operation",
    "p50 µs",
    "p99 µs",
    "max µs",
    "own MiB",
    "end MiB",
    "disk MiB",
];

/// The rows' cells, workload by workload in the order in which they ran.
pub(crate) fn table(rows: &[Row]) -> String {
    let cells = cells(rows);
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(HEADER);
    for stores in cells.values() {
        let oracle = stores.get(StoreKind::ORACLE.name());
        for rows in stores.values() {
            table.add_row(line(rows, oracle.map(Vec::as_slice)));
        }
    }
    for column in [1, 3, 4, 5, 7, 8, 9, 10, 11, 12] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// The rows by what makes them comparable, in the order of the table, then by store.
pub(super) fn cells(rows: &[Row]) -> BTreeMap<Comparable, BTreeMap<&str, Vec<&Row>>> {
    let mut cells: BTreeMap<Comparable, BTreeMap<&str, Vec<&Row>>> = BTreeMap::new();
    for row in rows {
        cells.entry(comparable(row)).or_default().entry(&row.store).or_default().push(row);
    }
    cells
}

fn comparable(row: &Row) -> Comparable {
    const ORDER: [&str; 6] = ["a", "b", "c", "f", "d", "e"];
    let place = ORDER.iter().position(|&workload| workload == row.workload);
    (
        row.job.as_ref().unwrap_or(&row.bench).clone(),
        row.records,
        row.fields,
        row.field_bytes,
        row.phase,
        row.durability.name().to_owned(),
        row.threads,
        place.unwrap_or(ORDER.len()),
        row.workload.clone(),
    )
}

fn line(rows: &[&Row], oracle: Option<&[&Row]>) -> Vec<String> {
    let Some(first) = rows.first() else { return Vec::new() };
    let rates: Vec<f64> = rows.iter().map(|row| row.measurement.ops_per_sec).collect();
    let (low, high) = (fold(&rates, f64::min), fold(&rates, f64::max));
    let latencies = latencies(rows);
    let column = |figure: fn(&[&LatencySummary]) -> u64| {
        let lines = latencies.values().map(|summaries| microseconds(figure(summaries)));
        lines.collect::<Vec<_>>().join("\n")
    };
    let memory = |figure: fn(&Row) -> u64| mebibytes(median_of(rows, figure));
    vec![
        format!("{} {}", first.workload, first.durability.name()),
        first.threads.to_string(),
        first.store.clone(),
        thousands(median(rates)),
        format!("{}-{}", thousands(low), thousands(high)),
        ratio(rows, oracle).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
        latencies.keys().copied().collect::<Vec<_>>().join("\n"),
        column(|summaries| median_u64(summaries.iter().map(|summary| summary.p50))),
        column(|summaries| median_u64(summaries.iter().map(|summary| summary.p99))),
        column(|summaries| summaries.iter().map(|summary| summary.max).max().unwrap_or(0)),
        memory(own_memory),
        memory(|row| row.measurement.rss_anon_end_bytes),
        memory(|row| row.measurement.disk_bytes),
    ]
}

/// Anonymous memory at the end without what the process had before it opened the store.
pub(super) fn own_memory(row: &Row) -> u64 {
    let measurement = &row.measurement;
    measurement.rss_anon_end_bytes.saturating_sub(measurement.rss_anon_start_bytes)
}

fn latencies<'a>(rows: &[&'a Row]) -> BTreeMap<&'a str, Vec<&'a LatencySummary>> {
    let mut latencies: BTreeMap<&str, Vec<&LatencySummary>> = BTreeMap::new();
    for row in rows {
        for (operation, summary) in &row.measurement.latency_ns {
            latencies.entry(operation).or_default().push(summary);
        }
    }
    latencies
}

/// The median over the repeats of the ratio within a repeat, whose cells ran next to each other.
pub(super) fn ratio(rows: &[&Row], oracle: Option<&[&Row]>) -> Option<f64> {
    let ratios = ratios(rows, oracle, &|row| Some(row.measurement.ops_per_sec));
    (!ratios.is_empty()).then(|| median(ratios))
}

/// The ratio of a figure to the oracle's in each repeat that has both.
pub(super) fn ratios(
    rows: &[&Row],
    oracle: Option<&[&Row]>,
    figure: &dyn Fn(&Row) -> Option<f64>,
) -> Vec<f64> {
    let moment = |row: &Row| -> (String, u32, Folder) { (row.run.clone(), row.repeat, row.folder) };
    let ratio = |row: &Row| {
        let other = oracle?.iter().find(|other| moment(other) == moment(row))?;
        let ratio = figure(row)? / figure(other)?;
        ratio.is_finite().then_some(ratio)
    };
    rows.iter().filter_map(|row| ratio(row)).collect()
}

pub(super) fn fold(values: &[f64], pick: fn(f64, f64) -> f64) -> f64 {
    values.iter().copied().reduce(pick).unwrap_or(0.0)
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.as_slice() {
        [] => 0.0,
        values if values.len().is_multiple_of(2) => (values[middle - 1] + values[middle]) / 2.0,
        values => values[middle],
    }
}

/// The mean of the two middle values, rounded down, when their number is even.
fn median_u64(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    let middle = values.len() / 2;
    match values.as_slice() {
        [] => 0,
        values if values.len().is_multiple_of(2) => values[middle - 1].midpoint(values[middle]),
        values => values[middle],
    }
}

pub(super) fn median_of(rows: &[&Row], figure: fn(&Row) -> u64) -> u64 {
    median_u64(rows.iter().map(|row| figure(row)))
}

fn microseconds(nanoseconds: u64) -> String {
    let microseconds = nanoseconds as f64 / 1e3;
    if microseconds < 100.0 { format!("{microseconds:.1}") } else { format!("{microseconds:.0}") }
}

pub(super) fn mebibytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

/// A whole number with its thousands apart.
pub(super) fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::super::row::samples;
    use super::*;

    #[test]
    fn the_ratio_is_the_median_of_the_repeats_own_ratios() {
        let ours = [10.0, 20.0, 30.0];
        let oracles = [10.0, 5.0, 15.0];
        let mut rows = Vec::new();
        for (repeat, (ours, oracle)) in (1..).zip(ours.into_iter().zip(oracles)) {
            rows.push(samples::row("sediment", repeat, ours));
            rows.push(samples::row("rocksdb", repeat, oracle));
        }
        let (ours, oracle): (Vec<&Row>, Vec<&Row>) =
            rows.iter().partition(|row| row.store == "sediment");
        // Within the repeats: 1, 4 and 2.
        assert_eq!(ratio(&ours, Some(&oracle)), Some(2.0));
        assert_eq!(ratio(&ours, None), None);
    }

    #[test]
    fn a_line_has_every_figure_in_its_unit() {
        let rows = [samples::row("sediment", 1, 1_000.0), samples::row("sediment", 2, 3_000.0)];
        let text = table(&rows);
        for figure in
            ["c durable", "2 000", "1 000-3 000", "READ", "1.5", "2.5", "250", "4.0", "5.0", "7.0"]
        {
            assert!(text.contains(figure), "no {figure} in\n{text}");
        }
    }

    #[test]
    fn medians_of_odd_and_even_numbers() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!((median(vec![4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-12);
        assert_eq!(median_u64([5, 1, 9].into_iter()), 5);
        assert_eq!(median_u64([8, 1, 4, 9].into_iter()), 6);
        assert_eq!(median_u64([].into_iter()), 0);
    }

    #[test]
    fn figures_are_readable() {
        assert_eq!(thousands(1_234_567.4), "1 234 567");
        assert_eq!(thousands(999.0), "999");
        assert_eq!(microseconds(1_540), "1.5");
        assert_eq!(microseconds(412_345), "412");
        assert_eq!(mebibytes(3 << 19), "1.5");
    }
}
