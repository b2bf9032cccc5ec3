//! Holds what was found in records to the writes that could explain it. Each field of each record
//! is a register of its own; the fields of one document also have to agree.
//!
//! 1. A value is explained by a write that began before the read ended, unless another write lay
//!    wholly between that write's end and the read's beginning.
//! 2. The fields of a document are explained together if there is a moment of the read at which
//!    each of the values may have been current.
//! 3. All answers about one register are explained together if its writes can be put into one
//!    order. When values tell their writes apart, that is decidable from each value's zone, the
//!    time from the first end to the last beginning among its write and its reads (Gibbons and
//!    Korach, "Testing shared memories", 1997): a value was certainly there throughout a zone that
//!    runs forward, so that no other zone may overlap it.
//! 4. A write that failed may take effect at any later time, or never: it explains what it can and
//!    contradicts nothing. Values that equal each other are left out of the third check.
//! 5. Moments that are equal count as overlapping, so that a coarse clock gives no false alarm.

use std::ops::Range;

use super::entry::{Actor, Call, Interval, Met, UNANSWERED};
use super::keys::key_of;
use super::mismatch::{Kind, Tally};
use crate::workload::KeyFormat;

/// A value that was written to a field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    key: u64,
    hash: u64,
    interval: Interval,
    field: u32,
    actor: Actor,
    /// By when another write had certainly replaced it.
    superseded: u64,
    /// As `superseded`, by a write whose value somebody saw.
    superseded_by_seen: u64,
    /// The zone of the value: the first end and the last beginning.
    first_end: u64,
    last_start: u64,
    seen: bool,
}

impl Write {
    pub(super) fn new(actor: Actor, key: u64, field: u32, hash: u64, interval: Interval) -> Self {
        Self {
            key,
            hash,
            interval,
            field,
            actor,
            superseded: UNANSWERED,
            superseded_by_seen: UNANSWERED,
            first_end: interval.end,
            last_start: interval.start,
            seen: false,
        }
    }

    fn register(&self) -> (u64, u32) {
        (self.key, self.field)
    }

    fn is_answered(&self) -> bool {
        self.interval.end != UNANSWERED
    }
}

/// What one look at a record met.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    pub(super) actor: Actor,
    pub(super) key: u64,
    pub(super) interval: Interval,
    pub(super) met: Met,
    pub(super) call: Call,
}

/// A record's presence.
#[derive(Clone, Copy, Debug)]
struct Record {
    key: u64,
    /// From then on it was certainly there: a write was answered, or somebody had found it.
    present: u64,
    last_missing: Option<u64>,
}

/// An answer that is not explained.
struct Problem {
    kind: Kind,
    /// The field, and the place of a write of its value.
    field: Option<(u32, Option<usize>)>,
}

/// The writes of some records, and what is known of their values.
pub(super) struct Registers {
    format: KeyFormat,
    /// By register and hash.
    writes: Vec<Write>,
    /// By key.
    records: Vec<Record>,
    unexplained: bool,
}

impl Registers {
    pub(super) fn new(format: KeyFormat, mut writes: Vec<Write>) -> Self {
        writes.sort_unstable_by_key(|write| (write.register(), write.interval.start));
        supersede(&mut writes, |_| true, |write| &mut write.superseded);
        let mut records: Vec<Record> = Vec::new();
        for write in &writes {
            match records.last_mut().filter(|record| record.key == write.key) {
                Some(record) => record.present = record.present.min(write.interval.end),
                None => records.push(Record {
                    key: write.key,
                    present: write.interval.end,
                    last_missing: None,
                }),
            }
        }
        sort_by_value(&mut writes);
        Self { format, writes, records, unexplained: false }
    }

