//! Hands out the keys of inserts, and says up to which key all of them have been answered.
//!
//! 1. `last()` is the highest key below or at which every key has been acknowledged, so a read
//!    of any key up to it must find its record.
//! 2. A failed insert is not acknowledged (YCSB acknowledges it), so no later key becomes
//!    readable either: the run is invalid and says so, but its reads stay meaningful.
//! 3. No lock: an acknowledgement sets a flag in a ring, and whoever holds the one token moves
//!    the limit over the flags. Giving the token back, it looks again, so no flag is left behind.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Keys that may be unanswered at once: far above any number of clients.
const WINDOW: u64 = 1 << 16;

/// Shared by the clients of a cell.
#[derive(Debug)]
pub(crate) struct AcknowledgedCounter {
    next: AtomicU64,
    /// All keys below are acknowledged.
    limit: AtomicU64,
    token: AtomicBool,
    /// An insert failed: the limit will not move beyond its key.
    failed: AtomicBool,
    answered: Box<[AtomicBool]>,
}

impl AcknowledgedCounter {
    /// Starts with keys `0..records` acknowledged; `records` is at least 1.
    pub(crate) fn new(records: u64) -> Self {
        Self {
            next: AtomicU64::new(records),
            limit: AtomicU64::new(records),
            token: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            answered: (0..WINDOW).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// The key for the next insert.
    pub(crate) fn take(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The newest key that may be read.
    pub(crate) fn last(&self) -> u64 {
        self.limit.load(Ordering::Acquire) - 1
    }

    /// An insert failed; its key is never acknowledged.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::SeqCst);
    }

    /// The insert of `key` was answered. Waits when an older insert is still unanswered after a
    /// whole window of newer ones.
    pub(crate) fn acknowledge(&self, key: u64) {
        // Beyond the window the flag would be taken for another key's.
        while key - self.limit.load(Ordering::Acquire) >= WINDOW {
            if self.failed.load(Ordering::SeqCst) {
                return;
            }
            thread::yield_now();
        }
        self.flag(key).store(true, Ordering::SeqCst);
        while self.flag(self.limit.load(Ordering::SeqCst)).load(Ordering::SeqCst) {
            if self.token.swap(true, Ordering::SeqCst) {
                // Our flag was set before we found the token taken, so its holder, who looks
                // again after giving it back, sees the flag.
                return;
            }
            self.advance();
            self.token.store(false, Ordering::SeqCst);
        }
    }

    fn advance(&self) {
        let mut limit = self.limit.load(Ordering::SeqCst);
        while self.flag(limit).swap(false, Ordering::SeqCst) {
            limit += 1;
            self.limit.store(limit, Ordering::SeqCst);
        }
    }

    fn flag(&self, key: u64) -> &AtomicBool {
        let slot = usize::try_from(key % WINDOW).expect("the window fits the address space");
        &self.answered[slot]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_key_waits_for_every_key_before_it() {
        let counter = AcknowledgedCounter::new(10);
        assert_eq!(counter.last(), 9);
        let keys = [counter.take(), counter.take(), counter.take()];
        assert_eq!(keys, [10, 11, 12]);
        counter.acknowledge(11);
        counter.acknowledge(12);
        assert_eq!(counter.last(), 9);
        counter.acknowledge(10);
        assert_eq!(counter.last(), 12);
    }

    #[test]
    fn a_failed_insert_holds_the_last_key_for_good() {
        let counter = AcknowledgedCounter::new(1);
        let failed = counter.take();
        counter.fail();
        for _ in 0..3 * WINDOW {
            counter.acknowledge(counter.take());
        }
        assert_eq!(counter.last(), failed - 1);
    }

    #[test]
    fn many_clients_leave_no_acknowledgement_behind() {
        let counter = AcknowledgedCounter::new(1);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50_000 {
                        let key = counter.take();
                        assert!(counter.last() < key);
                        counter.acknowledge(key);
                    }
                });
            }
        });
        assert_eq!(counter.last(), 8 * 50_000);
    }
}
