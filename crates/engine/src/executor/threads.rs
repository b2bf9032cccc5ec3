//! Worker threads.
//!
//! A worker takes a due job and runs it unlocked, or waits for a job or the next timer. One that
//! leaves due jobs behind wakes another, because a timer wakes only those that knew of it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use super::queue::{Named, Queue, Refused};
use super::{Executor, Job};
use crate::sync::{Arc, Condvar, Mutex};

/// Runs jobs on threads of its own, named `sediment-0` and so on. Dropping it shuts it down.
///
/// A job that panics is reported by the panic hook and ends alone; its thread goes on.
#[derive(Debug)]
pub struct Threads {
    shared: Arc<Shared>,
    workers: Vec<ThreadId>,
    handles: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    origin: Instant,
    state: Mutex<State>,
    /// A job came, a timer was set, or the queue was closed.
    work: Condvar,
    /// A worker ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: Queue,
    alive: usize,
}

impl Threads {
    /// Starts `threads` workers, at least one. Fails when the operating system gives no thread.
    pub fn new(threads: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            origin: Instant::now(),
            state: Mutex::default(),
            work: Condvar::new(),
            ended: Condvar::new(),
        });
        let mut pool = Self { shared, workers: Vec::new(), handles: Mutex::default() };
        for number in 0..threads.max(1) {
            let shared = Arc::clone(&pool.shared);
            pool.shared.state.lock().alive += 1;
            let spawned = thread::Builder::new()
                .name(format!("sediment-{number}"))
                .spawn(move || shared.work());
            match spawned {
                Ok(handle) => {
                    pool.workers.push(handle.thread().id());
                    pool.handles.get_mut().push(handle);
                }
                Err(e) => {
                    pool.shared.state.lock().alive -= 1;
                    return Err(e);
                }
            }
        }
        Ok(pool)
    }

    /// What the workers share: gone once they and the owner are.
    #[cfg(test)]
    pub(super) fn watch(&self) -> crate::sync::Weak<impl Sized + use<>> {
        Arc::downgrade(&self.shared)
    }

    fn queued(&self, pushed: Result<(), Refused>) {
        if pushed.is_ok() {
            self.shared.work.notify_one();
        }
    }
}

impl Shared {
    fn work(&self) {
        while let Some(named) = self.next() {
            // The payload of a panic is dropped here, after the panic hook has reported it.
            drop(catch_unwind(AssertUnwindSafe(named.job)));
        }
        self.state.lock().alive -= 1;
        self.ended.notify_all();
    }

    /// Waits for a job; `None` once the queue is closed.
    fn next(&self) -> Option<Named> {
        let mut state = self.state.lock();
        loop {
            if state.queue.is_closed() {
                return None;
            }
            if let Some(named) = state.queue.pop(self.origin.elapsed()) {
                if state.queue.is_ready() {
                    self.work.notify_one();
                }
                return Some(named);
            }
            match state.queue.next_timer().and_then(|due| self.origin.checked_add(due)) {
                Some(due) => drop(self.work.wait_until(&mut state, due)),
                None => self.work.wait(&mut state),
            }
        }
    }
}

impl Executor for Threads {
    fn submit(&self, name: &'static str, job: Job) {
        let pushed = self.shared.state.lock().queue.push(Named { name, job });
        self.queued(pushed);
    }

    fn submit_after(&self, delay: Duration, name: &'static str, job: Job) {
        let due = self.shared.origin.elapsed().saturating_add(delay);
        let pushed = self.shared.state.lock().queue.push_at(due, Named { name, job });
        self.queued(pushed);
    }

    fn help(&self) -> bool {
        false
    }

    fn shutdown(&self) {
        let refused = self.shared.state.lock().queue.close();
        self.shared.work.notify_all();
        drop(refused);
        if self.workers.contains(&thread::current().id()) {
            return;
        }
        let mut state = self.shared.state.lock();
        while state.alive > 0 {
            self.shared.ended.wait(&mut state);
        }
        drop(state);
        let handles = std::mem::take(&mut *self.handles.lock());
        for handle in handles {
            // A worker catches what its jobs throw, so that this cannot fail.
            drop(handle.join());
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shutdown();
    }
}
