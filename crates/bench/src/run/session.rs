//! What all jobs have in common: a data folder that goes away, a results file, and rows.
//!
//! 1. A row is appended whole and at once, so the results file is valid whenever the run ends.
//! 2. The data goes before anything is printed, however the run ends, Ctrl-C included.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::cell::{CellSpec, Measurement};
use super::data::DataFolder;
use super::grid::Folder;
use super::progress::Progress;
use super::protocol::{self, Action, Answer, Task};
use super::signal;
use crate::error::{Failure, Result};
use crate::measure::machine::{self, Machine};
use crate::measure::processor::{Processor, Quietness};
use crate::report::{self, Phase, ResultsFile, Row};
use crate::store::{Durability, StoreKind};
use crate::verify::Digest;
use crate::workload::Distribution;

/// Where a job keeps its data and its rows.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Below cargo's target folder if it is not given.
    pub(crate) data: Option<PathBuf>,
    pub(crate) results: PathBuf,
    /// The results file of a stopped run to go on with.
    pub(crate) resume: Option<PathBuf>,
}

/// A run in progress.
pub(super) struct Session {
    data: DataFolder,
    results: ResultsFile,
    machine: Machine,
    commit: String,
    command: String,
    processor: Processor,
}

/// What a row says of its cell beside the measurement.
pub(super) struct Described<'a> {
    pub(super) bench: &'static str,
    /// Which of several parts of the run the cell belongs to.
    pub(super) job: Option<String>,
    pub(super) store: StoreKind,
    pub(super) cell: &'a CellSpec,
    pub(super) workload: String,
    pub(super) phase: Phase,
    pub(super) folder: Folder,
    pub(super) requests: Option<Distribution>,
    pub(super) durability: Durability,
    pub(super) digest: Option<Digest>,
    /// Records that the folder holds at the end of the cell.
    pub(super) live_records: u64,
}

impl<'a> Described<'a> {
    /// The load of a job with one folder for each store.
    pub(super) fn loading(bench: &'static str, store: StoreKind, cell: &'a CellSpec) -> Self {
        Self {
            bench,
            job: None,
            store,
            cell,
            workload: "load".to_owned(),
            phase: Phase::Load,
            folder: Folder::Main,
            requests: None,
            durability: Durability::Durable,
            digest: None,
            live_records: cell.records,
        }
    }

    /// store × workload × threads × durability × size.
    pub(super) fn cell_name(&self) -> String {
        let CellSpec { threads, records, shape, .. } = self.cell;
        let (store, durability) = (self.store.name(), self.durability.name());
        let (workload, fields, bytes) = (&self.workload, shape.fields, shape.field_bytes);
        format!("{store}/{workload}/{threads}/{durability}/{records}x{fields}x{bytes}")
    }

    pub(super) fn title(&self) -> String {
        format!("{} repeat {}", self.cell_name(), self.cell.repeat)
    }

    /// Runs the cell in a process of its own; a failure names it.
    pub(super) fn perform(&self, action: Action) -> Result<Answer> {
        let answer = protocol::run(&Task { store: self.store, cell: self.cell.clone(), action });
        answer.map_err(|failure| match failure {
            Failure::Interrupted => Failure::Interrupted,
            failure @ (Failure::Message(_) | Failure::Input(_)) => {
                Failure::new(format_args!("{}: {failure}", self.title()))
            }
        })
    }

    /// Loads the records.
    pub(super) fn load(&self) -> Result<Measurement> {
        match self.perform(Action::Load)? {
            Answer::Measured(measurement) => Ok(measurement),
            _ => Err(unexpected()),
        }
    }
}

/// A child that answers another question is of another build.
pub(super) fn unexpected() -> Failure {
    Failure::new("a cell answered another question")
}

impl Session {
    /// Measures, and ends the run whether that went well or not. `job` is a part of the run's name.
    pub(super) fn run(
        job: &str,
        place: &Place,
        measure: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let mut session = Self::begin(job, place)?;
        let measured = measure(&mut session);
        session.end(measured)
    }

    fn begin(job: &str, place: &Place) -> Result<Self> {
        signal::catch()?;
        let data = DataFolder::create(place.data.as_deref())?;
        let (machine, commit) = (Machine::describe(data.path()), commit());
        let (results, command) = match &place.resume {
            Some(path) => {
                let results = ResultsFile::resume(path)?;
                let command = same_source(path, results.rows(), &machine, &commit)?;
                (results, command)
            }
            None => {
                let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
                let run = format!("{time}-{}-{job}", machine::host());
                let command = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
                (ResultsFile::create(&place.results, &run)?, command)
            }
        };
        let processor = Processor::calibrate();
        Ok(Self { data, results, machine, commit, command, processor })
    }

