//! Which sequences are being looked at, and which can be.

use std::collections::BTreeMap;

use crate::format::Sequence;
use crate::sync::Mutex;

/// The live snapshots, and the horizon.
///
/// Invariants:
///
/// 1. The horizon only rises. No live snapshot is below it, and none begins there.
/// 2. Whoever drops versions takes the horizon from here first, and makes it durable no later than
///    what lacks them: whatever can be read above it is still there, also after a crash.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    live: BTreeMap<Sequence, usize>,
    horizon: Sequence,
}

impl Snapshots {
    /// Of a database whose durable horizon this is.
    pub(crate) fn new(horizon: Sequence) -> Self {
        Self { state: Mutex::new(State { live: BTreeMap::new(), horizon }) }
    }

    /// Registers a snapshot at what `visible` answers under the lock: whoever drops versions knows
    /// the snapshot, or took a horizon that is not above it.
    pub(crate) fn register(&self, visible: impl FnOnce() -> Sequence) -> Sequence {
        let mut state = self.state.lock();
        let at = visible();
        *state.live.entry(at).or_insert(0) += 1;
        at
    }

    /// Registers a snapshot of the past; the horizon when it is below that.
    pub(crate) fn register_at(&self, at: Sequence) -> Result<(), Sequence> {
        let mut state = self.state.lock();
        if at < state.horizon {
            return Err(state.horizon);
        }
        *state.live.entry(at).or_insert(0) += 1;
        Ok(())
    }

    pub(crate) fn release(&self, at: Sequence) {
        let mut state = self.state.lock();
        if let Some(count) = state.live.get_mut(&at) {
            *count -= 1;
            if *count == 0 {
                state.live.remove(&at);
            }
        }
    }

    /// Moves the horizon to the oldest live snapshot, else to what `visible` answers, less so many
    /// sequences of history. From then on nothing below it can be read.
    pub(crate) fn advance(&self, visible: impl FnOnce() -> Sequence, history: u64) -> Sequence {
        let mut state = self.state.lock();
        state.horizon = state.next_horizon(visible, history);
        state.horizon
    }

    /// Where [`Snapshots::advance`] would move the horizon: for those who only look.
    pub(crate) fn next_horizon(
        &self,
        visible: impl FnOnce() -> Sequence,
        history: u64,
    ) -> Sequence {
        self.state.lock().next_horizon(visible, history)
    }

    pub(crate) fn horizon(&self) -> Sequence {
        self.state.lock().horizon
    }

    /// Live snapshots.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().live.values().sum()
    }
}

impl State {
    fn next_horizon(&self, visible: impl FnOnce() -> Sequence, history: u64) -> Sequence {
        let oldest = self.live.keys().next().copied().unwrap_or_else(visible);
        self.horizon.max(Sequence(oldest.0.saturating_sub(history)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u64) -> Sequence {
        Sequence(n)
    }

    #[test]
    fn the_horizon_follows_the_oldest_snapshot_and_never_goes_back() {
        let snapshots = Snapshots::new(at(3));
        assert_eq!(snapshots.advance(|| at(2), 0), at(3), "what was durable stays");
        assert_eq!(snapshots.register(|| at(10)), at(10));
        assert_eq!(snapshots.register(|| at(20)), at(20));
        assert_eq!(snapshots.advance(|| at(30), 0), at(10));
        assert_eq!(snapshots.advance(|| at(30), 4), at(10), "not back");
        snapshots.release(at(10));
        assert_eq!(snapshots.advance(|| at(30), 0), at(20));
        snapshots.release(at(20));
        assert_eq!(snapshots.advance(|| at(30), 4), at(26));
        assert_eq!(snapshots.advance(|| at(30), 0), at(30));
        assert_eq!(snapshots.len(), 0);
    }

    #[test]
    fn to_look_where_the_horizon_would_be_moves_nothing() {
        let snapshots = Snapshots::new(at(3));
        assert_eq!(snapshots.next_horizon(|| at(30), 10), at(20));
        assert_eq!(snapshots.horizon(), at(3));
        assert_eq!(snapshots.register_at(at(3)), Ok(()));
    }

    #[test]
    fn a_snapshot_of_the_past_begins_at_or_above_the_horizon() {
        let snapshots = Snapshots::new(at(0));
        snapshots.advance(|| at(30), 10);
        assert_eq!(snapshots.register_at(at(19)), Err(at(20)));
        assert_eq!(snapshots.register_at(at(20)), Ok(()));
        assert_eq!(snapshots.advance(|| at(40), 0), at(20), "it holds the horizon");
    }
}
