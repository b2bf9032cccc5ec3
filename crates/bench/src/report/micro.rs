//! The figures of the micro suite: a comparison as CSV, and a line of the history.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Row;
use super::history::{self, Entry};
use super::table::{fold, median};
use crate::error::{Context, Failure, Result};
use crate::run::Part;
use crate::store::StoreKind;

const HEADER: [&str; 9] =
    ["figure", "unit", "store", "repeats", "median", "min", "max", "ratio_to_rocksdb", "note"];

/// The rows of one store and repeat.
type Repeat<'a> = BTreeMap<&'a str, &'a Row>;

/// A figure of a repeat, if the store has it.
struct Figure {
    name: &'static str,
    unit: &'static str,
    of: fn(&Repeat<'_>) -> Option<f64>,
}

const FIGURES: [Figure; 8] = [
    Figure { name: "insert-small", unit: "documents/s", of: |rows| rate(rows, Part::InsertSmall) },
    Figure { name: "insert-large", unit: "documents/s", of: |rows| rate(rows, Part::InsertLarge) },
    Figure { name: "lookup", unit: "reads/s", of: |rows| rate(rows, Part::Lookup) },
    Figure { name: "full-scan", unit: "rows/s", of: scan },
    Figure { name: "index-rebuild", unit: "s", of: rebuild },
    Figure { name: "live-share", unit: "live/disk bytes", of: live_share },
    Figure { name: "refill-disk", unit: "disk after/before", of: refill },
    Figure { name: "oversize-refused", unit: "1 is yes", of: refused },
];

fn row<'a>(rows: &Repeat<'a>, part: Part) -> Option<&'a Row> {
    rows.get(part.workload()).copied()
}

fn rate(rows: &Repeat<'_>, part: Part) -> Option<f64> {
    row(rows, part).map(|row| row.measurement.ops_per_sec)
}

fn scan(rows: &Repeat<'_>) -> Option<f64> {
    let measurement = &row(rows, Part::Scan)?.measurement;
    Some(measurement.scanned_rows as f64 / measurement.seconds)
}

fn rebuild(rows: &Repeat<'_>) -> Option<f64> {
    row(rows, Part::Rebuild)?.opening.as_ref().map(|opening| opening.open_ns as f64 / 1e9)
}

fn live_share(rows: &Repeat<'_>) -> Option<f64> {
    let row = row(rows, Part::DeleteHalf)?;
    row.live_bytes.map(|live| live as f64 / row.measurement.disk_bytes as f64)
}

fn refill(rows: &Repeat<'_>) -> Option<f64> {
    let disk = |part| row(rows, part).map(|row| row.measurement.disk_bytes as f64);
    Some(disk(Part::Refill)? / disk(Part::InsertSmall)?)
}

fn refused(rows: &Repeat<'_>) -> Option<f64> {
    let oversize = row(rows, Part::Oversize)?.oversize.as_ref()?;
    Some(f64::from(u8::from(oversize.oversize_refused)))
}

/// By store, then by repeat.
fn repeats(rows: &[Row]) -> BTreeMap<&str, BTreeMap<u32, Repeat<'_>>> {
    let mut repeats: BTreeMap<&str, BTreeMap<u32, Repeat<'_>>> = BTreeMap::new();
    for row in rows {
        let of_store = repeats.entry(row.store.as_str()).or_default();
        of_store.entry(row.repeat).or_default().insert(&row.workload, row);
    }
    repeats
}

/// What stores said to the oversize document, each text once.
fn refusals(repeats: &BTreeMap<u32, Repeat<'_>>) -> String {
    let rows = repeats.values().filter_map(|rows| row(rows, Part::Oversize));
    let errors = rows.filter_map(|row| row.oversize.as_ref()?.oversize_error.as_deref());
    errors.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("; ")
}

/// Writes the comparison beside the rows, and adds a line to the history.
pub(crate) fn write(results: &Path, rows: &[Row]) -> Result<()> {
    let Some(first) = rows.first() else { return Err(Failure::new("no part was measured")) };
    let file = results.join(format!("{}.csv", first.run));
    std::fs::write(&file, comparison(rows)?)
        .context(|| format!("cannot write {}", file.display()))?;
    let history = results.join(history::FILE);
    history::append(&history, &entry(first, rows))?;
    println!("comparison in {}, history in {}", file.display(), history.display());
    Ok(())
}

