//! Syncs outside the write path: the buffered mode's flush, `sync`, zeros ahead, and the mark of an
//! idle log.

use std::time::Duration;

use super::commit::IDLE_BEFORE_MARK;
use super::{LogState, Store};
use crate::error::{Error, Result};
use crate::log::{Request, Run};
use crate::planted::{self, Bug};
use crate::sync::{Arc, Ordering};

const ZEROS: &[u8] = &[0; 64 << 10];

/// A flush that failed is tried again after its interval, and not sooner than this: each try
/// repairs.
const RETRY_AFTER: Duration = Duration::from_millis(100);

impl Store {
    /// Makes every answered write durable.
    pub(crate) fn sync(self: &Arc<Self>) -> Result<()> {
        self.check_open()?;
        self.flush()
    }

    /// Syncs what is written now, oldest segment first, without holding the log up. After a
    /// failure, tries to repair: then the answered writes are durable in a new segment.
    pub(super) fn flush(self: &Arc<Self>) -> Result<()> {
        let targets: Vec<Arc<Run>> = {
            let state = self.log.lock();
            state.unsynced.iter().chain(std::iter::once(&state.active)).cloned().collect()
        };
        let outcome = targets.iter().try_for_each(|run| run.sync());
        let mut state = self.log.lock();
        match outcome {
            Ok(()) => {
                self.counters.synced();
                state.unsynced.retain(|run| !run.is_synced());
                self.trim_tail(&mut state);
                Ok(())
            }
            // A repair in the meantime copied what the failed segment had, and synced the copy.
            Err(_) if state.failure.is_none() && !self.any_failed(&state) => Ok(()),
            Err(e) => {
                state.failure = Some(e);
                self.ensure_writable(&mut state)
            }
        }
    }

    fn any_failed(&self, state: &LogState) -> bool {
        state.active.has_failed() || state.unsynced.iter().any(|run| run.has_failed())
    }

    /// Forgets kept groups that are synced.
    pub(super) fn trim_tail(&self, state: &mut LogState) {
        let synced_to = |state: &LogState, segment| {
            std::iter::once(&state.active)
                .chain(&state.unsynced)
                .find(|run| run.id() == segment)
                .map_or(u64::MAX, |run| run.synced())
        };
        let mut bytes = state.tail_bytes;
        while let Some(chunk) = state.tail.front() {
            let end = chunk.offset + chunk.bytes.len() as u64;
            if end > synced_to(state, chunk.segment) {
                break;
            }
            bytes -= chunk.bytes.len() as u64;
            state.tail.pop_front();
        }
        self.set_tail_bytes(state, bytes);
    }

    pub(super) fn flush_at_interval(self: &Arc<Self>) {
        self.log.lock().flush_scheduled = false;
        self.flush_now();
    }

    pub(super) fn flush_in_background(self: &Arc<Self>) {
        self.flush_now();
        // Not before: each more of them would only hold a thread until this one's sync is over, and
        // seals need threads. A write that finds too much left calls the next.
        self.log.lock().flush_hurried = false;
    }

    fn flush_now(self: &Arc<Self>) {
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        // A failure stays in the log's state: the next write repairs, or reports it.
        let outcome = self.flush();
        let mut state = self.log.lock();
        if outcome.is_err() {
            // What was answered still waits, and perhaps no write will come.
            self.schedule_flush(&mut state, RETRY_AFTER);
        } else if state.active.synced() > state.marked {
            self.schedule_mark(&mut state);
        }
    }

    /// Writes a mark once nothing was written for a while, so that a kill of an idle process leaves
    /// no doubt about its last group.
    pub(super) fn mark_when_idle(self: &Arc<Self>) {
        let idle = {
            let mut state = self.log.lock();
            let idle = self.idle_for();
            state.mark_scheduled = idle < IDLE_BEFORE_MARK;
            idle
        };
        if idle < IDLE_BEFORE_MARK {
            self.spawn_after(IDLE_BEFORE_MARK.saturating_sub(idle), "mark", Self::mark_when_idle);
            return;
        }
        let state = self.log.lock();
        let due = state.failure.is_none() && state.active.synced() > state.marked;
        drop(state);
        if due {
            // Nobody waits for a mark; a failure stays in the log's state.
            drop(self.write(Request::mark()));
        }
    }

    pub(super) fn zero_ahead(self: &Arc<Self>) {
        let active = Arc::clone(&self.version.load().active);
        // On a full disk the space is the deletes'.
        while !self.takes_deletes_only() && active.zero_step(ZEROS) {
            self.counters.wrote(ZEROS.len() as u64);
        }
        active.zeros.finish();
    }

    /// Repairs the log if a write or sync failed since the last group.
    pub(super) fn ensure_writable(self: &Arc<Self>, state: &mut LogState) -> Result<()> {
        if state.closed {
            return Err(Error::Closed);
        }
        if let Some(what) = self.panicked() {
            return Err(Error::Background { what });
        }
        // Bytes behind the log's end are those of a leader that panicked: never the same offset
        // again.
        let is_torn = state.active.attempted() > state.active.end();
        if state.failure.is_none() && !is_torn && !self.any_failed(state) {
            return Ok(());
        }
        if planted::is(Bug::OldTailAppendedTo) {
            state.failure = None;
            return Ok(());
        }
        match self.repair(state) {
            Ok(()) => {
                state.failure = None;
                Ok(())
            }
            Err(e) => {
                state.failure.get_or_insert_with(|| e.clone());
                Err(Error::ReadOnly { source: Arc::new(e) })
            }
        }
    }
}
