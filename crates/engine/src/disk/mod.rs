//! The seam between the engine and the disk.
//!
//! Owns every system call on files. Invariants:
//!
//! 1. Maps are read-only; all writing goes through [`DiskFile::write_at`].
//! 2. Nothing retries a failed write or sync: the log decides what a failure means.
//! 3. A new disk stacks on another by implementing [`Disk`]: tests fail, limit, record or corrupt
//!    calls that way.

pub mod faulty;
mod map;
mod memory;
mod real;
mod sys;
#[cfg(test)]
mod tests;
mod words;

use std::ffi::OsString;
use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

pub use map::Map;
pub use memory::{CrashImage, Gaps, MemoryDisk, Operation, Replay, Unsynced};
pub use real::RealDisk;
pub(crate) use words::Words;

/// How [`Disk::open`] treats the file's existence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// The file exists; it is only read.
    Read,
    /// The file exists; it is read and written.
    ReadWrite,
    /// The file does not exist; it is created empty, then read and written.
    CreateNew,
}

/// What the page cache should do with the bytes of a call. A hint: a disk may ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// They will be used again: keep them.
    Keep,
    /// They will not be used again soon: do not let them displace others.
    Once,
}

/// A file system, or what stands in for one.
pub trait Disk: Debug + Send + Sync + 'static {
    /// Opens or creates a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames a file over another or none. Durable only after [`Disk::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file's name.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// The names in a folder, sorted. `NotFound` when there is no such folder.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;
    /// Creates a folder and its parents, durably. No error when it exists.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Takes an exclusive lock on the file, created if missing, until the returned value is
    /// dropped. `WouldBlock` when another has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>>;
}

/// Holds a lock of [`Disk::lock`] until dropped.
pub trait DiskLock: Debug + Send + Sync + 'static {}

/// An open file.
#[expect(clippy::len_without_is_empty, reason = "a file without bytes is no special case")]
pub trait DiskFile: Debug + Send + Sync + 'static {
    /// Reads at most `buf.len()` bytes; 0 at the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64, access: Access) -> io::Result<usize>;
    /// Writes the buffers one after the other in one call; may write fewer bytes than given, and
    /// says how many.
    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64, access: Access) -> io::Result<usize>;
    /// Makes the bytes, and the length needed to read them, durable.
    fn sync_data(&self) -> io::Result<()>;
    /// Starts writing dirty bytes of the range back, without waiting. A hint.
    fn start_writeback(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Reserves space for the range, growing the file if needed. Falls back to nothing where the
    /// file system cannot.
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Cuts or grows the file. Never cuts what was handed to a reader.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Space allocated on the disk, in bytes.
    fn allocated(&self) -> io::Result<u64>;
    /// The first place at or behind `offset` that may hold anything but zeros; at or behind the end
    /// when there is none. A disk that keeps no account of holes answers `offset`.
    fn next_data(&self, offset: u64) -> io::Result<u64> {
        Ok(offset)
    }
    /// Maps the first `len` bytes read-only. `len` may exceed the file: those bytes may only be
    /// touched once the file has grown.
    fn map(&self, len: u64) -> io::Result<Map>;
    /// Fills the buffer, or fails with `UnexpectedEof`.
    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64, access: Access) -> io::Result<()> {
        while !buf.is_empty() {
            match self.read_at(buf, offset, access) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    buf = &mut buf[n..];
                    offset += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}
