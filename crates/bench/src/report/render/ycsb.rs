//! YCSB's text, as 0.17's `TextMeasurementsExporter` writes it with HdrHistogram:
//! <https://github.com/brianfrankcooper/YCSB/tree/0.17.0/core/src/main/java/site/ycsb/measurements>
//!
//! Run time and throughput are by the wall clock of the window, as YCSB counts them, so the
//! throughput is lower than a row's `ops_per_sec`, which leaves generation out.

use std::collections::BTreeSet;
use std::fmt::Display;

use super::latency::{Latency, by_kind};
use super::{Rendered, microseconds, title};
use crate::error::Result;
use crate::report::Row;

/// YCSB counts no answers of these: a read-modify-write's parts have theirs.
const WITHOUT_ANSWERS: &str = "READ-MODIFY-WRITE";

pub(super) fn render(rows: &[Row]) -> Result<Rendered> {
    let (mut blocks, mut missing) = (Vec::new(), BTreeSet::new());
    for row in rows {
        blocks.push(block(row, &mut missing)?);
    }
    Ok(Rendered { text: blocks.join("\n"), missing })
}

fn block(row: &Row, missing: &mut BTreeSet<String>) -> Result<String> {
    let measurement = &row.measurement;
    let seconds = measurement.window_seconds;
    let mut text = title(row);
    text += &line("OVERALL", "RunTime(ms)", format_args!("{:.0}", seconds * 1e3));
    let throughput = measurement.operations as f64 / seconds;
    text += &line("OVERALL", "Throughput(ops/sec)", format_args!("{throughput:?}"));
    for (kind, latency) in by_kind(row)? {
        text += &figures(kind, &latency, missing);
        if kind == WITHOUT_ANSWERS {
            continue;
        }
        if measurement.errors + measurement.not_found == 0 {
            text += &line(kind, "Return=OK", latency.count);
        } else {
            missing.insert("Return=OK of rows with errors, which are not told by kind".to_owned());
        }
    }
    Ok(text)
}

fn figures(kind: &str, latency: &Latency, missing: &mut BTreeSet<String>) -> String {
    let average = latency.mean / 1e3;
    let mut text = line(kind, "Operations", latency.count);
    text += &line(kind, "AverageLatency(us)", format_args!("{average:?}"));
    let rest = [
        ("MinLatency(us)", latency.min),
        ("MaxLatency(us)", Some(latency.max)),
        ("95thPercentileLatency(us)", latency.p95),
        ("99thPercentileLatency(us)", latency.p99),
    ];
    for (name, figure) in rest {
        match figure {
            Some(nanoseconds) => text += &line(kind, name, microseconds(nanoseconds)),
            None => drop(missing.insert(format!("{name} of rows without it and histograms"))),
        }
    }
    text
}

fn line(metric: &str, name: &str, value: impl Display) -> String {
    format!("[{metric}], {name}, {value}\n")
}

#[cfg(test)]
mod tests {
    use super::super::samples::{old_row, row};
    use super::*;

    const GOLDEN: &str = "\
# sediment/f/1/durable/1x1x1 repeat 1 of run
[OVERALL], RunTime(ms), 2000
[OVERALL], Throughput(ops/sec), 2.0
[READ], Operations, 4
[READ], AverageLatency(us), 2.5
[READ], MinLatency(us), 1
[READ], MaxLatency(us), 4
[READ], 95thPercentileLatency(us), 4
[READ], 99thPercentileLatency(us), 4
[READ], Return=OK, 4
[READ-MODIFY-WRITE], Operations, 2
[READ-MODIFY-WRITE], AverageLatency(us), 17.75
[READ-MODIFY-WRITE], MinLatency(us), 12
[READ-MODIFY-WRITE], MaxLatency(us), 23
[READ-MODIFY-WRITE], 95thPercentileLatency(us), 23
[READ-MODIFY-WRITE], 99thPercentileLatency(us), 23
[UPDATE], Operations, 2
[UPDATE], AverageLatency(us), 15.25
[UPDATE], MinLatency(us), 10
[UPDATE], MaxLatency(us), 20
[UPDATE], 95thPercentileLatency(us), 20
[UPDATE], 99thPercentileLatency(us), 20
[UPDATE], Return=OK, 2
";

    #[test]
    fn a_row_is_what_ycsb_prints_for_a_run() {
        let rendered = render(&[row()]).unwrap();
        assert_eq!(rendered.text, GOLDEN);
        assert!(rendered.missing.is_empty(), "{:?}", rendered.missing);
    }

    #[test]
    fn rows_are_blocks_with_an_empty_line_between_them() {
        let rendered = render(&[row(), row()]).unwrap();
        assert_eq!(rendered.text, format!("{GOLDEN}\n{GOLDEN}"));
    }

    #[test]
    fn what_a_row_does_not_have_is_left_out_and_named() {
        let mut row = old_row();
        row.measurement.not_found = 1;
        let rendered = render(&[row]).unwrap();
        let left_out = |line: &&str| !line.contains("Min") && !line.contains("Return");
        let expected: Vec<_> = GOLDEN.lines().filter(left_out).collect();
        assert_eq!(rendered.text.lines().collect::<Vec<_>>(), expected);
        let missing: Vec<_> = rendered.missing.iter().map(String::as_str).collect();
        let expected = [
            "MinLatency(us) of rows without it and histograms",
            "Return=OK of rows with errors, which are not told by kind",
        ];
        assert_eq!(missing, expected);
    }
}
