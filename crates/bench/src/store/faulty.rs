//! A store with one fault, to show that the verification finds it: everything goes to the store
//! inside, but for one answer of client 0, which is falsified once the client has made a number of
//! calls and there is an occasion.
//!
//! 1. What happens on one client's thread is in order: a call has ended when the next one begins.
//!    So a fault that needs an earlier operation is planted by the client that performed it, and is
//!    certain to be a fault, however the threads are scheduled.
//! 2. The fault is planted once. A lost update is the exception: the first update of a record is
//!    dropped, record by record, until client 0 itself reads one without it, since another client's
//!    update may hide what was dropped.
//! 3. Until then the clients keep step, so that whether there is an occasion is a matter of the
//!    seed and not of the threads' luck.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    Durability, Figures, Loses, Presence, Scope, Settings, Settled, Store, StoreConfig, Visitor,
};
use crate::error::{Failure, Result};
use crate::workload::OperationKind;

/// The name of the thread whose answers are falsified.
const PLANTER: &str = "client 0";

/// Calls that a client may be ahead of another.
const AHEAD: u64 = 16;

/// What is falsified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fault {
    /// A read returns the document that the load wrote, after an update that was seen.
    StaleRead,
    /// An update is answered and does nothing.
    LostUpdate,
    /// A scan leaves out a loaded record.
    SkippedRow,
    /// A scan gives a row twice.
    RepeatedRow,
    /// The last quarter of a document is zeros, as after a torn write.
    TornDocument,
    /// A record whose insert was answered is not found.
    MissingInsert,
    /// A bit of a value is flipped.
    UnwrittenValue,
    /// A read returns the value of an update that begins after it.
    FutureValue,
}

/// An operation that client 0 is going to perform: what it is, its key and its payload.
pub(crate) type Foreseen = (OperationKind, String, Vec<u8>);

struct Plan {
    fault: Fault,
    /// Calls of client 0 before the fault.
    moment: u64,
    calls: u64,
    /// For calls that read a record: what the first later update by client 0 writes to it.
    future: HashMap<u64, Vec<u8>>,
    /// Keys that somebody has begun to update.
    updated: HashSet<String>,
    /// The first updates of records, where client 0 made them.
    first_updates: HashMap<String, FirstUpdate>,
    /// Keys that client 0 has inserted.
    inserted: HashSet<String>,
    planted: bool,
}

struct FirstUpdate {
    before: Vec<u8>,
    payload: Vec<u8>,
    /// Whether client 0 has read what it wrote.
    seen: bool,
}

/// The calls of each client, while they keep step.
#[derive(Default)]
struct Pace {
    clients: usize,
    /// Every client makes so many calls, at least; from then on it goes on alone.
    calls_min: u64,
    calls: HashMap<ThreadId, u64>,
}

impl Pace {
    /// Counts a call of this thread, and says up to which number everyone has to come before it.
    fn call(&mut self) -> u64 {
        let calls = self.calls.entry(thread::current().id()).or_default();
        *calls += 1;
        (*calls).min(self.calls_min).saturating_sub(AHEAD)
    }

    fn has_come(&self, number: u64) -> bool {
        let slowest = self.calls.values().min().copied().unwrap_or_default();
        number == 0
            || self.calls_min == 0
            || (self.calls.len() == self.clients && slowest >= number)
    }
}

/// A store of which one answer is wrong.
pub(crate) struct Faulty<S> {
    inner: S,
    pace: Mutex<Pace>,
    called: Condvar,
    loaded: Mutex<HashSet<String>>,
    plan: Mutex<Option<Plan>>,
}

/// Keeps the rows of a scan or the document of a read, to falsify them.
#[derive(Default)]
struct Kept(Vec<(Vec<u8>, Vec<u8>)>);

impl Visitor for Kept {
    const KEYS: bool = true;

    fn value(&mut self, bytes: &[u8]) {
        self.0.push((Vec::new(), bytes.to_vec()));
    }

    fn row(&mut self, key: impl FnOnce(&mut Vec<u8>) -> Result<()>, bytes: &[u8]) -> Result<()> {
        let mut kept = Vec::new();
        key(&mut kept)?;
        self.0.push((kept, bytes.to_vec()));
        Ok(())
    }
}