    /// The first look at an observation.
    pub(super) fn note(&mut self, observation: &Observation, hashes: &[u64]) {
        let problem = self.judge(observation, hashes);
        self.unexplained |= problem.is_some();
        let Observation { key, interval, met, .. } = *observation;
        let mut is_certain = false;
        for (field, &hash) in (0..).zip(hashes) {
            let values = self.values(key, field, hash);
            let is_one = values.len() == 1;
            for write in &mut self.writes[values] {
                write.seen = true;
                is_certain |= write.is_answered();
                if problem.is_none() && is_one {
                    write.first_end = write.first_end.min(interval.end);
                    write.last_start = write.last_start.max(interval.start);
                }
            }
        }
        let Some(place) = self.record(key) else { return };
        let record = &mut self.records[place];
        if met == Met::Missing {
            record.last_missing = record.last_missing.max(Some(interval.start));
        } else if problem.is_none() && is_certain {
            record.present = record.present.min(interval.end);
        }
    }

    /// Whether every observation was explained; otherwise each has to be told.
    pub(super) fn is_explained(&mut self) -> bool {
        let lost = |record: &Record| record.last_missing > Some(record.present);
        if !self.unexplained && !self.records.iter().any(lost) {
            return true;
        }
        self.writes.sort_unstable_by_key(|write| (write.register(), write.interval.start));
        supersede(&mut self.writes, |write| write.seen, |write| &mut write.superseded_by_seen);
        sort_by_value(&mut self.writes);
        false
    }

    /// The second look, after all observations were noted: counts what is not explained.
    pub(super) fn tell(&self, observation: &Observation, hashes: &[u64], tally: &mut Tally) {
        if let Some(problem) = self.judge(observation, hashes) {
            let text = || self.describe(observation, &problem);
            tally.add(problem.kind, observation.interval.start, text);
        }
    }

    fn record(&self, key: u64) -> Option<usize> {
        self.records.binary_search_by_key(&key, |record| record.key).ok()
    }

    /// The writes of a value, in the order of their beginnings.
    fn values(&self, key: u64, field: u32, hash: u64) -> Range<usize> {
        let wanted = ((key, field), hash);
        let place = |write: &Write| (write.register(), write.hash);
        let start = self.writes.partition_point(|write| place(write) < wanted);
        let equal = self.writes[start..].iter().take_while(|write| place(write) == wanted);
        start..start + equal.count()
    }

    fn judge(&self, observation: &Observation, hashes: &[u64]) -> Option<Problem> {
        let Observation { key, interval, met, .. } = *observation;
        let whole = |kind| Some(Problem { kind, field: None });
        match met {
            Met::Missing => {
                let present = self.records.get(self.record(key)?)?.present;
                return if interval.start > present { whole(Kind::LostRecord) } else { None };
            }
            Met::Torn => return whole(Kind::Torn),
            Met::Whole => {}
        }
        // When all of the document's values may have been current.
        let (mut from, mut to) = (interval.start, interval.end);
        let mut lost = None;
        for (field, &hash) in (0..).zip(hashes) {
            let values = self.values(key, field, hash);
            let place = values.start;
            let problem = |kind, place| Some(Problem { kind, field: Some((field, place)) });
            let Some(first) = self.writes[values.clone()].first() else {
                return problem(Kind::Unwritten, None);
            };
            if first.interval.start > interval.end {
                return problem(Kind::Future, Some(place));
            }
            let writes = self.writes[values].iter();
            let begun = writes.filter(|write| write.interval.start <= interval.end);
            let current = begun.clone().filter(|write| write.superseded >= interval.start);
            let Some(until) = current.clone().map(|write| write.superseded).max() else {
                if begun.clone().any(|write| write.superseded_by_seen < interval.start) {
                    return problem(Kind::Stale, Some(place));
                }
                lost = lost.or(problem(Kind::LostUpdate, Some(place)));
                continue;
            };
            from = from.max(current.map(|write| write.interval.start).min().unwrap_or(from));
            to = to.min(until);
        }
        lost.or(if from > to { whole(Kind::Torn) } else { None })
    }

