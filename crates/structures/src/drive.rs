//! Threads that start together, and a writer beside them.

use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::memtable::Candidate;

/// Runs `work` on each of `threads` threads, from a common start; the time from the first one's
/// start to the last one's end. With more threads than processors that includes their taking turns.
pub fn together(threads: usize, work: impl Fn(usize) + Sync) -> Duration {
    let (barrier, work) = (Barrier::new(threads), &work);
    let spans: Vec<(Instant, Instant)> = thread::scope(|scope| {
        let start = |thread| {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                let start = Instant::now();
                work(thread);
                (start, Instant::now())
            })
        };
        let running: Vec<_> = (0..threads).map(start).collect();
        running.into_iter().map(|thread| thread.join().expect("lookups do not panic")).collect()
    });
    let first = spans.iter().map(|(start, _)| *start).min();
    let last = spans.iter().map(|(_, end)| *end).max();
    first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first)
}

/// Whether a writer beside the readers could go on to their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// It inserted until the readers were done.
    WroteOn,
    /// It had no more records: the last samples were measured without it.
    RanOut,
}

/// Runs `readers` while another thread inserts `records`: 50 of them, then a pause of a
/// millisecond, so somewhat less than 50 000 a second.
pub fn beside_writer<C: Candidate>(
    candidate: &C,
    mut records: Range<usize>,
    readers: impl FnOnce(),
) -> Writer {
    const BURST: usize = 50;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for record in records.by_ref().take(BURST) {
                    candidate.insert(record);
                }
                thread::sleep(Duration::from_millis(1));
            }
            if records.is_empty() { Writer::RanOut } else { Writer::WroteOn }
        });
        readers();
        stop.store(true, Ordering::Relaxed);
        writer.join().expect("a candidate takes all records that it was made for")
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::ids::{Probes, encoded};
    use crate::memtable::Engine;
    use crate::records::Records;

    #[test]
    fn every_thread_works_once() {
        let seen = [const { AtomicUsize::new(0) }; 3];
        together(3, |thread| {
            seen[thread].fetch_add(1, Ordering::Relaxed);
        });
        assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn the_writer_says_when_it_ran_out() {
        let records = Records::leak(100);
        let engine = Engine::new(records, 100);
        let wait_for = |record: usize| {
            let probes = Probes::present(100, 100, 1);
            let id = probes.ids().iter().find(|id| **id == encoded(record as u64)).unwrap();
            while engine.get(id).is_none() {
                thread::yield_now();
            }
        };
        assert_eq!(beside_writer(&engine, 0..100, || wait_for(99)), Writer::RanOut);
        // More than a second's work.
        let many = Records::leak(60_000);
        let engine = Engine::new(many, 60_000);
        assert_eq!(beside_writer(&engine, 0..60_000, || ()), Writer::WroteOn);
    }
}
