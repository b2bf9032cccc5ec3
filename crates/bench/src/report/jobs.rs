//! All tables of some rows: that of the workloads, and those of the jobs that measure something
//! else than a rate: write amplification and the time of opening.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table, presets};

use super::markdown::{markdown, sources};
use super::row::Row;
use super::table::{median, median_of, table, thousands};
use crate::measure::page_cache::PageCache;

const AMPLIFICATION: [&str; 11] = [
    "overwrites",
    "store",
    "live GB",
    "written/user, process",
    "written/user, store",
    "peak/live",
    "settled/live",
    "ops/s",
    "max ms",
    "writes > 20 ms",
    "disk alone, max ms",
];
const OPENING: [&str; 10] = [
    "records",
    "tail",
    "page cache",
    "store",
    "open ms, median",
    "min",
    "max",
    "first read µs",
    "recovered",
    "disk MiB",
];
const VERIFICATION: [&str; 11] = [
    "workload",
    "clients",
    "store",
    "operations",
    "reads",
    "rows",
    "writes",
    "not answered",
    "log MiB",
    "check s",
    "mismatches",
];
/// Columns of words, which stand left; the others are numbers.
const WORDS: [&str; 5] = ["overwrites", "store", "page cache", "workload", "mismatches"];

/// A table before it has a form.
struct Figures {
    header: &'static [&'static str],
    lines: Vec<Vec<String>>,
}

/// For a terminal.
pub(crate) fn tables(rows: &[Row]) -> String {
    let parts = Parts::of(rows);
    let mut texts = Vec::new();
    if !parts.workloads.is_empty() {
        texts.push(table(&parts.workloads));
    }
    texts.extend(parts.figures().iter().map(Figures::terminal));
    texts.join("\n\n")
}

/// For pages.
pub(crate) fn markdown_tables(rows: &[Row]) -> String {
    let parts = Parts::of(rows);
    let mut texts = Vec::new();
    if !parts.workloads.is_empty() {
        texts.push(markdown(&parts.workloads));
    }
    texts.extend(parts.figures().iter().map(Figures::markdown));
    texts.extend(sources(&parts.others()));
    texts.join("\n")
}

/// The rows by the table that shows them.
struct Parts {
    workloads: Vec<Row>,
    overwrites: Vec<Row>,
    openings: Vec<Row>,
    verifications: Vec<Row>,
}

impl Parts {
    fn of(rows: &[Row]) -> Self {
        let (overwrites, rest): (Vec<Row>, Vec<Row>) =
            rows.iter().cloned().partition(|row| row.write_amplification.is_some());
        let (openings, rest): (Vec<Row>, Vec<Row>) =
            rest.into_iter().partition(|row| row.opening.is_some());
        let (verifications, workloads) = rest.into_iter().partition(|row| row.verify.is_some());
        Self { workloads, overwrites, openings, verifications }
    }

    fn others(&self) -> Vec<Row> {
        let others = self.overwrites.iter().chain(&self.openings).chain(&self.verifications);
        others.cloned().collect()
    }

    fn figures(&self) -> Vec<Figures> {
        let amplification = Figures { header: &AMPLIFICATION, lines: overwrites(&self.overwrites) };
        let opening = Figures { header: &OPENING, lines: openings(&self.openings) };
        let lines = self.verifications.iter().filter_map(verification_line).collect();
        let verification = Figures { header: &VERIFICATION, lines };
        let mut figures = vec![amplification, opening, verification];
        figures.retain(|figures| !figures.lines.is_empty());
        figures
    }
}

/// The repeats of a cell together.
fn grouped<'a, K: Ord>(rows: &'a [Row], key: impl Fn(&'a Row) -> K) -> BTreeMap<K, Vec<&'a Row>> {
    let mut groups: BTreeMap<K, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        groups.entry(key(row)).or_default().push(row);
    }
    groups
}

fn overwrites(rows: &[Row]) -> Vec<Vec<String>> {
    let key = |row: &Row| (row.records, row.workload.clone(), row.store.clone());
    grouped(rows, key).values().map(|rows| overwrite_line(rows)).collect()
}

