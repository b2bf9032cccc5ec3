//! go-ycsb's lines, as its measurement type `histogram` prints them in the plain style:
//! <https://github.com/pingcap/go-ycsb/tree/master/pkg/measurement>
//!
//! As in go-ycsb, time and rate are by the wall clock, kinds have its names and stand in the order
//! of these, and `TOTAL` counts a read-modify-write as its read and its update.

use std::collections::{BTreeMap, BTreeSet};

use super::latency::{Latency, by_kind, total};
use super::{Rendered, microseconds, title};
use crate::error::Result;
use crate::report::Row;

pub(super) fn render(rows: &[Row]) -> Result<Rendered> {
    let (mut blocks, mut missing) = (Vec::new(), BTreeSet::new());
    for row in rows {
        blocks.push(block(row, &mut missing)?);
    }
    Ok(Rendered { text: blocks.join("\n"), missing })
}

fn block(row: &Row, missing: &mut BTreeSet<String>) -> Result<String> {
    let kinds = by_kind(row)?.into_iter().map(|(kind, latency)| (name(kind), latency));
    let mut lines: BTreeMap<&str, Latency> = kinds.collect();
    lines.extend(total(row)?.map(|total| ("TOTAL", total)));
    let mut text = title(row);
    for (name, latency) in lines {
        let figures = figures(name, &latency, row.measurement.window_seconds, missing);
        text += &format!("{name:<6} - {}\n", figures.join(", "));
    }
    Ok(text)
}

fn name(kind: &str) -> &str {
    match kind {
        "READ-MODIFY-WRITE" => "READ_MODIFY_WRITE",
        "LOAD-BATCH" => "BATCH_INSERT",
        other => other,
    }
}

fn figures(
    name: &str,
    latency: &Latency,
    seconds: f64,
    missing: &mut BTreeSet<String>,
) -> Vec<String> {
    let mut figures = vec![
        format!("Takes(s): {seconds:.1}"),
        format!("Count: {}", latency.count),
        format!("OPS: {:.1}", latency.count as f64 / seconds),
        format!("Avg(us): {:.0}", (latency.mean / 1e3).floor()),
    ];
    let rest = [
        ("Min(us)", latency.min),
        ("Max(us)", Some(latency.max)),
        ("50th(us)", latency.p50),
        ("90th(us)", latency.p90),
        ("95th(us)", latency.p95),
        ("99th(us)", latency.p99),
        ("99.9th(us)", latency.p999),
        ("99.99th(us)", latency.p9999),
    ];
    for (figure, nanoseconds) in rest {
        match nanoseconds {
            Some(nanoseconds) => figures.push(format!("{figure}: {}", microseconds(nanoseconds))),
            None => drop(missing.insert(match name {
                "TOTAL" => format!("{figure} of TOTAL in rows without histograms"),
                _ => format!("{figure} of rows without it and histograms"),
            })),
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::super::samples::{old_row, row_with_histograms};
    use super::*;

    const GOLDEN: &str = "\
# sediment/f/1/durable/1x1x1 repeat 1 of run
READ   - Takes(s): 2.0, Count: 4, OPS: 2.0, Avg(us): 2, Min(us): 1, Max(us): 4, 50th(us): 2, 90th(us): 4, 95th(us): 4, 99th(us): 4, 99.9th(us): 4, 99.99th(us): 4
READ_MODIFY_WRITE - Takes(s): 2.0, Count: 2, OPS: 1.0, Avg(us): 17, Min(us): 12, Max(us): 23, 50th(us): 12, 90th(us): 23, 95th(us): 23, 99th(us): 23, 99.9th(us): 23, 99.99th(us): 23
TOTAL  - Takes(s): 2.0, Count: 6, OPS: 3.0, Avg(us): 6, Min(us): 1, Max(us): 20, 50th(us): 3, 90th(us): 20, 95th(us): 20, 99th(us): 20, 99.9th(us): 20, 99.99th(us): 20
UPDATE - Takes(s): 2.0, Count: 2, OPS: 1.0, Avg(us): 15, Min(us): 10, Max(us): 20, 50th(us): 10, 90th(us): 20, 95th(us): 20, 99th(us): 20, 99.9th(us): 20, 99.99th(us): 20
";

    #[test]
    fn a_row_is_what_go_ycsb_prints_for_a_run() {
        let rendered = render(&[row_with_histograms()]).unwrap();
        assert_eq!(rendered.text, GOLDEN);
        assert!(rendered.missing.is_empty(), "{:?}", rendered.missing);
    }

    #[test]
    fn what_a_row_does_not_have_is_left_out_and_named() {
        let mut row = old_row();
        row.measurement.latency_ns.remove("READ-MODIFY-WRITE");
        let rendered = render(&[row]).unwrap();
        let expected = "\
# sediment/f/1/durable/1x1x1 repeat 1 of run
READ   - Takes(s): 2.0, Count: 4, OPS: 2.0, Avg(us): 2, Max(us): 4, 50th(us): 2, 95th(us): 4, 99th(us): 4, 99.9th(us): 4, 99.99th(us): 4
TOTAL  - Takes(s): 2.0, Count: 6, OPS: 3.0, Avg(us): 6, Max(us): 20
UPDATE - Takes(s): 2.0, Count: 2, OPS: 1.0, Avg(us): 15, Max(us): 20, 50th(us): 10, 95th(us): 20, 99th(us): 20, 99.9th(us): 20, 99.99th(us): 20
";
        assert_eq!(rendered.text, expected);
        assert!(rendered.missing.contains("50th(us) of TOTAL in rows without histograms"));
        assert!(rendered.missing.contains("90th(us) of rows without it and histograms"));
        assert_eq!(rendered.missing.len(), 1 + 1 + 7, "{:?}", rendered.missing);
    }

    #[test]
    fn kinds_of_ours_have_go_ycsbs_names() {
        assert_eq!((name("LOAD-BATCH"), name("SCAN")), ("BATCH_INSERT", "SCAN"));
    }
}
