//! The parent's course of a run: verify, then measure step by step, then the table.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::data::DataFolder;
use super::grid::{Grid, Step};
use super::progress::Progress;
use super::protocol::{self, Action, Answer, Task};
use super::signal;
use crate::error::{Context, Failure, Result};
use crate::measure::machine::{self, Machine};
use crate::report::{self, ResultsFile, Row};
use crate::store::StoreKind;
use crate::verify::{self, Stage, VerifySpec};

/// Planned seconds around a cell's window: starting, opening, settling and closing.
const AROUND_A_CELL: f64 = 1.0;
/// Planned records a second of a load: cautious, since the first estimate is only a start.
const LOADED_PER_SECOND: f64 = 150_000.0;

/// Runs a bench, writes its rows and prints its table.
pub(super) fn bench(grid: &Grid) -> Result<()> {
    signal::catch()?;
    let data = DataFolder::create(grid.data.as_deref())?;
    let mut results = ResultsFile::create(&grid.results, &run_name(grid))?;
    let machine = Machine::describe(data.path());
    let measured = measure(grid, data.path(), &machine, &mut results);
    // The data goes before anything is printed, so that the last line is the run's own.
    drop(data);
    let (path, rows) = results.finish()?;
    if !rows.is_empty() {
        println!("{}", report::table(&rows));
        println!("{} rows in {}", rows.len(), path.display());
    }
    measured?;
    sound(&rows)
}

fn measure(grid: &Grid, data: &Path, machine: &Machine, results: &mut ResultsFile) -> Result<()> {
    let stages = verify_stores(grid, data)?;
    let run = Run { grid, data, machine, stages, commit: commit() };
    let steps = grid.steps();
    let mut progress = Progress::start(steps.iter().map(|step| planned(grid, step)).collect())?;
    for step in steps {
        signal::check()?;
        progress.step(&run.title(&step));
        let row = run.step(&step, results.run())?;
        if let Some(error) = &row.measurement.first_error {
            progress
                .say(&format!("{}: {} errors, first: {error}", row.cell, row.measurement.errors));
        }
        results.append(row)?;
        progress.step_done();
    }
    Ok(())
}

/// A run with errors or missing records is no measurement.
fn sound(rows: &[Row]) -> Result<()> {
    let bad = rows.iter().find(|row| row.measurement.errors + row.measurement.not_found > 0);
    match bad {
        None => Ok(()),
        Some(row) => Err(Failure::new(format_args!(
            "the run is not valid: {} repeat {} has {} errors and {} missing records",
            row.cell, row.repeat, row.measurement.errors, row.measurement.not_found
        ))),
    }
}

fn run_name(grid: &Grid) -> String {
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    format!("{time}-{}-{}", machine::host(), grid.bench.name())
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

fn verify_stores(grid: &Grid, data: &Path) -> Result<Vec<Stage>> {
    let mut passes: Vec<(StoreKind, Vec<Stage>)> = Vec::new();
    for &store in &grid.stores {
        eprintln!("verifying {}", store.name());
        let folder = verify::folder(data, store);
        let spec = VerifySpec {
            workloads: grid.workloads_in_order(),
            operations: grid.digest_operations,
            plant: grid.plant_for(store),
        };
        let cell = grid.cell(folder.clone(), 1, 1);
        match protocol::run(&Task { store, cell, action: Action::Verify(spec) })? {
            Answer::Verified(stages) => passes.push((store, stages)),
            Answer::Measured(_) => return Err(Failure::new("a cell answered another question")),
        }
        DataFolder::clear(&folder)?;
    }
    verify::compare(&passes)?;
    Ok(passes.into_iter().next().map(|(_, stages)| stages).unwrap_or_default())
}

fn planned(grid: &Grid, step: &Step) -> Duration {
    let seconds = match step.workload {
        None => grid.records as f64 / LOADED_PER_SECOND,
        Some(_) => grid.warmup_seconds + grid.seconds,
    };
    Duration::try_from_secs_f64(seconds + AROUND_A_CELL).unwrap_or(Duration::MAX)
}

struct Run<'a> {
    grid: &'a Grid,
    data: &'a Path,
    machine: &'a Machine,
    /// Of any store: they are equal.
    stages: Vec<Stage>,
    commit: String,
}

impl Run<'_> {
    /// store × workload × threads × durability × size.
    fn cell_name(&self, step: &Step) -> String {
        let Grid { config, records, shape, .. } = self.grid;
        format!(
            "{}/{}/{}/{}/{records}x{}x{}",
            step.store.name(),
            step.workload_name(),
            self.clients(step),
            step.durability(config).name(),
            shape.fields,
            shape.field_bytes
        )
    }

    fn title(&self, step: &Step) -> String {
        format!("{} repeat {}", self.cell_name(step), step.repeat)
    }

    /// A load has one client.
    fn clients(&self, step: &Step) -> u32 {
        step.workload.map_or(1, |_| step.threads)
    }

    fn folder(&self, step: &Step) -> PathBuf {
        let Step { repeat, threads, folder, store, .. } = step;
        self.data.join(format!("{}-{}-{threads}-{repeat}", store.name(), folder.name()))
    }

    fn step(&self, step: &Step, run: &str) -> Result<Row> {
        let folder = self.folder(step);
        if step.workload.is_none() {
            DataFolder::clear(&folder)?;
        }
        let cell = self.grid.cell(folder.clone(), self.clients(step), step.repeat);
        let action = step.workload.map_or(Action::Load, Action::Run);
        let answer = protocol::run(&Task { store: step.store, cell, action });
        let answer = answer.map_err(|failure| match failure {
            Failure::Interrupted => Failure::Interrupted,
            failure @ Failure::Message(_) => {
                Failure::new(format_args!("{}: {failure}", self.title(step)))
            }
        })?;
        let Answer::Measured(measurement) = answer else {
            return Err(Failure::new("a cell answered another question"));
        };
        if step.last {
            DataFolder::clear(&folder).context(|| self.title(step))?;
        }
        let Grid { bench, config, records, shape, keys, distribution, seed, .. } = self.grid;
        let requests = step.workload.map(|w| distribution.unwrap_or(w.distribution()));
        Ok(Row {
            schema: report::SCHEMA,
            run: run.to_owned(),
            bench: bench.name().to_owned(),
            cell: self.cell_name(step),
            repeat: step.repeat,
            command: std::env::args().skip(1).collect::<Vec<_>>().join(" "),
            commit: self.commit.clone(),
            machine: self.machine.clone(),
            target_cpu: env!("BENCH_TARGET_CPU").to_owned(),
            store: step.store.name().to_owned(),
            store_version: step.store.version().to_owned(),
            options: step.store.settings(config),
            workload: step.workload_name(),
            phase: step.workload.into(),
            folder: step.folder,
            request_distribution: requests,
            insert_order: keys.order,
            threads: self.clients(step),
            durability: step.durability(config),
            records: *records,
            fields: shape.fields,
            field_bytes: shape.field_bytes,
            value_bytes: shape.value_bytes(),
            document_bytes: shape.document_bytes(),
            seed: *seed,
            deviations: report::DEVIATIONS.map(str::to_owned).to_vec(),
            digest: step.workload.and_then(|w| verify::digest_of(&self.stages, w)),
            measurement,
        })
    }
}