fn overwrite_line(rows: &[&Row]) -> Vec<String> {
    let Some(first) = rows.first() else { return Vec::new() };
    let written = rows.iter().filter_map(|row| row.write_amplification.as_ref());
    let process = written.clone().map(|written| written.write_amplification_process);
    let store: Vec<f64> = written.filter_map(|w| w.write_amplification_store).collect();
    let live = median_of(rows, |row| row.live_bytes.unwrap_or_default()).max(1);
    let of_live =
        |bytes: fn(&Row) -> u64| format!("{:.2}", median_of(rows, bytes) as f64 / live as f64);
    let longest = rows.iter().flat_map(|row| row.measurement.latency_ns.values());
    let stalls = rows.iter().filter_map(|row| row.measurement.writes_above_20ms);
    let probes = rows.iter().filter_map(|row| row.measurement.disk_probe_max_ns);
    vec![
        format!("{}x", first.write_amplification.as_ref().map_or(0.0, |w| w.turnover))
            + " "
            + first.workload.trim_start_matches("overwrite-"),
        first.store.clone(),
        format!("{:.2}", live as f64 / 1e9),
        format!("{:.2}", median(process.collect())),
        if store.is_empty() { "-".to_owned() } else { format!("{:.2}", median(store)) },
        of_live(|row| row.measurement.disk_peak_bytes.unwrap_or_default()),
        of_live(|row| row.measurement.disk_bytes),
        thousands(median(rows.iter().map(|row| row.measurement.ops_per_sec).collect())),
        milliseconds(longest.map(|latency| latency.max).max().unwrap_or_default()),
        stalls.sum::<u64>().to_string(),
        milliseconds(probes.max().unwrap_or_default()),
    ]
}

fn openings(rows: &[Row]) -> Vec<Vec<String>> {
    let tail = |row: &Row| row.opening.as_ref().map_or(0, |opening| opening.tail_records);
    let cache = |row: &Row| row.measurement.page_cache.unwrap_or_default();
    let key = |row: &Row| (row.records, tail(row), cache(row), row.store.clone());
    grouped(rows, key)
        .iter()
        .map(|((records, tail, cache, store), rows)| {
            opening_line(*records, *tail, *cache, store, rows)
        })
        .collect()
}

fn opening_line(
    records: u64,
    tail: u64,
    cache: PageCache,
    store: &str,
    rows: &[&Row],
) -> Vec<String> {
    let of = |figure: fn(&Row) -> Option<u64>| rows.iter().filter_map(move |row| figure(row));
    let opened = || of(|row| row.opening.as_ref().map(|opening| opening.open_ns));
    let recovered = of(|row| row.opening.as_ref()?.recovered_records).max();
    let open_ns = |row: &Row| row.opening.as_ref().map_or(0, |opening| opening.open_ns);
    let first_read = |row: &Row| row.opening.as_ref().map_or(0, |opening| opening.first_read_ns);
    vec![
        thousands(records as f64),
        thousands(tail as f64),
        cache.name().to_owned(),
        store.to_owned(),
        milliseconds(median_of(rows, open_ns)),
        milliseconds(opened().min().unwrap_or_default()),
        milliseconds(opened().max().unwrap_or_default()),
        format!("{:.1}", median_of(rows, first_read) as f64 / 1e3),
        recovered.map_or_else(|| "-".to_owned(), |records| thousands(records as f64)),
        super::table::mebibytes(median_of(rows, |row| row.measurement.disk_bytes)),
    ]
}

fn verification_line(row: &Row) -> Option<Vec<String>> {
    let verify = row.verify.as_ref()?;
    let count = |count: u64| thousands(count as f64);
    let kinds: Vec<_> =
        verify.mismatches.iter().map(|(kind, &found)| format!("{kind} {}", count(found))).collect();
    Some(vec![
        format!("{}, {}", row.workload.to_uppercase(), row.durability.name()),
        row.threads.to_string(),
        row.store.clone(),
        count(row.measurement.operations),
        count(verify.reads),
        count(verify.rows),
        count(verify.writes),
        count(verify.unanswered),
        super::table::mebibytes(verify.log_bytes),
        format!("{:.1}", verify.check_seconds),
        if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") },
    ])
}

fn milliseconds(nanoseconds: u64) -> String {
    format!("{:.2}", nanoseconds as f64 / 1e6)
}

