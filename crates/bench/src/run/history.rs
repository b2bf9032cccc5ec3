//! A verified cell, in its own process: load, run a workload with every client's operations and
//! answers logged, scan everything, close, scan everything again after reopening, and check.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::cell::{CellSpec, LOAD_BATCH, Measurement};
use super::open_cell::{OpenCell, Timed};
use crate::error::{Context, Failure, Result};
use crate::measure::process::ProcessCost;
use crate::store::{Fault, Faulty, Presence, Store};
use crate::verify::history::{Actor, History, Recorder, Sight, Verification};
use crate::workload::{
    AcknowledgedCounter, ClientSeed, Generator, Operation, OperationKind, Records, Workload,
};

/// Operations of client 0 that a fault may know in advance.
const FORESEEN: u64 = 2_000;
/// A fault is planted after this many calls of client 0, and up to as many more by seed.
const PLANTED_AFTER: u64 = 20;

/// What is run and verified.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct HistorySpec {
    pub(super) workload: Workload,
    /// Of all clients together.
    pub(super) operations: u64,
    /// For the logs; it must not exist.
    pub(super) folder: PathBuf,
    pub(super) fault: Option<Fault>,
}

/// Runs and checks a store as it is, or with a fault.
pub(super) fn verify<S: Store>(
    cell: &CellSpec,
    spec: &HistorySpec,
) -> Result<(Measurement, Verification)> {
    match spec.fault {
        None => verified(cell, spec, |_: &S| {}, |_| Ok(())),
        Some(fault) => verified(
            cell,
            spec,
            |store: &Faulty<S>| {
                let moment = PLANTED_AFTER + cell.seed % PLANTED_AFTER;
                let clients = usize::try_from(cell.threads).unwrap_or(usize::MAX);
                store.plant(fault, moment, &foreseen(cell, spec), clients);
            },
            Faulty::planted,
        ),
    }
}

fn verified<S: Store>(
    cell: &CellSpec,
    spec: &HistorySpec,
    before_clients: impl FnOnce(&S),
    after_clients: impl FnOnce(&S) -> Result<()>,
) -> Result<(Measurement, Verification)> {
    let mut history = History::begin(spec.folder.clone(), cell.keys, cell.shape)?;
    let mut loader = history.recorder(Actor::LOAD)?;
    let mut last = history.recorder(Actor::END)?;
    let mut reopened = history.recorder(Actor::REOPENED)?;
    let counter = Arc::new(AcknowledgedCounter::new(cell.records));
    let clients = (0..cell.threads).map(|number| {
        Client::new(number, cell, spec, history.recorder(Actor(number))?, Arc::clone(&counter))
    });
    let clients = clients.collect::<Result<Vec<_>>>()?;
    let open = OpenCell::<S>::open(cell)?;
    load(&open.store, cell, &mut loader)?;
    before_clients(&open.store);
    let start = ProcessCost::now()?;
    let window = Instant::now();
    let clients = run(&open.store, clients)?;
    let seconds = window.elapsed().as_secs_f64();
    let mut timed = Timed {
        seconds,
        window_seconds: seconds,
        records_end: counter.last() + 1,
        ..Timed::between(start, ProcessCost::now()?)
    };
    after_clients(&open.store)?;
    scan_all(&open.store, &history.first_key(), &mut last)?;
    let mut recorders = Vec::new();
    for client in clients {
        timed.operations += client.done;
        timed.scanned_rows += client.scanned_rows;
        timed.errors += client.errors;
        timed.not_found += client.not_found;
        timed.first_error = timed.first_error.or(client.first_error.map(|f| f.to_string()));
        recorders.push(client.recorder);
    }
    let measurement = open.finish(timed)?;
    let store = S::open(&cell.folder, &cell.config)?;
    scan_all(&store, &history.first_key(), &mut reopened)?;
    store.close()?;
    recorders.extend([loader, last, reopened]);
    Ok((measurement, history.check(recorders)?))
}

/// As `cell::load_records`, with each record in the log.
fn load<S: Store>(store: &S, cell: &CellSpec, recorder: &mut Recorder) -> Result<()> {
    let mut records = Records::new(cell.records, cell.shape, cell.keys, cell.seed);
    let mut batch = vec![(String::new(), Vec::new()); LOAD_BATCH];
    loop {
        let filled = records.fill(&mut batch);
        if filled == 0 {
            return Ok(());
        }
        let start = recorder.now();
        store.load(&batch[..filled])?;
        for (key, document) in &batch[..filled] {
            recorder.inserted(key, document, start, &Ok(()))?;
        }
    }
}

fn scan_all<S: Store>(store: &S, first_key: &str, recorder: &mut Recorder) -> Result<()> {
    let mut rows = recorder.scan(first_key, usize::MAX)?;
    let answer = store.scan(first_key, usize::MAX, &mut rows);
    rows.finish(&answer)?;
    answer.map(drop)
}

