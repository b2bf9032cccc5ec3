//! The job that measures opening after a crash: each store is loaded and closed once for each
//! size; then, for each length of the tail and each repeat, a process overwrites that many records
//! and is killed, and another one opens the store. That one closes it cleanly, which seals the
//! tail. Before the opening the store's files are read through, or dropped from the page cache.

use std::time::Duration;

use super::cell::{CellSpec, Window};
use super::data::DataFolder;
use super::grid::in_turn;
use super::progress::Progress;
use super::protocol::{Action, Answer};
use super::session::{Described, Place, Session, unexpected};
use super::signal;
use crate::error::{Context, Result};
use crate::measure::page_cache::PageCache;
use crate::report::Phase;
use crate::store::{StoreConfig, StoreKind};
use crate::workload::{DocumentShape, KeyFormat};

const NAME: &str = "open-time";
const PATIENCE_SECONDS: f64 = 120.0;
/// Planned.
const LOADED_PER_SECOND: f64 = 400_000.0;
const OPENED_IN: Duration = Duration::from_secs(1);

/// The job with all its parameters.
#[derive(Clone, Debug)]
pub(crate) struct OpenTime {
    pub(crate) stores: Vec<StoreKind>,
    /// Sizes of the store.
    pub(crate) records: Vec<u64>,
    /// Records of the unsealed tail, none more than the smallest size.
    pub(crate) tails: Vec<u64>,
    /// States of the page cache before an opening.
    pub(crate) page_caches: Vec<PageCache>,
    pub(crate) shape: DocumentShape,
    pub(crate) keys: KeyFormat,
    pub(crate) config: StoreConfig,
    pub(crate) repeats: u32,
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Load,
    /// A tail of this many records, the kill and the opening.
    Crash(u64, PageCache),
    /// The store is no longer needed.
    Clear,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    records: u64,
    repeat: u32,
    store: StoreKind,
    part: Part,
}

/// Loads, crashes, opens, and prints the tables.
pub(super) fn run(place: &Place, job: &OpenTime) -> Result<()> {
    Session::run(NAME, place, |session| measure(job, session))
}

fn measure(job: &OpenTime, session: &mut Session) -> Result<()> {
    let steps = job.steps();
    let mut progress = Progress::start(steps.iter().map(Step::planned).collect())?;
    for step in steps {
        signal::check()?;
        job.step(&step, session, &progress)?;
        progress.step_done();
    }
    Ok(())
}

impl Step {
    fn planned(&self) -> Duration {
        match self.part {
            Part::Load => Duration::from_secs_f64(self.records as f64 / LOADED_PER_SECOND),
            Part::Crash(..) => OPENED_IN,
            Part::Clear => Duration::ZERO,
        }
    }
}

impl OpenTime {
    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for &records in &self.records {
            let mut push = |repeat, part| {
                let step = |store| Step { records, repeat, store, part };
                steps.extend(in_turn(&self.stores, repeat).into_iter().map(step));
            };
            push(1, Part::Load);
            for repeat in 1..=self.repeats {
                for &tail in &self.tails {
                    self.page_caches
                        .iter()
                        .for_each(|&cache| push(repeat, Part::Crash(tail, cache)));
                }
            }
            push(1, Part::Clear);
        }
        steps
    }

    fn step(&self, step: &Step, session: &mut Session, progress: &Progress) -> Result<()> {
        let cell = CellSpec {
            folder: session.data().join(step.store.name()),
            config: self.config,
            records: step.records,
            shape: self.shape,
            keys: self.keys,
            distribution: None,
            threads: 1,
            seed: self.seed,
            repeat: step.repeat,
            window: Window::default(),
            patience_seconds: PATIENCE_SECONDS,
            page_cache: match step.part {
                Part::Crash(_, page_cache) => page_cache,
                Part::Load | Part::Clear => PageCache::AsLeft,
            },
            target: None,
        };
        let load = Described::loading(NAME, step.store, &cell);
        match step.part {
            Part::Load => {
                progress.step(&load.title());
                session.record(session.row(&load, load.load()?), progress)
            }
            Part::Crash(tail, _) => self.crash(tail, load, session, progress),
            Part::Clear => DataFolder::clear(&cell.folder).context(|| load.title()),
        }
    }

    fn crash(
        &self,
        tail: u64,
        load: Described<'_>,
        session: &mut Session,
        progress: &Progress,
    ) -> Result<()> {
        let cold = if load.cell.page_cache == PageCache::Cold { "-cold" } else { "" };
        let open = Described {
            workload: format!("open-{tail}{cold}"),
            phase: Phase::Run,
            durability: self.config.durability,
            ..load
        };
        progress.step(&open.title());
        let Answer::WroteTail = open.perform(Action::Burst(tail))? else {
            return Err(unexpected());
        };
        let Answer::Opened(measurement, opening) = open.perform(Action::Open(tail))? else {
            return Err(unexpected());
        };
        let mut row = session.row(&open, measurement);
        row.opening = Some(opening);
        session.record(row, progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, Statistics};
    use crate::workload::InsertOrder;

    #[test]
    fn a_size_is_loaded_once_and_cleared_after_its_last_opening() {
        let job = OpenTime {
            stores: vec![StoreKind::Sediment, StoreKind::RocksDb],
            records: vec![100, 200],
            tails: vec![0, 50],
            page_caches: vec![PageCache::Warm],
            shape: DocumentShape { fields: 1, field_bytes: 100 },
            keys: KeyFormat { order: InsertOrder::Hashed, zero_padding: 1 },
            config: StoreConfig {
                durability: Durability::Buffered,
                memtable_bytes: 4 << 20,
                cache_bytes: 8 << 20,
                cores: 2,
                statistics: Statistics::Off,
            },
            repeats: 2,
            seed: 42,
        };
        let text = |step: &Step| match step.part {
            Part::Load => format!("{}+", &step.store.name()[..1]),
            Part::Crash(tail, _) => format!("{}{tail}", &step.store.name()[..1]),
            Part::Clear => format!("{}-", &step.store.name()[..1]),
        };
        let steps = job.steps();
        let first: Vec<_> = steps[..12].iter().map(text).collect();
        assert_eq!(first.join(" "), "s+ r+ s0 r0 s50 r50 r0 s0 r50 s50 s- r-");
        assert!(steps[..12].iter().all(|step| step.records == 100));
        assert_eq!(steps.len(), 24);
    }
}