    fn describe(&self, observation: &Observation, problem: &Problem) -> String {
        let Observation { actor, key, interval, call, .. } = *observation;
        let mut text =
            format!("{} of {} by {actor} in {interval}", call.name(), key_of(self.format, key));
        match (problem.kind, problem.field) {
            (Kind::Unwritten, Some((field, _))) => {
                text += &format!(": no write has the value of field{field}");
            }
            (kind, Some((field, Some(place)))) => {
                let write = &self.writes[place];
                text += &format!(": the value of field{field} is of {}", told(write));
                if kind != Kind::Future
                    && let Some(newer) = self.superseding(write, interval.start)
                {
                    text += &format!(", replaced by {}", told(newer));
                }
            }
            (Kind::LostRecord, _) => {
                let present = self.record(key).map(|place| self.records[place].present);
                let present = present.unwrap_or_default();
                text += &format!(": no record, which was there since {present} ns");
            }
            (Kind::Torn, _) if observation.met == Met::Whole => {
                text += ": its fields were never there together";
            }
            (_, _) => text += ": the bytes are not of a record's shape",
        }
        text
    }

    /// The write that had replaced `write` first.
    fn superseding(&self, write: &Write, by: u64) -> Option<&Write> {
        let of = self.writes.iter().filter(|other| other.register() == write.register());
        of.filter(|other| other.interval.start > write.interval.end && other.interval.end < by)
            .min_by_key(|other| (!other.seen, other.interval.end))
    }

    /// Counts the values whose zones contradict another's.
    pub(super) fn orders(&self, tally: &mut Tally) {
        for writes in self.writes.chunk_by(|a, b| a.register() == b.register()) {
            let unique = writes.chunk_by(|a, b| a.hash == b.hash).filter(|same| same.len() == 1);
            let zones = unique.flatten().filter(|write| write.is_answered());
            let (mut forward, backward): (Vec<&Write>, Vec<&Write>) =
                zones.partition(|write| write.first_end < write.last_start);
            forward.sort_unstable_by_key(|write| write.first_end);
            // The zone that reaches furthest among those that begin no later.
            let mut furthest: Vec<&Write> = Vec::with_capacity(forward.len());
            for &zone in &forward {
                match furthest.last() {
                    Some(&reach) if zone.first_end < reach.last_start => {
                        self.contradiction(reach, zone, tally);
                        furthest.push(if zone.last_start > reach.last_start {
                            zone
                        } else {
                            reach
                        });
                    }
                    _ => furthest.push(zone),
                }
            }
            for zone in backward {
                let before = forward.partition_point(|other| other.first_end < zone.last_start);
                let Some(&reach) = before.checked_sub(1).and_then(|place| furthest.get(place))
                else {
                    continue;
                };
                if zone.first_end < reach.last_start {
                    self.contradiction(reach, zone, tally);
                }
            }
        }
    }

    fn contradiction(&self, reach: &Write, zone: &Write, tally: &mut Tally) {
        tally.add(Kind::Order, reach.first_end.min(zone.first_end), || {
            format!(
                "field{} of {}: the value of {} was there from {} ns to {} ns, and so was that of \
                 {}, from {} ns to {} ns",
                reach.field,
                key_of(self.format, reach.key),
                told(reach),
                reach.first_end,
                reach.last_start,
                told(zone),
                zone.first_end.min(zone.last_start),
                zone.first_end.max(zone.last_start),
            )
        });
    }
}

fn told(write: &Write) -> String {
    format!("the write of {} in {}", write.actor, write.interval)
}

fn sort_by_value(writes: &mut [Write]) {
    writes.sort_unstable_by_key(|w| (w.register(), w.hash, w.interval.start));
}

/// Sets by when each write had been replaced by one of the `newer`; writes are in the order of
/// their registers and beginnings.
fn supersede(
    writes: &mut [Write],
    newer: impl Fn(&Write) -> bool,
    superseded: impl Fn(&mut Write) -> &mut u64,
) {
    for writes in writes.chunk_by_mut(|a, b| a.register() == b.register()) {
        // The first end among a write and those that begin after it.
        let mut first_ends = vec![UNANSWERED; writes.len() + 1];
        for (place, write) in writes.iter().enumerate().rev() {
            let end = if newer(write) { write.interval.end } else { UNANSWERED };
            first_ends[place] = first_ends[place + 1].min(end);
        }
        let starts: Vec<u64> = writes.iter().map(|write| write.interval.start).collect();
        for write in writes {
            let after = starts.partition_point(|&start| start <= write.interval.end);
            *superseded(write) = first_ends[after];
        }
    }
}

#[cfg(test)]
#[path = "registers_tests.rs"]
mod tests;
