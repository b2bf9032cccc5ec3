//! A disk that fails on purpose, for tests.
//!
//! It stacks on any [`Disk`] and passes calls on, except where its plan says otherwise. Invariants:
//!
//! 1. Calls are counted in the order in which they arrive, so a single-threaded run can be repeated
//!    with the fault at each call in turn: run once without faults, read the counter, then sweep.
//! 2. The plan's lock is never held during a call of the disk below.

mod file;
mod plan;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io;
use std::path::Path;

use super::{Disk, DiskFile, DiskLock, OpenMode};
use crate::sync::{Arc, Mutex};
use file::FaultyFile;
use plan::Plan;
pub use plan::{Call, Fault, Outcome, Repeat, Syncs};

/// Fails, limits or fakes calls of the disk below. Clones are handles of the same plan.
#[derive(Clone, Debug)]
pub struct FaultyDisk {
    below: Arc<dyn Disk>,
    plan: Arc<Mutex<Plan>>,
}

impl FaultyDisk {
    /// A disk that passes every call on, until told otherwise.
    pub fn new(below: Arc<dyn Disk>) -> Self {
        Self { below, plan: Arc::default() }
    }

    /// Adds a fault. Of several that hit the same call, the one added first decides.
    pub fn inject(&self, fault: Fault) {
        self.plan.lock().inject(fault);
    }

    /// Fails one call with an error number of the operating system (`libc::EIO`): the one that
    /// comes after `skip` others of these kinds. The disk below does not see it.
    pub fn fail_once(&self, calls: &[Call], skip: u64, errno: i32) {
        let (calls, outcome) = (calls.to_vec(), Outcome::Error(errno));
        self.inject(Fault { calls, skip, outcome, repeat: Repeat::Once });
    }

    /// Fails every call after `skip` ones of these kinds, until [`FaultyDisk::heal`].
    pub fn fail_from(&self, calls: &[Call], skip: u64, errno: i32) {
        let (calls, outcome) = (calls.to_vec(), Outcome::Error(errno));
        self.inject(Fault { calls, skip, outcome, repeat: Repeat::Onward });
    }

    /// Removes all faults, the limit of space and the lying; keeps the counters.
    pub fn heal(&self) {
        self.plan.lock().heal();
    }

    /// The bytes that can still be written where there were none: a write past them is cut short,
    /// and one that finds none left fails with `ENOSPC`. `None` is no limit.
    ///
    /// Space is taken by writing or allocating past what the file was ever written or allocated to,
    /// and given back by cutting a file and by removing or replacing its name (at once, even while
    /// it is open). Growing a file by its length takes none.
    pub fn set_free_space(&self, bytes: Option<u64>) {
        self.plan.lock().set_free_space(bytes);
    }

    /// What is left of [`FaultyDisk::set_free_space`].
    pub fn free_space(&self) -> Option<u64> {
        self.plan.lock().free_space()
    }

    /// Whether syncs of files and folders reach the disk below.
    pub fn set_syncs(&self, syncs: Syncs) {
        self.plan.lock().set_syncs(syncs);
    }

    /// How many calls of this kind were made, failed ones included.
    pub fn calls(&self, call: Call) -> u64 {
        self.plan.lock().count(call)
    }

    /// How many calls of these kinds were made, failed ones included: the range of a sweep.
    pub fn calls_of(&self, calls: &[Call]) -> u64 {
        let plan = self.plan.lock();
        calls.iter().map(|call| plan.count(*call)).sum()
    }

    fn run<T>(&self, call: Call, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        plan::run(&self.plan, call, act)
    }

    /// The space that a name holds, for files that were not opened through this disk too.
    fn held(&self, path: &Path) -> u64 {
        if self.plan.lock().free_space().is_none() {
            return 0;
        }
        self.below.open(path, OpenMode::Read).and_then(|file| file.len()).unwrap_or(0)
    }
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        self.run(Call::Open, || {
            let file = self.below.open(path, mode)?;
            let end = self.plan.lock().end_of(path, file.len()?);
            Ok(Arc::new(FaultyFile::new(file, Arc::clone(&self.plan), end)) as Arc<dyn DiskFile>)
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.run(Call::Rename, || {
            let replaced = self.held(to);
            self.below.rename(from, to)?;
            self.plan.lock().renamed(from, to, replaced);
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.run(Call::Remove, || {
            let held = self.held(path);
            self.below.remove(path)?;
            self.plan.lock().removed(path, held);
            Ok(())
        })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.run(Call::List, || self.below.list(dir))
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.run(Call::CreateDir, || self.below.create_dir_all(dir))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.run(Call::SyncDir, || {
            let syncs = self.plan.lock().syncs();
            match syncs {
                Syncs::Honest => self.below.sync_dir(dir),
                Syncs::Lying => Ok(()),
            }
        })
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        self.run(Call::Lock, || self.below.lock(path))
    }
}
