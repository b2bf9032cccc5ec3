//! Compaction beside reads and writes: when it runs, and who waits for it.
//!
//! One job at a time does one thing (a step of a sweep, a merge of some runs) and submits itself
//! again while there is more to do. Invariants:
//!
//! 1. What a job writes is complete, synced and named in the folder before an edit names it; the
//!    edit that names it also takes its inputs out and moves the horizon that it went by; only then
//!    is the version swapped, and only then are inputs unlinked, after their last reader.
//! 2. A log segment, or a run that has its records, leaves level 0 in two ways: all of an age and
//!    older at the end of a sweep; or with its neighbours in age, tombstones included, into a run of
//!    the same ages.
//! 3. A job that fails leaves everything as it was, is counted, and is tried again later.

mod level0;
mod merging;
mod suspects;
mod sweep;

pub(super) use level0::Sample;

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Store, Tables};
use crate::compactor::{
    Accounting, Activity, CompactionReason, Counts, Decision, Mergeable, RunCounts, decide,
};
use crate::error::{Error, Result};
use crate::format::{Edit, LOG_START, SegmentId, Sequence};
use crate::governor::Debt;
use crate::manifest::ManifestState;
use crate::memtable::Index;
use crate::options::Compaction;
use crate::planted::{self, Bug};
use crate::segment::SegmentFile;
use crate::stats::CompactionStats;
use crate::sync::{Arc, AtomicBool, AtomicU64, Condvar, Mutex, Ordering};

use super::tables::{Cover, Level0};

/// Without a write for so long, what is left is merged.
const IDLE_AFTER: Duration = Duration::from_millis(250);
/// A job that failed is tried again after this, and after twice as long each time that it fails
/// again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(64);
/// How long a waiter sleeps before it looks again: a guard against a lost wake-up, not a rhythm.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// What merging is taken to do in a second before it was measured, in bytes.
const SPEED_AT_FIRST: u64 = 100 << 20;

/// What is known of compaction besides the manifest.
#[derive(Debug)]
pub(super) struct Compactor {
    control: Mutex<Control>,
    changed: Condvar,
    /// Held while a job runs.
    running: Mutex<()>,
    idle_armed: AtomicBool,
    /// Buffers of the job that runs, in bytes.
    memory_bytes: AtomicU64,
}

#[derive(Debug)]
struct Control {
    /// A job is queued or runs.
    scheduled: bool,
    /// Something changed since the job that runs has looked.
    requested: bool,
    /// How often somebody asked for everything to be merged.
    forced: u64,
    /// How many of those, the first ones, have it.
    forced_done: u64,
    /// How many had asked when the job that runs began.
    awaited: u64,
    /// How many of those the sweep under way is for: who came later is not in its cut.
    forced_by_sweep: u64,
    /// Why the sweep under way began.
    reason: CompactionReason,
    failure: Option<Error>,
    failures: u64,
    /// When the next failure is tried again.
    retry_after: Duration,
    totals: BTreeMap<CompactionReason, CompactionStats>,
    /// Bytes of records that merging goes through in a second.
    bytes_per_second: u64,
}

impl Default for Compactor {
    fn default() -> Self {
        Self {
            control: Mutex::new(Control {
                scheduled: false,
                requested: false,
                forced: 0,
                forced_done: 0,
                awaited: 0,
                forced_by_sweep: 0,
                reason: CompactionReason::Level0,
                failure: None,
                failures: 0,
                retry_after: RETRY_AFTER,
                totals: BTreeMap::new(),
                bytes_per_second: SPEED_AT_FIRST,
            }),
            changed: Condvar::new(),
            running: Mutex::new(()),
            idle_armed: AtomicBool::new(false),
            memory_bytes: AtomicU64::new(0),
        }
    }
}

/// What a job did, for the statistics.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    /// Records read, in bytes of their ids and documents.
    read_bytes: u64,
    /// Bytes written to files.
    written_bytes: u64,
}

/// What is there to merge.
pub(super) struct Survey {
    pub(super) accounting: Accounting,
    /// The runs of level 0 that no sweep covers, newest first.
    runs: Vec<(Level0, RunCounts)>,
}

