//! The disk of the operating system.
//!
//! Owns the paths' and files' system calls. Invariants:
//!
//! 1. No failed write or sync is repeated; only a call that a signal interrupted before it did
//!    anything, and a write that was refused for a hint the file system does not know.
//! 2. Readahead is off for every file: each read says what it needs, and compaction reads in pieces
//!    large enough to need none.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, IoSlice};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::sys::{self, Cache};
use super::{Access, Disk, DiskFile, DiskLock, Map, OpenMode};
use crate::sync::{Arc, AtomicBool, Ordering};

/// Bytes in the unit of `st_blocks`, whatever the file system's block.
const STAT_BLOCK_BYTES: u64 = 512;

/// The files of the operating system.
#[derive(Clone, Debug)]
pub struct RealDisk {
    uncached: Arc<Uncached>,
}

/// Whether `RWF_DONTCACHE` works here (Linux 6.14 on ext4, XFS and btrfs): assumed until refused.
#[derive(Debug)]
struct Uncached {
    works: AtomicBool,
}

impl Uncached {
    /// Runs a call with the cache hint that fits, once more without it where it is refused.
    fn run<T>(
        &self,
        access: Access,
        mut call: impl FnMut(Cache) -> io::Result<T>,
    ) -> io::Result<T> {
        // The flag guards no other data, and a late reader only pays for one more refusal.
        if access == Access::Keep || !self.works.load(Ordering::Relaxed) {
            return call(Cache::Keep);
        }
        match call(Cache::Drop) {
            Err(e) if sys::is_unsupported(&e) => {
                // EINVAL may be about the arguments: only the success of the plain call blames the
                // hint.
                let done = call(Cache::Keep)?;
                self.works.store(false, Ordering::Relaxed);
                Ok(done)
            }
            done => done,
        }
    }
}

impl Default for RealDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl RealDisk {
    /// The disk. Costs nothing; what the file system can do is found out at first use.
    pub fn new() -> Self {
        Self { uncached: Arc::new(Uncached { works: AtomicBool::new(true) }) }
    }
}

impl Disk for RealDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::ReadWrite => {
                options.write(true);
            }
            OpenMode::CreateNew => {
                options.write(true).create_new(true);
            }
        }
        let file = options.open(path)?;
        sys::advise_random(&file)?;
        Ok(Arc::new(RealFile { file, uncached: Arc::clone(&self.uncached) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let mut names = fs::read_dir(dir)?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        if dir.as_os_str().is_empty() {
            return Ok(());
        }
        match fs::create_dir(dir) {
            Ok(()) => self.sync_dir(parent(dir)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {
                // Whoever made it may have been killed before this sync. A parent that we may not
                // read is not ours, and then neither is the folder's name.
                match self.sync_dir(parent(dir)) {
                    Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
                    done => done,
                }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound && parent(dir) != dir => {
                self.create_dir_all(parent(dir))?;
                match fs::create_dir(dir) {
                    // Another opener made it meanwhile, or it is `..` of the parent just made.
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
                    done => done?,
                }
                self.sync_dir(parent(dir))
            }
            Err(e) => Err(e),
        }
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(RealLock { file })),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }
}

/// The folder that holds a path's name.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) => Path::new("."),
        None => path,
    }
}

/// The operating system drops the lock with the descriptor, also when the process is killed.
#[derive(Debug)]
struct RealLock {
    file: File,
}

impl DiskLock for RealLock {}

impl Drop for RealLock {
    /// A process that another thread is starting has the descriptor too until it executes its
    /// program, so that closing ours would not free the lock.
    fn drop(&mut self) {
        // A failure leaves what the descriptor's closing does.
        drop(self.file.unlock());
    }
}

#[derive(Debug)]
struct RealFile {
    file: File,
    uncached: Arc<Uncached>,
}

impl DiskFile for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64, access: Access) -> io::Result<usize> {
        self.uncached.run(access, |cache| sys::read_at(&self.file, buf, offset, cache))
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64, access: Access) -> io::Result<usize> {
        self.uncached.run(access, |cache| sys::write_at(&self.file, bufs, offset, cache))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn start_writeback(&self, offset: u64, len: u64) -> io::Result<()> {
        sys::start_writeback(&self.file, offset, len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        sys::allocate(&self.file, offset, len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn allocated(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.blocks() * STAT_BLOCK_BYTES)
    }

    fn next_data(&self, offset: u64) -> io::Result<u64> {
        sys::next_data(&self.file, offset, self.len()?)
    }

    fn map(&self, len: u64) -> io::Result<Map> {
        Map::new(&self.file, len)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn error(errno: i32) -> io::Error {
        io::Error::from_raw_os_error(errno)
    }

    fn uncached() -> Uncached {
        Uncached { works: AtomicBool::new(true) }
    }

    #[test]
    fn a_refused_hint_is_given_up_after_the_plain_call_succeeds() {
        for errno in [libc::EOPNOTSUPP, libc::EINVAL, libc::ENOSYS] {
            let uncached = uncached();
            let mut calls = Vec::new();
            let mut call = |cache| {
                calls.push(cache);
                if cache == Cache::Drop { Err(error(errno)) } else { Ok(7) }
            };
            assert_eq!(uncached.run(Access::Once, &mut call).unwrap(), 7);
            assert_eq!(uncached.run(Access::Once, &mut call).unwrap(), 7);
            assert_eq!(calls, [Cache::Drop, Cache::Keep, Cache::Keep]);
        }
    }

    #[test]
    fn a_bad_argument_does_not_turn_the_hint_off() {
        let uncached = uncached();
        let refused = uncached.run(Access::Once, |_| Err::<(), _>(error(libc::EINVAL)));
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(uncached.run(Access::Once, Ok).unwrap(), Cache::Drop);
        assert_eq!(uncached.run(Access::Keep, Ok).unwrap(), Cache::Keep);
    }

    #[test]
    fn a_call_that_fails_is_not_repeated() {
        for errno in [libc::EIO, libc::ENOSPC, libc::EDQUOT] {
            let mut calls = 0;
            let failed = uncached().run(Access::Once, |_| {
                calls += 1;
                Err::<(), _>(error(errno))
            });
            assert_eq!((failed.unwrap_err().raw_os_error(), calls), (Some(errno), 1));
        }
    }

    #[test]
    fn folders_are_created_from_relative_paths_too() {
        let root = tempfile::tempdir().unwrap();
        let up = std::env::current_dir().unwrap();
        let up: PathBuf = up.components().skip(1).map(|_| "..").collect();
        let relative = up.join(root.path().strip_prefix("/").unwrap());
        RealDisk::new().create_dir_all(&relative.join("a/b")).unwrap();
        RealDisk::new().create_dir_all(Path::new("")).unwrap();
        RealDisk::new().create_dir_all(Path::new(".")).unwrap();
        assert!(root.path().join("a/b").is_dir());
        assert_eq!(parent(Path::new("a")), Path::new("."));
        assert_eq!(parent(Path::new("a/b")), Path::new("a"));
        assert_eq!(parent(Path::new("/")), Path::new("/"));
    }

    #[test]
    fn the_lock_of_a_dropped_handle_leaves_the_file_and_its_content() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("LOCK");
        fs::write(&path, "content").unwrap();
        drop(RealDisk::new().lock(&path).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"content");
    }
}
