//! A database that lives through the steps of a script, and the history of what it was told.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::disk::faulty::FaultyDisk;
use engine::disk::{Disk, MemoryDisk};
use engine::{Batch, CompactionReason, Error, Snapshot, WriteDurability};

use crate::cases::Situation;
use crate::faults::life::IDLE;
use crate::faults::{DIR, Opened, Random, Setup, is_disk_full, shared};
use crate::history::{Commit, EMPTY, EQUAL, History, LONG, State, document, id_of, state_of};
use crate::script::{Mode, Script, Step};

/// The collections that scripts write to.
pub(crate) const NAMES: [&str; 2] = ["first", "second"];

/// Documents that a roll writes: nearly a memtable's.
const ROLL: i64 = 60;
/// Their ids, which come back.
const ROLL_IDS: i64 = 150;

/// One document put (`Some`) or deleted.
type Change = (&'static str, i64, Option<i64>);

/// How changes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Single,
    Batch(WriteDurability),
}

/// A database in the middle of its life, and what is known of it.
#[derive(Debug)]
pub(crate) struct World {
    setup: Setup,
    folder: PathBuf,
    disk: Arc<dyn Disk>,
    /// What records, below `disk`.
    memory: MemoryDisk,
    /// What the space of the disk is limited by.
    space: Option<FaultyDisk>,
    /// Calls of the disk may fail: always, or because it is full.
    is_faulty: bool,
    is_always_faulty: bool,
    /// What of the fault cases has happened.
    pub(crate) reached: BTreeSet<Situation>,
    /// Whether something was deleted since the last background job.
    has_deleted: bool,
    db: Option<Opened>,
    held: Vec<(Snapshot, State)>,
    pub(crate) history: History,
    pub(crate) errors: Vec<Error>,
    random: Random,
    next_value: i64,
    next_filler: i64,
}

impl World {
    /// An empty disk that records, and no database yet.
    pub(crate) fn new(script: &Script) -> Self {
        let memory = MemoryDisk::new();
        memory.start_trace();
        let space = FaultyDisk::new(shared(&memory));
        let disk: Arc<dyn Disk> = Arc::new(space.clone());
        let known = History::starting_with(State::new(), 0);
        Self::on(script, &memory, disk, known).with_space(&space)
    }

    /// Whose disk runs full when the script says so.
    pub(crate) fn with_space(self, space: &FaultyDisk) -> Self {
        Self { space: Some(space.clone()), ..self }
    }

    /// On a disk whose calls may fail, above one that records.
    pub(crate) fn faulty(script: &Script, memory: &MemoryDisk, disk: Arc<dyn Disk>) -> Self {
        Self::again_faulty(script, memory, disk, History::starting_with(State::new(), 0))
    }

    /// Where another life ended, on a disk that records.
    pub(crate) fn again(script: &Script, memory: &MemoryDisk, history: History) -> Self {
        Self::on(script, memory, shared(memory), history)
    }

    /// The same, on a disk whose calls may fail.
    pub(crate) fn again_faulty(
        script: &Script,
        memory: &MemoryDisk,
        disk: Arc<dyn Disk>,
        history: History,
    ) -> Self {
        let world = Self::on(script, memory, disk, history);
        Self { is_faulty: true, is_always_faulty: true, ..world }
    }

    fn on(script: &Script, memory: &MemoryDisk, disk: Arc<dyn Disk>, history: History) -> Self {
        // Values of one life differ from those of the lives before.
        let next_value = 1 + i64::try_from(script.seed % 1000).unwrap() * 1_000_000;
        Self {
            setup: script.setup,
            folder: Path::new(DIR).to_owned(),
            disk,
            memory: memory.clone(),
            space: None,
            is_faulty: false,
            is_always_faulty: false,
            reached: BTreeSet::new(),
            has_deleted: false,
            db: None,
            held: Vec::new(),
            history,
            errors: Vec::new(),
            random: Random::seeded(script.seed),
            next_value,
            next_filler: 0,
        }
    }

    pub(crate) fn memory(&self) -> &MemoryDisk {
        &self.memory
    }

    pub(crate) fn db(&self) -> Option<&Opened> {
        self.db.as_ref()
    }

