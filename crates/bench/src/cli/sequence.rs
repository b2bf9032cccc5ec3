//! The arguments of the sequence of sizes and durabilities.

use std::str::FromStr;

use clap::Args;

use super::jobs::{DEFAULT_BUDGET, FIELD_BYTES_MAX, KEYS, PlaceArguments, config};
use super::{Command, OPERATIONS_MAX, RECORDS_MAX, invalid, seconds, unique};
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
    records: u64,
    field_bytes: u32,
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
    fn shape(self) -> DocumentShape {
        DocumentShape { fields: 1, field_bytes: self.field_bytes }
    }

    /// Memtable and block cache.
    fn budget(self) -> (u64, u64) {
        let live = self.records.saturating_mul(self.shape().document_bytes());
        if live <= TABLE_BOUND_BYTES_MAX { TABLE_BOUND_BUDGET } else { DEFAULT_BUDGET }
    }
}

#[derive(Debug, Args)]
pub(super) struct SequenceArguments {
    /// A size, as RECORDSxBYTES; may be given several times. Up to 128 MiB of documents the stores
    /// have the memory of `table-bound`, above it 16 MiB of memtable in a budget of 64 MiB.
    #[arg(long = "size", default_values = ["300000x100", "1000000x1024"])]
    sizes: Vec<Size>,
    /// When a write of a timed cell is answered; may be given several times.
    #[arg(long = "durability", value_enum, default_values = ["buffered", "durable"])]
    durabilities: Vec<Durability>,
    /// Stores, in the order of the first repeat; `raw` takes part in durable A and F.
    #[arg(long, value_delimiter = ',', default_value = "sediment,rocksdb")]
    stores: Vec<StoreKind>,
    /// Repeats of every cell.
    #[arg(long, default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    repeats: u32,
    /// Shortest window of a cell, in seconds.
    #[arg(long, default_value = "5", value_parser = seconds)]
    seconds: f64,
    /// Warm-up before a window, in seconds.
    #[arg(long, default_value = "1", value_parser = seconds)]
    warmup_seconds: f64,
    /// Fewest operations in a window.
    #[arg(long, default_value = "20000", value_parser = clap::value_parser!(u64).range(1..=OPERATIONS_MAX))]
    operations: u64,
    /// Operations of each workload on which the stores' answers are compared.
    #[arg(long, default_value = "20000", value_parser = clap::value_parser!(u64).range(1..=OPERATIONS_MAX))]
    digest_operations: u64,
    /// Equal seeds give equal operations.
    #[arg(long, default_value = "42")]
    seed: u64,
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
            let runs = |store: &StoreKind| store.runs(Workload::A, durability);
            grids.push(Grid {
                bench: Bench::Sequence,
                stores: stores.iter().copied().filter(runs).collect(),
                workloads: Workload::IN_RUN_ORDER.to_vec(),
                threads: vec![1],
                config: config(size.budget(), durability, Statistics::Off),
                records: size.records,
                shape: size.shape(),
                keys: KEYS,
                distribution: None,
                repeats: arguments.repeats,
                warmup_seconds: arguments.warmup_seconds,
                seconds: arguments.seconds,
                operations: arguments.operations,
                digest_operations: arguments.digest_operations,
                seed: arguments.seed,
                plant: None,
            });
        }
    }
    let unused = stores.iter().find(|store| grids.iter().all(|grid| !grid.stores.contains(store)));
    if let Some(store) = unused {
        return Err(invalid(format!("{} takes part in durable A and F alone", store.name())));
    }
    Ok(Command::Bench { place: arguments.place.into(), grids })
}

#[cfg(test)]
mod tests {
    use super::super::{one_line, parse_from};
    use super::*;

    fn parsed(arguments: &str) -> Result<Command, String> {
        let arguments = ["bench"].into_iter().chain(arguments.split_whitespace());
        parse_from(arguments).map_err(|error| one_line(&error.to_string()))
    }

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
