//! A cell of overwrites, in its own process: one client puts whole new documents under ids that
//! exist until a number of bytes was handed to the store. What was written for them, until the
//! store is idle, is the write amplification.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::cell::{CellSpec, Measurement};
use super::client::nanoseconds;
use super::open_cell::{OpenCell, Timed};
use crate::error::{Failure, Result};
use crate::measure::amplification::WriteAmplification;
use crate::measure::latency::{Latencies, LatencyTable};
use crate::measure::process::ProcessCost;
use crate::store::Store;
use crate::workload::{ClientSeed, Distribution, Overwrites};

/// The key of the overwrites in a row's `latency_ns`.
const KIND: &str = "OVERWRITE";

/// How much is overwritten.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct OverwriteSpec {
    pub(super) distribution: Distribution,
    /// Ids and documents to hand to the store.
    pub(super) user_bytes: u64,
    pub(super) turnover: f64,
    /// A folder that takes more ends the cell with an error.
    pub(super) disk_limit_bytes: u64,
}

/// What the window's writes came to.
struct Overwritten {
    user_bytes: u64,
    busy: Duration,
    latencies: Latencies,
    errors: u64,
    first_error: Option<Failure>,
}

/// Measures the overwrites over the folder that a load left.
pub(super) fn overwrite<S: Store>(
    spec: &CellSpec,
    overwrites: &OverwriteSpec,
) -> Result<(Measurement, WriteAmplification)> {
    let seed = ClientSeed { seed: spec.seed, repeat: spec.repeat, client: 0 };
    let (records, distribution) = (spec.records, overwrites.distribution);
    let mut stream = Overwrites::new(distribution, records, spec.shape, spec.keys, seed);
    let mut done = Overwritten {
        user_bytes: 0,
        busy: Duration::ZERO,
        latencies: Latencies::new()?,
        errors: 0,
        first_error: None,
    };
    let cell = OpenCell::<S>::open(spec)?;
    let store_before = cell.store.figures().written_bytes;
    let start = ProcessCost::now()?;
    let window = Instant::now();
    done.write(&cell, &mut stream, overwrites);
    let window_seconds = window.elapsed().as_secs_f64();
    let summary = done.latencies.summary();
    let timed = Timed {
        seconds: done.busy.as_secs_f64(),
        window_seconds,
        operations: summary.count,
        latency_ns: LatencyTable::from([(KIND.to_owned(), summary)]),
        errors: done.errors,
        first_error: done.first_error.map(|failure| failure.to_string()),
        records_end: records,
        writes_above_20ms: done.latencies.stalls(),
        ..Timed::between(start, ProcessCost::now()?)
    };
    let (measurement, store_after) =
        cell.finish_with(timed, |store| store.figures().written_bytes)?;
    let store_bytes = store_after.zip(store_before).map(|(after, before)| after - before);
    let (process, turnover) = (measurement.written_bytes, overwrites.turnover);
    let amplification = WriteAmplification::new(done.user_bytes, turnover, process, store_bytes);
    Ok((measurement, amplification))
}

impl Overwritten {
    /// Until the bytes are written, an overwrite fails, or the disk's limit is passed.
    fn write<S: Store>(
        &mut self,
        cell: &OpenCell<'_, S>,
        stream: &mut Overwrites,
        spec: &OverwriteSpec,
    ) {
        let (mut key, mut document) = (String::new(), Vec::new());
        while self.user_bytes < spec.user_bytes {
            stream.next(&mut key, &mut document);
            let start = Instant::now();
            let answer = cell.store.insert(&key, &document);
            let elapsed = start.elapsed();
            self.busy += elapsed;
            self.latencies.record(nanoseconds(elapsed));
            self.user_bytes += (key.len() + document.len()) as u64;
            let within = within(cell.disk.bytes(), spec.disk_limit_bytes);
            if let Err(failure) = answer.and(within) {
                self.errors += 1;
                self.first_error = Some(failure);
                return;
            }
        }
    }
}

fn within(bytes: u64, limit: u64) -> Result<()> {
    if bytes <= limit {
        return Ok(());
    }
    Err(Failure::new(format_args!(
        "the overwrites ended early: the folder takes {bytes} bytes, the limit is {limit}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_beyond_the_limit_is_an_error_with_both_figures() {
        assert!(within(10, 10).is_ok());
        let failure = within(11, 10).unwrap_err().to_string();
        assert!(failure.contains("11 bytes") && failure.contains("limit is 10"), "{failure}");
    }
}