    /// Opens the database, which must then hold the last state; or, where a call failed, what that
    /// would have led to.
    pub(crate) fn open(&mut self) -> bool {
        match self.setup.open_at(&self.folder, &self.disk) {
            Ok(db) => {
                if db.database.stats().deletes_only {
                    self.reached.insert(Situation::OpenedOnFullDisk);
                }
                self.db = Some(db);
            }
            Err(e) => {
                self.failed(e);
                return false;
            }
        }
        if let Some(found) = self.try_state() {
            if self.history.unsure.as_ref() == Some(&found) {
                self.commit(found, self.memory.trace_len());
            }
            self.check_live("opened");
            // Recovery has copied what was not sealed, and synced it.
            self.history.synced(self.memory.trace_len());
        }
        true
    }

    /// Does all steps, and opens the database first.
    pub(crate) fn live(&mut self, script: &Script) {
        for (number, step) in script.steps.iter().enumerate() {
            self.step(*step);
            self.check_live(&format!("{}, step {number}, {step:?}", script.name));
        }
    }

    pub(crate) fn step(&mut self, step: Step) {
        if self.db.is_none() && !self.open() {
            return;
        }
        match step {
            Step::Put(n) => (0..n).for_each(|_| {
                let put = self.any_put();
                self.write(vec![put], Way::Single);
            }),
            Step::Delete(n) => (0..n).for_each(|_| {
                let delete = self.any_delete();
                self.write(vec![delete], Way::Single);
            }),
            Step::Batch(n) => self.batch(n, WriteDurability::AsOpened),
            Step::DurableBatch(n) => self.batch(n, WriteDurability::Durable),
            Step::Roll => self.roll(),
            Step::Sync => {
                let done = self.opened().database.sync();
                self.take(done, true);
            }
            Step::Jobs(n) => {
                for _ in 0..n {
                    self.job();
                }
            }
            Step::Work => while self.job() {},
            Step::Flush => {
                self.opened().pass(Duration::from_millis(251));
                if !self.is_faulty {
                    self.history.synced(self.memory.trace_len());
                }
            }
            Step::Idle => (0..12).for_each(|_| self.opened().pass(IDLE)),
            Step::Compact => {
                let segments = |world: &Self| world.opened().database.stats().level1_segments;
                let before = segments(self);
                let done = self.opened().database.compact();
                self.take(done, false);
                let is_empty = self.history.last().state.values().all(|rows| rows.is_empty());
                if is_empty && before > 0 && segments(self) == 0 {
                    self.reached.insert(Situation::MergedToNothing);
                }
                if !self.held.is_empty() {
                    self.reached.insert(Situation::MergedUnderSnapshot);
                }
            }
            Step::Snapshot => match self.opened().database.snapshot() {
                Ok(snapshot) => self.held.push((snapshot, self.history.last().state.clone())),
                Err(e) => self.failed(e),
            },
            Step::Release => {
                if !self.held.is_empty() {
                    self.held.remove(0);
                }
            }
            Step::DropCollection => self.drop_collection(),
            Step::Reopen => {
                self.close();
                self.open();
            }
            Step::EqualPut(n) => (0..n).for_each(|_| {
                self.next_value = (self.next_value / EQUAL + 1) * EQUAL;
                let id = i64::try_from(self.random.below(40)).unwrap();
                let put = (NAMES[0], id, Some(self.next_value));
                self.write(vec![put], Way::Single);
            }),
            Step::OddPut(n) => (0..n).for_each(|_| {
                let id = LONG + i64::try_from(self.random.below(4)).unwrap();
                let long = (NAMES[0], id, Some(self.value()));
                self.write(vec![long], Way::Single);
                let id = i64::try_from(self.random.below(40)).unwrap();
                self.write(vec![(NAMES[1], id, Some(EMPTY))], Way::Single);
                self.reached.insert(Situation::LongIdAndEmptyDocument);
            }),
            Step::DeleteAll => {
                for name in NAMES {
                    let rows = self.history.last().state.get(name).cloned().unwrap_or_default();
                    let deletes = rows.keys().map(|id| (name, *id, None)).collect();
                    self.write(deletes, Way::Batch(WriteDurability::AsOpened));
                }
            }
            Step::Full => {
                self.space().set_free_space(Some(0));
                self.is_faulty = true;
            }
            Step::Fill => {
                let errors = self.errors.len();
                for _ in 0..1000 {
                    self.batch(10, WriteDurability::AsOpened);
                    if self.errors.len() > errors + 1 {
                        break;
                    }
                }
                if !self.is_always_faulty {
                    let last = self.errors.last().expect("a full disk refuses documents");
                    assert!(self.errors.len() > errors + 1 && is_disk_full(last), "{last:?}");
                }
            }
            Step::Freed => {
                self.space().set_free_space(None);
                if !self.is_always_faulty {
                    self.is_faulty = false;
                    let errors = std::mem::take(&mut self.errors);
                    assert!(errors.iter().all(is_of_full_disk), "{errors:?}");
                }
            }
        }
    }

