//! What a database may hold after a crash: the states that it went through, and which of them it
//! promised to keep.

use std::collections::BTreeMap;

use engine::{Database, Error, Id};
use serde_json::json;

use crate::faults::life::both_ways_as;

/// Every collection, and its documents' ids and values.
pub(crate) type State = BTreeMap<String, BTreeMap<i64, i64>>;

/// From here on numbers stand for ids that are strings of [`LONG_BYTES`].
pub(crate) const LONG: i64 = 1 << 41;
/// Several sectors.
const LONG_BYTES: usize = 2000;
/// The value of the empty document.
pub(crate) const EMPTY: i64 = 0;
/// Values that differ by this have documents of one length.
pub(crate) const EQUAL: i64 = 97;

/// The id that a number stands for, in the same order.
pub(crate) fn id_of(number: i64) -> Id<'static> {
    if number < LONG { Id::from(number) } else { Id::from(format!("{number:0>LONG_BYTES$}")) }
}

/// The document of a value: its length follows from it, so that a piece of another one is noticed.
pub(crate) fn document(value: i64) -> serde_json::Value {
    if value == EMPTY {
        return json!({});
    }
    let pad = usize::try_from(value.rem_euclid(97)).unwrap();
    json!({ "v": value, "pad": "0123456789".repeat(pad / 10 + 1) })
}

/// A state that the database went through.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    pub(crate) state: State,
    /// The newest sequence then.
    pub(crate) sequence: u64,
    /// The length of the recording when the call began that led to it.
    pub(crate) issued: usize,
    /// The same when that call was answered.
    pub(crate) answered: usize,
    /// The same when it was known to be durable.
    pub(crate) durable: Option<usize>,
}

/// The states in the order of their commits, the empty database first.
#[derive(Clone, Debug)]
pub(crate) struct History {
    commits: Vec<Commit>,
    /// What a call that failed would have led to: there or not, until the next one succeeds.
    pub(crate) unsure: Option<State>,
}

/// Which states a crash may leave, by their numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) at_least: usize,
    pub(crate) at_most: usize,
}

impl History {
    /// Of a database that holds `state` for good.
    pub(crate) fn starting_with(state: State, sequence: u64) -> Self {
        let first = Commit { state, sequence, issued: 0, answered: 0, durable: Some(0) };
        Self { commits: vec![first], unsure: None }
    }

    pub(crate) fn last(&self) -> &Commit {
        self.commits.last().unwrap()
    }

    pub(crate) fn state(&self, number: usize) -> &State {
        &self.commits[number].state
    }

    pub(crate) fn sequence(&self, number: usize) -> u64 {
        self.commits[number].sequence
    }

    pub(crate) fn len(&self) -> usize {
        self.commits.len()
    }

    pub(crate) fn push(&mut self, commit: Commit) {
        self.commits.push(commit);
        self.unsure = None;
    }

    /// Everything answered so far is durable now.
    pub(crate) fn synced(&mut self, at: usize) {
        for commit in self.commits.iter_mut().rev().take_while(|commit| commit.durable.is_none()) {
            commit.durable = Some(at);
        }
    }

    /// What a crash may leave that finds the first `at` operations of the recording done: at least
    /// what was durable, or with `kept` (of what was written nothing is lost) what was answered.
    pub(crate) fn bounds(&self, at: usize, kept: bool) -> Bounds {
        let is_promised = |commit: &Commit| match kept {
            true => commit.answered <= at,
            false => commit.durable.is_some_and(|durable| durable <= at),
        };
        let at_least = self.commits.iter().rposition(is_promised).unwrap();
        // Nothing was done yet for one that is only issued.
        let is_begun = |commit: &Commit| commit.issued < at;
        let at_most = self.commits.iter().rposition(is_begun).unwrap_or(0).max(at_least);
        Bounds { at_least, at_most }
    }

    /// The number of the state that a database is in; panics when it is none of the allowed ones.
    pub(crate) fn find(&self, found: &State, bounds: Bounds, what: &str) -> usize {
        let range = bounds.at_least..=bounds.at_most;
        if let Some(number) = range.clone().rev().find(|&number| self.state(number) == found) {
            return number;
        }
        let other = (0..self.commits.len()).rev().find(|&number| self.state(number) == found);
        panic!(
            "{what}: state {range:?} expected, found {}",
            match other {
                Some(number) => format!("state {number}"),
                None => format!("none of all: {}", self.describe(found, bounds)),
            }
        )
    }