impl<S> Faulty<S> {
    /// From now on the fault is planted at the first occasion after `moment` calls of client 0,
    /// whose next operations are `foreseen`. Each of the `clients` performs about as many.
    pub(crate) fn plant(&self, fault: Fault, moment: u64, foreseen: &[Foreseen], clients: usize) {
        let calls_min = foreseen.len() as u64 / 2;
        *locked(&self.pace) = Pace { clients, calls_min, calls: HashMap::new() };
        *locked(&self.plan) = Some(Plan {
            fault,
            moment,
            calls: 0,
            future: future(foreseen),
            updated: HashSet::new(),
            first_updates: HashMap::new(),
            inserted: HashSet::new(),
            planted: false,
        });
    }

    /// Ends the falsification; fails when there was no occasion for it.
    pub(crate) fn planted(&self) -> Result<()> {
        *locked(&self.pace) = Pace::default();
        match locked(&self.plan).take() {
            Some(Plan { planted: true, .. }) => Ok(()),
            _ => Err(Failure::new("there was no occasion for the fault")),
        }
    }

    /// Waits until no client is far behind this one.
    fn keep_step(&self) {
        let mut pace = locked(&self.pace);
        let number = pace.call();
        self.called.notify_all();
        while !pace.has_come(number) {
            pace = self.called.wait(pace).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The plan, on the thread of client 0.
    fn for_planter(&self) -> Option<MutexGuard<'_, Option<Plan>>> {
        (thread::current().name() == Some(PLANTER)).then(|| locked(&self.plan))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn future(foreseen: &[Foreseen]) -> HashMap<u64, Vec<u8>> {
    let calls = |kind| if kind == OperationKind::ReadModifyWrite { 2 } else { 1 };
    let mut call: u64 = foreseen.iter().map(|(kind, ..)| calls(*kind)).sum();
    let (mut later, mut future) = (HashMap::new(), HashMap::new());
    for (kind, key, payload) in foreseen.iter().rev() {
        match kind {
            OperationKind::Update => drop(later.insert(key, payload)),
            OperationKind::Read => {
                future.extend(later.get(key).map(|&payload| (call, payload.clone())));
            }
            _ => {}
        }
        call -= calls(*kind);
    }
    future
}

impl Plan {
    fn is_due(&self) -> bool {
        self.calls > self.moment && !self.planted
    }

    /// Falsifies what a read of client 0 found.
    fn read(&mut self, key: &str, document: &mut Vec<u8>) -> Result<Presence> {
        self.calls += 1;
        let first_update = self.first_updates.get_mut(key);
        if let Some(first) = first_update
            && self.fault == Fault::StaleRead
            && !first.seen
        {
            // A payload is a document of the fields that it replaces.
            let fields = &first.payload[4..first.payload.len() - 1];
            first.seen = document.windows(fields.len()).any(|window| window == fields);
            return Ok(Presence::Found);
        }
        if !self.is_due() {
            return Ok(Presence::Found);
        }
        let first_update = self.first_updates.get(key);
        match self.fault {
            Fault::StaleRead => {
                let Some(first) = first_update else { return Ok(Presence::Found) };
                document.clone_from(&first.before);
            }
            Fault::LostUpdate => {
                self.planted = first_update.is_some_and(|first| first.before == *document);
                return Ok(Presence::Found);
            }
            Fault::TornDocument => {
                let torn = document.len() - document.len() / 4;
                document[torn..].fill(0);
            }
            Fault::MissingInsert => {
                self.planted = self.inserted.contains(key);
                return Ok(if self.planted { Presence::Missing } else { Presence::Found });
            }
            Fault::UnwrittenValue => {
                // Two NULs follow the last value.
                if let Some(byte) = document.iter_mut().nth_back(2) {
                    *byte ^= 1;
                }
            }
            Fault::FutureValue => {
                let Some(fields) = self.future.get(&self.calls) else { return Ok(Presence::Found) };
                *document = engine::merge_documents(document, fields).map_err(Failure::new)?;
            }
            Fault::SkippedRow | Fault::RepeatedRow => return Ok(Presence::Found),
        }
        self.planted = true;
        Ok(Presence::Found)
    }

    /// Falsifies the rows of a scan of client 0, which has one more than `limit` if there is one.
    fn scan(&mut self, rows: &mut Vec<(Vec<u8>, Vec<u8>)>, limit: usize, loaded: &HashSet<String>) {
        self.calls += 1;
        let is_loaded = |row: &(Vec<u8>, Vec<u8>)| {
            std::str::from_utf8(&row.0).is_ok_and(|key| loaded.contains(key))
        };
        if self.is_due() && limit > 2 && rows.len() > 3 && is_loaded(&rows[1]) {
            match self.fault {
                Fault::SkippedRow => drop(rows.remove(1)),
                Fault::RepeatedRow => rows.insert(1, rows[1].clone()),
                _ => return rows.truncate(limit),
            }
            self.planted = true;
        }
        rows.truncate(limit);
    }

    /// Whether an update of client 0 is one that the fault needs.
    fn takes(&self, is_first: bool) -> bool {
        let is_kind = matches!(self.fault, Fault::StaleRead | Fault::LostUpdate);
        is_kind && is_first && self.is_due()
    }
}

impl<S: Store> Store for Faulty<S> {
    const VERSION: &'static str = S::VERSION;
    const SCOPE: Scope = S::SCOPE;

    fn settings(config: &StoreConfig) -> Settings {
        S::settings(config)
    }

    fn loses(durability: Durability) -> Loses {
        S::loses(durability)
    }

    fn open(folder: &Path, config: &StoreConfig) -> Result<Self> {
        let inner = S::open(folder, config)?;
        Ok(Self {
            inner,
            pace: Mutex::default(),
            called: Condvar::new(),
            loaded: Mutex::default(),
            plan: Mutex::default(),
        })
    }

    fn load(&self, records: &[(String, Vec<u8>)]) -> Result<()> {
        locked(&self.loaded).extend(records.iter().map(|(key, _)| key.clone()));
        self.inner.load(records)
    }

    fn read(&self, key: &str, visitor: &mut impl Visitor) -> Result<Presence> {
        self.keep_step();
        let Some(mut plan) = self.for_planter() else { return self.inner.read(key, visitor) };
        let Some(plan) = plan.as_mut() else { return self.inner.read(key, visitor) };
        let mut kept = Kept::default();
        let presence = self.inner.read(key, &mut kept)?;
        let Some((_, mut document)) = kept.0.pop() else { return Ok(presence) };
        let presence = plan.read(key, &mut document)?;
        if presence == Presence::Found {
            visitor.value(&document);
        }
        Ok(presence)
    }

    fn insert(&self, key: &str, document: &[u8]) -> Result<()> {
        self.keep_step();
        self.inner.insert(key, document)?;
        if let Some(mut plan) = self.for_planter()
            && let Some(plan) = plan.as_mut()
        {
            plan.calls += 1;
            plan.inserted.insert(key.to_owned());
        }
        Ok(())
    }

    fn update(&self, key: &str, fields: &[u8]) -> Result<Presence> {
        self.keep_step();
        let is_first = match locked(&self.plan).as_mut() {
            Some(plan) => plan.updated.insert(key.to_owned()),
            None => false,
        };
        if let Some(mut plan) = self.for_planter()
            && let Some(plan) = plan.as_mut()
        {
            plan.calls += 1;
            if plan.takes(is_first && locked(&self.loaded).contains(key)) {
                let mut kept = Kept::default();
                self.inner.read(key, &mut kept)?;
                let before = kept.0.pop().map(|(_, document)| document).unwrap_or_default();
                let first = FirstUpdate { before, payload: fields.to_vec(), seen: false };
                plan.first_updates.insert(key.to_owned(), first);
                if plan.fault == Fault::LostUpdate {
                    return Ok(Presence::Found);
                }
            }
        }
        self.inner.update(key, fields)
    }

    fn scan(&self, key: &str, limit: usize, visitor: &mut impl Visitor) -> Result<usize> {
        self.keep_step();
        let Some(mut plan) = self.for_planter() else {
            return self.inner.scan(key, limit, visitor);
        };
        let Some(plan) = plan.as_mut() else { return self.inner.scan(key, limit, visitor) };
        let mut kept = Kept::default();
        self.inner.scan(key, limit.saturating_add(1), &mut kept)?;
        plan.scan(&mut kept.0, limit, &locked(&self.loaded));
        for (key, document) in &kept.0 {
            visitor.row(
                |out| {
                    out.extend_from_slice(key);
                    Ok(())
                },
                document,
            )?;
        }
        Ok(kept.0.len())
    }

    fn figures(&self) -> Figures {
        self.inner.figures()
    }

    fn settle(&self, patience: Duration) -> Result<Settled> {
        self.inner.settle(patience)
    }

    fn close(self) -> Result<()> {
        self.inner.close()
    }
}
