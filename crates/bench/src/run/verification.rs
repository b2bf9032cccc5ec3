//! The job that checks every answer of concurrent runs: for each number of clients and each
//! workload, each store is loaded afresh, run, and checked, in a process of its own.

use std::time::Duration;

use super::cell::{CellSpec, Window};
use super::data::DataFolder;
use super::grid::{Folder, SETTLE_PATIENCE_SECONDS};
use super::history::HistorySpec;
use super::progress::Progress;
use super::protocol::{Action, Answer};
use super::session::{Described, Place, Session, unexpected};
use super::signal;
use crate::error::{Context, Result};
use crate::measure::page_cache::PageCache;
use crate::report::Phase;
use crate::store::{Fault, StoreConfig, StoreKind};
use crate::workload::{DocumentShape, KeyFormat, Workload};

const NAME: &str = "verify";
/// Planned.
const OPERATIONS_PER_SECOND: f64 = 20_000.0;

/// The job with all its parameters.
#[derive(Clone, Debug)]
pub(crate) struct VerifyJob {
    pub(crate) stores: Vec<StoreKind>,
    pub(crate) workloads: Vec<Workload>,
    pub(crate) threads: Vec<u32>,
    pub(crate) config: StoreConfig,
    pub(crate) records: u64,
    pub(crate) shape: DocumentShape,
    pub(crate) keys: KeyFormat,
    /// Of each workload, all clients together.
    pub(crate) operations: u64,
    pub(crate) seed: u64,
    /// To plant in every store.
    pub(crate) fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    threads: u32,
    workload: Workload,
    store: StoreKind,
}

/// Loads, runs, checks, and prints the table.
pub(super) fn run(place: &Place, job: &VerifyJob) -> Result<()> {
    Session::run(NAME, place, |session| {
        let steps = job.steps();
        let planned = Duration::from_secs_f64(job.operations as f64 / OPERATIONS_PER_SECOND);
        let mut progress = Progress::start(vec![planned; steps.len()])?;
        for step in &steps {
            signal::check()?;
            job.step(step, session, &progress)?;
            progress.step_done();
        }
        Ok(())
    })
}

impl VerifyJob {
    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for &threads in &self.threads {
            for workload in Workload::IN_RUN_ORDER {
                if self.workloads.contains(&workload) {
                    let step = |&store| Step { threads, workload, store };
                    steps.extend(self.stores.iter().map(step));
                }
            }
        }
        steps
    }

    fn step(&self, step: &Step, session: &mut Session, progress: &Progress) -> Result<()> {
        let Step { threads, workload, store } = *step;
        let operations = self.operations;
        let cell = CellSpec {
            folder: session.data().join(store.name()),
            config: self.config,
            records: self.records,
            shape: self.shape,
            keys: self.keys,
            distribution: None,
            threads,
            seed: self.seed,
            repeat: 1,
            window: Window { operations, ..Window::default() },
            patience_seconds: SETTLE_PATIENCE_SECONDS,
            page_cache: PageCache::AsLeft,
            target: None,
        };
        let mut described = Described {
            bench: NAME,
            job: None,
            store,
            cell: &cell,
            workload: workload.to_string(),
            phase: Phase::Run,
            folder: Folder::Main,
            requests: Some(workload.distribution()),
            durability: self.config.durability,
            digest: None,
            live_records: 0,
        };
        progress.step(&described.title());
        let folder = session.data().join(format!("{}-history", store.name()));
        let spec = HistorySpec { workload, operations, folder: folder.clone(), fault: self.fault };
        let Answer::Checked(measurement, verification) = described.perform(Action::Check(spec))?
        else {
            return Err(unexpected());
        };
        for folder in [&cell.folder, &folder] {
            DataFolder::clear(folder).context(|| described.title())?;
        }
        if let Some(first) = &verification.first_mismatch {
            progress.say(&format!("{}: {first}", described.title()));
        }
        described.live_records = measurement.records_end.unwrap_or_default();
        let mut row = session.row(&described, measurement);
        row.verify = Some(verification);
        session.record(row, progress)
    }
}
