//! Group commit: who writes, and for whom.
//!
//! Whoever finds the log idle leads at once, on its own thread. Those that come while a leader
//! writes wait; when it is done, the first of them leads the next group. A new leader waits a
//! moment (the gather rule) while fewer have come back than the last group had members, because
//! clients that were answered together return together; a lone client never waits.

use std::collections::VecDeque;
use std::time::Duration;

use super::request::{Outcome, Request};
use crate::clock::Clock;
use crate::error::Error;
use crate::sync::{Arc, Condvar, Mutex};

/// Bytes after which a group takes no further member.
const GROUP_BYTES_MAX: usize = 4 << 20;

/// A request and, once decided, its answer.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) request: Request,
    pub(crate) outcome: Option<Outcome>,
    waiter: Option<Arc<Waiter>>,
}

impl Member {
    /// Lets the thread go on that waits for the outcome, if another one than the leader's does.
    pub(crate) fn answer(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            let outcome = self.outcome.take().unwrap_or_else(undecided);
            *waiter.slot.lock() = Slot::Done(outcome);
            waiter.changed.notify_one();
        }
    }
}

#[derive(Debug)]
struct Waiter {
    slot: Mutex<Slot>,
    changed: Condvar,
}

#[derive(Debug)]
enum Slot {
    Queued(Request),
    /// A leader has the request.
    Taken,
    /// This waiter leads the next group.
    Lead(Request),
    Done(Outcome),
}

#[derive(Debug, Default)]
struct Inner {
    leading: bool,
    waiting: VecDeque<Arc<Waiter>>,
    last_group: usize,
}

/// The queue in front of the log.
#[derive(Debug, Default)]
pub(crate) struct GroupCommit {
    inner: Mutex<Inner>,
}

impl GroupCommit {
    /// Has the request committed, by this thread or another one. `commit` decides the outcome of
    /// every member that it is given.
    pub(crate) fn submit(
        &self,
        request: Request,
        clock: &dyn Clock,
        gather: Duration,
        commit: impl FnOnce(&mut [Member]),
    ) -> Outcome {
        let mut inner = self.inner.lock();
        if !inner.leading {
            inner.leading = true;
            drop(inner);
            return self.lead(request, clock, gather, commit);
        }
        let waiter =
            Arc::new(Waiter { slot: Mutex::new(Slot::Queued(request)), changed: Condvar::new() });
        inner.waiting.push_back(Arc::clone(&waiter));
        drop(inner);

        let mut slot = waiter.slot.lock();
        loop {
            match std::mem::replace(&mut *slot, Slot::Taken) {
                Slot::Done(outcome) => return outcome,
                Slot::Lead(request) => {
                    drop(slot);
                    return self.lead(request, clock, gather, commit);
                }
                waiting => {
                    *slot = waiting;
                    waiter.changed.wait(&mut slot);
                }
            }
        }
    }

    fn lead(
        &self,
        request: Request,
        clock: &dyn Clock,
        gather: Duration,
        commit: impl FnOnce(&mut [Member]),
    ) -> Outcome {
        self.gather(clock, gather);
        let mut group = Group { queue: self, members: self.form(request) };
        commit(&mut group.members);
        group.answer()
    }

    /// Waits while members of the last group may be on their way back.
    fn gather(&self, clock: &dyn Clock, gather: Duration) {
        let expected = self.inner.lock().last_group.saturating_sub(1);
        if expected == 0 || gather.is_zero() {
            return;
        }
        let deadline = clock.now() + gather;
        while self.inner.lock().waiting.len() < expected && clock.now() < deadline {
            std::thread::yield_now();
        }
    }

    fn form(&self, own: Request) -> Vec<Member> {
        let mut bytes = own.bytes.len();
        let mut members = vec![Member { request: own, outcome: None, waiter: None }];
        let mut inner = self.inner.lock();
        while bytes < GROUP_BYTES_MAX {
            let Some(waiter) = inner.waiting.pop_front() else { break };
            let taken = std::mem::replace(&mut *waiter.slot.lock(), Slot::Taken);
            if let Slot::Queued(request) = taken {
                bytes += request.bytes.len();
                members.push(Member { request, outcome: None, waiter: Some(waiter) });
            }
        }
        inner.last_group = members.len();
        members
    }

    /// Hands the log on: to the first that waits, else to whoever comes.
    fn hand_over(&self) {
        let mut inner = self.inner.lock();
        while let Some(next) = inner.waiting.pop_front() {
            let mut slot = next.slot.lock();
            if let Slot::Queued(request) = std::mem::replace(&mut *slot, Slot::Taken) {
                *slot = Slot::Lead(request);
                next.changed.notify_one();
                return;
            }
        }
        inner.leading = false;
    }
}

/// A group in flight. Dropped by a panic of its leader, it still answers every member and hands the
/// log on.
struct Group<'a> {
    queue: &'a GroupCommit,
    members: Vec<Member>,
}

impl Group<'_> {
    fn answer(mut self) -> Outcome {
        self.members[0].outcome.take().unwrap_or_else(undecided)
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        self.queue.hand_over();
        self.members.iter_mut().for_each(Member::answer);
    }
}

fn undecided() -> Outcome {
    Err(Error::Background { what: "the leader of the write's group panicked".to_owned() })
}
