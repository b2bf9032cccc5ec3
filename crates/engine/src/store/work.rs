//! Background jobs: how they are counted, and what happens when one panics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::Store;
use crate::sync::{Arc, AtomicUsize, Condvar, Mutex, Ordering};

/// Counts jobs that will run as soon as a thread is free, so that others can wait for them.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pending: Mutex<usize>,
    done: Condvar,
    /// Threads that wait for all jobs.
    waiting: AtomicUsize,
}

impl Work {
    /// Whether somebody waits for all jobs, so that none should take its time.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

/// A job that is queued or runs. Dropped with the job, also if it never runs.
struct Ticket(Arc<Work>);

impl Drop for Ticket {
    fn drop(&mut self) {
        *self.0.pending.lock() -= 1;
        self.0.done.notify_all();
    }
}

/// How long a waiter sleeps before it looks again: a guard against a lost wake-up, not a rhythm.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

impl Store {
    /// Runs a job soon, in the background.
    pub(super) fn spawn(self: &Arc<Self>, name: &'static str, job: fn(&Arc<Self>)) {
        *self.work.pending.lock() += 1;
        let ticket = Ticket(Arc::clone(&self.work));
        let run = self.guarded(name, job);
        self.executor.submit(
            name,
            Box::new(move || {
                run();
                drop(ticket);
            }),
        );
    }

    /// Runs a job after a delay. Nobody waits for it.
    pub(super) fn spawn_after(
        self: &Arc<Self>,
        delay: Duration,
        name: &'static str,
        job: fn(&Arc<Self>),
    ) {
        self.executor.submit_after(delay, name, Box::new(self.guarded(name, job)));
    }

    /// A job must not keep the database open, nor take its thread down.
    fn guarded(
        self: &Arc<Self>,
        name: &'static str,
        job: fn(&Arc<Self>),
    ) -> impl FnOnce() + Send + 'static {
        let store = Arc::downgrade(self);
        move || {
            let Some(store) = store.upgrade() else { return };
            let outcome = catch_unwind(AssertUnwindSafe(|| job(&store)));
            if let Err(panic) = outcome {
                let what = panic
                    .downcast_ref::<&str>()
                    .map(|what| (*what).to_owned())
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_else(|| "a panic without a message".to_owned());
                store.report_panic(format!("the job `{name}` panicked: {what}"));
            }
        }
    }

    /// Waits until no job is queued or running, lending a hand where jobs are run by hand.
    pub(crate) fn wait_idle(&self) {
        self.work.waiting.fetch_add(1, Ordering::Relaxed);
        self.wait_for_jobs();
        self.work.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    fn wait_for_jobs(&self) {
        loop {
            if *self.work.pending.lock() == 0 {
                return;
            }
            if !self.executor.help() {
                let mut pending = self.work.pending.lock();
                if *pending > 0 {
                    self.work.done.wait_for(&mut pending, LOOK_AGAIN);
                }
            }
        }
    }
}