impl Figures {
    fn terminal(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(self.header);
        for line in &self.lines {
            table.add_row(line);
        }
        for (number, title) in self.header.iter().enumerate() {
            if let Some(column) = table.column_mut(number)
                && !WORDS.contains(title)
            {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.trim_fmt()
    }

    fn markdown(&self) -> String {
        let rule = |title: &&str| if WORDS.contains(title) { "---" } else { "--:" };
        let rules: Vec<_> = self.header.iter().map(rule).collect();
        let mut out = format!("| {} |\n|{}|\n", self.header.join(" | "), rules.join("|"));
        for line in &self.lines {
            out += &format!("| {} |\n", line.join(" | "));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::samples;
    use super::*;
    use crate::measure::amplification::WriteAmplification;
    use crate::run::Opening;
    use crate::verify::history::{Kind, Verification};

    fn overwritten(store: &str, repeat: u32, process: u64, stored: Option<u64>) -> Row {
        let mut row = samples::row(store, repeat, 1_000.0);
        row.workload = "overwrite-zipfian".to_owned();
        row.live_bytes = Some(1_000_000_000);
        row.measurement.disk_bytes = 1_500_000_000;
        row.measurement.disk_peak_bytes = Some(2_500_000_000);
        row.measurement.writes_above_20ms = Some(3);
        row.measurement.disk_probe_max_ns = Some(1_250_000);
        row.write_amplification = Some(WriteAmplification::new(1_000, 2.0, process, stored));
        row
    }

    fn opened(repeat: u32, tail: u64, open_ns: u64) -> Row {
        let mut row = samples::row("sediment", repeat, 1.0);
        row.records = 1_000_000;
        let recovered = Some(tail);
        let opening = Opening {
            tail_records: tail,
            open_ns,
            first_read_ns: 2_500,
            recovered_records: recovered,
        };
        row.opening = Some(opening);
        row
    }

    #[test]
    fn overwrites_have_a_line_with_medians_and_the_worst_stall() {
        let rows = [
            overwritten("sediment", 1, 3_000, Some(2_500)),
            overwritten("sediment", 2, 5_000, Some(3_500)),
        ];
        let text = markdown_tables(&rows);
        let line = text.lines().find(|line| line.contains("| sediment |")).unwrap();
        let expected = "| 2x zipfian | sediment | 1.00 | 4.00 | 3.00 | 2.50 | 1.50 | 1 000 | 0.25 | 6 | 1.25 |";
        assert_eq!(line, expected);
        assert!(!text.contains("| workload |"), "no table without a row:\n{text}");
        assert!(text.contains("Run `run`"), "{text}");
    }

    #[test]
    fn a_store_without_statistics_has_a_dash() {
        let text = tables(&[overwritten("rocksdb", 1, 7_000, None)]);
        assert!(text.contains("7.00") && text.contains(" - "), "{text}");
    }

    #[test]
    fn openings_are_by_size_and_tail() {
        let rows = [
            opened(1, 10_000, 4_000_000),
            opened(1, 0, 1_000_000),
            opened(2, 10_000, 6_000_000),
            opened(2, 0, 3_000_000),
        ];
        let text = markdown_tables(&rows);
        let lines: Vec<_> = text.lines().filter(|line| line.contains("| sediment |")).collect();
        let expected = [
            "| 1 000 000 | 0 | as left | sediment | 2.00 | 1.00 | 3.00 | 2.5 | 0 | 7.0 |",
            "| 1 000 000 | 10 000 | as left | sediment | 5.00 | 4.00 | 6.00 | 2.5 | 10 000 | 7.0 |",
        ];
        assert_eq!(lines, expected);
    }

    fn verified(mismatches: &[(Kind, u64)]) -> Row {
        let mut row = samples::row("sediment", 1, 1.0);
        row.workload = "e".to_owned();
        row.measurement.operations = 40_000;
        row.verify = Some(Verification {
            reads: 10,
            scans: 20,
            rows: 1_000,
            writes: 300,
            unanswered: 0,
            log_bytes: 3 << 19,
            check_seconds: 0.25,
            mismatches: mismatches.iter().copied().collect(),
            first_mismatch: None,
        });
        row
    }

    #[test]
    fn a_verification_has_its_figures_and_its_mismatches_by_kind() {
        let text =
            markdown_tables(&[verified(&[]), verified(&[(Kind::Stale, 2), (Kind::Torn, 1)])]);
        let lines: Vec<_> = text.lines().filter(|line| line.contains("| sediment |")).collect();
        let figures = "| E, durable | 1 | sediment | 40 000 | 10 | 1 000 | 300 | 0 | 1.5 | 0.2 |";
        assert_eq!(lines, [format!("{figures} none |"), format!("{figures} stale 2, torn 1 |")]);
        assert!(!text.contains("ops/s"), "no table without a row:\n{text}");
    }

    #[test]
    fn rows_of_all_kinds_survive_a_round_trip() {
        let plain = samples::row("rocksdb", 1, 1.0);
        let verified = verified(&[(Kind::LostUpdate, 1)]);
        for row in [plain, overwritten("rocksdb", 1, 1, None), opened(1, 5, 1), verified] {
            let text = serde_json::to_string(&row).unwrap();
            assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row, "{text}");
        }
    }

    #[test]
    fn a_row_of_the_first_runs_lacks_the_newer_fields() {
        let row = samples::row("sediment", 1, 1.0);
        assert_eq!((row.job, row.live_bytes, row.opening), (None, None, None));
        assert_eq!(row.measurement.disk_peak_bytes, None);
        assert_eq!(row.write_amplification, None);
    }
}
