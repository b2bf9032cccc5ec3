//! The micro suite: what one kind of call costs, and what becomes of the disk when half of a store
//! is deleted, all of it, and when it is filled again.
//!
//! 1. A part is a process of its own and a row, as a cell is elsewhere.
//! 2. The parts of a folder run one after the other; each folder begins empty.

pub(super) mod cell;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cell::{CellSpec, Window};
use super::data::DataFolder;
use super::grid::{Folder, in_turn};
use super::progress::Progress;
use super::protocol::{Action, Answer};
use super::session::{Described, Place, Session, unexpected};
use super::signal;
use crate::error::{Context, Result};
use crate::measure::page_cache::PageCache;
use crate::report::{self, Phase};
use crate::store::{StoreConfig, StoreKind};
use crate::workload::{DocumentShape, KeyFormat};

const NAME: &str = "micro";
const PATIENCE_SECONDS: f64 = 120.0;
/// Planned.
const PART_TAKES: Duration = Duration::from_secs(2);
/// Calls a second of a part, roughly: what a wait for a quiet processor may take follows from it.
const CALLS_PER_SECOND: f64 = 200_000.0;
/// Above the engine's 16 MiB with its name and lengths.
const OVERSIZE: DocumentShape = DocumentShape { fields: 1, field_bytes: 16 << 20 };
/// Holds every record of a rebuild, so that all of them are in the log only.
const REBUILD_MEMTABLE_BYTES: u64 = 64 << 20;

/// The suite with all its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Micro {
    pub(crate) stores: Vec<StoreKind>,
    /// Small documents.
    pub(crate) records: u64,
    pub(crate) small: DocumentShape,
    pub(crate) large_records: u64,
    pub(crate) large: DocumentShape,
    pub(crate) rebuild_records: u64,
    pub(crate) keys: KeyFormat,
    pub(crate) config: StoreConfig,
    pub(crate) repeats: u32,
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    InsertSmall,
    Lookup,
    Scan,
    DeleteHalf,
    DeleteRest,
    Refill,
    InsertLarge,
    Oversize,
    Rebuild,
}

impl Part {
    /// In the order in which they run.
    pub(crate) const ALL: [Self; 9] = [
        Self::InsertSmall,
        Self::Lookup,
        Self::Scan,
        Self::DeleteHalf,
        Self::DeleteRest,
        Self::Refill,
        Self::InsertLarge,
        Self::Oversize,
        Self::Rebuild,
    ];

    /// A row's `workload`.
    pub(crate) fn workload(self) -> &'static str {
        match self {
            Self::InsertSmall => "micro-insert-small",
            Self::Lookup => "micro-lookup",
            Self::Scan => "micro-scan",
            Self::DeleteHalf => "micro-delete-half",
            Self::DeleteRest => "micro-delete-rest",
            Self::Refill => "micro-refill",
            Self::InsertLarge => "micro-insert-large",
            Self::Oversize => "micro-oversize",
            Self::Rebuild => "micro-rebuild",
        }
    }

    /// The key of its calls in a row's `latency_ns`.
    fn kind(self) -> &'static str {
        match self {
            Self::InsertSmall | Self::Refill | Self::InsertLarge | Self::Oversize => "INSERT",
            Self::Lookup => "READ",
            Self::Scan => "SCAN",
            Self::DeleteHalf | Self::DeleteRest => "DELETE",
            Self::Rebuild => "OPEN",
        }
    }

    fn writes(self) -> bool {
        !matches!(self, Self::Lookup | Self::Scan | Self::Rebuild)
    }

    /// Name of the folder it runs in.
    fn folder(self) -> &'static str {
        match self {
            Self::InsertLarge => "large",
            Self::Oversize => "oversize",
            Self::Rebuild => "rebuild",
            _ => "small",
        }
    }

    fn begins(self) -> bool {
        matches!(self, Self::InsertSmall | Self::InsertLarge | Self::Oversize | Self::Rebuild)
    }

    /// Whether nothing after it needs its folder.
    fn ends(self) -> bool {
        matches!(self, Self::Refill | Self::InsertLarge | Self::Oversize | Self::Rebuild)
    }
}

/// Measures every part, and writes the comparison and a line of the history.
pub(super) fn run(place: &Place, job: &Micro) -> Result<()> {
    let mut rows = Vec::new();
    Session::run(NAME, place, |session| {
        let measured = measure(job, session);
        rows = session.rows().to_vec();
        measured
    })?;
    // A run that is not valid has ended above, and enters no history.
    report::write_micro(&place.results, &rows)
}

