//! The arguments of the sequence of sizes and durabilities.

use std::fmt::{self, Display};
use std::str::FromStr;

use clap::Args;

use super::common::{
    DEFAULT_BUDGET, FIELD_BYTES_MAX, KEYS, PlaceArguments, WindowArguments, config,
};
use super::{Command, RECORDS_MAX, out_of_scope, unique};
use crate::measure::page_cache::PageCache;
use crate::run::{Bench, Grid};
use crate::store::{Durability, Statistics, StoreKind};
use crate::workload::{DocumentShape, Workload};

/// As `table-bound`: many times less than its records take.
const TABLE_BOUND_BUDGET: (u64, u64) = (4 << 20, 8 << 20);
/// Live sets up to this many bytes get the budget of `table-bound`.
const TABLE_BOUND_BYTES_MAX: u64 = 128 << 20;

/// Records and the bytes of their one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) records: u64,
    pub(super) field_bytes: u32,
}

impl Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.records, self.field_bytes)
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('x').and_then(|(records, field_bytes)| {
            Some(Self { records: records.parse().ok()?, field_bytes: field_bytes.parse().ok()? })
        });
        let Some(size) = parsed else {
            return Err("not RECORDSxBYTES, such as 300000x100".to_owned());
        };
        if !(1..=RECORDS_MAX).contains(&size.records) {
            return Err(format!("there must be 1 to {RECORDS_MAX} records"));
        }
        if !(1..=FIELD_BYTES_MAX).contains(&size.field_bytes) {
            return Err(format!("a record must have 1 to {FIELD_BYTES_MAX} bytes"));
        }
        Ok(size)
    }
}

impl Size {
    /// The default sizes: a table far larger than the budgets, then one with the default budgets.
    pub(super) const USUAL: [Self; 2] = [
        Self { records: 300_000, field_bytes: 100 },
        Self { records: 1_000_000, field_bytes: 1_024 },
    ];

    pub(super) fn shape(self) -> DocumentShape {
        DocumentShape { fields: 1, field_bytes: self.field_bytes }
    }

    /// Memtable and block cache.
    pub(super) fn budget(self) -> (u64, u64) {
        let live = self.records.saturating_mul(self.shape().document_bytes());
        if live <= TABLE_BOUND_BYTES_MAX { TABLE_BOUND_BUDGET } else { DEFAULT_BUDGET }
    }
}

#[derive(Debug, Args)]
pub(super) struct SequenceArguments {
    /// A size, as RECORDSxBYTES; may be given several times. Up to 128 MiB of documents the stores
    /// have the memory of `table-bound`, above it 16 MiB of memtable in a budget of 64 MiB.
    #[arg(long = "size", default_values_t = Size::USUAL)]
    sizes: Vec<Size>,
    /// When a write of a timed cell is answered; may be given several times.
    #[arg(long = "durability", value_enum, default_values = ["buffered", "durable"])]
    durabilities: Vec<Durability>,
    /// Stores, in the order of the first repeat; `raw` takes part in durable A and F.
    #[arg(long, value_delimiter = ',', default_value = "sediment,rocksdb")]
    stores: Vec<StoreKind>,
    #[command(flatten)]
    window: WindowArguments,
    #[command(flatten)]
    place: PlaceArguments,
}

pub(super) fn sequence(arguments: SequenceArguments) -> Result<Command, clap::Error> {
    let stores = unique(arguments.stores, "store")?;
    let sizes = unique(arguments.sizes, "size")?;
    let durabilities = unique(arguments.durabilities, "durability")?;
    let mut grids = Vec::new();
    for &size in &sizes {
        for &durability in &durabilities {
            let workloads = Workload::IN_RUN_ORDER;
            let runs = |store: &StoreKind| workloads.iter().any(|w| store.runs(*w, durability));
            grids.push(Grid {
                bench: Bench::Sequence,
                stores: stores.iter().copied().filter(runs).collect(),
                workloads: workloads.to_vec(),
                threads: vec![1],
                config: config(size.budget(), durability, Statistics::Off),
                records: size.records,
                shape: size.shape(),
                keys: KEYS,
                distribution: None,
                repeats: arguments.window.repeats,
                window: arguments.window.window(),
                page_cache: PageCache::AsLeft,
                target: None,
                digest_operations: arguments.window.digest_operations,
                seed: arguments.window.seed,
                plant: None,
            });
        }
    }
    let unused = stores.iter().find(|store| grids.iter().all(|grid| !grid.stores.contains(store)));
    if let Some(store) = unused {
        return Err(out_of_scope(*store));
    }
    Ok(Command::Bench { place: arguments.place.into(), grids })
}

#[cfg(test)]
mod tests {
    use super::super::tests::parsed;
    use super::*;

    fn grids(arguments: &str) -> Vec<Grid> {
        match parsed(arguments).unwrap() {
            Command::Bench { grids, .. } => grids,
            command => panic!("{command:?}"),
        }
    }

    #[test]
    fn a_sequence_is_every_size_with_every_durability() {
        let grids = grids("sequence");
        let sizes: Vec<_> = grids
            .iter()
            .map(|g| (g.records, g.shape.field_bytes, g.config.durability.name()))
            .collect();
        let expected = [
            (300_000, 100, "buffered"),
            (300_000, 100, "durable"),
            (1_000_000, 1_024, "buffered"),
            (1_000_000, 1_024, "durable"),
        ];
        assert_eq!(sizes, expected);
        let budget = |grid: &Grid| (grid.config.memtable_bytes, grid.config.cache_bytes);
        assert_eq!((budget(&grids[0]), budget(&grids[3])), (TABLE_BOUND_BUDGET, DEFAULT_BUDGET));
    }

    #[test]
    fn sizes_and_durabilities_may_be_repeated_options() {
        let grids = grids("sequence --size 10x20 --size 30x40 --durability durable");
        assert_eq!(grids.len(), 2);
        assert_eq!((grids[1].records, grids[1].shape.field_bytes), (30, 40));
    }

    #[test]
    fn raw_is_in_the_durable_part_of_a_sequence() {
        let grids = grids("sequence --size 10x20 --stores sediment,raw");
        assert_eq!(grids[0].stores, [StoreKind::Sediment]);
        assert_eq!(grids[1].stores, [StoreKind::Sediment, StoreKind::Raw]);
    }

    #[test]
    fn every_mistake_is_one_line_that_names_it() {
        let mistakes = [
            ("sequence --size 300000", "RECORDSxBYTES"),
            ("sequence --size 0x100", "1 to"),
            ("sequence --size 10x0", "1 to"),
            ("sequence --size 10x10 --size 10x10", "twice"),
            ("sequence --durability buffered --durability buffered", "twice"),
            ("sequence --durability buffered --stores raw", "durable A and F"),
        ];
        for (mistake, expected) in mistakes {
            let text = parsed(mistake).unwrap_err();
            assert!(text.starts_with("error: ") && !text.contains('\n'), "{mistake}: {text}");
            assert!(text.contains(expected), "{mistake}: {text}");
        }
    }
}
