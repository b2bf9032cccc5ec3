//! Two results files, cell by cell: is the second one slower?
//!
//! A finding is a throughput of which the whole interval lies below one by more than the threshold.
//! Latencies stand beside it for the reader, and are none: few repeats say little of a tail.

mod interval;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};

use self::interval::{Ratio, geometric_mean, ratio};
use super::{Row, read_files};
use crate::error::{Failure, Result};
use crate::measure::latency::LatencySummary;

/// What to compare.
#[derive(Clone, Debug, PartialEq, Args)]
pub(crate) struct CompareRequest {
    /// The results file to compare with.
    before: PathBuf,
    /// The results file that is compared.
    after: PathBuf,
    /// How much slower a cell may be, in percent.
    #[arg(long, default_value = "5", value_name = "PERCENT", value_parser = percent)]
    threshold: f64,
}

fn percent(text: &str) -> std::result::Result<f64, String> {
    let percent: f64 = text.parse().map_err(|_| "not a number of percent".to_owned())?;
    if (0.0..100.0).contains(&percent) {
        Ok(percent)
    } else {
        Err("must be at least 0 and below 100".to_owned())
    }
}

/// Prints the table and the warnings; a slower cell is a failure.
pub(crate) fn compare(request: &CompareRequest) -> Result<()> {
    let (before, after) = (read(&request.before)?, read(&request.after)?);
    let compared = Comparison::of(&before, &after, request.threshold);
    for warning in warnings(&before, &after) {
        eprintln!("warning: {warning}");
    }
    if compared.lines.is_empty() {
        return Err(Failure::input("the files have no cell in common"));
    }
    println!("{}", compared.table());
    let (names, cells) = ([&request.before, &request.after], [&compared.removed, &compared.added]);
    for (name, cells) in names.iter().zip(cells) {
        for cell in cells {
            println!("only {} has {cell}", name.display());
        }
    }
    compared.verdict(request.threshold)
}

/// Rows with errors measured nothing, and nothing can be said of them.
fn read(path: &Path) -> Result<Vec<Row>> {
    let rows = read_files(&[path.to_path_buf()]).map_err(Failure::input)?;
    let bad = rows.iter().find(|row| row.measurement.errors + row.measurement.not_found > 0);
    match bad {
        None => Ok(rows),
        Some(row) => Err(Failure::input(format_args!(
            "{}: {} repeat {} has errors or missing records",
            path.display(),
            row.cell,
            row.repeat
        ))),
    }
}

type Fact<'a> = &'a dyn Fn(&Row) -> String;

