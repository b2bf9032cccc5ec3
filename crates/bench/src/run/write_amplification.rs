//! The job that measures write amplification: for each size, distribution and store a fresh load,
//! then overwrites of several times the live bytes.
//!
//! 1. One store's folder exists at a time, so that the disk holds one size once.
//! 2. A folder that passes the disk's limit ends its cell: the row has an error, the run goes on,
//!    and is not valid in the end.

use std::time::Duration;

use super::cell::{CellSpec, Window};
use super::data::DataFolder;
use super::grid::in_turn;
use super::overwrite::OverwriteSpec;
use super::progress::Progress;
use super::protocol::{Action, Answer};
use super::session::{Described, Place, Session, unexpected};
use super::signal;
use crate::error::{Context, Result};
use crate::measure::page_cache::PageCache;
use crate::report::Phase;
use crate::store::{StoreConfig, StoreKind};
use crate::workload::{Distribution, DocumentShape, KeyFormat};

const NAME: &str = "write-amplification";
/// Compaction of the largest size may take minutes.
const PATIENCE_SECONDS: f64 = 600.0;
/// Planned bytes a second, with the waits for background work.
const LOADED_PER_SECOND: f64 = 250e6;
const OVERWRITTEN_PER_SECOND: f64 = 120e6;

/// The job with all its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Amplification {
    pub(crate) stores: Vec<StoreKind>,
    pub(crate) distributions: Vec<Distribution>,
    /// Sizes of the live set, about.
    pub(crate) live_bytes: Vec<u64>,
    /// How often the live bytes are overwritten.
    pub(crate) turnover: f64,
    pub(crate) shape: DocumentShape,
    pub(crate) keys: KeyFormat,
    pub(crate) config: StoreConfig,
    pub(crate) repeats: u32,
    pub(crate) seed: u64,
    pub(crate) disk_limit_bytes: u64,
}

/// A load and the overwrites over it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    repeat: u32,
    records: u64,
    distribution: Distribution,
    store: StoreKind,
}

/// Loads, overwrites, and prints the tables.
pub(super) fn run(place: &Place, job: &Amplification) -> Result<()> {
    Session::run(NAME, place, |session| measure(job, session))
}

fn measure(job: &Amplification, session: &mut Session) -> Result<()> {
    let steps = job.steps();
    let planned = steps.iter().flat_map(|step| job.planned(step)).collect();
    let mut progress = Progress::start(planned)?;
    steps.iter().try_for_each(|step| job.step(step, session, &mut progress))
}

impl Amplification {
    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for repeat in 1..=self.repeats {
            for &live_bytes in &self.live_bytes {
                let records = live_records(live_bytes, self.shape, self.keys);
                for &distribution in &self.distributions {
                    let step = |store| Step { repeat, records, distribution, store };
                    steps.extend(in_turn(&self.stores, repeat).into_iter().map(step));
                }
            }
        }
        steps
    }

    fn live_bytes(&self, step: &Step) -> u64 {
        self.keys.bytes(step.records) + step.records * self.shape.document_bytes()
    }

    fn planned(&self, step: &Step) -> [Duration; 2] {
        let live = step.records as f64 * self.shape.document_bytes() as f64;
        let seconds = [live / LOADED_PER_SECOND, live * self.turnover / OVERWRITTEN_PER_SECOND];
        seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }

    fn cell(&self, step: &Step, session: &Session) -> CellSpec {
        CellSpec {
            folder: session.data().join(step.store.name()),
            config: self.config,
            records: step.records,
            shape: self.shape,
            keys: self.keys,
            distribution: Some(step.distribution),
            threads: 1,
            seed: self.seed,
            repeat: step.repeat,
            window: Window::default(),
            patience_seconds: PATIENCE_SECONDS,
            page_cache: PageCache::AsLeft,
            target: None,
        }
    }

    fn step(&self, step: &Step, session: &mut Session, progress: &mut Progress) -> Result<()> {
        signal::check()?;
        let cell = self.cell(step, session);
        DataFolder::clear(&cell.folder)?;
        let load = Described::loading(NAME, step.store, &cell);
        progress.step(&load.title());
        session.record(session.row(&load, load.load()?), progress)?;
        progress.step_done();

        signal::check()?;
        let overwrites = Described {
            workload: format!("overwrite-{}", step.distribution.name()),
            phase: Phase::Run,
            requests: Some(step.distribution),
            durability: self.config.durability,
            ..load
        };
        progress.step(&overwrites.title());
        let spec = OverwriteSpec {
            distribution: step.distribution,
            user_bytes: scaled(self.live_bytes(step), self.turnover),
            turnover: self.turnover,
            disk_limit_bytes: self.disk_limit_bytes,
        };
        let Answer::Overwritten(measurement, amplification) =
            overwrites.perform(Action::Overwrite(spec))?
        else {
            return Err(unexpected());
        };
        let mut row = session.row(&overwrites, measurement);
        row.write_amplification = Some(amplification);
        session.record(row, progress)?;
        DataFolder::clear(&cell.folder).context(|| overwrites.title())?;
        progress.step_done();
        Ok(())
    }
}

