//! The clients of a timed cell: one thread each, and the timed span around every operation.
//!
//! 1. Outside the span: making the key and the value, acknowledging an insert, recording.
//! 2. Inside it: the store's call, and the folding of every byte that a read or a scan returned.
//! 3. The span takes no lock and allocates nothing of the harness's own.
//! 4. With a target rate each operation has a moment at which it was to begin, whatever the ones
//!    before it took. Its latency is measured from its beginning and, apart, from that moment: a
//!    stall then counts for every operation that it held up (YCSB's intended latency).
//! 5. An operation that runs when the window ends is counted with its full latency: a client
//!    looks at the clock only after an operation.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use super::cell::CellSpec;
use super::open_cell::Timed;
use crate::error::{Failure, Result};
use crate::measure::latency::{Latencies, LatencyTable};
use crate::measure::process::ProcessCost;
use crate::measure::series::Series;
use crate::store::{Presence, Store, Visitor};
use crate::workload::{
    AcknowledgedCounter, ClientSeed, Generator, Operation, OperationKind, Workload,
};

/// Adds up every byte of the values, word by word: the same work for every store.
pub(super) struct Fold(pub(super) u64);

impl Visitor for Fold {
    fn value(&mut self, bytes: &[u8]) {
        let (words, tail) = bytes.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        let tail = tail.iter().map(|&byte| u64::from(byte));
        self.0 = words.chain(tail).fold(self.0, u64::wrapping_add);
    }
}

/// A client's count of operations, alone in its cache lines: only its client writes it.
#[derive(Default)]
#[repr(align(128))]
struct Done(AtomicU64);

/// The clients of a cell with everything that they need, made before the store is opened.
pub(super) struct Clients {
    clients: Vec<Client>,
    counter: Arc<AcknowledgedCounter>,
    warmup: Duration,
    goal: Goal,
    is_paced: bool,
}

/// When a client's operations are to begin.
#[derive(Clone, Copy)]
struct Pace {
    /// Between two of them.
    interval: Duration,
    /// Of the first one: the clients' operations are spread over an interval.
    offset: Duration,
}

/// A sleep may end so much later than was asked for; the rest is spent looking at the clock.
const SLEEP_SLACK: Duration = Duration::from_micros(150);

impl Pace {
    fn new(target: f64, client: u32, clients: u32) -> Self {
        let between = 1.0 / target;
        Self {
            interval: Duration::from_secs_f64(between * f64::from(clients)),
            offset: Duration::from_secs_f64(between * f64::from(client)),
        }
    }

