//! One client's log of what it asked and what it was answered.

use std::path::Path;
use std::time::Instant;

use super::document;
use super::entry::{Actor, Call, Entry, EntryWriter, Interval, Met, UNANSWERED};
use super::keys::{Inserted, number_in};
use crate::error::{Failure, Result};
use crate::store::{Presence, Visitor};
use crate::workload::{DocumentShape, KeyFormat};

const BUFFER_BYTES: usize = 1 << 16;

/// The clock of a history, which all its clients read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Nanoseconds since the history began.
    pub(crate) fn now(self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX - 1)
    }
}

/// What a log holds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Looks at single records, those of updates that found none included.
    pub(crate) reads: u64,
    pub(crate) scans: u64,
    pub(crate) rows: u64,
    pub(crate) writes: u64,
    /// Writes that failed.
    pub(crate) unanswered: u64,
    /// Values that were written to fields.
    pub(super) field_writes: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.scans += other.scans;
        self.rows += other.rows;
        self.writes += other.writes;
        self.unanswered += other.unanswered;
        self.field_writes += other.field_writes;
    }
}

/// The document that a read found.
#[derive(Debug)]
pub(crate) struct Sight {
    shape: DocumentShape,
    met: Option<Met>,
    hashes: Vec<u64>,
}

impl Sight {
    pub(crate) fn new(shape: DocumentShape) -> Self {
        Self { shape, met: None, hashes: Vec::new() }
    }

    pub(crate) fn forget(&mut self) {
        self.met = None;
        self.hashes.clear();
    }
}

impl Visitor for Sight {
    fn value(&mut self, bytes: &[u8]) {
        let met = document::record(self.shape, bytes, &mut self.hashes);
        // A read has one document.
        self.met = Some(if self.met.is_some() { Met::Torn } else { met });
    }
}

/// The log of a client.
pub(crate) struct Recorder {
    actor: Actor,
    clock: Clock,
    keys: KeyFormat,
    shape: DocumentShape,
    log: EntryWriter,
    counts: Counts,
    /// In memory, since scans are held to all of them: 16 bytes a key.
    inserted: Vec<Inserted>,
    words: Vec<u64>,
    row_key: Vec<u8>,
}

/// A log that is complete.
pub(super) struct Recorded {
    pub(super) counts: Counts,
    pub(super) inserted: Vec<Inserted>,
    pub(super) bytes: u64,
}

impl Recorder {
    pub(super) fn create(
        path: &Path,
        actor: Actor,
        clock: Clock,
        keys: KeyFormat,
        shape: DocumentShape,
    ) -> Result<Self> {
        Ok(Self {
            actor,
            clock,
            keys,
            shape,
            log: EntryWriter::create(path, BUFFER_BYTES)?,
            counts: Counts::default(),
            inserted: Vec::new(),
            words: Vec::new(),
            row_key: Vec::new(),
        })
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    fn number(&self, key: &str) -> Result<u64> {
        let number = number_in(self.keys, key.as_bytes());
        number.ok_or_else(|| Failure::new(format_args!("{key} is no key of a workload")))
    }

    /// A load's or an insert's, from `start` until now.
    pub(crate) fn inserted(
        &mut self,
        key: &str,
        document: &[u8],
        start: u64,
        answer: &Result<()>,
    ) -> Result<()> {
        let end = self.wrote(key, document, start, answer.is_ok())?;
        let key = self.number(key)?;
        self.inserted.push(Inserted { key, answered: end });
        Ok(())
    }

    /// An update from `start` until now. One that found no record has written nothing.
    pub(crate) fn updated(
        &mut self,
        key: &str,
        fields: &[u8],
        start: u64,
        answer: &Result<Presence>,
    ) -> Result<()> {
        if let Ok(Presence::Missing) = answer {
            return self.looked(key, start, Met::Missing, Call::Update, &[]);
        }
        self.wrote(key, fields, start, answer.is_ok()).map(drop)
    }

    fn wrote(&mut self, key: &str, payload: &[u8], start: u64, answered: bool) -> Result<u64> {
        let end = if answered { self.now() } else { UNANSWERED };
        let key = self.number(key)?;
        document::written(payload, &mut self.words);
        let interval = Interval { start, end };
        self.counts.writes += 1;
        self.counts.unanswered += u64::from(!answered);
        self.counts.field_writes += self.words.len() as u64 / 2;
        self.log.append(&Entry::Write { actor: self.actor, key, interval }, &self.words)?;
        Ok(end)
    }

    /// A read from `start` until now; one that failed says nothing.
    pub(crate) fn read(
        &mut self,
        key: &str,
        start: u64,
        answer: &Result<Presence>,
        sight: &Sight,
    ) -> Result<()> {
        match answer {
            Ok(Presence::Found) => {
                let met = sight.met.unwrap_or(Met::Torn);
                self.looked(key, start, met, Call::Read, &sight.hashes)
            }
            Ok(Presence::Missing) => self.looked(key, start, Met::Missing, Call::Read, &[]),
            Err(_) => Ok(()),
        }
    }

    fn looked(
        &mut self,
        key: &str,
        start: u64,
        met: Met,
        call: Call,
        hashes: &[u64],
    ) -> Result<()> {
        let interval = Interval { start, end: self.now() };
        let (actor, key) = (self.actor, self.number(key)?);
        self.counts.reads += 1;
        let hashes = if met == Met::Whole { hashes } else { &[] };
        self.log.append(&Entry::Observation { actor, key, interval, met, call }, hashes)
    }

    /// A scan begins; its rows go to what this returns.
    pub(crate) fn scan(&mut self, key: &str, limit: usize) -> Result<RowRecorder<'_>> {
        let (actor, key) = (self.actor, self.number(key)?);
        let (limit, start) = (limit as u64, self.now());
        self.counts.scans += 1;
        self.log.append(&Entry::ScanBegin { actor, key, limit, start }, &[])?;
        Ok(RowRecorder { recorder: self, keyless: false })
    }

    pub(super) fn finish(self) -> Result<Recorded> {
        Ok(Recorded { counts: self.counts, inserted: self.inserted, bytes: self.log.finish()? })
    }
}

/// Takes the rows of a scan.
pub(crate) struct RowRecorder<'a> {
    recorder: &'a mut Recorder,
    /// A row came without its key.
    keyless: bool,
}

impl RowRecorder<'_> {
    pub(crate) fn finish(self, answer: &Result<usize>) -> Result<()> {
        if self.keyless {
            return Err(Failure::new("the store gives a scan's rows without their keys"));
        }
        let returned = answer.as_ref().ok().map(|&rows| rows as u64);
        let end = self.recorder.now();
        self.recorder.log.append(&Entry::ScanEnd { returned, end }, &[])
    }
}

impl Visitor for RowRecorder<'_> {
    const KEYS: bool = true;

    fn value(&mut self, _: &[u8]) {
        self.keyless = true;
    }

    fn row(&mut self, key: impl FnOnce(&mut Vec<u8>) -> Result<()>, bytes: &[u8]) -> Result<()> {
        let Recorder { log, keys, shape, row_key, words, counts, clock, .. } = &mut *self.recorder;
        let end = clock.now();
        row_key.clear();
        key(row_key)?;
        counts.rows += 1;
        match number_in(*keys, row_key) {
            Some(key) => {
                let met = document::record(*shape, bytes, words);
                log.append(&Entry::ScanRow { key, met, end }, words)
            }
            None => log.append(&Entry::ForeignRow, &[]),
        }
    }
}