    fn space(&self) -> &FaultyDisk {
        self.space.as_ref().expect("a script that fills the disk has one that runs full")
    }

    /// One background job, if one is due.
    fn job(&mut self) -> bool {
        let sweeps = |world: &Self| {
            let totals = world.opened().database.stats().compactions;
            let sweeps = totals.iter().filter(|entry| {
                !matches!(entry.reason, CompactionReason::Indexes | CompactionReason::Documents)
            });
            sweeps.fold((0, 0), |sum, entry| (sum.0 + entry.count, sum.1 + entry.steps))
        };
        let (began, steps) = sweeps(self);
        let has_run = self.opened().executor.step().is_some();
        let goes_on = sweeps(self).0 == began && sweeps(self).1 > steps;
        if goes_on && self.has_deleted {
            self.reached.insert(Situation::DeletedDuringSweep);
        }
        if sweeps(self).1 > steps {
            self.has_deleted = false;
        }
        has_run
    }

    /// Closes the database; what was answered is durable when that succeeds.
    pub(crate) fn close(&mut self) {
        self.held.clear();
        if let Some(db) = self.db.take() {
            let done = db.database.close();
            self.take(done, true);
        }
    }

    /// The last state is what reads and snapshots show, while nothing fails.
    pub(crate) fn check_live(&self, what: &str) {
        let Some(found) = self.try_state() else { return };
        if found != self.history.last().state {
            let bounds = self.history.bounds(usize::MAX, true);
            self.history.find(&found, bounds, what);
        }
        let Some(db) = &self.db else { return };
        for (snapshot, state) in &self.held {
            for (name, rows) in state {
                // Of one that was dropped there is no handle.
                if !found.contains_key(name) || self.is_faulty {
                    continue;
                }
                let collection = db.database.collection(name).unwrap();
                let ids = snapshot.scan_ids(&collection, ..).unwrap();
                let ids: Vec<_> = ids.map(|id| id.unwrap()).collect();
                let expected: Vec<_> = rows.keys().map(|id| id_of(*id)).collect();
                // One of the same name that was made since is another one, and was empty.
                assert!(ids == expected || ids.is_empty(), "{what}: a snapshot of {name}");
            }
        }
    }

    /// What the database holds; none where reading it fails, which a disk that may fail allows.
    fn try_state(&self) -> Option<State> {
        let db = self.db.as_ref()?;
        if !self.is_faulty {
            return Some(state_of(&db.database, "live"));
        }
        crate::history::try_state_of(&db.database).ok()
    }

    fn opened(&self) -> &Opened {
        self.db.as_ref().unwrap()
    }

    fn failed(&mut self, error: Error) {
        assert!(self.is_faulty, "nothing fails here: {error:?}");
        self.errors.push(error);
    }

    fn take(&mut self, done: Result<(), Error>, syncs: bool) {
        match done {
            Ok(()) if syncs => self.history.synced(self.memory.trace_len()),
            Ok(()) => {}
            Err(e) => self.failed(e),
        }
    }

    fn batch(&mut self, n: usize, durability: WriteDurability) {
        let mut changes: Vec<Change> = (0..n).map(|_| self.any_put()).collect();
        if n > 2 {
            changes.push(self.any_delete());
        }
        self.write(changes, Way::Batch(durability));
    }

    fn roll(&mut self) {
        let rolls = |world: &Self| world.opened().database.stats().rolls;
        let before = rolls(self);
        // The memtable that takes the first one may have been empty.
        for _ in 0..3 {
            let mut changes = Vec::new();
            for _ in 0..ROLL {
                self.next_filler = (self.next_filler + 1) % ROLL_IDS;
                changes.push((NAMES[0], 10_000 + self.next_filler, Some(self.value())));
            }
            self.write(changes, Way::Batch(WriteDurability::AsOpened));
            if rolls(self) > before {
                return;
            }
        }
        assert!(self.is_faulty, "three memtables full of records are no roll");
    }

    fn drop_collection(&mut self) {
        let issued = self.memory.trace_len();
        let mut state = self.history.last().state.clone();
        let was_there = state.remove(NAMES[1]).is_some();
        match self.opened().database.drop_collection(NAMES[1]) {
            Ok(dropped) => {
                assert_eq!(dropped, was_there);
                if dropped {
                    self.commit(state, issued);
                }
            }
            Err(e) => self.refused(e, state),
        }
    }