fn generator(
    number: u32,
    cell: &CellSpec,
    spec: &HistorySpec,
    counter: Arc<AcknowledgedCounter>,
) -> Generator {
    let stream = cell.stream(spec.workload, cell.records);
    let seed = ClientSeed { seed: cell.seed, repeat: cell.repeat, client: number };
    Generator::new(&stream, seed, counter)
}

/// What client 0 is going to do, if no insert changes which keys it chooses.
fn foreseen(cell: &CellSpec, spec: &HistorySpec) -> Vec<(OperationKind, String, Vec<u8>)> {
    let counter = Arc::new(AcknowledgedCounter::new(cell.records));
    let mut generator = generator(0, cell, spec, counter);
    let mut operation = Operation::with_buffers(cell.shape);
    let operations = share(spec.operations, cell.threads, 0).min(FORESEEN);
    let next = |_| {
        generator.next(&mut operation);
        (operation.kind, operation.key.clone(), operation.payload.clone())
    };
    (0..operations).map(next).collect()
}

/// A client's part of the operations.
fn share(operations: u64, clients: u32, number: u32) -> u64 {
    let clients = u64::from(clients);
    operations / clients + u64::from(u64::from(number) < operations % clients)
}

struct Client {
    number: u32,
    generator: Generator,
    operation: Operation,
    recorder: Recorder,
    sight: Sight,
    operations: u64,
    done: u64,
    scanned_rows: u64,
    errors: u64,
    first_error: Option<Failure>,
    not_found: u64,
}

impl Client {
    fn new(
        number: u32,
        cell: &CellSpec,
        spec: &HistorySpec,
        recorder: Recorder,
        counter: Arc<AcknowledgedCounter>,
    ) -> Result<Self> {
        Ok(Self {
            number,
            generator: generator(number, cell, spec, counter),
            operation: Operation::with_buffers(cell.shape),
            recorder,
            sight: Sight::new(cell.shape),
            operations: share(spec.operations, cell.threads, number),
            done: 0,
            scanned_rows: 0,
            errors: 0,
            first_error: None,
            not_found: 0,
        })
    }

    /// Until its operations are done; fails when the log cannot be written.
    fn run<S: Store>(&mut self, store: &S) -> Result<()> {
        while self.done < self.operations {
            self.generator.next(&mut self.operation);
            let answer = self.step(store)?;
            self.done += 1;
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
        Ok(())
    }

    /// The store's answer, which is in the log.
    fn step<S: Store>(&mut self, store: &S) -> Result<Result<Presence>> {
        match self.operation.kind {
            OperationKind::Read => self.read(store),
            OperationKind::Update => self.update(store),
            OperationKind::Insert => {
                let Operation { key, payload, .. } = &self.operation;
                let start = self.recorder.now();
                let answer = store.insert(key, payload);
                self.recorder.inserted(key, payload, start, &answer)?;
                Ok(answer.map(|()| Presence::Found))
            }
            OperationKind::Scan => {
                let Operation { key, scan_length, .. } = &self.operation;
                let mut rows = self.recorder.scan(key, *scan_length)?;
                let answer = store.scan(key, *scan_length, &mut rows);
                rows.finish(&answer)?;
                self.scanned_rows += answer.as_ref().map_or(0, |&rows| rows as u64);
                Ok(answer.map(|_| Presence::Found))
            }
            OperationKind::ReadModifyWrite => match self.read(store)? {
                Ok(Presence::Found) => self.update(store),
                other => Ok(other),
            },
        }
    }

    fn read<S: Store>(&mut self, store: &S) -> Result<Result<Presence>> {
        let key = &self.operation.key;
        self.sight.forget();
        let start = self.recorder.now();
        let answer = store.read(key, &mut self.sight);
        self.recorder.read(key, start, &answer, &self.sight)?;
        Ok(answer)
    }

    fn update<S: Store>(&mut self, store: &S) -> Result<Result<Presence>> {
        let Operation { key, payload, .. } = &self.operation;
        let start = self.recorder.now();
        let answer = store.update(key, payload);
        self.recorder.updated(key, payload, start, &answer)?;
        Ok(answer)
    }
}

/// All clients at once, each on a thread that has its name.
fn run<S: Store>(store: &S, clients: Vec<Client>) -> Result<Vec<Client>> {
    thread::scope(|scope| {
        let start = |mut client: Client| {
            let thread = thread::Builder::new().name(Actor(client.number).to_string());
            let run = move || client.run(store).map(|()| client);
            thread.spawn_scoped(scope, run).context(|| "cannot start a client")
        };
        let running: Vec<_> = clients.into_iter().map(start).collect::<Result<_>>()?;
        let join = |running: thread::ScopedJoinHandle<'_, Result<Client>>| {
            running.join().unwrap_or_else(|_| Err(Failure::new("a client panicked")))
        };
        running.into_iter().map(join).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_shares_add_up() {
        for (operations, clients) in [(10, 3), (2, 4), (16, 16), (1_000_003, 16)] {
            let shares = (0..clients).map(|number| share(operations, clients, number));
            assert_eq!(shares.sum::<u64>(), operations);
        }
    }
}