/// What of the two files' surroundings differs, each in a line.
fn warnings(before: &[Row], after: &[Row]) -> Vec<String> {
    let machine = |row: &Row| {
        let machine = &row.machine;
        format!(
            "{} with {} cores and {} MiB, Linux {}, {} ({}), compiled for {}",
            machine.cpu,
            machine.cores,
            machine.memory_bytes >> 20,
            machine.kernel,
            machine.file_system,
            machine.mount_options,
            row.target_cpu
        )
    };
    let facts: [(&str, Fact<'_>); 2] =
        [("machines", &machine), ("commands", &|row| format!("bench {}", row.command))];
    let differing = facts.into_iter().filter_map(|(what, fact)| {
        let [before, after] = [before, after].map(|rows| {
            let facts: BTreeSet<String> = rows.iter().map(fact).collect();
            facts.into_iter().collect::<Vec<_>>().join(" and ")
        });
        (before != after).then(|| format!("different {what}: {before}; then {after}"))
    });
    differing.collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Slower,
    Faster,
    /// Within the threshold, or not certain.
    Unchanged,
    /// Of a single repeat nothing is certain.
    Unknown,
    /// A latency.
    Informative,
}

#[derive(Debug)]
struct Line {
    cell: String,
    figure: String,
    repeats: (usize, usize),
    means: (f64, f64),
    ratio: Ratio,
    verdict: Verdict,
}

#[derive(Debug)]
struct Comparison {
    lines: Vec<Line>,
    removed: Vec<String>,
    added: Vec<String>,
}

impl Comparison {
    fn of(before: &[Row], after: &[Row], threshold: f64) -> Self {
        let (before, after) = (cells(before), cells(after));
        let mut lines = Vec::new();
        for (cell, before) in &before {
            if let Some(after) = after.get(cell) {
                lines.extend(lines_of(cell, before, after, threshold));
            }
        }
        let only = |these: &Cells<'_>, those: &Cells<'_>| {
            these.keys().filter(|cell| !those.contains_key(*cell)).cloned().collect()
        };
        Self { lines, removed: only(&before, &after), added: only(&after, &before) }
    }

    fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY);
        table.set_header(["cell", "figure", "repeats", "before", "after", "ratio", "95 %", ""]);
        for line in &self.lines {
            let interval = line.ratio.interval;
            let interval = interval.map(|(low, high)| format!("{low:.3}-{high:.3}"));
            let verdict = match line.verdict {
                Verdict::Slower => "slower",
                Verdict::Faster => "faster",
                Verdict::Unknown => "one repeat",
                Verdict::Unchanged | Verdict::Informative => "",
            };
            table.add_row([
                line.cell.clone(),
                line.figure.clone(),
                format!("{}, {}", line.repeats.0, line.repeats.1),
                figure(line.means.0),
                figure(line.means.1),
                format!("{:.3}", line.ratio.ratio),
                interval.unwrap_or_else(|| "-".to_owned()),
                verdict.to_owned(),
            ]);
        }
        for column in 2..7 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.trim_fmt()
    }

    fn verdict(&self, threshold: f64) -> Result<()> {
        let slower = self.lines.iter().filter(|line| line.verdict == Verdict::Slower);
        let slower: Vec<&str> = slower.map(|line| line.cell.as_str()).collect();
        if slower.is_empty() {
            return Ok(());
        }
        Err(Failure::new(format_args!("slower by more than {threshold} %: {}", slower.join(", "))))
    }
}

fn figure(mean: f64) -> String {
    if mean < 100.0 { format!("{mean:.2}") } else { super::table::thousands(mean) }
}

type Cells<'a> = BTreeMap<String, Vec<&'a Row>>;

/// The repeats of each cell. A cell's name leaves out the bench and the folder, of which a repeat
/// loads two.
fn cells(rows: &[Row]) -> Cells<'_> {
    let mut cells = Cells::new();
    for row in rows {
        let name = format!("{} {} ({})", row.bench, row.cell, row.folder.name());
        cells.entry(name).or_default().push(row);
    }
    cells
}

fn lines_of(cell: &str, before: &[&Row], after: &[&Row], threshold: f64) -> Vec<Line> {
    let line = |name: String, figure: &dyn Fn(&Row) -> Option<f64>| {
        let of = |rows: &[&Row]| rows.iter().filter_map(|row| figure(row)).collect::<Vec<f64>>();
        let (before, after) = (of(before), of(after));
        Some(Line {
            cell: cell.to_owned(),
            figure: name,
            repeats: (before.len(), after.len()),
            means: (geometric_mean(&before)?, geometric_mean(&after)?),
            ratio: ratio(&before, &after)?,
            verdict: Verdict::Informative,
        })
    };
    let mut lines = Vec::new();
    if let Some(mut rate) = line("ops/s".to_owned(), &|row| Some(row.measurement.ops_per_sec)) {
        rate.verdict = verdict(rate.ratio.interval, threshold);
        lines.push(rate);
    }
    let kinds = before.iter().flat_map(|row| row.measurement.latency_ns.keys());
    for kind in kinds.collect::<BTreeSet<_>>() {
        let of = |row: &Row, figure: fn(&LatencySummary) -> u64| {
            row.measurement.latency_ns.get(kind).map(|latency| figure(latency) as f64 / 1e3)
        };
        lines.extend(line(format!("{kind} p50 µs"), &|row| of(row, |latency| latency.p50)));
        lines.extend(line(format!("{kind} p99 µs"), &|row| of(row, |latency| latency.p99)));
    }
    lines
}