    /// The rows so far; of a run that goes on also those from before.
    pub(super) fn rows(&self) -> &[Row] {
        self.results.rows()
    }

    /// Waits until nobody else uses the processor, at most a second.
    pub(super) fn wait_until_quiet(&mut self, window: Duration) -> Quietness {
        self.processor.wait_until_quiet(window)
    }

    pub(super) fn data(&self) -> &Path {
        self.data.path()
    }

    /// Appends a row, and says so when it has errors.
    pub(super) fn record(&mut self, row: Row, progress: &Progress) -> Result<()> {
        if let Some(error) = &row.measurement.first_error {
            let errors = row.measurement.errors;
            progress.say(&format!("{}: {errors} errors, first: {error}", row.cell));
        }
        self.results.append(row)
    }

    /// Ends the run: the data goes, then the rows' tables are printed. A run with errors or missing
    /// records is a failure.
    fn end(self, measured: Result<()>) -> Result<()> {
        drop(self.data);
        let (path, rows) = self.results.finish()?;
        if !rows.is_empty() {
            println!("{}", report::tables(&rows));
            println!("{} rows in {}", rows.len(), path.display());
        }
        measured?;
        sound(&rows)
    }

    pub(super) fn row(&self, described: &Described<'_>, measurement: Measurement) -> Row {
        let CellSpec { config, records, shape, keys, threads, seed, repeat, .. } = described.cell;
        let live = described.live_records;
        Row {
            schema: report::SCHEMA,
            run: self.results.run().to_owned(),
            bench: described.bench.to_owned(),
            job: described.job.clone(),
            cell: described.cell_name(),
            repeat: *repeat,
            command: self.command.clone(),
            commit: self.commit.clone(),
            machine: self.machine.clone(),
            target_cpu: env!("BENCH_TARGET_CPU").to_owned(),
            store: described.store.name().to_owned(),
            store_version: described.store.version().to_owned(),
            options: described.store.settings(config),
            loses: Some(described.store.loses(described.durability)),
            workload: described.workload.clone(),
            phase: described.phase,
            folder: described.folder,
            request_distribution: described.requests,
            insert_order: keys.order,
            threads: *threads,
            durability: described.durability,
            records: *records,
            fields: shape.fields,
            field_bytes: shape.field_bytes,
            value_bytes: shape.value_bytes(),
            document_bytes: shape.document_bytes(),
            seed: *seed,
            deviations: report::DEVIATIONS.map(str::to_owned).to_vec(),
            digest: described.digest.clone(),
            live_bytes: Some(keys.bytes(live) + live * shape.document_bytes()),
            measurement,
            write_amplification: None,
            opening: None,
            oversize: None,
            quietness: None,
            verify: None,
        }
    }
}

/// The command of a stopped run, if this program and machine can go on with it: rows of one run
/// stand side by side.
fn same_source(path: &Path, rows: &[Row], machine: &Machine, commit: &str) -> Result<String> {
    let refuse = |what: &str, its: &str, ours: &str| {
        let file = path.display();
        Err(Failure::new(format_args!("{file} is of the {what} {its}, this is {ours}; begin anew")))
    };
    let Some(row) = rows.first() else {
        return Err(Failure::new(format_args!("{} has no rows", path.display())));
    };
    if row.commit != commit {
        return refuse("commit", &row.commit, commit);
    }
    if row.machine != *machine {
        return refuse("machine", &format!("{:?}", row.machine), &format!("{machine:?}"));
    }
    if row.target_cpu != env!("BENCH_TARGET_CPU") {
        return refuse("target", &row.target_cpu, env!("BENCH_TARGET_CPU"));
    }
    Ok(row.command.clone())
}

/// A run with errors or missing records is no measurement, and one with mismatches is a fault.
fn sound(rows: &[Row]) -> Result<()> {
    let mismatch =
        rows.iter().find_map(|row| Some((row, row.verify.as_ref()?.first_mismatch.as_ref()?)));
    if let Some((row, first)) = mismatch {
        return Err(Failure::new(format_args!("wrong answers: {}: {first}", row.cell)));
    }
    let bad = rows.iter().find(|row| row.measurement.errors + row.measurement.not_found > 0);
    match bad {
        None => Ok(()),
        Some(row) => Err(Failure::new(format_args!(
            "the run is not valid: {} repeat {} has {} errors and {} missing records",
            row.cell, row.repeat, row.measurement.errors, row.measurement.not_found
        ))),
    }
}

/// The commit of the working folder, marked when anything but the results differs from it.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "HEAD"]) else { return "unknown".to_owned() };
    let changes = git(&["status", "--porcelain", "--", ":/", ":(top,exclude)bench-results"]);
    if changes.is_some_and(|changes| changes.is_empty()) { commit } else { commit + "-dirty" }
}
