//! What every cell has around its timed part: the probe of the disk, the opening, and afterwards
//! the wait for background work, the disk and the closing.

use std::time::{Duration, Instant};

use super::cell::{CellSpec, Measurement};
use super::client::nanoseconds;
use crate::error::{Failure, Result};
use crate::measure::device::{Device, DeviceCost};
use crate::measure::folder::allocated_bytes;
use crate::measure::latency::{HistogramTable, LatencyTable};
use crate::measure::peak::PeakSampler;
use crate::measure::probe::longest_sync;
use crate::measure::process::ProcessCost;
use crate::measure::series::Series;
use crate::store::{Settled, Store};

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
    pub(super) histograms: HistogramTable,
    /// From when an operation was to begin; of a paced window.
    pub(super) intended_latency_ns: Option<LatencyTable>,
    pub(super) series: Option<Series>,
    pub(super) scanned_rows: u64,
    pub(super) errors: u64,
    pub(super) first_error: Option<String>,
    pub(super) not_found: u64,
    /// Records of which the store has acknowledged the newest.
    pub(super) records_end: u64,
    pub(super) writes_above_20ms: u64,
}

impl Timed {
    /// Of a window in which nothing was done yet.
    pub(super) fn between(start: ProcessCost, end: ProcessCost) -> Self {
        Self {
            start,
            end,
            seconds: 0.0,
            window_seconds: 0.0,
            operations: 0,
            latency_ns: LatencyTable::new(),
            histograms: HistogramTable::new(),
            intended_latency_ns: None,
            series: None,
            scanned_rows: 0,
            errors: 0,
            first_error: None,
            not_found: 0,
            records_end: 0,
            writes_above_20ms: 0,
        }
    }
}

/// A cell whose store is open.
pub(super) struct OpenCell<'a, S> {
    spec: &'a CellSpec,
    pub(super) store: S,
    pub(super) disk: PeakSampler,
    pub(super) open_time: Duration,
    /// Before the store was opened.
    pub(super) before: ProcessCost,
    /// Before its first operation.
    idle: ProcessCost,
    device: Option<(Device, DeviceCost)>,
    probe: Duration,
}

impl<'a, S: Store> OpenCell<'a, S> {
    /// Probes the disk, begins to watch the folder, and opens the store.
    pub(super) fn open(spec: &'a CellSpec) -> Result<Self> {
        if spec.folder.exists() {
            spec.page_cache.prepare(&spec.folder)?;
        }
        let parent = spec.folder.parent().ok_or_else(|| Failure::new("a store has no folder"))?;
        let probe = longest_sync(parent)?;
        let disk = PeakSampler::start(&spec.folder)?;
        let device = Device::of(parent).and_then(|device| device.cost().map(|cost| (device, cost)));
        let before = ProcessCost::now()?;
        let opening = Instant::now();
        let store = S::open(&spec.folder, &spec.config)?;
        let open_time = opening.elapsed();
        let idle = ProcessCost::now()?;
        Ok(Self { spec, store, disk, open_time, before, idle, device, probe })
    }

    /// Waits for background work, notes the disk, and closes the store.
    pub(super) fn finish(self, timed: Timed) -> Result<Measurement> {
        self.finish_with(timed, |_| ()).map(|(measurement, ())| measurement)
    }

    /// As `finish`, and asks the store something once it is idle.
    pub(super) fn finish_with<R>(
        self,
        timed: Timed,
        question: impl FnOnce(&S) -> R,
    ) -> Result<(Measurement, R)> {
        let settling = Instant::now();
        let settled = self.store.settle(Duration::from_secs_f64(self.spec.patience_seconds))?;
        let settle_seconds = settling.elapsed().as_secs_f64();
        let after = ProcessCost::now()?;
        let device = self.device.as_ref().and_then(|(device, start)| {
            let end = device.cost()?;
            Some(end.since(*start))
        });
        let disk_bytes = allocated_bytes(&self.spec.folder)?;
        let disk_peak_bytes = self.disk.finish()?.max(disk_bytes);
        let answer = question(&self.store);
        let closing = Instant::now();
        self.store.close()?;
        let measurement = Measurement {
            open_seconds: self.open_time.as_secs_f64(),
            seconds: timed.seconds,
            window_seconds: timed.window_seconds,
            operations: timed.operations,
            ops_per_sec: timed.operations as f64 / timed.seconds.max(1e-9),
            latency_ns: timed.latency_ns,
            scanned_rows: timed.scanned_rows,
            rss_anon_start_bytes: self.before.rss_anon_bytes,
            rss_anon_idle_bytes: self.idle.rss_anon_bytes,
            rss_anon_end_bytes: timed.end.rss_anon_bytes,
            rss_file_end_bytes: timed.end.rss_file_bytes,
            settle_seconds,
            settled: settled == Settled::Idle,
            disk_bytes,
            written_bytes: after.written_bytes - timed.start.written_bytes,
            cpu_seconds: after.cpu_seconds - timed.start.cpu_seconds,
            close_seconds: closing.elapsed().as_secs_f64(),
            errors: timed.errors,
            first_error: timed.first_error,
            not_found: timed.not_found,
            records_end: Some(timed.records_end),
            writes_above_20ms: Some(timed.writes_above_20ms),
            disk_probe_max_ns: Some(nanoseconds(self.probe)),
            disk_peak_bytes: Some(disk_peak_bytes),
            cancelled_bytes: Some(after.cancelled_bytes - timed.start.cancelled_bytes),
            kernel: Some(after.since(&timed.start)),
            device,
            histograms: Some(timed.histograms),
            intended_latency_ns: timed.intended_latency_ns,
            series: timed.series,
            page_cache: Some(self.spec.page_cache),
            target_ops_per_sec: self.spec.target,
        };
        Ok((measurement, answer))
    }
}
