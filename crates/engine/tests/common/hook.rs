//! A disk that tells a test of its calls, and lets it hold up or replace a sync.

use std::ffi::OsString;
use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::disk::faulty::Call;
use engine::disk::{Access, Disk, DiskFile, DiskLock, Map, OpenMode};

/// What a test does at the calls of a [`HookDisk`].
pub(crate) trait Hook: Debug + Send + Sync + 'static {
    /// A call begins, on this file or folder. Hints and questions (writeback, lengths) are no
    /// calls.
    fn begin(&self, _call: Call, _path: &Path) {}

    /// So many bytes of a file were read.
    fn read(&self, _path: &Path, _bytes: usize) {}

    /// A file is to be synced, which `sync` does.
    fn sync(&self, _path: &Path, sync: &dyn Fn() -> io::Result<()>) -> io::Result<()> {
        sync()
    }
}

/// The disk. Passes every call on to the one below.
#[derive(Debug)]
pub(crate) struct HookDisk<H> {
    below: Arc<dyn Disk>,
    hook: Arc<H>,
}

impl<H> HookDisk<H> {
    pub(crate) fn new(below: Arc<dyn Disk>, hook: &Arc<H>) -> Self {
        Self { below, hook: Arc::clone(hook) }
    }
}

#[derive(Debug)]
struct HookFile<H> {
    below: Arc<dyn DiskFile>,
    hook: Arc<H>,
    path: PathBuf,
}

impl<H: Hook> Disk for HookDisk<H> {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        self.hook.begin(Call::Open, path);
        let below = self.below.open(path, mode)?;
        Ok(Arc::new(HookFile { below, hook: Arc::clone(&self.hook), path: path.to_owned() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.hook.begin(Call::Rename, from);
        self.below.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.hook.begin(Call::Remove, path);
        self.below.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.hook.begin(Call::List, dir);
        self.below.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.hook.begin(Call::CreateDir, dir);
        self.below.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.hook.begin(Call::SyncDir, dir);
        self.below.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        self.hook.begin(Call::Lock, path);
        self.below.lock(path)
    }
}

impl<H: Hook> DiskFile for HookFile<H> {
    fn read_at(&self, buf: &mut [u8], offset: u64, access: Access) -> io::Result<usize> {
        self.hook.begin(Call::Read, &self.path);
        let read = self.below.read_at(buf, offset, access)?;
        self.hook.read(&self.path, read);
        Ok(read)
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64, access: Access) -> io::Result<usize> {
        self.hook.begin(Call::Write, &self.path);
        self.below.write_at(bufs, offset, access)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.hook.begin(Call::SyncData, &self.path);
        self.hook.sync(&self.path, &|| self.below.sync_data())
    }

    fn start_writeback(&self, offset: u64, len: u64) -> io::Result<()> {
        self.below.start_writeback(offset, len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.hook.begin(Call::Allocate, &self.path);
        self.below.allocate(offset, len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.hook.begin(Call::SetLen, &self.path);
        self.below.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.below.len()
    }

    fn allocated(&self) -> io::Result<u64> {
        self.below.allocated()
    }

    fn next_data(&self, offset: u64) -> io::Result<u64> {
        self.below.next_data(offset)
    }

    fn map(&self, len: u64) -> io::Result<Map> {
        self.hook.begin(Call::Map, &self.path);
        self.below.map(len)
    }
}