fn comparison(rows: &[Row]) -> Result<String> {
    let what = || "cannot write CSV";
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADER).context(what)?;
    let stores = repeats(rows);
    for figure in &FIGURES {
        for (store, repeats) in &stores {
            let of = |rows: &Repeat<'_>| (figure.of)(rows);
            let values: Vec<f64> = repeats.values().filter_map(of).collect();
            let ratios: Vec<f64> = repeats
                .iter()
                .filter_map(|(repeat, rows)| {
                    let oracle = stores.get(StoreKind::ORACLE.name())?.get(repeat)?;
                    Some(of(rows)? / of(oracle)?).filter(|ratio| ratio.is_finite())
                })
                .collect();
            let one = |values: &[f64], of: &dyn Fn(&[f64]) -> f64| {
                if values.is_empty() { String::new() } else { of(values).to_string() }
            };
            let middle = |values: &[f64]| median(values.to_vec());
            let note =
                if figure.name == "oversize-refused" { refusals(repeats) } else { String::new() };
            writer
                .write_record([
                    figure.name,
                    figure.unit,
                    store,
                    &values.len().to_string(),
                    &one(&values, &middle),
                    &one(&values, &|values| fold(values, f64::min)),
                    &one(&values, &|values| fold(values, f64::max)),
                    &one(&ratios, &middle),
                    &note,
                ])
                .context(what)?;
        }
    }
    let bytes = writer.into_inner().context(what)?;
    String::from_utf8(bytes).context(what)
}

fn entry(first: &Row, rows: &[Row]) -> Entry {
    let figures = repeats(rows).into_iter().map(|(store, repeats)| {
        let figures = FIGURES.iter().map(|figure| {
            let values: Vec<f64> = repeats.values().filter_map(|rows| (figure.of)(rows)).collect();
            let figure_of = |values: Vec<f64>| (!values.is_empty()).then(|| median(values));
            (figure.name.to_owned(), figure_of(values))
        });
        (store.to_owned(), figures.collect())
    });
    Entry {
        schema: super::SCHEMA,
        date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        run: first.run.clone(),
        command: first.command.clone(),
        commit: first.commit.clone(),
        machine: first.machine.clone(),
        target_cpu: first.target_cpu.clone(),
        figures: figures.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::samples;
    use super::*;
    use crate::run::Oversize;

    fn of(store: &str, repeat: u32, part: Part, rate: f64, disk: u64) -> Row {
        let mut row = samples::row(store, repeat, rate);
        row.workload = part.workload().to_owned();
        row.measurement.disk_bytes = disk;
        row
    }

    fn rows() -> Vec<Row> {
        let mut half = of("sediment", 1, Part::DeleteHalf, 1.0, 200);
        half.live_bytes = Some(150);
        let mut scan = of("sediment", 1, Part::Scan, 1.0, 0);
        (scan.measurement.scanned_rows, scan.measurement.seconds) = (500, 0.25);
        let mut oversize = of("sediment", 1, Part::Oversize, 1.0, 0);
        oversize.oversize = Some(Oversize {
            oversize_document_bytes: 17 << 20,
            oversize_refused: true,
            oversize_error: Some("too \"large\"".to_owned()),
        });
        vec![
            of("sediment", 1, Part::InsertSmall, 100.0, 1_000),
            of("sediment", 2, Part::InsertSmall, 300.0, 1_000),
            of("rocksdb", 1, Part::InsertSmall, 50.0, 1_000),
            of("rocksdb", 2, Part::InsertSmall, 100.0, 1_000),
            of("sediment", 1, Part::Refill, 1.0, 1_250),
            half,
            scan,
            oversize,
        ]
    }

    #[test]
    fn the_comparison_has_a_line_for_each_figure_and_store() {
        let text = comparison(&rows()).unwrap();
        let golden = "\
figure,unit,store,repeats,median,min,max,ratio_to_rocksdb,note
insert-small,documents/s,rocksdb,2,75,50,100,1,
insert-small,documents/s,sediment,2,200,100,300,2.5,
insert-large,documents/s,rocksdb,0,,,,,
insert-large,documents/s,sediment,0,,,,,
lookup,reads/s,rocksdb,0,,,,,
lookup,reads/s,sediment,0,,,,,
full-scan,rows/s,rocksdb,0,,,,,
full-scan,rows/s,sediment,1,2000,2000,2000,,
index-rebuild,s,rocksdb,0,,,,,
index-rebuild,s,sediment,0,,,,,
live-share,live/disk bytes,rocksdb,0,,,,,
live-share,live/disk bytes,sediment,1,0.75,0.75,0.75,,
refill-disk,disk after/before,rocksdb,0,,,,,
refill-disk,disk after/before,sediment,1,1.25,1.25,1.25,,
oversize-refused,1 is yes,rocksdb,0,,,,,
oversize-refused,1 is yes,sediment,1,1,1,1,,\"too \"\"large\"\"\"
";
        assert_eq!(text, golden);
    }

    #[test]
    fn a_line_of_the_history_has_the_medians_and_null_for_what_there_is_not() {
        let rows = rows();
        let entry = entry(&rows[0], &rows);
        assert_eq!(entry.figures["sediment"]["insert-small"], Some(200.0));
        assert_eq!(entry.figures["rocksdb"]["live-share"], None);
        assert_eq!(entry.figures["rocksdb"].len(), FIGURES.len());
    }
}
