//! Where files go when their last reader is gone.
//!
//! Dropping a document must be cheap, and giving a mapped file back is not (20 ms for 64 MiB). So
//! whoever drops the last reference only queues what is left; background work closes, unmaps and
//! unlinks it. Invariants:
//!
//! 1. A file is unlinked only after its last reader is gone. That somebody else has done so is no
//!    failure.
//! 2. Nothing is lost when the database goes first: without a reaper the remains are released where
//!    the last reference drops.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::disk::{Disk, DiskFile, Map};
use crate::error::Error;
use crate::sync::{Arc, AtomicBool, Mutex, OnceLock, Ordering, Weak};

/// What is left of a segment file after its last reader.
#[derive(Debug)]
pub(super) struct Remains {
    pub(super) map: Option<Map>,
    pub(super) file: Option<Arc<dyn DiskFile>>,
    /// The name to remove, if the file is doomed.
    pub(super) unlink: Option<(Arc<dyn Disk>, PathBuf)>,
}

impl Remains {
    /// Hands the remains to the reaper, or releases them here when there is none any more.
    pub(super) fn hand_over(self, reaper: &Weak<Reaper>) {
        match reaper.upgrade() {
            Some(reaper) => reaper.take(self),
            None => self.release_without_name(),
        }
    }

    /// Closes and unmaps, and leaves the name: without the database's lock the folder may be
    /// another database's by now. The next open removes files that no manifest names.
    fn release_without_name(self) {
        drop(self.map);
        drop(self.file);
    }

    fn release(self) -> Result<(), Error> {
        drop(self.map);
        drop(self.file);
        let Some((disk, path)) = self.unlink else { return Ok(()) };
        match disk.remove(&path) {
            // Opening removes what no manifest names, which may come first.
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done.map_err(|e| Error::io("remove", &path, e)),
        }
    }
}

type Notify = Box<dyn Fn() + Send + Sync>;

/// Queues the remains of files, and releases them when told to.
#[derive(Default)]
pub(crate) struct Reaper {
    queue: Mutex<Vec<Remains>>,
    notify: OnceLock<Notify>,
    failures: Mutex<Vec<Error>>,
    is_retired: AtomicBool,
}

impl Reaper {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Sets what to call when the queue stops being empty: it must bring about a [`Reaper::reap`],
    /// on another thread, and must not block. Only the first call counts.
    pub(crate) fn set_notify(&self, notify: Notify) {
        let first = self.notify.set(notify).is_ok();
        debug_assert!(first, "one executor serves a database");
        // What recovery left in the queue found nobody to tell.
        if !self.queue.lock().is_empty()
            && let Some(notify) = self.notify.get()
        {
            notify();
        }
    }

    fn take(&self, remains: Remains) {
        let mut queue = self.queue.lock();
        if self.is_retired.load(Ordering::Relaxed) {
            drop(queue);
            remains.release_without_name();
            return;
        }
        queue.push(remains);
        let was_empty = queue.len() == 1;
        drop(queue);
        if was_empty && let Some(notify) = self.notify.get() {
            notify();
        }
    }

    /// Closes, unmaps and unlinks what is queued. Blocks for as long as that takes; the number of
    /// files.
    pub(crate) fn reap(&self) -> usize {
        // The lock is free before the work begins: whoever drops a document may want it.
        let queued = std::mem::take(&mut *self.queue.lock());
        self.release(queued)
    }

    /// The database is about to give its lock up: releases what is queued. What comes later keeps
    /// its name.
    pub(crate) fn retire(&self) {
        let queued = {
            let mut queue = self.queue.lock();
            self.is_retired.store(true, Ordering::Relaxed);
            std::mem::take(&mut *queue)
        };
        self.release(queued);
    }

    fn release(&self, queued: Vec<Remains>) -> usize {
        let count = queued.len();
        for remains in queued {
            if let Err(e) = remains.release() {
                self.failures.lock().push(e);
            }
        }
        count
    }

    /// The failures since the last call. The files stay behind until the next open removes them.
    pub(crate) fn take_failures(&self) -> Vec<Error> {
        std::mem::take(&mut *self.failures.lock())
    }
}

impl fmt::Debug for Reaper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reaper").field("queued", &self.queue.lock().len()).finish_non_exhaustive()
    }
}
