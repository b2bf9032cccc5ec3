//! A window second by second: how many operations ended in each, and the longest of them. A stall
//! shows as a second with few, which a percentile of the whole window hides.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// By the second of the window, the last of which is not whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Series {
    pub(crate) second_operations: Vec<u64>,
    pub(crate) second_max_ns: Vec<u64>,
}

impl Series {
    /// With room for a window, so that recording allocates only in one that lasts longer.
    pub(crate) fn with_room(window: Duration) -> Self {
        // A slow store's window may last longer; a year's is not reserved.
        let seconds = usize::try_from(window.as_secs().min(86_400)).unwrap_or_default() + 2;
        Self {
            second_operations: Vec::with_capacity(seconds),
            second_max_ns: Vec::with_capacity(seconds),
        }
    }

    /// An operation that ended so long after the window's start.
    pub(crate) fn record(&mut self, at: Duration, nanoseconds: u64) {
        let second = usize::try_from(at.as_secs()).unwrap_or(usize::MAX);
        self.extend(second + 1);
        self.second_operations[second] += 1;
        self.second_max_ns[second] = self.second_max_ns[second].max(nanoseconds);
    }

    /// Adds another client's.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.extend(other.second_operations.len());
        for (sum, operations) in self.second_operations.iter_mut().zip(&other.second_operations) {
            *sum += operations;
        }
        for (max, nanoseconds) in self.second_max_ns.iter_mut().zip(&other.second_max_ns) {
            *max = (*max).max(*nanoseconds);
        }
    }

    fn extend(&mut self, seconds: usize) {
        if self.second_operations.len() < seconds {
            self.second_operations.resize(seconds, 0);
            self.second_max_ns.resize(seconds, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_added_second_by_second() {
        let mut first = Series::with_room(Duration::from_secs(1));
        [100, 900, 3_500].into_iter().for_each(|ms| first.record(Duration::from_millis(ms), ms));
        let mut second = Series::default();
        second.record(Duration::from_millis(999), 7);
        second.record(Duration::from_millis(4_000), 9);
        first.merge(&second);
        assert_eq!(first.second_operations, [3, 0, 0, 1, 1]);
        assert_eq!(first.second_max_ns, [900, 0, 0, 3_500, 9]);
    }
}
