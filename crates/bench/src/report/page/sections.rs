//! Which rows stand side by side: a section holds the cells of one job, durability, number of
//! clients and size.
//!
//! 1. Rows of a section come from one command, commit and machine, and from one day.
//! 2. A load belongs to the section of the next cell over its folder: its own row says only that a
//!    load has one client and syncs each batch.
//! 3. When a cell's repeat is in the files twice, the last line counts.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;

use crate::error::{Context, Failure, Result};
use crate::measure::machine::Machine;
use crate::report::row::{Phase, Row};
use crate::report::table::thousands;
use crate::run::Folder;

/// What a section's rows have in common. The order is that of the page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) bench: String,
    pub(super) records: u64,
    pub(super) document_bytes: u64,
    pub(super) fields: u32,
    pub(super) field_bytes: u32,
    /// "durable" or "buffered".
    pub(super) durability: &'static str,
    pub(super) clients: u32,
    /// Place of the rows' source among the page's.
    pub(super) source: usize,
}

/// One repeat of a cell: its run, name, number and folder, and the section.
type Moment = ((String, String, u32, Folder), Key);

/// Rows that are compared with each other.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) key: Key,
    pub(super) rows: Vec<Row>,
    /// Tells the section's pictures and text from those of others.
    pub(super) slug: String,
}

/// Where rows come from: what was run, and on what.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Source {
    pub(super) command: String,
    pub(super) commit: String,
    pub(super) target_cpu: String,
    pub(super) machine: Machine,
    pub(super) runs: BTreeSet<String>,
}

/// The rows of a page, in order.
#[derive(Clone, Debug)]
pub(super) struct Sections {
    pub(super) sources: Vec<Source>,
    pub(super) sections: Vec<Section>,
    /// Rows that a later line of the same cell and repeat replaced.
    pub(super) superseded: usize,
}

impl Sections {
    pub(super) fn of(rows: Vec<Row>) -> Result<Self> {
        let (mut sources, keys) = (Vec::new(), places(&rows));
        let mut last: BTreeMap<Moment, (usize, Row)> = BTreeMap::new();
        let count = rows.len();
        for (number, (row, (durability, clients))) in rows.into_iter().zip(keys).enumerate() {
            let source = source_of(&row, &mut sources);
            let key = Key {
                bench: row.bench.clone(),
                records: row.records,
                document_bytes: row.document_bytes,
                fields: row.fields,
                field_bytes: row.field_bytes,
                durability,
                clients,
                source,
            };
            let measured = (row.run.clone(), row.cell.clone(), row.repeat, row.folder);
            last.insert((measured, key), (number, row));
        }
        let superseded = count - last.len();
        let mut sections: BTreeMap<Key, BTreeMap<usize, Row>> = BTreeMap::new();
        for ((_, key), (number, row)) in last {
            sections.entry(key).or_default().insert(number, row);
        }
        let sections = sections.into_iter().map(|(key, rows)| Section {
            slug: key.slug(sources.len()),
            rows: rows.into_values().collect(),
            key,
        });
        let sections: Vec<Section> = sections.collect();
        for section in &sections {
            one_day(&section.rows)?;
        }
        Ok(Self { sources, sections, superseded })
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.sections.iter().flat_map(|section| &section.rows)
    }

    /// The jobs' names, once each.
    pub(super) fn benches(&self) -> Vec<&str> {
        let mut benches: Vec<&str> =
            self.sections.iter().map(|section| section.key.bench.as_str()).collect();
        benches.dedup();
        benches
    }
}

impl Key {
    pub(super) fn heading(&self, sources: usize) -> String {
        let mut bench = self.bench.clone();
        if let Some(first) = bench.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let clients = if self.clients == 1 { "client" } else { "clients" };
        let source =
            if sources > 1 { format!(", source {}", self.source + 1) } else { String::new() };
        format!(
            "{bench}, {}, {} {clients}, {} records of {} bytes{source}",
            self.durability,
            self.clients,
            thousands(self.records as f64),
            thousands(self.document_bytes as f64),
        )
    }

    fn slug(&self, sources: usize) -> String {
        let source =
            if sources > 1 { format!("-source-{}", self.source + 1) } else { String::new() };
        let Self { bench, durability, clients, records, fields, field_bytes, .. } = self;
        format!("{bench}-{durability}-{clients}-{records}x{fields}x{field_bytes}{source}")
    }
}