impl Store {
    /// Looks soon whether compaction is due.
    pub(super) fn schedule_compaction(self: &Arc<Self>) {
        let mut control = self.compactor.control.lock();
        control.requested = true;
        let is_wanted = self.options.compaction == Compaction::Automatic
            || control.forced > control.forced_done;
        if !control.scheduled && is_wanted && !self.closed.load(Ordering::Acquire) {
            control.scheduled = true;
            drop(control);
            self.spawn("compact", Self::compact_in_background);
        }
    }

    /// Has compaction look again once nothing was written for a while.
    pub(super) fn arm_idle(self: &Arc<Self>) {
        // Relaxed: the flag guards nothing, and a second timer would do no harm.
        if self.options.compaction == Compaction::Manual
            || self.compactor.idle_armed.load(Ordering::Relaxed)
            || self.compactor.idle_armed.swap(true, Ordering::Relaxed)
        {
            return;
        }
        self.spawn_after(IDLE_AFTER, "idle", Self::when_idle);
    }

    /// A snapshot ends: what only it saw can go.
    pub(crate) fn release_snapshot(self: &Arc<Self>, at: Sequence) {
        self.snapshots.release(at);
        if !self.closed.load(Ordering::Acquire) {
            self.arm_idle();
        }
    }

    fn when_idle(self: &Arc<Self>) {
        self.compactor.idle_armed.store(false, Ordering::Relaxed);
        if self.closed.load(Ordering::Acquire) {
            return;
        }
        let idle = self.idle_for();
        if idle >= IDLE_AFTER {
            self.schedule_compaction();
        } else if !self.compactor.idle_armed.swap(true, Ordering::Relaxed) {
            self.spawn_after(IDLE_AFTER.saturating_sub(idle), "idle", Self::when_idle);
        }
    }

    pub(super) fn idle_for(&self) -> Duration {
        let last = self.last_write_ns.load(Ordering::Relaxed);
        Duration::from_nanos(self.now_ns().saturating_sub(last))
    }

    /// See [`Database::compact`](crate::Database::compact).
    pub(crate) fn compact(self: &Arc<Self>) -> Result<()> {
        self.check_open()?;
        self.seal_log()?;
        let (wanted, failures) = {
            let mut control = self.compactor.control.lock();
            control.forced += 1;
            (control.forced, control.failures)
        };
        self.schedule_compaction();
        loop {
            self.check_open()?;
            if let Some(what) = self.panicked() {
                return Err(Error::Background { what });
            }
            if let Some(outcome) = self.compactor.control.lock().outcome(wanted, failures) {
                return outcome;
            }
            if !self.executor.help() {
                let mut control = self.compactor.control.lock();
                if control.outcome(wanted, failures).is_none() {
                    self.compactor.changed.wait_for(&mut control, LOOK_AGAIN);
                }
            }
        }
    }

    /// Seals everything that is written by now.
    fn seal_log(self: &Arc<Self>) -> Result<()> {
        {
            let mut state = self.log.lock();
            self.ensure_writable(&mut state)?;
            if state.active.has_records() {
                self.roll(&mut state, 0, 0)?;
            }
        }
        self.seal_frozen()
    }

