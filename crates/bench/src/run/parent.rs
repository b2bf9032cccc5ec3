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
    let verified: Vec<_> =
        grids.iter().map(|grid| verify_stores(grid, session.data())).collect::<Result<_>>()?;
    let steps = grids.iter().flat_map(|grid| grid.steps().into_iter().map(move |s| (grid, s)));
    let mut progress = Progress::start(steps.map(|(grid, step)| planned(grid, &step)).collect())?;
    for (grid, stages) in grids.iter().zip(verified) {
        let mut run = Run { grid, stages, records: BTreeMap::new() };
        for step in grid.steps() {
            signal::check()?;
            run.step(&step, session, &mut progress)?;
        }
    }
    Ok(())
}

fn verify_stores(grid: &Grid, data: &Path) -> Result<Vec<Stage>> {
    let mut passes: Vec<(StoreKind, Vec<Stage>)> = Vec::new();
    for &store in &grid.stores {
        match grid.job() {
            None => eprintln!("verifying {}", store.name()),
            Some(job) => eprintln!("verifying {} ({job})", store.name()),
        }
        let folder = verify::folder(data, store);
        let spec = VerifySpec {
            workloads: grid.workloads_in_order(),
            operations: grid.digest_operations,
            plant: grid.plant_for(store),
        };
        let cell = grid.cell(folder.clone(), 1, 1);
        match protocol::run(&Task { store, cell, action: Action::Verify(spec) })? {
            Answer::Verified(stages) => passes.push((store, stages)),
            _ => return Err(unexpected()),
        }
        DataFolder::clear(&folder)?;
    }
    verify::compare(&passes)?;
    Ok(passes.into_iter().next().map(|(_, stages)| stages).unwrap_or_default())
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
    /// Of any store: they are equal.
    stages: Vec<Stage>,
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
            digest: step.workload.and_then(|w| verify::digest_of(&self.stages, w)),
            live_records: 0,
        };
        progress.step(&described.title());
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
        session.record(session.row(&described, measurement), progress)?;
        progress.step_done();
        Ok(())
    }
}
