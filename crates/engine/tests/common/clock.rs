//! A clock that counts how often it is asked.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::clock::{Clock, ManualClock};

/// A manual clock, each reading of which moves it by a microsecond and is counted.
#[derive(Debug, Default)]
pub(crate) struct WatchedClock {
    pub(crate) manual: ManualClock,
    readings: AtomicU64,
    slept_ns: AtomicU64,
}

impl WatchedClock {
    pub(crate) fn readings(&self) -> u64 {
        self.readings.load(Ordering::SeqCst)
    }

    pub(crate) fn slept(&self) -> Duration {
        Duration::from_nanos(self.slept_ns.load(Ordering::SeqCst))
    }
}

impl Clock for WatchedClock {
    fn now(&self) -> Duration {
        self.readings.fetch_add(1, Ordering::SeqCst);
        self.manual.now()
    }

    fn sleep(&self, duration: Duration) {
        self.slept_ns.fetch_add(u64::try_from(duration.as_nanos()).unwrap(), Ordering::SeqCst);
        self.manual.sleep(duration);
    }
}