    fn write(&mut self, changes: Vec<Change>, way: Way) {
        // Nothing is written for nothing: that it succeeds says nothing about the disk, nor about what
        // failed before.
        if changes.is_empty() {
            return;
        }
        for name in NAMES {
            let is_used = changes.iter().any(|change| change.0 == name);
            if is_used && !self.create(name) {
                return;
            }
        }
        let issued = self.memory.trace_len();
        let mut state = self.history.last().state.clone();
        for (name, id, value) in &changes {
            let rows = state.get_mut(*name).unwrap();
            match value {
                Some(value) => rows.insert(*id, *value),
                None => rows.remove(id),
            };
        }
        match self.send(&changes, way) {
            Ok(()) => {
                let stats = self.opened().database.stats();
                if changes.iter().any(|change| change.2.is_none()) {
                    self.has_deleted = true;
                    if stats.level1_segments > 0 {
                        self.reached.insert(Situation::DeletedAfterMerge);
                    }
                    if stats.deletes_only {
                        self.reached.insert(Situation::DeletedOnFullDisk);
                    }
                }
                self.commit(state, issued);
                if way == Way::Batch(WriteDurability::Durable) {
                    self.history.synced(self.memory.trace_len());
                }
            }
            Err(e) => self.refused(e, state),
        }
    }

    fn send(&self, changes: &[Change], way: Way) -> Result<(), Error> {
        let database = &self.opened().database;
        let Way::Batch(durability) = way else {
            let (name, id, value) = changes[0];
            let collection = database.collection(name)?;
            return match value {
                Some(value) => collection.put(id_of(id), &document(value)),
                None => collection.delete(id_of(id)),
            };
        };
        let mut batch = Batch::new();
        for (name, id, value) in changes {
            let collection = database.collection(name)?;
            match value {
                Some(value) => batch.put(&collection, id_of(*id), &document(*value))?,
                None => batch.delete(&collection, id_of(*id))?,
            }
        }
        database.write_with(batch, durability)
    }

    /// The collection, which is a commit of its own where it is made.
    fn create(&mut self, name: &'static str) -> bool {
        if self.history.last().state.contains_key(name) {
            return true;
        }
        let issued = self.memory.trace_len();
        let mut state = self.history.last().state.clone();
        state.entry(name.to_owned()).or_default();
        match self.opened().database.collection(name) {
            Ok(_) => {
                self.commit(state, issued);
                true
            }
            Err(e) => {
                self.refused(e, state);
                false
            }
        }
    }

    fn commit(&mut self, state: State, issued: usize) {
        let answered = self.memory.trace_len();
        let sequence = self.opened().database.stats().visible_sequence;
        self.history.push(Commit { state, sequence, issued, answered, durable: None });
        if Mode::from(self.setup.durability) == Mode::Durable {
            self.history.synced(answered);
        }
    }

    /// Whether a write that failed is there after a crash is unknown; of one that was refused it is
    /// known that it is not.
    fn refused(&mut self, error: Error, state: State) {
        if matches!(error, Error::WriteFailed { .. }) {
            self.history.unsure = Some(state);
        }
        self.failed(error);
    }

    fn value(&mut self) -> i64 {
        self.next_value += 1;
        self.next_value
    }

    fn any_put(&mut self) -> Change {
        let name = NAMES[usize::from(self.random.below(3) == 0)];
        let id = i64::try_from(self.random.below(40)).unwrap();
        (name, id, Some(self.value()))
    }

    /// Of an id that exists, three times out of four.
    fn any_delete(&mut self) -> Change {
        let name = NAMES[usize::from(self.random.below(3) == 0)];
        let rows = self.history.last().state.get(name);
        let ids: Vec<i64> = rows.map(|rows| rows.keys().copied().collect()).unwrap_or_default();
        if ids.is_empty() || self.random.below(4) == 0 {
            return (name, i64::try_from(self.random.below(60)).unwrap(), None);
        }
        let id = ids[usize::try_from(self.random.below(ids.len() as u64)).unwrap()];
        (name, id, None)
    }
}

/// Whether an error is what a full disk causes: also a write that was cut short.
fn is_of_full_disk(error: &Error) -> bool {
    match error {
        Error::WriteFailed { source } => {
            is_disk_full(source) || matches!(**source, Error::Io { action: "write", .. })
        }
        other => is_disk_full(other),
    }
}
