//! One part of the micro suite, in its own process. As in other cells, keys and documents are made
//! outside the timed spans.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Part;
use crate::error::{Failure, Result};
use crate::measure::latency::{HistogramTable, Latencies, LatencyTable};
use crate::measure::process::ProcessCost;
use crate::run::cell::{CellSpec, Measurement};
use crate::run::client::{Fold, nanoseconds};
use crate::run::open_cell::{OpenCell, Timed};
#[cfg(feature = "sqlite")]
use crate::store::PlainSqlite;
use crate::store::{Deletes, Presence, RocksDb, Sediment, StoreKind};
use crate::workload::{ClientSeed, Distribution, Overwrites, Records};

/// A part's scans of everything.
const SCANS: u64 = 5;
/// Below every key.
const FIRST_KEY: &str = "user";

/// What became of a document above the engine's limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Oversize {
    pub(crate) oversize_document_bytes: u64,
    pub(crate) oversize_refused: bool,
    /// The store's own text.
    pub(crate) oversize_error: Option<String>,
}

/// Performs a part over the folder that the part before left.
pub(in crate::run) fn perform(
    store: StoreKind,
    spec: &CellSpec,
    part: Part,
) -> Result<(Measurement, Option<Oversize>)> {
    match store {
        StoreKind::Sediment => measured::<Sediment>(spec, part),
        StoreKind::RocksDb => measured::<RocksDb>(spec, part),
        #[cfg(feature = "sqlite")]
        StoreKind::Sqlite => measured::<PlainSqlite>(spec, part),
        other => {
            Err(Failure::new(format_args!("{} takes no part in the micro suite", other.name())))
        }
    }
}

fn measured<S: Deletes>(spec: &CellSpec, part: Part) -> Result<(Measurement, Option<Oversize>)> {
    let mut calls = Calls::new()?;
    let cell = OpenCell::<S>::open(spec)?;
    let start = ProcessCost::now()?;
    let window = Instant::now();
    // The later half goes first, so that the records that stay are the first ones.
    let half = spec.records - spec.records / 2;
    let mut oversize = None;
    match part {
        Part::InsertSmall | Part::InsertLarge | Part::Refill => calls.inserts(&cell.store, spec),
        Part::Lookup => calls.lookups(&cell.store, spec),
        Part::Scan => calls.scans(&cell.store, spec),
        Part::DeleteHalf => calls.deletes(&cell.store, spec, half..spec.records),
        Part::DeleteRest => calls.deletes(&cell.store, spec, 0..half),
        Part::Oversize => oversize = Some(calls.oversize(&cell.store, spec)?),
        Part::Rebuild => return Err(Failure::new("a rebuild is timed by an opening")),
    }
    let window_seconds = window.elapsed().as_secs_f64();
    let timed = calls.timed(part, window_seconds, spec, Timed::between(start, ProcessCost::now()?));
    Ok((cell.finish(timed?)?, oversize))
}

/// The timed calls of a part.
struct Calls {
    latencies: Latencies,
    busy: Duration,
    operations: u64,
    rows: u64,
    not_found: u64,
    errors: u64,
    first_error: Option<Failure>,
}

impl Calls {
    fn new() -> Result<Self> {
        Ok(Self {
            latencies: Latencies::new()?,
            busy: Duration::ZERO,
            operations: 0,
            rows: 0,
            not_found: 0,
            errors: 0,
            first_error: None,
        })
    }

    fn time<T>(&mut self, call: impl FnOnce() -> Result<T>) -> Option<T> {
        let start = Instant::now();
        let answer = call();
        let elapsed = start.elapsed();
        self.busy += elapsed;
        self.operations += 1;
        self.latencies.record(nanoseconds(elapsed));
        answer.map_err(|failure| self.fail(failure)).ok()
    }

    fn fail(&mut self, failure: Failure) {
        self.errors += 1;
        self.first_error.get_or_insert(failure);
    }

    fn inserts<S: Deletes>(&mut self, store: &S, spec: &CellSpec) {
        let mut records = Records::new(spec.records, spec.shape, spec.keys, spec.seed);
        let mut record = [(String::new(), Vec::new())];
        while records.fill(&mut record) > 0 {
            let [(key, document)] = &record;
            self.time(|| store.insert(key, document));
        }
    }

    fn lookups<S: Deletes>(&mut self, store: &S, spec: &CellSpec) {
        let seed = ClientSeed { seed: spec.seed, repeat: spec.repeat, client: 0 };
        let uniform = Distribution::Uniform;
        let mut keys = Overwrites::new(uniform, spec.records, spec.shape, spec.keys, seed);
        let (mut key, mut unused) = (String::new(), Vec::new());
        for _ in 0..spec.records {
            keys.next(&mut key, &mut unused);
            let answer = self.time(|| {
                let mut fold = Fold(0);
                let presence = store.read(&key, &mut fold);
                black_box(fold.0);
                presence
            });
            self.not_found += u64::from(answer == Some(Presence::Missing));
        }
    }

    fn scans<S: Deletes>(&mut self, store: &S, spec: &CellSpec) {
        for _ in 0..SCANS {
            let rows = self.time(|| {
                let mut fold = Fold(0);
                let rows = store.scan(FIRST_KEY, usize::MAX, &mut fold);
                black_box(fold.0);
                rows
            });
            let rows = rows.unwrap_or_default() as u64;
            self.rows += rows;
            if rows != spec.records {
                let records = spec.records;
                self.fail(Failure::new(format_args!("a scan had {rows} rows of {records}")));
            }
        }
    }

    fn deletes<S: Deletes>(&mut self, store: &S, spec: &CellSpec, of: std::ops::Range<u64>) {
        let mut key = String::new();
        for number in of {
            spec.keys.write(number, &mut key);
            self.time(|| store.delete(&key));
        }
    }

    /// A refusal is an answer, not an error; a document that was refused must not be there, and one
    /// that was taken must.
    fn oversize<S: Deletes>(&mut self, store: &S, spec: &CellSpec) -> Result<Oversize> {
        let mut records = Records::new(1, spec.shape, spec.keys, spec.seed);
        let mut record = [(String::new(), Vec::new())];
        records.fill(&mut record);
        let [(key, document)] = &record;
        let mut refusal = None;
        self.time(|| {
            refusal = store.insert(key, document).err();
            Ok(())
        });
        let mut fold = Fold(0);
        let expected = if refusal.is_none() { Presence::Found } else { Presence::Missing };
        if store.read(key, &mut fold)? != expected {
            self.fail(Failure::new("the oversize document is there though refused, or is lost"));
        }
        Ok(Oversize {
            oversize_document_bytes: document.len() as u64,
            oversize_refused: refusal.is_some(),
            oversize_error: refusal.map(|failure| failure.to_string()),
        })
    }

    fn timed(self, part: Part, window: f64, spec: &CellSpec, start: Timed) -> Result<Timed> {
        let kind = part.kind().to_owned();
        Ok(Timed {
            seconds: self.busy.as_secs_f64(),
            window_seconds: window,
            operations: self.operations,
            histograms: HistogramTable::from([(kind.clone(), self.latencies.encoded()?)]),
            latency_ns: LatencyTable::from([(kind, self.latencies.summary())]),
            scanned_rows: self.rows,
            errors: self.errors,
            first_error: self.first_error.map(|failure| failure.to_string()),
            not_found: self.not_found,
            records_end: spec.records,
            writes_above_20ms: if part.writes() { self.latencies.stalls() } else { 0 },
            ..start
        })
    }
}
