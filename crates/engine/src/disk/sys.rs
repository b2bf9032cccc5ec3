//! The Linux calls that the standard library does not offer, each as a safe function.
//!
//! Invariants:
//!
//! 1. A call that a signal interrupts before it did anything is repeated; no other failure is.
//! 2. A hint or a reservation that the file system does not know succeeds without effect.
#![expect(unsafe_code, reason = "these system calls have no safe binding in our dependencies")]

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("Sediment needs 64-bit Linux; other systems are not supported yet");

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, FromRawFd};

/// Whether a call keeps its pages in the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cache {
    /// As usual.
    Keep,
    /// `RWF_DONTCACHE`: pages that the call brings in leave once they are clean.
    Drop,
}

impl Cache {
    fn flags(self) -> libc::c_int {
        match self {
            Self::Keep => 0,
            Self::Drop => libc::RWF_DONTCACHE,
        }
    }
}

/// The most buffers that one call takes (`IOV_MAX`); a longer list is written in part.
const BUFFERS_MAX: usize = 1024;

/// Writes the buffers one after the other; may write fewer bytes, and says how many.
pub(super) fn write_at(
    file: &File,
    bufs: &[IoSlice<'_>],
    offset: u64,
    cache: Cache,
) -> io::Result<usize> {
    let offset = file_offset(offset)?;
    let bufs = &bufs[..bufs.len().min(BUFFERS_MAX)];
    let count = buffer_count(bufs.len());
    let fd = file.as_raw_fd();
    let written = retry(|| match (bufs, cache) {
        // SAFETY: the descriptor is open as long as `file` is borrowed, and `one` is readable for
        // its whole length while borrowed.
        ([one], Cache::Keep) => unsafe { libc::pwrite(fd, one.as_ptr().cast(), one.len(), offset) },
        // SAFETY: as above; `IoSlice` has the layout of `iovec` on Unix.
        _ => unsafe { libc::pwritev2(fd, bufs.as_ptr().cast(), count, offset, cache.flags()) },
    })?;
    Ok(written.cast_unsigned())
}

/// Reads at most `buf.len()` bytes; 0 at the end of the file.
pub(super) fn read_at(file: &File, buf: &mut [u8], offset: u64, cache: Cache) -> io::Result<usize> {
    let offset = file_offset(offset)?;
    let target = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    let fd = file.as_raw_fd();
    let read = retry(|| match cache {
        // SAFETY: the descriptor is open as long as `file` is borrowed, and `target` names exactly
        // `buf`, which is borrowed mutably until the call returns.
        Cache::Keep => unsafe { libc::pread(fd, target.iov_base, target.iov_len, offset) },
        // SAFETY: as above.
        Cache::Drop => unsafe { libc::preadv2(fd, &raw const target, 1, offset, cache.flags()) },
    })?;
    Ok(read.cast_unsigned())
}

/// Starts writing the dirty pages of a range back.
pub(super) fn start_writeback(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let (offset, len) = (file_offset(offset)?, file_offset(len)?);
    let flags = libc::SYNC_FILE_RANGE_WRITE;
    // SAFETY: the descriptor is open as long as `file` is borrowed; nothing else is passed by
    // address.
    let done = retry(|| unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, flags) });
    unless_unsupported(done)
}

/// Reserves space for a range, growing the file if needed.
pub(super) fn allocate(file: &File, offset: u64, len: u64) -> io::Result<()> {
    if len == 0 {
        return Ok(());
    }
    let (offset, len) = (file_offset(offset)?, file_offset(len)?);
    // SAFETY: the descriptor is open as long as `file` is borrowed; nothing else is passed by
    // address.
    let done = retry(|| unsafe { libc::fallocate(file.as_raw_fd(), 0, offset, len) });
    unless_unsupported(done)
}

/// The first place at or behind `offset` that is not in a hole: `len`, the file's length, when there
/// is none. `offset` itself where holes are not known.
pub(super) fn next_data(file: &File, offset: u64, len: u64) -> io::Result<u64> {
    let from = file_offset(offset)?;
    // SAFETY: the descriptor is open as long as `file` is borrowed; nothing is passed by address.
    // The file's position, which the call moves, is used by nobody.
    match retry(|| unsafe { libc::lseek(file.as_raw_fd(), from, libc::SEEK_DATA) }) {
        Ok(found) => Ok(found.cast_unsigned()),
        Err(e) if e.raw_os_error() == Some(libc::ENXIO) => Ok(len.max(offset)),
        Err(e) if is_unsupported(&e) => Ok(offset),
        Err(e) => Err(e),
    }
}

/// Turns readahead off for this open file; later opens of it are not affected.
pub(super) fn advise_random(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as `file` is borrowed; nothing else is passed by
    // address.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) } {
        0 => Ok(()),
        code => unless_unsupported(Err(io::Error::from_raw_os_error(code))),
    }
}

/// A file that exists in memory only and has no name.
pub(super) fn memory_file() -> io::Result<File> {
    // SAFETY: the name is a string that ends in zero and outlives the call.
    let fd = retry(|| unsafe { libc::memfd_create(c"sediment".as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: the descriptor is new and valid, and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Whether an error says that the kernel or the file system does not know the call or its flags.
pub(super) fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL))
}

fn unless_unsupported(done: io::Result<libc::c_int>) -> io::Result<()> {
    match done {
        Ok(_) => Ok(()),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) => Ok(()),
        Err(e) => Err(e),
    }
}

/// Repeats an interrupted call and turns a negative result into the error it stands for.
fn retry<R: PartialOrd + Default>(mut call: impl FnMut() -> R) -> io::Result<R> {
    loop {
        let result = call();
        if result >= R::default() {
            return Ok(result);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn file_offset(offset: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn buffer_count(buffers: usize) -> libc::c_int {
    libc::c_int::try_from(buffers).unwrap_or(libc::c_int::MAX)
}