/// Durability and clients of the section to which each row belongs.
fn places(rows: &[Row]) -> Vec<(&'static str, u32)> {
    let mut following: BTreeMap<_, (&'static str, u32)> = BTreeMap::new();
    let mut places = Vec::new();
    for row in rows.iter().rev() {
        let size = (row.records, row.fields, row.field_bytes);
        let folder = (&row.run, &row.store, row.folder, row.repeat, size);
        let own = (row.durability.name(), row.threads);
        places.push(match row.phase {
            Phase::Load => following.remove(&folder).unwrap_or(own),
            Phase::Run => {
                following.insert(folder, own);
                own
            }
        });
    }
    places.reverse();
    places
}

fn source_of(row: &Row, sources: &mut Vec<Source>) -> usize {
    let same = |source: &Source| {
        source.command == row.command
            && source.commit == row.commit
            && source.target_cpu == row.target_cpu
            && source.machine == row.machine
    };
    let found = sources.iter().position(same);
    let place = found.unwrap_or(sources.len());
    if found.is_none() {
        sources.push(Source {
            command: row.command.clone(),
            commit: row.commit.clone(),
            target_cpu: row.target_cpu.clone(),
            machine: row.machine.clone(),
            runs: BTreeSet::new(),
        });
    }
    if let Some(source) = sources.get_mut(place) {
        source.runs.insert(row.run.clone());
    }
    place
}

/// The day on which a run began, as its name has it: `20261130T…` is 2026-11-30.
pub(super) fn day(run: &str) -> Result<Date> {
    let digits = run.split('T').next().unwrap_or_default();
    Date::strptime("%Y%m%d", digits)
        .context(|| format!("the run `{run}` does not begin with its date"))
}

fn one_day(rows: &[Row]) -> Result<()> {
    let runs: BTreeSet<&str> = rows.iter().map(|row| row.run.as_str()).collect();
    let days = runs.into_iter().map(|run| Ok((day(run)?, run)));
    let days = days.collect::<Result<BTreeMap<_, _>>>()?;
    match (days.first_key_value(), days.last_key_value()) {
        (Some((first_day, first)), Some((last_day, last))) if first_day != last_day => {
            Err(Failure::new(format_args!(
                "figures of different days do not stand side by side: `{first}` and `{last}` are \
                 of one command, commit and machine; write a page for each"
            )))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{Cell, row};
    use super::*;

    fn sections(rows: Vec<Row>) -> Sections {
        Sections::of(rows).unwrap()
    }

    fn failure(rows: Vec<Row>) -> String {
        Sections::of(rows).unwrap_err().to_string()
    }

    #[test]
    fn a_section_is_one_job_durability_number_of_clients_and_size() {
        let mut rows = Vec::new();
        for (durability, clients) in [("durable", 1), ("buffered", 1), ("buffered", 16)] {
            let cell = Cell { durability, clients, ..Cell::default() };
            rows.extend(["sediment", "rocksdb"].map(|store| row(Cell { store, ..cell })));
        }
        rows.push(row(Cell { records: 7, ..Cell::default() }));
        let sections = sections(rows);
        let slugs: Vec<&str> = sections.sections.iter().map(|s| s.slug.as_str()).collect();
        assert_eq!(
            slugs,
            [
                "table-bound-durable-1-7x1x100",
                "table-bound-buffered-1-300000x1x100",
                "table-bound-buffered-16-300000x1x100",
                "table-bound-durable-1-300000x1x100",
            ]
        );
        assert_eq!(sections.sections[1].rows.len(), 2);
        assert_eq!(
            sections.sections[2].key.heading(1),
            "Table-bound, buffered, 16 clients, 300 000 records of 118 bytes"
        );
        assert!(sections.sections[2].key.heading(2).ends_with("118 bytes, source 1"));
    }

    #[test]
    fn a_load_goes_with_the_cells_that_run_over_its_folder() {
        let load = || row(Cell { workload: "load", ..Cell::default() });
        let run = |clients| row(Cell { durability: "buffered", clients, ..Cell::default() });
        let sections = sections(vec![load(), run(1), load(), run(16)]);
        let found: Vec<_> =
            sections.sections.iter().map(|s| (s.key.clients, s.rows.len())).collect();
        assert_eq!(found, [(1, 2), (16, 2)]);
        assert_eq!(sections.superseded, 0);
    }

    #[test]
    fn the_last_line_of_a_cells_repeat_counts() {
        let cell = Cell::default();
        let rows = [10.0, 20.0, 30.0].map(|rate| row(Cell { rate, ..cell })).to_vec();
        let sections = sections(rows);
        assert_eq!(sections.superseded, 2);
        let rates: Vec<f64> = sections.rows().map(|row| row.measurement.ops_per_sec).collect();
        assert_eq!(rates, [30.0]);
    }

    #[test]
    fn another_command_commit_or_machine_is_another_source() {
        let mut rows = vec![row(Cell::default()); 4];
        rows[1].command += " --seconds 40";
        rows[2].commit = "other".to_owned();
        rows[3].machine.cores += 1;
        assert_eq!(sections(rows).sections.len(), 4);
    }

    #[test]
    fn figures_of_different_days_do_not_stand_side_by_side() {
        let (monday, tuesday) = ("20261130T010203Z-host-table-bound", "20261201T010203Z-host-x");
        let mut rows = [monday, tuesday].map(|run| row(Cell { run, ..Cell::default() })).to_vec();
        let message = failure(rows.clone());
        for part in ["figures of different days", monday, tuesday] {
            assert!(message.contains(part), "{message}");
        }
        rows[1].commit = "other".to_owned();
        assert_eq!(sections(rows).sections.len(), 2, "each section is of one day");
        assert!(failure(vec![row(Cell { run: "run", ..Cell::default() })]).contains("date"));
    }
}