/// Certain only where the whole interval is beyond the threshold.
fn verdict(interval: Option<(f64, f64)>, threshold: f64) -> Verdict {
    let slowest = 1.0 - threshold / 100.0;
    match interval {
        None => Verdict::Unknown,
        Some((_, high)) if high < slowest => Verdict::Slower,
        Some((low, _)) if low > 1.0 / slowest => Verdict::Faster,
        Some(_) => Verdict::Unchanged,
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::samples;
    use super::*;

    fn rows(store: &str, rates: &[f64]) -> Vec<Row> {
        let rows = (1..).zip(rates).map(|(repeat, &rate)| samples::row(store, repeat, rate));
        rows.map(|mut row| {
            row.cell = format!("{store}/c");
            row
        })
        .collect()
    }

    fn verdicts(before: &[f64], after: &[f64]) -> Vec<Verdict> {
        let compared = Comparison::of(&rows("a", before), &rows("a", after), 5.0);
        let certain = compared.lines.iter().map(|line| line.verdict);
        certain.filter(|verdict| *verdict != Verdict::Informative).collect()
    }

    #[test]
    fn equal_files_have_ratios_of_one_and_no_finding() {
        let rows = rows("a", &[95.0, 100.0, 105.0]);
        let compared = Comparison::of(&rows, &rows, 5.0);
        assert_eq!(compared.lines.len(), 3, "throughput, p50 and p99");
        for line in &compared.lines {
            assert!((line.ratio.ratio - 1.0).abs() < 1e-12, "{line:?}");
        }
        assert!(compared.verdict(5.0).is_ok());
        assert!(compared.removed.is_empty() && compared.added.is_empty());
    }

    #[test]
    fn a_slowdown_of_a_fifth_is_found_and_named_with_its_cell() {
        let before = [99.0, 100.0, 101.0];
        let after = before.map(|rate| rate * 0.8);
        assert_eq!(verdicts(&before, &after), [Verdict::Slower]);
        let compared = Comparison::of(&rows("a", &before), &rows("a", &after), 5.0);
        let failure = compared.verdict(5.0).unwrap_err().to_string();
        assert!(
            failure.contains("slower by more than 5 %") && failure.contains("a/c"),
            "{failure}"
        );
        assert!(compared.table().contains("0.800"), "{}", compared.table());
        assert_eq!(verdicts(&after, &before), [Verdict::Faster]);
    }

    #[test]
    fn noise_is_no_finding() {
        // The means differ by a fifth, but so do the repeats of either side.
        assert_eq!(verdicts(&[80.0, 100.0, 120.0], &[60.0, 80.0, 100.0]), [Verdict::Unchanged]);
        // Certain, but within the threshold.
        assert_eq!(verdicts(&[99.9, 100.0, 100.1], &[96.9, 97.0, 97.1]), [Verdict::Unchanged]);
        assert_eq!(verdicts(&[100.0], &[10.0]), [Verdict::Unknown]);
    }

    #[test]
    fn cells_that_one_file_has_are_listed() {
        let both = rows("a", &[1.0, 2.0]);
        let more: Vec<Row> = both.iter().cloned().chain(rows("b", &[1.0])).collect();
        let compared = Comparison::of(&both, &more, 5.0);
        assert_eq!(compared.added, ["table-bound b/c (main)"]);
        let compared = Comparison::of(&more, &both, 5.0);
        assert_eq!(compared.removed, ["table-bound b/c (main)"]);
    }

    #[test]
    fn other_machines_and_commands_are_a_line_each() {
        let before = rows("a", &[1.0]);
        let mut after = before.clone();
        assert!(warnings(&before, &after).is_empty());
        after[0].commit = "another".to_owned();
        assert!(warnings(&before, &after).is_empty(), "commits are what is compared");
        after[0].machine.cores = 64;
        after[0].command = "table-bound --records 7".to_owned();
        let found = warnings(&before, &after);
        assert_eq!(found.len(), 2);
        assert!(found[0].contains("64 cores") && found[1].contains("--records 7"), "{found:?}");
    }
}
