//! The two processes of an opening after a crash: one writes a tail of log that nobody seals, and
//! is killed; the next one times the opening and then compares every record of the tail.

use std::mem;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::cell::{CellSpec, Measurement};
use super::client::nanoseconds;
use super::open_cell::{OpenCell, Timed};
use crate::error::{Failure, Result};
use crate::measure::latency::{Latencies, LatencyTable};
use crate::measure::process::ProcessCost;
use crate::store::{Presence, Store, Visitor};
use crate::workload::{ClientSeed, Distribution, Overwrites};

/// The key of the opening in a row's `latency_ns`.
const KIND: &str = "OPEN";

/// Of an opening; `docs/bench/README.md` defines each field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Opening {
    pub(crate) tail_records: u64,
    pub(crate) open_ns: u64,
    pub(crate) first_read_ns: u64,
    pub(crate) recovered_records: Option<u64>,
}

/// The records of a tail. They differ from repeat to repeat and between lengths, so that an older
/// tail's are not taken for them.
fn tail_of(spec: &CellSpec, tail: u64) -> Result<Overwrites> {
    let client = u32::try_from(tail).map_err(Failure::new)?;
    let seed = ClientSeed { seed: spec.seed, repeat: spec.repeat, client };
    let distribution = Distribution::Sequential;
    Ok(Overwrites::new(distribution, spec.records, spec.shape, spec.keys, seed))
}

/// Opens a settled store and overwrites its first `tail` records. The store stays open until this
/// process is killed.
pub(super) fn burst<S: Store>(spec: &CellSpec, tail: u64) -> Result<()> {
    let store = S::open(&spec.folder, &spec.config)?;
    let mut records = tail_of(spec, tail)?;
    let (mut key, mut document) = (String::new(), Vec::new());
    for _ in 0..tail {
        records.next(&mut key, &mut document);
        store.insert(&key, &document)?;
    }
    // Dropping it would close it, which is what must not happen.
    mem::forget(store);
    Ok(())
}

/// Times the opening.
pub(super) fn open<S: Store>(spec: &CellSpec, tail: u64) -> Result<(Measurement, Opening)> {
    let mut latencies = Latencies::new()?;
    let cell = OpenCell::<S>::open(spec)?;
    let opened = cell.open_time;
    let figures = cell.store.figures();
    latencies.record(nanoseconds(opened));
    let (first_read, differences) = compare(&cell.store, spec, tail)?;
    let first_error = differences.error(tail, figures.recovered_records);
    let timed = Timed {
        seconds: opened.as_secs_f64(),
        window_seconds: opened.as_secs_f64(),
        operations: 1,
        latency_ns: LatencyTable::from([(KIND.to_owned(), latencies.summary())]),
        errors: differences.wrong.max(first_error.is_some().into()),
        first_error,
        not_found: differences.missing,
        records_end: spec.records,
        ..Timed::between(cell.before, ProcessCost::now()?)
    };
    let opening = Opening {
        tail_records: tail,
        open_ns: nanoseconds(opened),
        first_read_ns: nanoseconds(first_read),
        recovered_records: figures.recovered_records,
    };
    cell.finish(timed).map(|measurement| (measurement, opening))
}

/// Records of the tail that are not what was written.
#[derive(Default)]
struct Differences {
    missing: u64,
    wrong: u64,
}

impl Differences {
    /// A store that counts what it recovered has recovered the whole tail: an idle one may merge it
    /// before the kill comes, and then another thing was timed.
    fn error(&self, tail: u64, recovered: Option<u64>) -> Option<String> {
        match recovered {
            _ if self.wrong > 0 => Some("a record of the tail is another".to_owned()),
            Some(records) if records != tail => Some(format!(
                "{records} of {tail} records were recovered: the tail was sealed before the kill"
            )),
            _ => None,
        }
    }
}

/// Whether the value that is read is the expected one.
struct Expected<'a> {
    document: &'a [u8],
    equal: bool,
}

impl Visitor for Expected<'_> {
    fn value(&mut self, bytes: &[u8]) {
        self.equal = bytes == self.document;
    }
}

/// Reads the tail back, at least its first record, and gives the time of the first read.
fn compare<S: Store>(store: &S, spec: &CellSpec, tail: u64) -> Result<(Duration, Differences)> {
    let mut records = tail_of(spec, tail)?;
    let mut differences = Differences::default();
    let mut first_read = None;
    let (mut key, mut document) = (String::new(), Vec::new());
    for number in 0..tail.max(1) {
        records.next(&mut key, &mut document);
        let mut expected = Expected { document: &document, equal: false };
        let start = Instant::now();
        let presence = store.read(&key, &mut expected)?;
        first_read.get_or_insert(start.elapsed());
        match presence {
            Presence::Missing => differences.missing += 1,
            // Without a tail the record is an older one.
            Presence::Found if number < tail && !expected.equal => differences.wrong += 1,
            Presence::Found => {}
        }
    }
    Ok((first_read.unwrap_or_default(), differences))
}

#[cfg(test)]
mod tests {
    use super::super::cell::load_records;
    use super::super::cell::samples::spec;
    use super::*;
    use crate::store::Sediment;

    /// In one process, so that closing takes the place of the kill.
    #[test]
    fn a_tail_is_compared_byte_by_byte_and_an_older_one_is_not_taken_for_it() {
        let parent = tempfile::tempdir().unwrap();
        let mut spec = spec(parent.path().join("store"));
        let store = Sediment::open(&spec.folder, &spec.config).unwrap();
        load_records(&store, &spec, |_, _| {}).unwrap();
        let mut records = tail_of(&spec, 20).unwrap();
        let (mut key, mut document) = (String::new(), Vec::new());
        for _ in 0..20 {
            records.next(&mut key, &mut document);
            store.insert(&key, &document).unwrap();
        }
        let (_, same) = compare(&store, &spec, 20).unwrap();
        assert_eq!((same.missing, same.wrong), (0, 0));
        let (_, shorter) = compare(&store, &spec, 19).unwrap();
        assert_eq!((shorter.missing, shorter.wrong), (0, 19));
        spec.repeat += 1;
        let (_, later) = compare(&store, &spec, 20).unwrap();
        assert_eq!((later.missing, later.wrong), (0, 20));
        let (_, none) = compare(&store, &spec, 0).unwrap();
        assert_eq!((none.missing, none.wrong), (0, 0));
    }

    #[test]
    fn a_tail_that_was_sealed_before_the_kill_is_an_error() {
        let none = Differences::default();
        assert_eq!(none.error(300, None), None);
        assert_eq!(none.error(300, Some(300)), None);
        let sealed = none.error(300, Some(0)).unwrap();
        assert!(sealed.contains("0 of 300 records"), "{sealed}");
        assert!(Differences { missing: 0, wrong: 1 }.error(0, Some(0)).is_some());
    }
}
