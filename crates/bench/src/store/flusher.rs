//! A thread that syncs a peer's answered writes now and then, in buffered cells.
//!
//! A peer whose lax mode has no flush interval takes part twice: as it is, and with a sync every
//! 250 ms, as the engine's buffered mode has it. The second is the like-for-like one.

use std::marker::PhantomData;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{Durability, FLUSH_INTERVAL, Scope};
use crate::error::{Context, Failure, Result};

/// When a peer syncs what it answered in buffered cells.
pub(crate) trait Interval: Send + Sync + 'static {
    const INTERVAL: Option<Duration>;
    /// Durable cells do not differ.
    const SCOPE: Scope;

    /// For `settings`.
    fn describe(durability: Durability) -> serde_json::Value {
        match (durability, Self::INTERVAL) {
            (Durability::Durable, _) => "at each commit".into(),
            (Durability::Buffered, None) => "none".into(),
            (Durability::Buffered, Some(interval)) => {
                format!("every {} ms", interval.as_millis()).into()
            }
        }
    }
}

/// The peer as it is.
pub(crate) struct Never;

impl Interval for Never {
    const INTERVAL: Option<Duration> = None;
    const SCOPE: Scope = Scope::Everything;
}

/// With a background sync.
pub(crate) struct Every250Ms;

impl Interval for Every250Ms {
    const INTERVAL: Option<Duration> = Some(FLUSH_INTERVAL);
    const SCOPE: Scope = Scope::Buffered;
}

/// The thread, where the cell has one.
pub(crate) struct Flusher<I> {
    /// The thread ends when the sender goes.
    thread: Option<(Sender<()>, JoinHandle<Result<()>>)>,
    interval: PhantomData<I>,
}

impl<I: Interval> Flusher<I> {
    /// `flush` must make durable what was answered before it was called.
    pub(crate) fn start(
        durability: Durability,
        flush: impl Fn() -> Result<()> + Send + 'static,
    ) -> Self {
        let interval = I::INTERVAL.filter(|_| durability == Durability::Buffered);
        let thread = interval.map(|interval| {
            let (running, ended) = channel::<()>();
            let thread = thread::spawn(move || {
                while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                    flush()?;
                }
                Ok(())
            });
            (running, thread)
        });
        Self { thread, interval: PhantomData }
    }

    /// Waits for the thread, and gives its failure: writes after it were not bounded any more.
    pub(crate) fn stop(self) -> Result<()> {
        let Some((running, thread)) = self.thread else { return Ok(()) };
        drop(running);
        let ended = thread.join().map_err(|_| Failure::new("the flushing thread panicked"))?;
        ended.context(|| "a background flush failed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct EveryMillisecond;

    impl Interval for EveryMillisecond {
        const INTERVAL: Option<Duration> = Some(Duration::from_millis(1));
        const SCOPE: Scope = Scope::Buffered;
    }

    #[test]
    fn it_flushes_again_and_again_until_it_is_stopped() {
        let (flushed, flushes) = channel();
        let flush = move || flushed.send(()).map_err(Failure::new);
        let flusher = Flusher::<EveryMillisecond>::start(Durability::Buffered, flush);
        for _ in 0..3 {
            flushes.recv().unwrap();
        }
        flusher.stop().unwrap();
        while flushes.try_recv().is_ok() {}
        assert!(flushes.recv().is_err(), "the thread and its sender are gone");
    }

    #[test]
    fn a_failed_flush_is_the_cells_failure() {
        let (failing, failed) = channel::<()>();
        let flush = move || {
            let _ = failing.send(());
            Err(Failure::new("the disk is gone"))
        };
        let flusher = Flusher::<EveryMillisecond>::start(Durability::Buffered, flush);
        failed.recv().unwrap();
        let text = flusher.stop().unwrap_err().to_string();
        assert_eq!(text, "a background flush failed: the disk is gone");
    }

    #[test]
    fn durable_cells_and_plain_peers_have_no_thread() {
        let never = || panic!("a flush");
        assert!(Flusher::<Every250Ms>::start(Durability::Durable, never).thread.is_none());
        assert!(Flusher::<Never>::start(Durability::Buffered, never).thread.is_none());
    }
}