    /// The moment for an operation, the first of which has number 0, from the window's start.
    fn moment(&self, number: u64) -> Duration {
        let nanos = self.interval.as_nanos() * u128::from(number);
        self.offset + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

fn wait_until(moment: Instant) {
    loop {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        match left.checked_sub(SLEEP_SLACK) {
            Some(long) if !long.is_zero() => thread::sleep(long),
            _ => std::hint::spin_loop(),
        }
    }
}

/// When a window ends: after this time, and not before this many operations of all clients.
struct Goal {
    window: Duration,
    operations: u64,
    done: Vec<Done>,
}

impl Goal {
    fn is_reached(&self, start: Instant, now: Instant) -> bool {
        // The other clients' counters are touched only once the time is over.
        now.duration_since(start) >= self.window
            && self.done.iter().map(|done| done.0.load(Ordering::Relaxed)).sum::<u64>()
                >= self.operations
    }
}

struct Client {
    number: usize,
    generator: Generator,
    operation: Operation,
    recorded: Vec<(OperationKind, Latencies)>,
    pace: Option<Pace>,
    /// As `recorded`, from the moments at which operations were to begin; empty without a pace.
    intended: Vec<(OperationKind, Latencies)>,
    series: Series,
    busy: Duration,
    operations: u64,
    scanned_rows: u64,
    errors: u64,
    first_error: Option<Failure>,
    not_found: u64,
}

/// One operation's moments. A read-modify-write also has the moment between its two parts.
struct Span {
    start: Instant,
    between: Option<Instant>,
    end: Instant,
    rows: usize,
}

impl Clients {
    pub(super) fn new(spec: &CellSpec, workload: Workload) -> Result<Self> {
        let stream = spec.stream(workload, spec.records);
        let counter = Arc::new(AcknowledgedCounter::new(stream.records));
        let client = |number: u32| {
            let seed = ClientSeed { seed: spec.seed, repeat: spec.repeat, client: number };
            let generator = Generator::new(&stream, seed, Arc::clone(&counter));
            let pace = spec.target.map(|target| Pace::new(target, number, spec.threads));
            let window = Duration::from_secs_f64(spec.window.seconds);
            let operation = Operation::with_buffers(spec.shape);
            Client::new(number, generator, operation, workload, pace, Series::with_room(window))
        };
        Ok(Self {
            clients: (0..spec.threads).map(client).collect::<Result<_>>()?,
            counter,
            warmup: Duration::from_secs_f64(spec.window.warmup_seconds),
            goal: Goal {
                window: Duration::from_secs_f64(spec.window.seconds),
                operations: spec.window.operations,
                done: (0..spec.threads).map(|_| Done::default()).collect(),
            },
            is_paced: spec.target.is_some(),
        })
    }
}

impl Client {
    fn new(
        number: u32,
        generator: Generator,
        operation: Operation,
        workload: Workload,
        pace: Option<Pace>,
        series: Series,
    ) -> Result<Self> {
        let histograms = |kinds: Vec<OperationKind>| {
            let made = kinds.into_iter().map(|kind| Ok((kind, Latencies::new()?)));
            made.collect::<Result<Vec<_>>>()
        };
        let intended = match pace {
            Some(_) => workload.kinds(),
            None => Vec::new(),
        };
        Ok(Self {
            number: usize::try_from(number).expect("a thread's number"),
            generator,
            operation,
            recorded: histograms(workload.recorded())?,
            pace,
            intended: histograms(intended)?,
            series,
            busy: Duration::ZERO,
            operations: 0,
            scanned_rows: 0,
            errors: 0,
            first_error: None,
            not_found: 0,
        })
    }

    fn warm_up<S: Store>(&mut self, store: &S, warmup: Duration) {
        let start = Instant::now();
        let mut number = 0;
        while start.elapsed() < warmup {
            self.wait(start, number);
            number += 1;
            self.step(store);
        }
    }

    fn measure<S: Store>(&mut self, store: &S, goal: &Goal) {
        let start = Instant::now();
        loop {
            let intended = self.wait(start, self.operations);
            let span = self.step(store);
            self.record(&span, start, intended);
            goal.done[self.number].0.store(self.operations, Ordering::Relaxed);
            if goal.is_reached(start, span.end) {
                return;
            }
        }
    }

    /// Waits for the moment of an operation, and gives it.
    fn wait(&self, start: Instant, number: u64) -> Option<Instant> {
        let moment = start + self.pace?.moment(number);
        wait_until(moment);
        Some(moment)
    }

    /// Makes an operation, and performs it between two looks at the clock.
    fn step<S: Store>(&mut self, store: &S) -> Span {
        self.generator.next(&mut self.operation);
        let Operation { kind, ref key, ref payload, scan_length, .. } = self.operation;
        let mut fold = Fold(0);
        let (mut between, mut rows) = (None, 0);
        let start = Instant::now();
        let answer = match kind {
            OperationKind::Read => store.read(key, &mut fold),
            OperationKind::Update => store.update(key, payload),
            OperationKind::Insert => store.insert(key, payload).map(|()| Presence::Found),
            OperationKind::Scan => store.scan(key, scan_length, &mut fold).map(|scanned| {
                rows = scanned;
                Presence::Found
            }),
            OperationKind::ReadModifyWrite => {
                let read = store.read(key, &mut fold);
                between = Some(Instant::now());
                match read {
                    Ok(Presence::Found) => store.update(key, payload),
                    other => other,
                }
            }
        };
        black_box(fold.0);
        let end = Instant::now();
        self.note(answer);
        Span { start, between, end, rows }
    }

    /// A failed insert is not acknowledged.
    fn note(&mut self, answer: Result<Presence>) {
        match answer {
            Ok(Presence::Found) => self.generator.acknowledge(&self.operation),
            Ok(Presence::Missing) => self.not_found += 1,
            Err(failure) => {
                self.generator.fail(&self.operation);
                self.errors += 1;
                self.first_error.get_or_insert(failure);
            }
        }
    }

    fn record(&mut self, span: &Span, start: Instant, intended: Option<Instant>) {
        let whole = span.end.duration_since(span.start);
        self.busy += whole;
        self.operations += 1;
        self.scanned_rows += span.rows as u64;
        self.series.record(span.end.duration_since(start), nanoseconds(whole));
        record_latency(&mut self.recorded, self.operation.kind, whole);
        if let Some(moment) = intended {
            let late = span.end.duration_since(moment);
            record_latency(&mut self.intended, self.operation.kind, late);
        }
        if let Some(between) = span.between {
            let (read, update) = (between.duration_since(span.start), span.end - between);
            record_latency(&mut self.recorded, OperationKind::Read, read);
            record_latency(&mut self.recorded, OperationKind::Update, update);
        }
    }
}

fn record_latency(
    recorded: &mut [(OperationKind, Latencies)],
    kind: OperationKind,
    latency: Duration,
) {
    let recorded = recorded.iter_mut().find(|(recorded, _)| *recorded == kind);
    let (_, latencies) = recorded.expect("a workload records every kind that it does");
    latencies.record(nanoseconds(latency));
}

/// Warms up, then measures until the goal is reached.
pub(super) fn run<S: Store>(store: &S, clients: Clients) -> Result<Timed> {
    let Clients { clients, counter, warmup, goal, is_paced } = clients;
    // Everyone meets twice: when all are warm, and when the counters of the start are read.
    let meeting = Barrier::new(clients.len() + 1);
    let (meeting, goal) = (&meeting, &goal);
    let (start, window_seconds, clients) = thread::scope(|scope| {
        let start_client = |mut client: Client| {
            scope.spawn(move || {
                client.warm_up(store, warmup);
                meeting.wait();
                meeting.wait();
                client.measure(store, goal);
                client
            })
        };
        let running: Vec<_> = clients.into_iter().map(start_client).collect();
        meeting.wait();
        let start = ProcessCost::now();
        meeting.wait();
        let began = Instant::now();
        let clients: Vec<_> = running.into_iter().map(ScopedJoinHandle::join).collect();
        (start, began.elapsed().as_secs_f64(), clients)
    });
    let end = ProcessCost::now()?;
    let panicked = |_| Failure::new("a client panicked");
    let clients = clients.into_iter().map(|client| client.map_err(panicked));
    let timed =
        Timed { window_seconds, records_end: counter.last() + 1, ..Timed::between(start?, end) };
    let mut timed = merge(clients.collect::<Result<_>>()?, timed)?;
    if is_paced {
        // The clients waited on purpose: the rate is that of the window.
        timed.seconds = window_seconds;
    }
    Ok(timed)
}

/// Adds the clients' figures to those of the window.
fn merge(clients: Vec<Client>, mut timed: Timed) -> Result<Timed> {
    let count = clients.len() as f64;
    let mut merged: BTreeMap<OperationKind, Latencies> = BTreeMap::new();
    let mut intended: BTreeMap<OperationKind, Latencies> = BTreeMap::new();
    let mut series = Series::default();
    for client in clients {
        timed.seconds += client.busy.as_secs_f64() / count;
        timed.operations += client.operations;
        timed.scanned_rows += client.scanned_rows;
        timed.errors += client.errors;
        timed.not_found += client.not_found;
        timed.first_error = timed.first_error.or(client.first_error.map(|f| f.to_string()));
        series.merge(&client.series);
        for (all, own) in [(&mut merged, client.recorded), (&mut intended, client.intended)] {
            for (kind, latencies) in own {
                match all.entry(kind) {
                    Entry::Occupied(mut entry) => entry.get_mut().merge(&latencies)?,
                    Entry::Vacant(entry) => drop(entry.insert(latencies)),
                }
            }
        }
    }
    let writes = merged.iter().filter(|(kind, _)| kind.is_write());
    timed.writes_above_20ms = writes.map(|(_, latencies)| latencies.stalls()).sum();
    let summaries = |latencies: &BTreeMap<OperationKind, Latencies>| -> LatencyTable {
        latencies.iter().map(|(kind, l)| (kind.name().to_owned(), l.summary())).collect()
    };
    timed.latency_ns = summaries(&merged);
    timed.intended_latency_ns = (!intended.is_empty()).then(|| summaries(&intended));
    let encoded = merged.iter().map(|(kind, l)| Ok((kind.name().to_owned(), l.encoded()?)));
    timed.histograms = encoded.collect::<Result<_>>()?;
    timed.series = Some(series);
    Ok(timed)
}

pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(bytes: &[u8]) -> u64 {
        let mut fold = Fold(0);
        fold.value(bytes);
        fold.0
    }

    #[test]
    fn every_byte_changes_the_fold() {
        let bytes: Vec<u8> = (0..118).collect();
        let base = fold(&bytes);
        for position in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[position] ^= 1;
            assert_ne!(fold(&changed), base, "byte {position}");
        }
    }