    /// How a state that never was differs from the newest allowed one.
    fn describe(&self, found: &State, bounds: Bounds) -> String {
        let expected = self.state(bounds.at_most);
        let flat = |state: &State| {
            let rows = state.iter().flat_map(|(name, rows)| {
                rows.iter().map(move |(id, value)| (name.clone(), *id, *value))
            });
            rows.collect::<std::collections::BTreeSet<_>>()
        };
        let (found, expected) = (flat(found), flat(expected));
        format!(
            "missing {:?}, besides {:?}",
            expected.difference(&found).take(20).collect::<Vec<_>>(),
            found.difference(&expected).take(20).collect::<Vec<_>>()
        )
    }

    /// Every id that a collection of this name ever had.
    fn ids(&self, name: &str) -> std::collections::BTreeSet<i64> {
        let states = self.commits.iter().filter_map(|commit| commit.state.get(name));
        states.flat_map(|rows| rows.keys().copied()).collect()
    }

    /// Asks a database in a known state for every id that it ever had, and for what it shows of the
    /// past.
    pub(crate) fn check_lookups(&self, database: &Database, number: usize, what: &str) {
        for (name, rows) in self.state(number) {
            let collection = database.collection(name).unwrap();
            for id in self.ids(name) {
                let found = collection
                    .get(id_of(id))
                    .unwrap_or_else(|e| panic!("{what}: {name} {id}: {e}"));
                let found = found.map(|document| document.get_i64("v").unwrap().unwrap_or(EMPTY));
                assert_eq!(found, rows.get(&id).copied(), "{what}: {name} {id}");
            }
        }
        self.check_past(database, number, what);
    }

    /// What is still shown of the past is what it was.
    fn check_past(&self, database: &Database, number: usize, what: &str) {
        let names = database.collections().unwrap();
        let step = (number / 16).max(1);
        for commit in self.commits[..=number].iter().rev().step_by(step) {
            let snapshot = match database.snapshot_at(commit.sequence) {
                Ok(snapshot) => snapshot,
                Err(Error::HistoryGone { .. }) => continue,
                Err(e) => panic!("{what}: the past at {}: {e}", commit.sequence),
            };
            for name in &names {
                let collection = database.collection(name).unwrap();
                let rows: BTreeMap<i64, i64> =
                    snapshot.scan(&collection, ..).unwrap().map(|row| row_of(row, what)).collect();
                // One that was dropped and made again is another one, and was empty.
                let expected = commit.state.get(name).cloned().unwrap_or_default();
                let sequence = commit.sequence;
                let is_other = rows.is_empty() && self.was_dropped_since(name, commit.issued);
                assert!(rows == expected || is_other, "{what}: {name} at sequence {sequence}");
            }
        }
    }

    fn was_dropped_since(&self, name: &str, issued: usize) -> bool {
        let since = self.commits.iter().filter(|commit| commit.issued >= issued);
        since.into_iter().any(|commit| !commit.state.contains_key(name))
    }
}

fn row_of(row: Result<(Id<'static>, engine::Document), Error>, what: &str) -> (i64, i64) {
    let (id, found) = row.unwrap_or_else(|e| panic!("{what}: {e}"));
    let number = match &id {
        Id::Integer(number) => Some(*number),
        Id::String(text) => text.parse().ok().filter(|number| *number >= LONG),
        _ => None,
    };
    let number = number.filter(|number| id_of(*number) == id);
    let id = number.unwrap_or_else(|| panic!("{what}: an id that nobody wrote: {id}"));
    let value = found.get_i64("v").unwrap().unwrap_or(EMPTY);
    let expected = document(value);
    let pad = found.get_str("pad").unwrap();
    assert_eq!(pad, expected["pad"].as_str(), "{what}: the bytes of {id}");
    (id, value)
}

/// Everything that a database holds, scanned in both directions.
pub(crate) fn state_of(database: &Database, what: &str) -> State {
    let mut state = State::new();
    for name in database.collections().unwrap() {
        let collection = database.collection(&name).unwrap();
        let rows = both_ways_as(|| collection.scan(..).unwrap(), |row| row_of(row, what));
        state.insert(name, rows);
    }
    state
}

/// The same, scanned forward; an error where a read fails.
pub(crate) fn try_state_of(database: &Database) -> Result<State, Error> {
    let mut state = State::new();
    for name in database.collections()? {
        let rows = database.collection(&name)?.scan(..)?;
        let rows = rows.map(|row| Ok(row_of(Ok(row?), "live"))).collect::<Result<_, Error>>()?;
        state.insert(name, rows);
    }
    Ok(state)
}
