//! One repeat of a cell, in its own process: open, note idle memory, warm up, measure, settle,
//! close.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::client::{self, Clients};
use crate::error::Result;
use crate::measure::folder::allocated_bytes;
use crate::measure::latency::{Latencies, LatencyTable};
use crate::measure::process::ProcessCost;
use crate::store::{Settled, Store, StoreConfig};
use crate::workload::{Distribution, DocumentShape, KeyFormat, Records, Stream, Workload};

/// Records of a load that are written, and synced, together.
const LOAD_BATCH: usize = 1_000;
/// Longest wait for background work after a cell.
const SETTLE_PATIENCE: Duration = Duration::from_secs(60);
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
        let seconds = self.seconds + self.warmup_seconds;
        let operations = (seconds * EXPECTED_OPERATIONS_PER_SECOND).max(self.operations as f64);
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
}

/// What the timed part of a cell yields.
pub(super) struct Timed {
    /// Counters at the start and the end of the window.
    pub(super) start: ProcessCost,
    pub(super) end: ProcessCost,
    /// Time inside operations, the mean over the clients.
    pub(super) seconds: f64,
    pub(super) window_seconds: f64,
    pub(super) operations: u64,
    pub(super) latency_ns: LatencyTable,
    pub(super) scanned_rows: u64,
    pub(super) errors: u64,
    pub(super) first_error: Option<String>,
    pub(super) not_found: u64,
}

/// Measures a load into a fresh folder.
pub(crate) fn load<S: Store>(spec: &CellSpec) -> Result<Measurement> {
    measure::<S>(spec, |store| timed_load(store, spec))
}

/// Measures a workload over the folder that the cell before left.
pub(crate) fn run<S: Store>(spec: &CellSpec, workload: Workload) -> Result<Measurement> {
    // Everything that the harness itself needs exists before the store does, so that it is not
    // counted as the store's memory.
    let clients = Clients::new(spec, workload)?;
    measure::<S>(spec, |store| client::run(store, clients))
}

fn measure<S: Store>(
    spec: &CellSpec,
    timed: impl FnOnce(&S) -> Result<Timed>,
) -> Result<Measurement> {
    let before = ProcessCost::now()?;
    let opening = Instant::now();
    let store = S::open(&spec.folder, &spec.config)?;
    let open_seconds = opening.elapsed().as_secs_f64();
    let idle = ProcessCost::now()?;
    let timed = timed(&store)?;
    let settling = Instant::now();
    let settled = store.settle(SETTLE_PATIENCE)?;
    let settle_seconds = settling.elapsed().as_secs_f64();
    let after = ProcessCost::now()?;
    let disk_bytes = allocated_bytes(&spec.folder)?;
    let closing = Instant::now();
    store.close()?;
    let close_seconds = closing.elapsed().as_secs_f64();
    Ok(Measurement {
        open_seconds,
        seconds: timed.seconds,
        window_seconds: timed.window_seconds,
        operations: timed.operations,
        ops_per_sec: timed.operations as f64 / timed.seconds.max(1e-9),
        latency_ns: timed.latency_ns,
        scanned_rows: timed.scanned_rows,
        rss_anon_start_bytes: before.rss_anon_bytes,
        rss_anon_idle_bytes: idle.rss_anon_bytes,
        rss_anon_end_bytes: timed.end.rss_anon_bytes,
        rss_file_end_bytes: timed.end.rss_file_bytes,
        settle_seconds,
        settled: settled == Settled::Idle,
        disk_bytes,
        written_bytes: after.written_bytes - timed.start.written_bytes,
        cpu_seconds: after.cpu_seconds - timed.start.cpu_seconds,
        close_seconds,
        errors: timed.errors,
        first_error: timed.first_error,
        not_found: timed.not_found,
    })
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
        start,
        end: ProcessCost::now()?,
        seconds,
        window_seconds,
        operations,
        latency_ns: LatencyTable::from([("LOAD-BATCH".to_owned(), latencies.summary())]),
        scanned_rows: 0,
        errors: 0,
        first_error: None,
        not_found: 0,
    })
}