fn measure(job: &Micro, session: &mut Session) -> Result<()> {
    let steps = job.steps();
    let mut progress = Progress::start(vec![PART_TAKES; steps.len()])?;
    for (repeat, part, store) in steps {
        signal::check()?;
        job.step(repeat, part, store, session, &progress)?;
        progress.step_done();
    }
    Ok(())
}

fn expected(records: u64) -> Duration {
    Duration::from_secs_f64(records as f64 / CALLS_PER_SECOND)
}

impl Micro {
    fn steps(&self) -> Vec<(u32, Part, StoreKind)> {
        let mut steps = Vec::new();
        for repeat in 1..=self.repeats {
            for part in Part::ALL {
                let stores = in_turn(&self.stores, repeat).into_iter();
                steps.extend(stores.map(|store| (repeat, part, store)));
            }
        }
        steps
    }

    fn cell(&self, repeat: u32, part: Part, folder: std::path::PathBuf) -> CellSpec {
        let (records, shape) = match part {
            Part::InsertLarge => (self.large_records, self.large),
            Part::Oversize => (1, OVERSIZE),
            Part::Rebuild => (self.rebuild_records, self.small),
            _ => (self.records, self.small),
        };
        let memtable_bytes = match part {
            Part::Rebuild => REBUILD_MEMTABLE_BYTES,
            _ => self.config.memtable_bytes,
        };
        CellSpec {
            folder,
            config: StoreConfig { memtable_bytes, ..self.config },
            records,
            shape,
            keys: self.keys,
            distribution: None,
            threads: 1,
            seed: self.seed,
            repeat,
            window: Window::default(),
            patience_seconds: PATIENCE_SECONDS,
            page_cache: PageCache::AsLeft,
            target: None,
        }
    }

    fn step(
        &self,
        repeat: u32,
        part: Part,
        store: StoreKind,
        session: &mut Session,
        progress: &Progress,
    ) -> Result<()> {
        let folder = session.data().join(format!("{}-{}", store.name(), part.folder()));
        let cell = self.cell(repeat, part, folder);
        let mut described = Described {
            bench: NAME,
            job: None,
            store,
            cell: &cell,
            workload: part.workload().to_owned(),
            phase: Phase::Run,
            folder: Folder::Main,
            requests: None,
            durability: self.config.durability,
            digest: None,
            live_records: match part {
                Part::DeleteHalf => cell.records - cell.records / 2,
                Part::DeleteRest => 0,
                _ => cell.records,
            },
        };
        progress.step(&described.title());
        let quietness = session.wait_until_quiet(expected(cell.records));
        if part.begins() {
            DataFolder::clear(&cell.folder)?;
        }
        let mut row = match part {
            Part::Rebuild => {
                // A store that was closed once has its collection's own record out of the log.
                let empty = CellSpec { records: 0, ..cell.clone() };
                Described::loading(NAME, store, &empty).load()?;
                let Answer::WroteTail = described.perform(Action::Burst(cell.records))? else {
                    return Err(unexpected());
                };
                match described.perform(Action::Open(cell.records))? {
                    Answer::Opened(measurement, opening) => {
                        let mut row = session.row(&described, measurement);
                        row.opening = Some(opening);
                        row
                    }
                    _ => return Err(unexpected()),
                }
            }
            _ => match described.perform(Action::Micro(part))? {
                Answer::MicroMeasured(measurement, oversize) => {
                    if oversize.as_ref().is_some_and(|oversize| oversize.oversize_refused) {
                        described.live_records = 0;
                    }
                    let mut row = session.row(&described, measurement);
                    row.oversize = oversize;
                    row
                }
                _ => return Err(unexpected()),
            },
        };
        row.quietness = Some(quietness);
        if part.ends() {
            DataFolder::clear(&cell.folder).context(|| described.title())?;
        }
        session.record(row, progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_folder_follow_each_other_and_its_last_one_ends_it() {
        for part in Part::ALL {
            let same = |other: &&Part| other.folder() == part.folder();
            let first = Part::ALL.iter().find(same).copied();
            let last = Part::ALL.iter().rfind(same).copied();
            assert_eq!(part.begins(), first == Some(part), "{part:?}");
            assert_eq!(part.ends(), last == Some(part), "{part:?}");
        }
    }

    #[test]
    fn the_oversize_document_is_above_the_engines_limit() {
        assert!(OVERSIZE.document_bytes() > 16 << 20);
    }
}
