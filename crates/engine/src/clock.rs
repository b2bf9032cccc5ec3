//! Time, as the engine sees it: monotonic, and replaceable by one that a test moves by hand.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use crate::sync::{AtomicU64, Ordering};

/// A monotonic clock.
pub trait Clock: Debug + Send + Sync + 'static {
    /// The time since an origin of the clock's own choice. Never goes back.
    fn now(&self) -> Duration;

    /// Blocks the calling thread for about `duration`.
    fn sleep(&self, duration: Duration);
}

/// The operating system's monotonic clock.
#[derive(Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// A clock that stands still until a test moves it.
///
/// Each reading moves it by one microsecond, so that a loop that waits for a deadline ends.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ns: AtomicU64,
}

impl ManualClock {
    /// Moves the clock forward; it stops at its end, after 584 years.
    pub fn advance(&self, duration: Duration) {
        self.move_on(duration);
    }

    /// The time, without moving the clock.
    pub fn peek(&self) -> Duration {
        Duration::from_nanos(self.now_ns.load(Ordering::Relaxed))
    }

    /// Moves the clock and gives the time before.
    fn move_on(&self, duration: Duration) -> Duration {
        let step = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let moved = |now: u64| Some(now.saturating_add(step));
        let before = self.now_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, moved);
        Duration::from_nanos(before.unwrap_or_else(|now| now))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        self.move_on(Duration::from_micros(1))
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_never_goes_back_and_sleeps_at_least_as_long_as_asked() {
        let clock = SystemClock::default();
        let before = clock.now();
        clock.sleep(Duration::from_millis(2));
        assert!(clock.now() >= before + Duration::from_millis(2));
    }

    #[test]
    fn a_manual_clock_moves_when_read_slept_on_or_told_to_but_not_when_peeked_at() {
        let clock = ManualClock::default();
        assert_eq!(clock.now(), Duration::ZERO);
        assert_eq!(clock.peek(), Duration::from_micros(1));
        assert_eq!(clock.peek(), Duration::from_micros(1));
        clock.sleep(Duration::from_secs(2));
        clock.advance(Duration::from_secs(3));
        assert_eq!(clock.peek(), Duration::from_secs(5) + Duration::from_micros(1));
    }

    #[test]
    fn a_manual_clock_stops_at_its_end_instead_of_going_back() {
        let clock = ManualClock::default();
        clock.advance(Duration::MAX);
        let end = clock.now();
        clock.advance(Duration::from_secs(1));
        assert_eq!(clock.now(), end);
    }
}
