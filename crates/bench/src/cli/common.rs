//! The arguments that several commands have, and what several give no choice of.

use std::path::PathBuf;

use clap::Args;

use crate::measure::machine;
use crate::run::{Place, Window};
use crate::store::{Durability, Statistics, StoreConfig};
use crate::workload::{InsertOrder, KeyFormat};

const OPERATIONS_MAX: u64 = 1_000_000_000_000;
const SECONDS_MAX: f64 = 86_400.0;
/// One operation a nanosecond.
pub(super) const TARGET_MAX: f64 = 1e9;
/// `Options::default()` of the engine: 16 MiB of memtable in a memory budget of 64 MiB, which
/// RocksDB has as its memtable and its block cache.
pub(super) const DEFAULT_BUDGET: (u64, u64) = (16 << 20, 48 << 20);
pub(super) const FIELD_BYTES_MAX: u32 = (16 << 20) - 64;
pub(super) const KEYS: KeyFormat = KeyFormat { order: InsertOrder::Hashed, zero_padding: 1 };

#[derive(Debug, Args)]
pub(super) struct PlaceArguments {
    /// Folder in which the stores' data is kept during the run [default: cargo's target folder].
    #[arg(long)]
    data: Option<PathBuf>,
    /// Folder for the results file.
    #[arg(long, default_value = "bench-results")]
    results: PathBuf,
}

impl From<PlaceArguments> for Place {
    fn from(arguments: PlaceArguments) -> Self {
        Self { data: arguments.data, results: arguments.results, resume: None }
    }
}

/// How cells are timed, repeated and compared.
#[derive(Debug, Args)]
pub(super) struct WindowArguments {
    /// Repeats of every cell.
    #[arg(long, default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(super) repeats: u32,
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
    pub(super) digest_operations: u64,
    /// Equal seeds give equal operations.
    #[arg(long, default_value = "42")]
    pub(super) seed: u64,
}

impl WindowArguments {
    pub(super) fn window(&self) -> Window {
        let &Self { warmup_seconds, seconds, operations, .. } = self;
        Window { warmup_seconds, seconds, operations }
    }
}

pub(super) fn config(
    (memtable_bytes, cache_bytes): (u64, u64),
    durability: Durability,
    statistics: Statistics,
) -> StoreConfig {
    StoreConfig { durability, memtable_bytes, cache_bytes, cores: machine::cores(), statistics }
}

/// A positive number.
pub(super) fn in_range(text: &str, unit: &str, max: f64) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("not a number of {unit}"))?;
    if number > 0.0 && number <= max {
        Ok(number)
    } else {
        Err(format!("must be above 0 and at most {max}"))
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    in_range(text, "seconds", SECONDS_MAX)
}