    #[test]
    fn the_operations_of_paced_clients_alternate() {
        let (first, second) = (Pace::new(1_000.0, 0, 2), Pace::new(1_000.0, 1, 2));
        let milliseconds = |pace: Pace, number| pace.moment(number).as_secs_f64() * 1e3;
        for number in 0..100_000 {
            let expected = number as f64 * 2.0;
            assert!((milliseconds(first, number) - expected).abs() < 1e-6, "{number}");
            assert!((milliseconds(second, number) - expected - 1.0).abs() < 1e-6, "{number}");
        }
    }

    #[test]
    fn nothing_begins_before_its_moment() {
        let start = Instant::now();
        for moment in [0, 1, 100, 400, 1_000, 1_500].map(Duration::from_micros) {
            wait_until(start + moment);
            assert!(start.elapsed() >= moment);
        }
    }

    #[test]
    fn a_goal_needs_the_time_and_the_operations() {
        let goal = Goal {
            window: Duration::from_secs(1),
            operations: 10,
            done: vec![Done::default(), Done::default()],
        };
        let (start, late) = (Instant::now(), Instant::now() + Duration::from_secs(2));
        assert!(!goal.is_reached(start, late), "no operations");
        goal.done.iter().for_each(|done| done.0.store(5, Ordering::Relaxed));
        assert!(goal.is_reached(start, late));
        assert!(!goal.is_reached(start, start), "no time");
    }
}
