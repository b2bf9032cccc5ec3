//! A disk in memory, for tests of the engine and of programs that use it.
//!
//! Owns the names, the content and what of both is durable. Invariants:
//!
//! 1. Files are anonymous memory files, so reading, writing and mapping are the kernel's own.
//! 2. Every change goes through the state's lock: the order of the changes is the order of the
//!    trace.
//! 3. A change is unsynced until the file's or the folder's sync; see `power_cut` for what that
//!    means.
//! 4. A file lives while a name, a handle or an unsynced change refers to it, and no longer.

mod file;
mod image;
mod names;
mod power_cut;
#[cfg(test)]
mod tests;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

pub use power_cut::{CrashImage, Gaps, Unsynced};
pub use trace::{Operation, Replay};

use super::{Disk, DiskFile, DiskLock, OpenMode, sys};
use crate::sync::{Arc, Mutex};
use file::MemoryFile;
use image::{Change, Image};
use names::{NameChange, normal};

/// What a disk writes as a whole: a torn write never mixes old and new bytes within it.
const SECTOR_BYTES: usize = 512;

/// A disk in memory. Clones are handles of the same disk.
///
/// Each file takes a descriptor while it exists. What is not synced yet, and what is durable, are
/// remembered beside the content itself, so a file takes up to twice its size.
#[derive(Clone, Default)]
pub struct MemoryDisk {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    dirs: BTreeSet<PathBuf>,
    /// The names as the running process sees them.
    names: BTreeMap<PathBuf, Arc<Node>>,
    /// The names as a power cut would leave them.
    durable_names: BTreeMap<PathBuf, Arc<Node>>,
    /// What leads from the durable names to the others, with its place in the order of changes.
    unsynced_names: Vec<(u64, NameChange)>,
    /// The numbers of the locked files.
    locked: BTreeSet<u64>,
    next_file: u64,
    next_change: u64,
    /// The calls since [`MemoryDisk::start_trace`].
    trace: Option<Vec<Operation>>,
}

/// A file, whatever its names.
struct Node {
    number: u64,
    memory: File,
    /// Locked inside the state's lock, never the other way round.
    content: Mutex<Content>,
}

struct Content {
    durable: Arc<Image>,
    unsynced: Vec<(u64, Change)>,
}

impl MemoryDisk {
    /// An empty disk, on which only the root and the current folder exist.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a new trace; an earlier one is forgotten.
    pub fn start_trace(&self) {
        self.shared.state.lock().trace = Some(Vec::new());
    }

    /// The calls since the trace was started, and none if it was not. Costs a copy of all bytes
    /// written.
    pub fn trace(&self) -> Vec<Operation> {
        self.shared.state.lock().trace.clone().unwrap_or_default()
    }

    /// How many calls [`MemoryDisk::trace`] has.
    pub fn trace_len(&self) -> usize {
        self.shared.state.lock().trace.as_ref().map_or(0, Vec::len)
    }

    fn with(state: State) -> Self {
        Self { shared: Arc::new(Shared { state: Mutex::new(state) }) }
    }
}

impl fmt::Debug for MemoryDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.shared.state.lock().names.len();
        f.debug_struct("MemoryDisk").field("files", &files).finish_non_exhaustive()
    }
}

impl State {
    fn record(&mut self, operation: impl FnOnce() -> Operation) {
        if let Some(trace) = &mut self.trace {
            trace.push(operation());
        }
    }

    fn order(&mut self) -> u64 {
        self.next_change += 1;
        self.next_change
    }

    fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        let order = self.order();
        self.unsynced_names.push((order, change));
    }

    fn find(&self, path: &Path) -> io::Result<Arc<Node>> {
        if self.is_dir(path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.names.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn is_dir(&self, path: &Path) -> bool {
        path.parent().is_none() || path.as_os_str().is_empty() || self.dirs.contains(path)
    }

    fn create(&mut self, path: PathBuf) -> io::Result<Arc<Node>> {
        if self.is_dir(&path) || self.names.contains_key(&path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.check_parent(&path)?;
        let node = Arc::new(Node::new(self.next_file, sys::memory_file()?, Image::default()));
        self.next_file += 1;
        self.record(|| Operation::Create { file: node.number, path: path.clone() });
        self.change_names(NameChange::Create { path, node: Arc::clone(&node) });
        Ok(node)
    }

    fn check_parent(&self, path: &Path) -> io::Result<()> {
        match path.parent() {
            Some(parent) if !self.is_dir(parent) => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(()),
        }
    }

    /// Every file that a power cut may leave a name for.
    fn reachable(&self) -> impl Iterator<Item = &Arc<Node>> {
        let changed = self.unsynced_names.iter().map(|(_, change)| change.node());
        self.durable_names.values().chain(changed)
    }
}

impl Disk for MemoryDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let path = normal(path);
        let mut state = self.shared.state.lock();
        let node = match mode {
            OpenMode::CreateNew => state.create(path)?,
            OpenMode::Read | OpenMode::ReadWrite => {
                let node = state.find(&path)?;
                state.record(|| Operation::Open { file: node.number, path });
                node
            }
        };
        Ok(Arc::new(MemoryFile::new(Arc::clone(&self.shared), node, mode)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (normal(from), normal(to));
        let mut state = self.shared.state.lock();
        let node = state.find(&from)?;
        state.check_parent(&to)?;
        if state.is_dir(&to) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        state.record(|| Operation::Rename { from: from.clone(), to: to.clone() });
        if from != to {
            state.change_names(NameChange::Rename { from, to, node });
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let path = normal(path);
        let mut state = self.shared.state.lock();
        let node = state.find(&path)?;
        state.record(|| Operation::Remove { path: path.clone() });
        state.change_names(NameChange::Remove { path, node });
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let dir = normal(dir);
        let state = self.shared.state.lock();
        if !state.is_dir(&dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = |path: &&PathBuf| path.parent() == Some(dir.as_path());
        let paths = state.names.keys().chain(&state.dirs).filter(inside);
        let mut names: Vec<_> = paths.filter_map(|path| path.file_name().map(Into::into)).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let dir = normal(dir);
        let mut state = self.shared.state.lock();
        let taken = |state: &State| dir.ancestors().any(|part| state.names.contains_key(part));
        if taken(&state) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        if !state.is_dir(&dir) {
            for part in dir.ancestors().filter(|part| part.file_name().is_some()) {
                state.dirs.insert(part.to_path_buf());
            }
            state.record(|| Operation::CreateDir { dir });
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = normal(dir);
        let mut state = self.shared.state.lock();
        if !state.is_dir(&dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let changes = std::mem::take(&mut state.unsynced_names);
        let (done, left) = changes.into_iter().partition(|(_, change)| change.dir() == dir);
        let done: Vec<(u64, NameChange)> = done;
        for (_, change) in &done {
            change.apply(&mut state.durable_names);
        }
        state.unsynced_names = left;
        state.record(|| Operation::SyncDir { dir });
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        let path = normal(path);
        let mut state = self.shared.state.lock();
        let node = match state.find(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => state.create(path)?,
            found => found?,
        };
        if !state.locked.insert(node.number) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(MemoryLock { shared, file: node.number }))
    }
}

/// Frees the lock when dropped.
struct MemoryLock {
    shared: Arc<Shared>,
    file: u64,
}

impl DiskLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.shared.state.lock().locked.remove(&self.file);
    }
}

impl fmt::Debug for MemoryLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLock").field("file", &self.file).finish_non_exhaustive()
    }
}
