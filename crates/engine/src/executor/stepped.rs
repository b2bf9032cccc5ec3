//! Jobs that run when a test says so.

use std::thread::{self, ThreadId};
use std::time::Duration;

use super::queue::{Named, Queue};
use super::{Executor, Job};
use crate::clock::ManualClock;
use crate::sync::{Arc, Condvar, Mutex};

/// Runs jobs one at a time, on the thread that asks, by a clock that a test moves.
///
/// A job that panics does so through [`Stepped::step`]: the test sees it at its origin.
#[derive(Debug)]
pub struct Stepped {
    clock: Arc<ManualClock>,
    state: Mutex<State>,
    /// A job ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: Queue,
    /// The threads that run a job; a thread that steps inside a job is in here twice.
    running: Vec<ThreadId>,
}

impl Stepped {
    /// An executor without jobs, on this clock.
    pub fn new(clock: Arc<ManualClock>) -> Self {
        Self { clock, state: Mutex::default(), ended: Condvar::new() }
    }

    /// Runs the next job that is due and gives its name; `None` when none is.
    pub fn step(&self) -> Option<&'static str> {
        let now = self.clock.peek();
        let Named { name, job } = {
            let mut state = self.state.lock();
            let named = state.queue.pop(now)?;
            state.running.push(thread::current().id());
            named
        };
        let _running = Running(self);
        job();
        Some(name)
    }

    /// Runs jobs until none is due, those included that they submit, and gives their number. The
    /// clock stands still, so a job that submits itself after a delay runs once.
    pub fn run_until_idle(&self) -> usize {
        std::iter::from_fn(|| self.step()).count()
    }

    /// Moves the clock, runs nothing, and names the jobs that are then due, in order.
    pub fn advance(&self, duration: Duration) -> Vec<&'static str> {
        self.clock.advance(duration);
        let now = self.clock.peek();
        self.state.lock().queue.due(now)
    }

    /// How long until a delayed job is due; `None` when there is none, zero when it is overdue.
    pub fn next_timer(&self) -> Option<Duration> {
        let now = self.clock.peek();
        self.state.lock().queue.next_timer().map(|due| due.saturating_sub(now))
    }
}

/// Marks the end of a job, however it ends.
struct Running<'a>(&'a Stepped);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let me = thread::current().id();
        let mut state = self.0.state.lock();
        if let Some(at) = state.running.iter().position(|thread| *thread == me) {
            state.running.swap_remove(at);
        }
        drop(state);
        self.0.ended.notify_all();
    }
}

impl Executor for Stepped {
    fn submit(&self, name: &'static str, job: Job) {
        let pushed = self.state.lock().queue.push(Named { name, job });
        drop(pushed);
    }

    fn submit_after(&self, delay: Duration, name: &'static str, job: Job) {
        let due = self.clock.peek().saturating_add(delay);
        let pushed = self.state.lock().queue.push_at(due, Named { name, job });
        drop(pushed);
    }

    fn help(&self) -> bool {
        self.step().is_some()
    }

    fn shutdown(&self) {
        let refused = self.state.lock().queue.close();
        drop(refused);
        let me = thread::current().id();
        let mut state = self.state.lock();
        while !state.running.is_empty() && !state.running.contains(&me) {
            self.ended.wait(&mut state);
        }
    }
}
