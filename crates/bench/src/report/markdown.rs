//! The table as Markdown, for pages: one line a cell with the stores side by side, and below it
//! what the figures come from.

use std::collections::BTreeSet;

use super::row::{Phase, Row};
use super::table::{cells, fold, mebibytes, median, median_of, own_memory, ratio, thousands};
use crate::store::StoreKind;

/// The cells of the rows' runs in the order of the table, and their runs.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let oracle = StoreKind::ORACLE.name();
    let mut out = format!(
        "| workload | clients | store | ops/s, median | min-max | ratio to {oracle} | own MiB | \
         mapped MiB | disk MiB |\n|---|--:|---|--:|--:|--:|--:|--:|--:|\n",
    );
    for stores in cells(rows).values() {
        for (store, rows) in stores {
            let Some(first) = rows.first() else { continue };
            let rates: Vec<f64> = rows.iter().map(|row| row.measurement.ops_per_sec).collect();
            let (low, high) = (fold(&rates, f64::min), fold(&rates, f64::max));
            let ratio = if *store == oracle {
                "1".to_owned()
            } else {
                let ratio = ratio(rows, stores.get(oracle).map(Vec::as_slice));
                ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
            };
            let workload = match first.phase {
                Phase::Load => "load".to_owned(),
                Phase::Run => {
                    format!("{}, {}", first.workload.to_uppercase(), first.durability.name())
                }
            };
            out += &format!(
                "| {workload} | {} | {store} | {} | {} - {} | {ratio} | {} | {} | {} |\n",
                first.threads,
                thousands(median(rates)),
                thousands(low),
                thousands(high),
                mebibytes(median_of(rows, own_memory)),
                mebibytes(median_of(rows, |row| row.measurement.rss_file_end_bytes)),
                mebibytes(median_of(rows, |row| row.measurement.disk_bytes)),
            );
        }
    }
    for source in sources(rows) {
        out.push('\n');
        out += &source;
    }
    out
}

/// Run, command, commit and machine of every run, once each.
pub(super) fn sources(rows: &[Row]) -> BTreeSet<String> {
    let source = |row: &Row| {
        let machine = &row.machine;
        format!(
            "Run `{}`: `bench {}`, commit `{}`; {} with {} cores and {} MiB, Linux {}, {}, read-ahead \
             {} KiB, compiled for {}; {} records of {} x {} bytes, {} repeats.\n",
            row.run,
            row.command,
            row.commit,
            machine.cpu,
            machine.cores,
            machine.memory_bytes >> 20,
            machine.kernel,
            machine.file_system,
            machine.read_ahead_kb.map_or_else(|| "?".to_owned(), |kib| kib.to_string()),
            row.target_cpu,
            thousands(row.records as f64),
            row.fields,
            row.field_bytes,
            rows.iter()
                .filter(|other| other.run == row.run)
                .map(|row| row.repeat)
                .max()
                .unwrap_or(0),
        )
    };
    rows.iter().map(source).collect()
}

#[cfg(test)]
mod tests {
    use super::super::row::samples;
    use super::*;

    #[test]
    fn a_line_has_its_ratio_and_a_run_its_source() {
        let rows = [
            samples::row("sediment", 1, 3_000.0),
            samples::row("rocksdb", 1, 1_000.0),
            samples::row("sediment", 2, 5_000.0),
            samples::row("rocksdb", 2, 1_000.0),
        ];
        let text = markdown(&rows);
        let ours = text.lines().find(|line| line.contains("| sediment |")).unwrap();
        assert!(ours.contains("| 4 000 | 3 000 - 5 000 | 4.00 |"), "{ours}");
        let oracle = text.lines().find(|line| line.contains("| rocksdb |")).unwrap();
        assert!(oracle.contains("| 1 000 | 1 000 - 1 000 | 1 |"), "{oracle}");
        assert_eq!(text.matches("Run `run`: `bench table-bound`, commit `unknown`;").count(), 1);
        assert!(text.contains("2 repeats"), "{text}");
    }
}
