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

    /// A call that changes something was made.
    fn end(&self, _call: Call, _path: &Path) {}

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
        let done = self.below.rename(from, to);
        self.hook.end(Call::Rename, from);
        done
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.hook.begin(Call::Remove, path);
        let done = self.below.remove(path);
        self.hook.end(Call::Remove, path);
        done
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
        let done = self.below.sync_dir(dir);
        self.hook.end(Call::SyncDir, dir);
        done
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
        let done = self.below.write_at(bufs, offset, access);
        self.hook.end(Call::Write, &self.path);
        done
    }

    fn sync_data(&self) -> io::Result<()> {
        self.hook.begin(Call::SyncData, &self.path);
        let done = self.hook.sync(&self.path, &|| self.below.sync_data());
        self.hook.end(Call::SyncData, &self.path);
        done
    }

    fn start_writeback(&self, offset: u64, len: u64) -> io::Result<()> {
        self.below.start_writeback(offset, len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.hook.begin(Call::Allocate, &self.path);
        let done = self.below.allocate(offset, len);
        self.hook.end(Call::Allocate, &self.path);
        done
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.hook.begin(Call::SetLen, &self.path);
        let done = self.below.set_len(len);
        self.hook.end(Call::SetLen, &self.path);
        done
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