    /// Waits until the job that runs has ended; none begins while the result is held.
    pub(super) fn hold_compaction(&self) -> crate::sync::MutexGuard<'_, ()> {
        self.compactor.running.lock()
    }

    fn compact_in_background(self: &Arc<Self>) {
        // Whoever asks after that is not told what this job found, and what it begins is not for
        // them: it may have looked before they sealed.
        let (outcome, awaited) = {
            let _running = self.compactor.running.lock();
            let awaited = {
                let mut control = self.compactor.control.lock();
                control.requested = false;
                control.awaited = control.forced;
                control.awaited
            };
            (self.check_open().and_then(|()| self.compact_some()), awaited)
        };
        self.compactor.memory_bytes.store(0, Ordering::Relaxed);
        let mut control = self.compactor.control.lock();
        if outcome.is_ok() {
            control.retry_after = RETRY_AFTER;
        }
        let goes_on = match outcome {
            // What nobody asked for is left to be asked for.
            Ok(Progress::More) => {
                self.options.compaction == Compaction::Automatic
                    || control.forced > control.forced_done
            }
            Ok(Progress::Rest) => {
                control.forced_done = control.forced_done.max(awaited);
                control.requested || control.forced > control.forced_done
            }
            Err(Error::Closed) => false,
            Err(e) => {
                control.failures += 1;
                control.failure = Some(e);
                control.forced_done = control.forced_done.max(awaited);
                self.spawn_after(control.retry_after, "compact again", Self::schedule_compaction);
                control.retry_after = (2 * control.retry_after).min(RETRY_AFTER_MAX);
                // What cannot be merged for now does not get less while writers wait.
                self.throttle.open();
                false
            }
        };
        control.scheduled = goes_on;
        drop(control);
        self.compactor.changed.notify_all();
        if goes_on {
            self.spawn("compact", Self::compact_in_background);
        }
    }

    /// Does what is due most, if anything is.
    fn compact_some(self: &Arc<Self>) -> Result<Progress> {
        let tables = Arc::clone(&self.version.load().tables);
        let passed = self.throttle.passed();
        let Survey { accounting, runs } = self.survey(&tables);
        let counts = self.counts(&tables, &accounting, &runs);
        self.throttle_writers(&tables, &accounting, &counts, passed);
        let start = self.clock.now();
        let (reason, work) = match decide(&counts) {
            Decision::Rest => return Ok(Progress::Rest),
            Decision::Seal => {
                self.seal_log()?;
                return Ok(Progress::More);
            }
            Decision::Begin(reason) => {
                let tables = if counts.is_log_worth_sealing(reason) {
                    // The run before it is sealed without the log's lock.
                    self.seal_frozen()?;
                    self.seal_log()?;
                    Arc::clone(&self.version.load().tables)
                } else {
                    tables
                };
                self.begin_sweep(&tables, reason)?;
                return Ok(Progress::More);
            }
            Decision::Step => {
                let reason = self.compactor.control.lock().reason;
                (reason, self.sweep_step(&tables, reason)?)
            }
            Decision::MergeIndexes(range) => {
                (CompactionReason::Indexes, self.merge_indexes(&tables, &runs, range)?)
            }
            Decision::MergeDocuments(range) => {
                (CompactionReason::Documents, self.merge_documents(&tables, &runs, range)?)
            }
        };
        let time = self.clock.now().saturating_sub(start);
        self.compactor.control.lock().note(reason, work, time);
        self.counters.wrote(work.written_bytes);
        Ok(Progress::More)
    }

    /// Looks at what the manifest says of the tables. Moves no horizon: only who drops something
    /// does.
    pub(super) fn survey(&self, tables: &Tables) -> Survey {
        let horizon = self.snapshots.next_horizon(|| self.visible(), self.options.history);
        let manifest = self.manifest.lock();
        let state = manifest.state();
        Survey { accounting: Accounting::of(state, horizon), runs: mergeable_runs(tables, state) }
    }

    fn counts(
        &self,
        tables: &Tables,
        accounting: &Accounting,
        runs: &[(Level0, RunCounts)],
    ) -> Counts {
        let is_forced = {
            let control = self.compactor.control.lock();
            control.forced > control.forced_done
        };
        let activity = if is_forced {
            Activity::Forced
        } else if self.idle_for() >= IDLE_AFTER {
            Activity::Idle
        } else {
            Activity::Busy
        };
        Counts {
            runs: runs.iter().map(|(_, counts)| *counts).collect(),
            runs_max: self.options.level0_runs,
            index_records_max: self.options.compaction_bytes() / merging::INDEX_BYTES_A_RECORD,
            level0_bytes: accounting.level0_bytes,
            unsealed_bytes: self.unsealed_bytes(tables, activity),
            live_bytes: accounting.live_bytes(),
            garbage_bytes: accounting.garbage_bytes,
            superseded_bytes: accounting.superseded_bytes,
            shadowed_bytes: accounting.shadowed_bytes,
            segment_bytes: accounting.segment_bytes,
            memory_bytes: self.governor.memory_bytes(),
            is_sweeping: tables.sweep.is_some(),
            activity,
        }
    }

    /// Bytes of log whose records are not sealed; for an idle store at least those of as many sealed
    /// records, since a tombstone, which is small, frees what it deletes.
    fn unsealed_bytes(&self, tables: &Tables, activity: Activity) -> u64 {
        let version = self.version.load();
        let (mut bytes, mut records) = (0, 0);
        // Of marks alone nothing would remain.
        let runs = version.frozen.iter().chain(std::iter::once(&version.active));
        for run in runs.filter(|run| run.has_records()) {
            bytes += run.end() - LOG_START;
            records += run.memtable.len() as u64;
        }
        if activity != Activity::Idle {
            return bytes;
        }
        let sealed = tables.metas().map(|meta| (meta.content_bytes, meta.records));
        let (content, count) = sealed.fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1));
        share(content, records, count).max(bytes)
    }

    /// What the active segment will come to before it is sealed, by its records so far.
    fn active_bytes_max(&self) -> u64 {
        let active = Arc::clone(&self.version.load().active);
        let limit = self.log_limit(&active) - LOG_START;
        match active.memtable.len() as u64 {
            0 => limit,
            records => {
                let capacity = active.memtable.capacity() as u64;
                share(active.end() - LOG_START, capacity, records).min(limit)
            }
        }
    }

    /// Moves the horizon as far as the snapshots let it, in memory: an edit must make it durable
    /// together with what went by it.
    pub(super) fn advance_horizon(&self) -> Sequence {
        self.snapshots.advance(|| self.visible(), self.options.history)
    }

    /// Measures anew what slows writers down, while a job may take long: what was sealed meanwhile
    /// tells how much of it is live.
    pub(super) fn measure_debt(&self) {
        if self.compactor.control.lock().is_failing() {
            // What cannot be merged for now does not get less while writers wait.
            self.throttle.open();
            return;
        }
        let passed = self.throttle.passed();
        let tables = Arc::clone(&self.version.load().tables);
        let Survey { accounting, runs } = self.survey(&tables);
        let counts = self.counts(&tables, &accounting, &runs);
        self.throttle_writers(&tables, &accounting, &counts, passed);
    }

    /// Sets the pace of writers, by what was counted when so many bytes had been let through.
    fn throttle_writers(
        &self,
        tables: &Tables,
        accounting: &Accounting,
        counts: &Counts,
        passed: u64,
    ) {
        if self.options.compaction == Compaction::Manual {
            return;
        }
        // What the sweep under way does not cover is for the next one.
        let later = match tables.sweep {
            Some(_) => counts.runs.iter().map(|run| run.bytes).sum(),
            None => 0,
        };
        let swept_bytes = accounting.level0_disk_bytes.saturating_sub(later);
        let level0_left = accounting.level0_bytes.saturating_sub(later);
        let level1_left = match swept_bytes {
            0 => accounting.level1_bytes,
            _ => share(accounting.level1_bytes, level0_left, swept_bytes),
        };
        let (runs, runs_max) = (counts.runs.len() as u64, counts.runs_max as u64);
        let excess = runs.saturating_sub(runs_max) * 100 / runs_max;
        let files = accounting.level0_disk_bytes + accounting.level1_bytes;
        let kept_bytes = counts.live_bytes + accounting.pinned_bytes;
        let excess_bytes = (files + counts.unsealed_bytes).saturating_sub(kept_bytes);
        let incoming_bytes = later + counts.unsealed_bytes;
        let bounds = counts.bounds(excess_bytes, incoming_bytes, self.active_bytes_max());
        let debt = Debt {
            excess_bytes,
            free_bytes: bounds.free_bytes,
            limit_bytes: bounds.limit_bytes,
            remaining_bytes: level0_left + level1_left,
            bytes_per_second: self.compactor.control.lock().bytes_per_second,
            runs_excess_percent: excess,
        };
        self.throttle.set(debt, passed);
    }

    /// Whether a job may leave the processor and the disk to others for a while: somebody writes,
    /// nobody waits, and there is room until level 0 reaches its limit.
    fn may_yield(&self) -> bool {
        let control = self.compactor.control.lock();
        control.forced <= control.forced_done
            && self.idle_for() < IDLE_AFTER
            && !self.throttle.is_on()
            && !self.work.is_awaited()
    }

    /// Makes edits durable and the version follow; then the files of `gone`, which `tables` has, are
    /// unlinked after their last reader. `made` are the files that the edits name for the first
    /// time.
    fn publish_compaction(
        self: &Arc<Self>,
        tables: &Tables,
        edits: &[Edit],
        made: &[Arc<SegmentFile>],
        gone: &[SegmentId],
    ) -> Result<()> {
        if !made.is_empty()
            && let Err(e) = self.files.disk.sync_dir(&self.files.dir)
        {
            made.iter().for_each(|file| file.doom());
            return Err(Error::io("sync", &self.files.dir, e));
        }
        if planted::is(Bug::InputsUnlinkedEarly) {
            planted::unlink(&*self.files.disk, &self.files.dir, gone);
        }
        {
            let mut manifest = self.manifest.lock();
            if let Err(e) = manifest.append(edits) {
                made.iter().for_each(|file| manifest.abandon(Arc::clone(file)));
                return Err(e);
            }
        }
        {
            let _sealing = self.sealing.lock();
            self.publish_tables(None);
        }
        for id in gone {
            if let Some(data) = tables.file(*id) {
                data.doom();
            }
        }
        Ok(())
    }

    /// Adds what stats() tells of compaction.
    pub(super) fn compaction_stats(
        &self,
        tables: &Tables,
        survey: &Survey,
        stats: &mut crate::stats::Stats,
    ) {
        let counts = self.counts(tables, &survey.accounting, &survey.runs);
        let unsealed_bytes = self.unsealed_bytes(tables, Activity::Idle);
        let when_idle = Counts { activity: Activity::Idle, unsealed_bytes, ..counts };
        stats.compaction_due = self.options.compaction == Compaction::Automatic
            && decide(&when_idle) != Decision::Rest;
        let control = self.compactor.control.lock();
        stats.compactions = control.totals.values().cloned().collect();
        stats.compaction_failures = control.failures;
        stats.last_compaction_error = control.failure.as_ref().map(ToString::to_string);
        stats.compaction_memory_bytes = self.compactor.memory_bytes.load(Ordering::Relaxed);
    }
}

