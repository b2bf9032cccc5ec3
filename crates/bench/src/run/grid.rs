//! A bench as a grid of cells, and the order in which its steps run.
//!
//! Each repeat starts from a fresh load, runs A, B, C, F and D over that data, then loads afresh
//! and runs E: a scan after A's updates would measure the file's layout. A sequence measures that
//! too: it also runs E after D, before the fresh load.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::cell::{CellSpec, Window};
use crate::measure::page_cache::PageCache;
use crate::report::Row;
use crate::store::{Durability, StoreConfig, StoreKind};
use crate::verify::Plant;
use crate::workload::{Distribution, DocumentShape, KeyFormat, Workload};

/// Longest wait for background work after a cell.
pub(super) const SETTLE_PATIENCE_SECONDS: f64 = 60.0;

/// The named benches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bench {
    /// Many times more records than the memtable holds: reads go to the tables.
    TableBound,
    /// Every record within the memtable's reach.
    MemtableBound,
    /// Sizes and durabilities one after the other, with E after the updates and afresh.
    Sequence,
    /// YCSB's sequence with several stores, sizes, durabilities and numbers of clients.
    Ycsb,
}

impl Bench {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TableBound => "table-bound",
            Self::MemtableBound => "memtable-bound",
            Self::Sequence => "sequence",
            Self::Ycsb => "ycsb",
        }
    }
}

/// A bench with all its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    pub(crate) bench: Bench,
    pub(crate) stores: Vec<StoreKind>,
    pub(crate) workloads: Vec<Workload>,
    pub(crate) threads: Vec<u32>,
    pub(crate) config: StoreConfig,
    pub(crate) records: u64,
    pub(crate) shape: DocumentShape,
    pub(crate) keys: KeyFormat,
    pub(crate) distribution: Option<Distribution>,
    pub(crate) repeats: u32,
    pub(crate) window: Window,
    pub(crate) page_cache: PageCache,
    /// Operations a second of all clients together.
    pub(crate) target: Option<f64>,
    pub(crate) digest_operations: u64,
    pub(crate) seed: u64,
    /// The store in whose verification one byte is falsified.
    pub(crate) plant: Option<StoreKind>,
}

/// The two data folders of a repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Folder {
    /// For A, B, C, F and D, and in a sequence for E after them.
    Main,
    /// For E over a fresh load.
    Scan,
}

impl Folder {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Scan => "scan",
        }
    }
}

/// A cell's place in a repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) repeat: u32,
    pub(super) threads: u32,
    pub(super) folder: Folder,
    pub(super) store: StoreKind,
    /// `None` is the load.
    pub(super) workload: Option<Workload>,
    /// Whether nothing after this step needs the store's folder.
    pub(super) last: bool,
}

impl Grid {
    /// All steps in their order.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for repeat in 1..=self.repeats {
            for &threads in &self.threads {
                for folder in [Folder::Main, Folder::Scan] {
                    self.push_folder(repeat, threads, folder, &mut steps);
                }
            }
        }
        steps
    }

    /// How many steps this store has.
    pub(crate) fn steps_of(&self, store: StoreKind) -> usize {
        self.steps().iter().filter(|step| step.store == store).count()
    }

    fn push_folder(&self, repeat: u32, threads: u32, folder: Folder, steps: &mut Vec<Step>) {
        let workloads = self.workloads_in(folder);
        let runs = |store: StoreKind, workload| {
            store.runs(workload, self.config.durability)
                && (threads == 1 || store.scope().has_several_clients())
        };
        for workload in std::iter::once(None).chain(workloads.iter().copied().map(Some)) {
            for store in in_turn(&self.stores, repeat) {
                let last = workloads.iter().rfind(|&&workload| runs(store, workload)).copied();
                if last.is_some() && workload.is_none_or(|workload| runs(store, workload)) {
                    let last = workload == last;
                    steps.push(Step { repeat, threads, folder, store, workload, last });
                }
            }
        }
    }

    fn workloads_in(&self, folder: Folder) -> Vec<Workload> {
        let mut workloads = self.workloads_in_order();
        workloads.retain(|&workload| match folder {
            Folder::Main => workload != Workload::E || self.bench == Bench::Sequence,
            Folder::Scan => workload == Workload::E,
        });
        workloads
    }

    /// Size and durability, where a run has several.
    pub(super) fn job(&self) -> Option<String> {
        let (shape, durability) = (self.shape, self.config.durability.name());
        matches!(self.bench, Bench::Sequence | Bench::Ycsb).then(|| {
            format!("{}x{}x{} {durability}", self.records, shape.fields, shape.field_bytes)
        })
    }

    /// Whether the row is that of this grid's step.
    pub(super) fn made(&self, step: &Step, row: &Row) -> bool {
        let threads = step.workload.map_or(1, |_| step.threads);
        (&row.bench[..], &row.job, &row.store[..])
            == (self.bench.name(), &self.job(), step.store.name())
            && (row.repeat, row.threads, row.folder) == (step.repeat, threads, step.folder)
            && (&row.workload, row.phase) == (&step.workload_name(), step.workload.into())
    }

    /// The selected workloads in the order in which they run.
    pub(super) fn workloads_in_order(&self) -> Vec<Workload> {
        let mut workloads = Workload::IN_RUN_ORDER.to_vec();
        workloads.retain(|workload| self.workloads.contains(workload));
        workloads
    }

    /// What a cell's process has to know.
    pub(super) fn cell(&self, folder: PathBuf, threads: u32, repeat: u32) -> CellSpec {
        CellSpec {
            folder,
            config: self.config,
            records: self.records,
            shape: self.shape,
            keys: self.keys,
            distribution: self.distribution,
            threads,
            seed: self.seed,
            repeat,
            window: self.window,
            patience_seconds: SETTLE_PATIENCE_SECONDS,
            page_cache: self.page_cache,
            target: self.target,
        }
    }

    /// The fault to plant in a store's verification.
    pub(super) fn plant_for(&self, store: StoreKind) -> Plant {
        if self.plant == Some(store) { Plant::WrongByte } else { Plant::Nothing }
    }
}

