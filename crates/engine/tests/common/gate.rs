//! A disk that holds up the syncs of files until told otherwise, fails them on demand, and counts.

use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use engine::disk::{Access, Disk, DiskFile, DiskLock, Map, OpenMode};

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

/// The disk. Clones are handles of the same gate. Only segment files are held up and counted.
#[derive(Clone, Debug)]
pub(crate) struct GateDisk {
    below: Arc<dyn Disk>,
    gate: Arc<Gate>,
}

impl GateDisk {
    pub(crate) fn new(below: Arc<dyn Disk>) -> Self {
        Self { below, gate: Arc::default() }
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

impl Disk for GateDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let below = self.below.open(path, mode)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("MANIFEST") {
            return Ok(below);
        }
        Ok(Arc::new(GateFile { below, gate: Arc::clone(&self.gate) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.below.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.below.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.below.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.below.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.below.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        self.below.lock(path)
    }
}

#[derive(Debug)]
struct GateFile {
    below: Arc<dyn DiskFile>,
    gate: Arc<Gate>,
}

impl DiskFile for GateFile {
    fn read_at(&self, buf: &mut [u8], offset: u64, access: Access) -> io::Result<usize> {
        self.below.read_at(buf, offset, access)
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64, access: Access) -> io::Result<usize> {
        self.gate.state.lock().unwrap().writes += 1;
        self.below.write_at(bufs, offset, access)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.gate.state.lock().unwrap();
        state.syncs += 1;
        state.waiting += 1;
        self.gate.changed.notify_all();
        state = self.gate.changed.wait_while(state, |state| state.closed).unwrap();
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
        self.below.sync_data()
    }

    fn start_writeback(&self, offset: u64, len: u64) -> io::Result<()> {
        self.below.start_writeback(offset, len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.below.allocate(offset, len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.below.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.below.len()
    }

    fn allocated(&self) -> io::Result<u64> {
        self.below.allocated()
    }

    fn map(&self, len: u64) -> io::Result<Map> {
        self.below.map(len)
    }
}