/// Whether there may be more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    More,
    Rest,
}

impl Control {
    /// Whether the last job failed.
    fn is_failing(&self) -> bool {
        self.retry_after > RETRY_AFTER
    }

    /// What a waiter is told; `None` while it has to wait.
    fn outcome(&self, wanted: u64, failures: u64) -> Option<Result<()>> {
        match &self.failure {
            Some(failure) if self.failures > failures => Some(Err(failure.clone())),
            _ => (self.forced_done >= wanted).then_some(Ok(())),
        }
    }

    fn note(&mut self, reason: CompactionReason, work: Work, time: Duration) {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let entry = self.totals.entry(reason).or_insert_with(|| CompactionStats::new(reason));
        entry.steps += 1;
        entry.read_bytes += work.read_bytes;
        entry.written_bytes += work.written_bytes;
        entry.time_ns += time_ns;
        if work.read_bytes > 1 << 20 && time_ns > 0 {
            let speed = share(1_000_000_000, work.read_bytes, time_ns);
            self.bytes_per_second = (3 * self.bytes_per_second + speed) / 4;
        }
    }

    /// A sweep began.
    fn began(&mut self, reason: CompactionReason) {
        self.reason = reason;
        self.forced_by_sweep = self.awaited;
        self.count(reason);
    }

    fn count(&mut self, reason: CompactionReason) {
        self.totals.entry(reason).or_insert_with(|| CompactionStats::new(reason)).count += 1;
    }
}

/// `bytes` times `part` of `whole`.
fn share(bytes: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(bytes) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// The runs of level 0 that no sweep covers, newest first.
fn mergeable_runs(tables: &Tables, state: &ManifestState) -> Vec<(Level0, RunCounts)> {
    let runs = tables.level0.iter().filter(|run| run.cover == Cover::All);
    runs.map(|run| {
        let mergeable = Mergeable::Yes;
        let mut counts = RunCounts { bytes: 0, records: 0, members: 0, mergeable };
        for segment in run.run.segments() {
            counts.bytes += segment.meta().content_bytes;
            counts.records += segment.meta().records;
            for member in segment.members() {
                counts.members += 1;
                if state.damaged.contains(&member.meta().id) {
                    counts.mergeable = Mergeable::No;
                }
            }
        }
        (run.clone(), counts)
    })
    .collect()
}