/// The order of the stores, which is swapped each repeat.
pub(super) fn in_turn(stores: &[StoreKind], repeat: u32) -> Vec<StoreKind> {
    let mut stores = stores.to_vec();
    if repeat.is_multiple_of(2) {
        stores.reverse();
    }
    stores
}

impl Step {
    /// Durability of the step's writes: a load always syncs each batch.
    pub(super) fn durability(&self, config: &StoreConfig) -> Durability {
        if self.workload.is_none() { Durability::Durable } else { config.durability }
    }

    /// "load" or the workload's letter; "e-after" is E over the data that D left.
    pub(super) fn workload_name(&self) -> String {
        match self.workload {
            None => "load".to_owned(),
            Some(Workload::E) if self.folder == Folder::Main => "e-after".to_owned(),
            Some(workload) => workload.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Statistics;
    use crate::workload::InsertOrder;

    fn grid(workloads: &[Workload], threads: &[u32]) -> Grid {
        Grid {
            bench: Bench::TableBound,
            stores: vec![StoreKind::Sediment, StoreKind::RocksDb],
            workloads: workloads.to_vec(),
            threads: threads.to_vec(),
            config: StoreConfig {
                durability: Durability::Durable,
                memtable_bytes: 4 << 20,
                cache_bytes: 8 << 20,
                cores: 2,
                statistics: Statistics::Off,
            },
            records: 100,
            shape: DocumentShape { fields: 1, field_bytes: 100 },
            keys: KeyFormat { order: InsertOrder::Hashed, zero_padding: 1 },
            distribution: None,
            repeats: 3,
            window: Window { warmup_seconds: 1.0, seconds: 5.0, operations: 20_000 },
            page_cache: PageCache::AsLeft,
            target: None,
            digest_operations: 20_000,
            seed: 42,
            plant: None,
        }
    }

    fn text(steps: &[Step]) -> String {
        let name = |step: &Step| format!("{}{}", &step.store.name()[..1], step.workload_name());
        steps.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn stores_take_turns_and_swap_their_order_each_repeat() {
        let steps = grid(&Workload::IN_RUN_ORDER, &[1]).steps();
        let (first, rest) = steps.split_at(16);
        let expected = "sload rload sa ra sb rb sc rc sf rf sd rd sload rload se re";
        assert_eq!(text(first), expected);
        let (second, third) = rest.split_at(16);
        assert!(text(second).starts_with("rload sload ra sa "), "{}", text(second));
        assert_eq!(text(third), expected);
    }

    #[test]
    fn workloads_run_in_ycsbs_order_whatever_the_arguments_order() {
        let steps = grid(&[Workload::E, Workload::D, Workload::A], &[1]).steps();
        assert_eq!(text(&steps[..10]), "sload rload sa ra sd rd sload rload se re");
    }

    #[test]
    fn every_load_has_one_last_step_for_each_store() {
        let steps = grid(&[Workload::C, Workload::E], &[1, 16]).steps();
        let loads = steps.iter().filter(|step| step.workload.is_none()).count();
        assert_eq!(loads, steps.iter().filter(|step| step.last).count());
        assert_eq!(loads, 2 * 2 * 2 * 3);
    }

    #[test]
    fn a_sequence_scans_after_the_updates_and_afresh() {
        let sequence = Grid { bench: Bench::Sequence, ..grid(&Workload::IN_RUN_ORDER, &[1]) };
        let steps = sequence.steps();
        let expected = "sload rload sa ra sb rb sc rc sf rf sd rd se-after re-after \
            sload rload se re";
        assert_eq!(text(&steps[..18]), expected);
        assert_eq!(steps.len(), 18 * 3);
        let last = steps[..14].iter().filter(|step| step.last).map(Step::workload_name);
        assert_eq!(last.collect::<Vec<_>>(), ["e-after", "e-after"]);
    }

    #[test]
    fn raw_takes_part_in_durable_a_and_f_alone() {
        let mut grid = grid(&Workload::IN_RUN_ORDER, &[1]);
        grid.stores = vec![StoreKind::RocksDb, StoreKind::Raw];
        let steps = grid.steps();
        let is_raw = |step: &&Step| step.store == StoreKind::Raw && step.repeat == 1;
        let raw: Vec<_> = steps.iter().filter(is_raw).copied().collect();
        // The stores' initials are equal here.
        assert_eq!(text(&raw), "rload ra rf");
        assert_eq!(raw.iter().map(|step| step.last).collect::<Vec<_>>(), [false, false, true]);
        grid.config.durability = Durability::Buffered;
        assert!(grid.steps().iter().all(|step| step.store != StoreKind::Raw));
    }

    #[test]
    fn without_e_there_is_no_second_load() {
        let steps = grid(&[Workload::C], &[1]).steps();
        assert!(steps.iter().all(|step| step.folder == Folder::Main));
        assert_eq!(steps.len(), 2 * 2 * 3);
    }
}
