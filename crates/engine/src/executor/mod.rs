//! Background work behind a seam: threads in production, one job at a time by hand in tests.
//!
//! Owns when jobs run, never what they do. Invariants:
//!
//! 1. Jobs start in the order in which they were submitted; a delayed one queues when it is due.
//! 2. No lock is held while a job runs or is dropped: jobs submit jobs, and what they own may shut
//!    the executor down.
//! 3. After [`Executor::shutdown`] no job starts.

mod queue;
mod stepped;
#[cfg(test)]
mod tests;
mod threads;

use std::fmt::Debug;
use std::time::Duration;

pub use stepped::Stepped;
pub use threads::Threads;

/// A piece of background work. Runs to its end; must not panic (a panic is caught and reported by
/// the caller's wrapper).
pub type Job = Box<dyn FnOnce() + Send>;

/// Runs background work.
pub trait Executor: Debug + Send + Sync + 'static {
    /// Queues a job. Dropped unrun after [`Executor::shutdown`].
    fn submit(&self, name: &'static str, job: Job);
    /// Queues a job to start after a delay.
    fn submit_after(&self, delay: Duration, name: &'static str, job: Job);
    /// Called by a thread that waits for background work: runs one job that is due on the calling
    /// thread and returns true, or returns false where jobs run by themselves (threads) or none is
    /// due (the caller then waits on a condition variable).
    fn help(&self) -> bool;
    /// Starts no further job, drops the queued ones, and waits for those that run (unless called
    /// from one).
    fn shutdown(&self);
}
