//! One repeat of a cell, in its own process: probe the disk, open, note idle memory, warm up,
//! measure, settle, close.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::client::{self, Clients};
use super::open_cell::{OpenCell, Timed};
use crate::error::Result;
use crate::measure::device::DeviceCost;
use crate::measure::latency::{HistogramTable, Latencies, LatencyTable};
use crate::measure::page_cache::PageCache;
use crate::measure::process::{KernelCost, ProcessCost};
use crate::measure::series::Series;
use crate::store::{Store, StoreConfig};
use crate::workload::{Distribution, DocumentShape, KeyFormat, Records, Stream, Workload};

/// Records of a load that are written, and synced, together.
pub(super) const LOAD_BATCH: usize = 1_000;
/// Operations a second on which the expected inserts of a cell are estimated, the same for every
/// store. More inserts than expected only stay unread; fewer cost redraws outside the timed span.
const EXPECTED_OPERATIONS_PER_SECOND: f64 = 20_000.0;

/// All that a child process has to know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CellSpec {
    pub(crate) folder: PathBuf,
    pub(crate) config: StoreConfig,
    pub(crate) records: u64,
    pub(crate) shape: DocumentShape,
    pub(crate) keys: KeyFormat,
    pub(crate) distribution: Option<Distribution>,
    pub(crate) threads: u32,
    pub(crate) seed: u64,
    pub(crate) repeat: u32,
    pub(crate) window: Window,
    /// Longest wait for background work after the window.
    pub(crate) patience_seconds: f64,
    /// State of the page cache when the store is opened.
    pub(crate) page_cache: PageCache,
    /// Operations a second of all clients together; as many as there can be if it is not given.
    pub(crate) target: Option<f64>,
}

/// The timed part of a cell. The default is none, for cells that time something else.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Window {
    pub(crate) warmup_seconds: f64,
    /// The window lasts at least this long …
    pub(crate) seconds: f64,
    /// … and until this many operations are done.
    pub(crate) operations: u64,
}

impl CellSpec {
    /// The stream of a workload that starts with `records` acknowledged records.
    pub(crate) fn stream(&self, workload: Workload, records: u64) -> Stream {
        Stream {
            workload,
            distribution: self.distribution.unwrap_or(workload.distribution()),
            records,
            expected_inserts: self.expected_inserts(workload),
            shape: self.shape,
            keys: self.keys,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, and the command line bounds both factors"
    )]
    fn expected_inserts(&self, workload: Workload) -> u64 {
        let Window { warmup_seconds, seconds, operations } = self.window;
        let expected = (seconds + warmup_seconds) * EXPECTED_OPERATIONS_PER_SECOND;
        let operations = expected.max(operations as f64);
        (operations * workload.inserts()).ceil() as u64
    }
}

/// The measured part of a row; `docs/bench/README.md` defines each field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measurement {
    pub(crate) open_seconds: f64,
    pub(crate) seconds: f64,
    pub(crate) window_seconds: f64,
    pub(crate) operations: u64,
    pub(crate) ops_per_sec: f64,
    pub(crate) latency_ns: LatencyTable,
    pub(crate) scanned_rows: u64,
    pub(crate) rss_anon_start_bytes: u64,
    pub(crate) rss_anon_idle_bytes: u64,
    pub(crate) rss_anon_end_bytes: u64,
    pub(crate) rss_file_end_bytes: u64,
    pub(crate) settle_seconds: f64,
    pub(crate) settled: bool,
    pub(crate) disk_bytes: u64,
    pub(crate) written_bytes: u64,
    pub(crate) cpu_seconds: f64,
    pub(crate) close_seconds: f64,
    pub(crate) errors: u64,
    pub(crate) first_error: Option<String>,
    pub(crate) not_found: u64,
    // Rows of the first runs lack these.
    pub(crate) records_end: Option<u64>,
    pub(crate) writes_above_20ms: Option<u64>,
    pub(crate) disk_probe_max_ns: Option<u64>,
    pub(crate) disk_peak_bytes: Option<u64>,
    pub(crate) cancelled_bytes: Option<u64>,
    #[serde(flatten)]
    pub(crate) kernel: Option<KernelCost>,
    #[serde(flatten)]
    pub(crate) device: Option<DeviceCost>,
    pub(crate) histograms: Option<HistogramTable>,
    pub(crate) intended_latency_ns: Option<LatencyTable>,
    #[serde(flatten)]
    pub(crate) series: Option<Series>,
    pub(crate) page_cache: Option<PageCache>,
    pub(crate) target_ops_per_sec: Option<f64>,
}

