//! A disk that holds up the syncs of files until told otherwise, fails them on demand, and counts.

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use engine::disk::Disk;
use engine::disk::faulty::Call;

use super::hook::{Hook, HookDisk};

/// The number of an input/output error.
const EIO: i32 = 5;

#[derive(Debug, Default)]
struct State {
    closed: bool,
    /// Syncs that wait at the gate.
    waiting: usize,
    /// How many syncs pass before one that fails, if one is to.
    failing_after: Option<usize>,
    writes: u64,
    syncs: u64,
}

#[derive(Debug, Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

/// The disk's gate. Clones are handles of the same one. Only segment files are held up and counted.
#[derive(Clone, Debug)]
pub(crate) struct GateDisk {
    below: Arc<dyn Disk>,
    gate: Arc<Gate>,
}

impl GateDisk {
    pub(crate) fn new(below: Arc<dyn Disk>) -> Self {
        Self { below, gate: Arc::default() }
    }

    /// The disk behind the gate.
    pub(crate) fn disk(&self) -> Arc<dyn Disk> {
        Arc::new(HookDisk::new(Arc::clone(&self.below), &self.gate))
    }

    /// From now on syncs wait.
    pub(crate) fn close(&self) {
        self.gate.state.lock().unwrap().closed = true;
    }

    /// Lets all syncs pass.
    pub(crate) fn open(&self) {
        self.gate.state.lock().unwrap().closed = false;
        self.gate.changed.notify_all();
    }

    /// Waits until a sync stands at the closed gate.
    pub(crate) fn wait_for_sync(&self) {
        let state = self.gate.state.lock().unwrap();
        drop(self.gate.changed.wait_while(state, |state| state.waiting == 0).unwrap());
    }

    /// Has one sync fail, without reaching the disk below, once `pass` others succeeded. One that
    /// waits at the gate counts.
    pub(crate) fn fail_sync_after(&self, pass: usize) {
        self.gate.state.lock().unwrap().failing_after = Some(pass);
    }

    /// Writes to segment files so far.
    pub(crate) fn writes(&self) -> u64 {
        self.gate.state.lock().unwrap().writes
    }

    /// Syncs of segment files so far, failed ones included.
    pub(crate) fn syncs(&self) -> u64 {
        self.gate.state.lock().unwrap().syncs
    }
}

impl Hook for Gate {
    fn begin(&self, call: Call, path: &Path) {
        if call == Call::Write && is_segment(path) {
            self.state.lock().unwrap().writes += 1;
        }
    }

    fn sync(&self, path: &Path, sync: &dyn Fn() -> io::Result<()>) -> io::Result<()> {
        if !is_segment(path) {
            return sync();
        }
        let mut state = self.state.lock().unwrap();
        state.syncs += 1;
        state.waiting += 1;
        self.changed.notify_all();
        state = self.changed.wait_while(state, |state| state.closed).unwrap();
        state.waiting -= 1;
        match state.failing_after {
            Some(0) => {
                state.failing_after = None;
                return Err(io::Error::from_raw_os_error(EIO));
            }
            Some(pass) => state.failing_after = Some(pass - 1),
            None => {}
        }
        drop(state);
        sync()
    }
}

fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "seg")
}
