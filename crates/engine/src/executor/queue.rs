//! The jobs that have not started: those that are due, in order, and those that wait for a time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;
use std::time::Duration;

use super::Job;

/// A job and what to call it.
pub(super) struct Named {
    pub(super) name: &'static str,
    pub(super) job: Job,
}

/// A delayed job; ordered by the time it is due, then by submission.
struct Timer {
    due: Duration,
    order: u64,
    named: Named,
}

/// Queued jobs. Times are since the owner's origin.
#[derive(Default)]
pub(super) struct Queue {
    ready: VecDeque<Named>,
    timers: BinaryHeap<Reverse<Timer>>,
    submitted: u64,
    closed: bool,
}

/// Jobs that will not run; to be dropped once no lock is held.
#[must_use = "dropped where a lock is held, a job may deadlock"]
pub(super) struct Refused {
    _jobs: Vec<Named>,
}

impl Queue {
    /// Queues a job at the end, or gives it back when the queue is closed.
    pub(super) fn push(&mut self, named: Named) -> Result<(), Refused> {
        if self.closed {
            return Err(Refused { _jobs: vec![named] });
        }
        self.ready.push_back(named);
        Ok(())
    }

    /// Queues a job for a time, or gives it back when the queue is closed.
    pub(super) fn push_at(&mut self, due: Duration, named: Named) -> Result<(), Refused> {
        if self.closed {
            return Err(Refused { _jobs: vec![named] });
        }
        self.submitted += 1;
        self.timers.push(Reverse(Timer { due, order: self.submitted, named }));
        Ok(())
    }

    /// Takes the first job that is due.
    pub(super) fn pop(&mut self, now: Duration) -> Option<Named> {
        self.wake_timers(now);
        self.ready.pop_front()
    }

    /// The jobs that are due, in the order in which they will run.
    pub(super) fn due(&mut self, now: Duration) -> Vec<&'static str> {
        self.wake_timers(now);
        self.ready.iter().map(|named| named.name).collect()
    }

    /// Whether a job can run without waiting for a timer.
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// When the next timer is due.
    pub(super) fn next_timer(&self) -> Option<Duration> {
        self.timers.peek().map(|Reverse(timer)| timer.due)
    }

    /// Refuses jobs from now on, and gives the queued ones back.
    pub(super) fn close(&mut self) -> Refused {
        self.closed = true;
        let delayed = std::mem::take(&mut self.timers).into_iter();
        let delayed = delayed.map(|Reverse(timer)| timer.named);
        Refused { _jobs: self.ready.drain(..).chain(delayed).collect() }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    fn wake_timers(&mut self, now: Duration) {
        while self.next_timer().is_some_and(|due| due <= now) {
            self.ready.extend(self.timers.pop().map(|Reverse(timer)| timer.named));
        }
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("ready", &self.ready.iter().map(|named| named.name).collect::<Vec<_>>())
            .field("delayed", &self.timers.len())
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.order).cmp(&(other.due, other.order))
    }
}
