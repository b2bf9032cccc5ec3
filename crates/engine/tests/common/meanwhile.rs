//! A disk at one call of which others go on: what they do while a job is at work.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use engine::disk::Disk;
use engine::disk::faulty::Call;

use super::hook::{Hook, HookDisk};

/// Does something once, when the call is next made on a segment's file.
pub(crate) struct Meanwhile {
    call: Call,
    work: Mutex<Option<Work>>,
}

pub(crate) type Work = Box<dyn FnOnce() + Send>;

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meanwhile").field("call", &self.call).finish_non_exhaustive()
    }
}

impl Meanwhile {
    /// Nothing yet. The call must be one at which the job holds no lock that the work needs.
    pub(crate) fn at(call: Call) -> Arc<Self> {
        Arc::new(Self { call, work: Mutex::default() })
    }

    /// The disk below, with its calls watched.
    pub(crate) fn disk(self: &Arc<Self>, below: Arc<dyn Disk>) -> Arc<dyn Disk> {
        Arc::new(HookDisk::new(below, self))
    }

    /// Does this at the next call.
    pub(crate) fn set(&self, work: Work) {
        *self.work.lock().unwrap() = Some(work);
    }

    /// What the call did not come for.
    pub(crate) fn take(&self) -> Option<Work> {
        self.work.lock().unwrap().take()
    }
}

impl Hook for Meanwhile {
    fn begin(&self, call: Call, path: &Path) {
        if call == self.call
            && path.extension().is_some_and(|name| name == "seg")
            && let Some(work) = self.take()
        {
            work();
        }
    }
}
