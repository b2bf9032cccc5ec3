//! Zeros ahead of the log.
//!
//! An fdatasync after an append into a hole also commits the file's new extent (measured: 170-190
//! µs against 118 µs over zeroed blocks), so a background job writes zeros ahead of a durable log.
//! Small steps, at most 1 MiB ahead: zeros written 1 MiB at a time make each later small write
//! dearer.
//!
//! Invariant: zeros are only written where no record was or is being written. The job claims a step
//! before it writes; the leader waits for a claim that its own write would overlap.

use crate::sync::{Condvar, Mutex};

const STEP_BYTES: u64 = 64 << 10;
const AHEAD_BYTES: u64 = 1 << 20;
const PAGE_BYTES: u64 = 4096;

#[derive(Debug)]
struct State {
    /// Zeros or records stand below this.
    done: u64,
    /// A step from `done` on is being written.
    claimed: Option<u64>,
    /// How far the log reaches.
    log_end: u64,
    stopped: bool,
    /// A job is queued or runs.
    requested: bool,
}

/// A claimed step. Dropped when it is over, also by a panic: the leader may wait for it.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    zeros: &'a ZeroFill,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        self.zeros.release();
    }
}

/// How far one segment is zeroed.
#[derive(Debug)]
pub(crate) struct ZeroFill {
    state: Mutex<State>,
    released: Condvar,
    capacity: u64,
}

impl ZeroFill {
    /// For a segment of `capacity` bytes whose log begins at `log_start`.
    pub(crate) fn new(log_start: u64, capacity: u64) -> Self {
        let state = State {
            done: log_start,
            claimed: None,
            log_end: log_start,
            stopped: false,
            requested: false,
        };
        Self { state: Mutex::new(state), released: Condvar::new(), capacity }
    }

    /// The leader is about to write up to `end`. Waits for an overlapping step. True when the job
    /// should run.
    pub(crate) fn log_to(&self, end: u64) -> bool {
        let mut state = self.state.lock();
        while state.claimed.is_some() && end > state.done {
            self.released.wait(&mut state);
        }
        state.log_end = end;
        state.done = state.done.max(end.next_multiple_of(PAGE_BYTES));
        let is_due = !state.stopped
            && !state.requested
            && state.done < self.capacity
            && state.done - end < AHEAD_BYTES / 2;
        state.requested |= is_due;
        is_due
    }

    /// Claims the next step. `None` when enough is zeroed.
    pub(crate) fn claim(&self) -> Option<Step<'_>> {
        let mut state = self.state.lock();
        let from = state.done;
        let to = (from + STEP_BYTES).min(self.capacity);
        let is_enough = to <= from || to > state.log_end + AHEAD_BYTES;
        if state.stopped || state.claimed.is_some() || is_enough {
            return None;
        }
        state.claimed = Some(to);
        Some(Step { zeros: self, offset: from, len: to - from })
    }

    /// A step that failed counts as done: the log goes through a hole there, only slower.
    fn release(&self) {
        let mut state = self.state.lock();
        if let Some(to) = state.claimed.take() {
            state.done = state.done.max(to);
        }
        self.released.notify_all();
    }

    /// The job ends: from now on another one may be asked for.
    pub(crate) fn finish(&self) {
        self.state.lock().requested = false;
    }

    /// No step begins any more, and none runs when this returns.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        while state.claimed.is_some() {
            self.released.wait(&mut state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_stay_ahead_of_the_log_and_never_overlap_it() {
        let zeros = ZeroFill::new(4096, 4 << 20);
        assert!(zeros.log_to(5000));
        assert!(!zeros.log_to(5008), "the job was asked for");
        let mut end_of_zeros = 0;
        while let Some(Step { offset, len, .. }) = &zeros.claim() {
            assert!(*offset >= 5000 && *offset >= end_of_zeros && *len <= STEP_BYTES);
            end_of_zeros = offset + len;
        }
        zeros.finish();
        assert!(end_of_zeros <= 5000 + AHEAD_BYTES && end_of_zeros > 5000 + AHEAD_BYTES / 2);
        assert!(!zeros.log_to(6000), "enough is zeroed");
        zeros.finish();
        // The log overtakes the zeros: the next step begins behind it.
        assert!(zeros.log_to(2 << 20));
        let step = zeros.claim().expect("a step");
        assert!(step.offset >= 2 << 20);
        assert!(zeros.claim().is_none(), "one step at a time");
        drop(step);
        zeros.stop();
        assert!(zeros.claim().is_none(), "stopped");
    }
}