/// As many records as come nearest to `live_bytes` of ids and documents, at least one.
fn live_records(live_bytes: u64, shape: DocumentShape, keys: KeyFormat) -> u64 {
    const SAMPLE: u64 = 1_000;
    let sample = keys.bytes(SAMPLE) + SAMPLE * shape.document_bytes();
    (u128::from(live_bytes) * u128::from(SAMPLE) / u128::from(sample))
        .try_into()
        .unwrap_or(1)
        .max(1)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and the command line bounds both factors"
)]
fn scaled(bytes: u64, factor: f64) -> u64 {
    (bytes as f64 * factor).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, Statistics};
    use crate::workload::InsertOrder;

    fn job() -> Amplification {
        Amplification {
            stores: vec![StoreKind::Sediment, StoreKind::RocksDb],
            distributions: vec![Distribution::Uniform, Distribution::Zipfian],
            live_bytes: vec![500_000_000, 2_000_000_000],
            turnover: 1.5,
            shape: DocumentShape { fields: 1, field_bytes: 1_024 },
            keys: KeyFormat { order: InsertOrder::Hashed, zero_padding: 1 },
            config: StoreConfig {
                durability: Durability::Buffered,
                memtable_bytes: 4 << 20,
                cache_bytes: 8 << 20,
                cores: 2,
                statistics: Statistics::On,
            },
            repeats: 2,
            seed: 42,
            disk_limit_bytes: 1 << 40,
        }
    }

    #[test]
    fn every_size_has_every_distribution_and_stores_take_turns() {
        let steps = job().steps();
        assert_eq!(steps.len(), 2 * 2 * 2 * 2);
        let text = |step: &Step| format!("{}-{}", step.store.name(), step.distribution.name());
        let first: Vec<_> = steps[..4].iter().map(text).collect();
        let expected =
            ["sediment-uniform", "rocksdb-uniform", "sediment-zipfian", "rocksdb-zipfian"];
        assert_eq!(first, expected);
        assert_eq!(steps[8].store, StoreKind::RocksDb, "swapped in the second repeat");
        assert!(steps[0].records < steps[4].records);
    }

    #[test]
    fn a_live_set_is_as_large_as_asked_for() {
        let job = job();
        for (step, asked) in [(&job.steps()[0], 5e8), (&job.steps()[4], 2e9)] {
            let live = job.live_bytes(step) as f64;
            assert!((live / asked - 1.0).abs() < 1e-3, "{live}");
        }
        assert_eq!(live_records(1, job.shape, job.keys), 1);
    }

    #[test]
    fn a_turnover_scales_the_live_bytes() {
        assert_eq!(scaled(1_000, 1.5), 1_500);
        assert_eq!(scaled(3, 0.1), 1);
    }
}
