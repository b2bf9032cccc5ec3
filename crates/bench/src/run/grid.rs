//! A bench as a grid of cells, and the order in which its steps run.
//!
//! Each repeat starts from a fresh load, runs A, B, C, F and D over that data, then loads afresh
//! and runs E: a scan after A's updates would measure the file's layout.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::cell::CellSpec;
use crate::store::{Durability, StoreConfig, StoreKind};
use crate::verify::Plant;
use crate::workload::{Distribution, DocumentShape, KeyFormat, Workload};

/// The named benches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bench {
    /// Many times more records than the memtable holds: reads go to the tables.
    TableBound,
    /// Every record within the memtable's reach.
    MemtableBound,
}

impl Bench {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TableBound => "table-bound",
            Self::MemtableBound => "memtable-bound",
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
    pub(crate) warmup_seconds: f64,
    pub(crate) seconds: f64,
    pub(crate) operations: u64,
    pub(crate) digest_operations: u64,
    pub(crate) seed: u64,
    pub(crate) data: Option<PathBuf>,
    pub(crate) results: PathBuf,
    /// The store in whose verification one byte is falsified.
    pub(crate) plant: Option<StoreKind>,
}

/// The two data folders of a repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Folder {
    /// For A, B, C, F and D.
    Main,
    /// For E.
    Scan,
}

impl Folder {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Scan => "scan",
        }
    }

    fn holds(self, workload: Workload) -> bool {
        (workload == Workload::E) == (self == Self::Scan)
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

    fn push_folder(&self, repeat: u32, threads: u32, folder: Folder, steps: &mut Vec<Step>) {
        let workloads = self.workloads_in_order().into_iter().filter(|&w| folder.holds(w));
        let workloads: Vec<_> = workloads.map(Some).collect();
        if workloads.is_empty() {
            return;
        }
        let cells: Vec<_> = std::iter::once(None).chain(workloads).collect();
        for (number, &workload) in cells.iter().enumerate() {
            let last = number + 1 == cells.len();
            let step = |store| Step { repeat, threads, folder, store, workload, last };
            steps.extend(self.stores_in_turn(repeat).into_iter().map(step));
        }
    }

    /// The selected workloads in the order in which they run.
    pub(super) fn workloads_in_order(&self) -> Vec<Workload> {
        let mut workloads = Workload::IN_RUN_ORDER.to_vec();
        workloads.retain(|workload| self.workloads.contains(workload));
        workloads
    }

    /// The order of the stores is swapped each repeat.
    fn stores_in_turn(&self, repeat: u32) -> Vec<StoreKind> {
        let mut stores = self.stores.clone();
        if repeat.is_multiple_of(2) {
            stores.reverse();
        }
        stores
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
            warmup_seconds: self.warmup_seconds,
            seconds: self.seconds,
            operations: self.operations,
        }
    }

    /// The fault to plant in a store's verification.
    pub(super) fn plant_for(&self, store: StoreKind) -> Plant {
        if self.plant == Some(store) { Plant::WrongByte } else { Plant::Nothing }
    }
}

impl Step {
    /// Durability of the step's writes: a load always syncs each batch.
    pub(super) fn durability(&self, config: &StoreConfig) -> Durability {
        if self.workload.is_none() { Durability::Durable } else { config.durability }
    }

    /// "load" or the workload's letter.
    pub(super) fn workload_name(&self) -> String {
        self.workload.map_or_else(|| "load".to_owned(), |workload| workload.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::InsertOrder;

    fn grid(workloads: &[Workload], threads: &[u32]) -> Grid {
        Grid {
            bench: Bench::TableBound,
            stores: StoreKind::ALL.to_vec(),
            workloads: workloads.to_vec(),
            threads: threads.to_vec(),
            config: StoreConfig {
                durability: Durability::Durable,
                memtable_bytes: 4 << 20,
                cache_bytes: 8 << 20,
                cores: 2,
            },
            records: 100,
            shape: DocumentShape { fields: 1, field_bytes: 100 },
            keys: KeyFormat { order: InsertOrder::Hashed, zero_padding: 1 },
            distribution: None,
            repeats: 3,
            warmup_seconds: 1.0,
            seconds: 5.0,
            operations: 20_000,
            digest_operations: 20_000,
            seed: 42,
            data: None,
            results: PathBuf::new(),
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
    fn without_e_there_is_no_second_load() {
        let steps = grid(&[Workload::C], &[1]).steps();
        assert!(steps.iter().all(|step| step.folder == Folder::Main));
        assert_eq!(steps.len(), 2 * 2 * 3);
    }
}
