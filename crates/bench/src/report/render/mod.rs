//! Rows as other programs print theirs: YCSB, go-ycsb, and CSV for everything else.
//!
//! 1. YCSB's and go-ycsb's texts have a block for each row, since their runs are what a row is.
//! 2. A figure that a row does not have is left out, and named on standard error; none is made up.

mod columns;
mod go_ycsb;
mod latency;
mod ycsb;

use std::collections::BTreeSet;
use std::io::Write;

use super::Row;
use super::jobs::{markdown_tables, tables};
use crate::error::{Context, Result};

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// A table for a terminal.
    Text,
    /// A table for pages, with what the figures come from.
    Markdown,
    /// A line for each row, with a column for each of its figures.
    Csv,
    /// What YCSB prints at the end of a run.
    Ycsb,
    /// What go-ycsb prints at the end of a run.
    GoYcsb,
}

/// A text, and the figures that the format has but the rows do not.
#[derive(Debug, PartialEq, Eq)]
struct Rendered {
    text: String,
    missing: BTreeSet<String>,
}

/// Prints the rows, and on standard error what is missing.
pub(crate) fn print(rows: &[Row], format: Format) -> Result<()> {
    let whole = |text: String| Rendered { text, missing: BTreeSet::new() };
    let Rendered { text, missing } = match format {
        Format::Text => whole(tables(rows) + "\n"),
        Format::Markdown => whole(markdown_tables(rows) + "\n"),
        Format::Csv => whole(columns::csv(rows)?),
        Format::Ycsb => ycsb::render(rows)?,
        Format::GoYcsb => go_ycsb::render(rows)?,
    };
    std::io::stdout().write_all(text.as_bytes()).context(|| "cannot print the rows")?;
    for figure in missing {
        eprintln!("left out: {figure}");
    }
    Ok(())
}

/// The line above a row's block. Neither program prints such a line, and readers of their texts
/// skip it.
fn title(row: &Row) -> String {
    format!("# {} repeat {} of {}\n", row.cell, row.repeat, row.run)
}

/// Whole microseconds, cut off as both programs do it.
fn microseconds(nanoseconds: u64) -> u64 {
    nanoseconds / 1_000
}

#[cfg(test)]
mod samples {
    use std::collections::BTreeMap;

    use super::super::row::samples;
    use super::Row;
    use crate::measure::latency::{Latencies, LatencyTable};

    fn recorded(nanoseconds: &[u64]) -> Latencies {
        let mut recorded = Latencies::new().unwrap();
        nanoseconds.iter().for_each(|&nanoseconds| recorded.record(nanoseconds));
        recorded
    }

    const READS: [u64; 4] = [1_000, 2_000, 3_000, 4_000];
    const UPDATES: [u64; 2] = [10_000, 20_500];
    const BOTH: [u64; 2] = [12_000, 23_500];

    /// A row of F, two seconds long, of 4 reads and 2 updates.
    pub(super) fn row() -> Row {
        let mut row = samples::row("sediment", 1, 3.5);
        row.cell = "sediment/f/1/durable/1x1x1".to_owned();
        row.workload = "f".to_owned();
        row.measurement.window_seconds = 2.0;
        row.measurement.operations = 4;
        row.measurement.latency_ns = LatencyTable::from([
            ("READ".to_owned(), recorded(&READS).summary()),
            ("UPDATE".to_owned(), recorded(&UPDATES).summary()),
            ("READ-MODIFY-WRITE".to_owned(), recorded(&BOTH).summary()),
        ]);
        row
    }

    /// As above, with histograms.
    pub(super) fn row_with_histograms() -> Row {
        let mut row = row();
        row.measurement.histograms = Some(BTreeMap::from([
            ("READ".to_owned(), recorded(&READS).encoded().unwrap()),
            ("UPDATE".to_owned(), recorded(&UPDATES).encoded().unwrap()),
            ("READ-MODIFY-WRITE".to_owned(), recorded(&BOTH).encoded().unwrap()),
        ]));
        row
    }

    /// As the first runs wrote it: neither minimum nor p90, and no histogram.
    pub(super) fn old_row() -> Row {
        let mut row = row();
        for summary in row.measurement.latency_ns.values_mut() {
            (summary.min, summary.p90) = (None, None);
        }
        row
    }
}
