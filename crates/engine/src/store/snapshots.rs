//! Which sequences are being looked at.

use std::collections::BTreeMap;

use crate::format::Sequence;
use crate::sync::Mutex;

/// The live snapshots.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    live: Mutex<BTreeMap<Sequence, usize>>,
}

impl Snapshots {
    /// Registers a snapshot at what `visible` answers under the lock: a seal lists either the
    /// snapshot, or runs before it was taken and so keeps what it sees as the newest.
    pub(crate) fn register(&self, visible: impl FnOnce() -> Sequence) -> Sequence {
        let mut live = self.live.lock();
        let at = visible();
        *live.entry(at).or_insert(0) += 1;
        at
    }

    pub(crate) fn release(&self, at: Sequence) {
        let mut live = self.live.lock();
        if let Some(count) = live.get_mut(&at) {
            *count -= 1;
            if *count == 0 {
                live.remove(&at);
            }
        }
    }

    /// The sequences of all live snapshots, rising.
    pub(crate) fn list(&self) -> Vec<Sequence> {
        self.live.lock().keys().copied().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.live.lock().values().sum()
    }
}