/// Measures a load into a fresh folder.
pub(crate) fn load<S: Store>(spec: &CellSpec) -> Result<Measurement> {
    let cell = OpenCell::<S>::open(spec)?;
    let timed = timed_load(&cell.store, spec)?;
    cell.finish(timed)
}

/// Measures a workload over the folder that the cell before left.
pub(crate) fn run<S: Store>(spec: &CellSpec, workload: Workload) -> Result<Measurement> {
    // Everything that the harness itself needs exists before the store does, so that it is not
    // counted as the store's memory.
    let clients = Clients::new(spec, workload)?;
    let cell = OpenCell::<S>::open(spec)?;
    let timed = client::run(&cell.store, clients)?;
    cell.finish(timed)
}

/// Loads every record; `batch_done` learns the records and the time of each batch. The records
/// are made between the timed spans.
pub(crate) fn load_records<S: Store>(
    store: &S,
    spec: &CellSpec,
    mut batch_done: impl FnMut(usize, Duration),
) -> Result<()> {
    let mut records = Records::new(spec.records, spec.shape, spec.keys, spec.seed);
    let mut batch = vec![(String::new(), Vec::new()); LOAD_BATCH];
    loop {
        let filled = records.fill(&mut batch);
        if filled == 0 {
            return Ok(());
        }
        let start = Instant::now();
        store.load(&batch[..filled])?;
        batch_done(filled, start.elapsed());
    }
}

fn timed_load<S: Store>(store: &S, spec: &CellSpec) -> Result<Timed> {
    let mut latencies = Latencies::new()?;
    let (mut operations, mut seconds) = (0, 0.0);
    let start = ProcessCost::now()?;
    let window = Instant::now();
    load_records(store, spec, |filled, elapsed| {
        operations += filled as u64;
        seconds += elapsed.as_secs_f64();
        latencies.record(client::nanoseconds(elapsed));
    })?;
    let window_seconds = window.elapsed().as_secs_f64();
    Ok(Timed {
        seconds,
        window_seconds,
        operations,
        latency_ns: LatencyTable::from([("LOAD-BATCH".to_owned(), latencies.summary())]),
        histograms: HistogramTable::from([("LOAD-BATCH".to_owned(), latencies.encoded()?)]),
        records_end: operations,
        writes_above_20ms: latencies.stalls(),
        ..Timed::between(start, ProcessCost::now()?)
    })
}

#[cfg(test)]
pub(super) mod samples {
    use super::*;
    use crate::store::{Durability, Statistics};
    use crate::workload::InsertOrder;

    /// A hundred small records, buffered.
    pub(crate) fn spec(folder: PathBuf) -> CellSpec {
        CellSpec {
            folder,
            config: StoreConfig {
                durability: Durability::Buffered,
                memtable_bytes: 4 << 20,
                cache_bytes: 8 << 20,
                cores: 2,
                statistics: Statistics::On,
            },
            records: 100,
            shape: DocumentShape { fields: 1, field_bytes: 50 },
            keys: KeyFormat { order: InsertOrder::Hashed, zero_padding: 1 },
            distribution: None,
            threads: 1,
            seed: 42,
            repeat: 1,
            window: Window { warmup_seconds: 0.01, seconds: 0.01, operations: 10 },
            patience_seconds: 60.0,
            page_cache: PageCache::AsLeft,
            target: None,
        }
    }
}
