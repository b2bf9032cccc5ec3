//! The course of a bench of grids: verify every grid, then measure step by step, then the table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::data::DataFolder;
use super::grid::{Grid, Step};
use super::progress::Progress;
use super::protocol::{self, Action, Answer, Task};
use super::session::{Described, Place, Session, unexpected};
use super::signal;
use crate::error::{Context, Result};
use crate::report::Row;
use crate::store::StoreKind;
use crate::verify::{self, Stage, VerifySpec};

/// Planned seconds around a cell's window: starting, opening, settling and closing.
const AROUND_A_CELL: f64 = 1.0;
/// Planned records a second of a load: cautious, since the first estimate is only a start.
const LOADED_PER_SECOND: f64 = 150_000.0;

/// Runs grids one after the other, writes their rows into one file and prints its table.
pub(super) fn bench(place: &Place, grids: &[Grid]) -> Result<()> {
    let Some(first) = grids.first() else { return Ok(()) };
    Session::run(first.bench.name(), place, |session| measure(grids, session))
}

fn measure(grids: &[Grid], session: &mut Session) -> Result<()> {
    let left: Vec<(&Grid, Vec<Step>)> =
        grids.iter().map(|grid| (grid, steps_left(grid, session.rows()))).collect();
    let mut runs = Vec::new();
    for (grid, steps) in left.into_iter().filter(|(_, steps)| !steps.is_empty()) {
        let passes = verify_stores(grid, session.data())?;
        runs.push((Run { grid, passes, records: BTreeMap::new() }, steps));
    }
    let planned = |(run, steps): &(Run<'_>, Vec<Step>)| {
        steps.iter().map(|step| planned(run.grid, step)).collect::<Vec<_>>()
    };
    let mut progress = Progress::start(runs.iter().flat_map(planned).collect())?;
    for (mut run, steps) in runs {
        for step in steps {
            signal::check()?;
            run.step(&step, session, &mut progress)?;
        }
    }
    Ok(())
}

/// The steps of a grid without those whose rows are there: what shares a folder is left out whole
/// or not at all, since the folders of a stopped run are gone.
fn steps_left(grid: &Grid, rows: &[Row]) -> Vec<Step> {
    let place = |step: &Step| (step.repeat, step.threads, step.folder, step.store);
    let missing =
        grid.steps().into_iter().filter(|step| !rows.iter().any(|row| grid.made(step, row)));
    // A load's row does not tell for how many clients' cells it was made; their rows do.
    let missing = missing.filter(|step| step.workload.is_some());
    let missing: Vec<_> = missing.map(|step| place(&step)).collect();
    let mut steps = grid.steps();
    steps.retain(|step| missing.contains(&place(step)));
    steps
}

fn verify_stores(grid: &Grid, data: &Path) -> Result<Vec<(StoreKind, Vec<Stage>)>> {
    let mut passes: Vec<(StoreKind, Vec<Stage>)> = Vec::new();
    for &store in &grid.stores {
        let parts = verify::parts(&grid.workloads_in_order(), store.scope().verified());
        if parts.is_empty() {
            continue;
        }
        match grid.job() {
            None => eprintln!("verifying {}", store.name()),
            Some(job) => eprintln!("verifying {} ({job})", store.name()),
        }
        let folder = verify::folder(data, store);
        let spec =
            VerifySpec { parts, operations: grid.digest_operations, plant: grid.plant_for(store) };
        let cell = grid.cell(folder.clone(), 1, 1);
        match protocol::run(&Task { store, cell, action: Action::Verify(spec) })? {
            Answer::Verified(stages) => passes.push((store, stages)),
            _ => return Err(unexpected()),
        }
        DataFolder::clear(&folder)?;
    }
    verify::compare(&passes)?;
    Ok(passes)
}

fn planned(grid: &Grid, step: &Step) -> Duration {
    let seconds = match step.workload {
        None => grid.records as f64 / LOADED_PER_SECOND,
        Some(_) => grid.window.warmup_seconds + grid.window.seconds,
    };
    Duration::try_from_secs_f64(seconds + AROUND_A_CELL).unwrap_or(Duration::MAX)
}

struct Run<'a> {
    grid: &'a Grid,
    /// What each store answered in the verification.
    passes: Vec<(StoreKind, Vec<Stage>)>,
    /// Live records of each folder.
    records: BTreeMap<PathBuf, u64>,
}

impl Run<'_> {
    /// A load has one client.
    fn clients(&self, step: &Step) -> u32 {
        step.workload.map_or(1, |_| step.threads)
    }

    fn folder(&self, step: &Step, data: &Path) -> PathBuf {
        let Step { repeat, threads, folder, store, .. } = step;
        data.join(format!("{}-{}-{threads}-{repeat}", store.name(), folder.name()))
    }

    fn step(&mut self, step: &Step, session: &mut Session, progress: &mut Progress) -> Result<()> {
        let folder = self.folder(step, session.data());
        let cell = self.grid.cell(folder.clone(), self.clients(step), step.repeat);
        let distribution = self.grid.distribution;
        let mut described = Described {
            bench: self.grid.bench.name(),
            job: self.grid.job(),
            store: step.store,
            cell: &cell,
            workload: step.workload_name(),
            phase: step.workload.into(),
            folder: step.folder,
            requests: step.workload.map(|w| distribution.unwrap_or(w.distribution())),
            durability: step.durability(&self.grid.config),
            digest: step.workload.and_then(|w| verify::digest_of(&self.passes, step.store, w)),
            live_records: 0,
        };
        progress.step(&described.title());
        let quietness = session.wait_until_quiet(Duration::from_secs_f64(self.grid.window.seconds));
        let measurement = match step.workload {
            None => {
                DataFolder::clear(&folder)?;
                self.records.remove(&folder);
                described.load()?
            }
            Some(workload) => match described.perform(Action::Run(workload))? {
                Answer::Measured(measurement) => measurement,
                _ => return Err(unexpected()),
            },
        };
        let live = self.records.entry(folder.clone()).or_default();
        *live = measurement.records_end.unwrap_or_default().max(*live);
        described.live_records = *live;
        if step.last {
            DataFolder::clear(&folder).context(|| described.title())?;
        }
        let mut row = session.row(&described, measurement);
        row.quietness = Some(quietness);
        session.record(row, progress)?;
        progress.step_done();
        Ok(())
    }
}
