//! Read-only maps of files: the hot path of reading.
//!
//! Owns the only slices that point into a map. Invariants:
//!
//! 1. A map is `PROT_READ` and `MAP_SHARED`: a store through it is a fault, and bytes written by
//!    [`DiskFile::write_at`](super::DiskFile::write_at) show without mapping again.
//! 2. No reference covers more than the range that was asked for: a file may be mapped past its
//!    published bytes, and what lies there is still being written.
//! 3. A range that was asked for once is never written again and never cut off the file.
#![expect(unsafe_code, reason = "a slice of mapped memory can only be made from a pointer")]

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::slice;

use memmap2::{Advice, MmapOptions, MmapRaw};

/// The first bytes of a file, mapped read-only.
///
/// Stays valid after the file is closed, renamed or removed. Dropping it unmaps: about 20 ms for
/// 64 MiB of touched pages, so not where someone waits.
pub struct Map {
    raw: MmapRaw,
}

impl Map {
    /// Maps the first `len` bytes, which may exceed the file's length for now.
    pub(super) fn new(file: &File, len: u64) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let raw = MmapOptions::new().len(len).map_raw_read_only(file)?;
        Ok(Self { raw })
    }

    /// The length of the map in bytes; more than the file's when the file has not grown into it.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether the map has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a published range, or `None` when it is not within the map. Costs two
    /// comparisons; a page that is not in memory is read by the processor's fault.
    ///
    /// The caller's side of the contract, on which the soundness of this function rests:
    ///
    /// 1. Ask only for bytes that are *published*: whoever wrote them did so before the calling
    ///    thread learnt of the range, through a lock or a release store it has acquired.
    /// 2. Published bytes are never written again, by any handle of the file, and the file is never
    ///    cut below them. The lock on the database's folder keeps other processes away.
    ///
    /// Crate-private for that reason: safe code elsewhere could break the second part. An I/O error
    /// while a page is read in arrives as `SIGBUS`, as with every mapped store.
    #[inline]
    pub(crate) fn bytes(&self, range: Range<usize>) -> Option<&[u8]> {
        if range.start > range.end || range.end > self.raw.len() {
            return None;
        }
        // SAFETY: `start <= end <= len`, so the pointer and the length stay within one mapping,
        // which lives as long as `self` and is at most `isize::MAX` bytes (memmap2 refuses more).
        // `u8` has no alignment and no invalid values. The contract above says that the range lies
        // within the file, was written before this call, and is not written while the slice lives;
        // nothing can be written through the map (invariant 1).
        Some(unsafe { slice::from_raw_parts(self.raw.as_ptr().add(range.start), range.len()) })
    }

    /// Has the processor load the first cache lines from `offset` on, without waiting. Touches
    /// nothing: a page that is not in memory stays out, and a place beyond the map is ignored.
    #[inline]
    pub(crate) fn prefetch(&self, offset: usize) {
        /// Lines that a record of up to 200 bytes takes wherever it begins; the processor goes on
        /// by itself.
        const LINES: usize = 4;
        const LINE_BYTES: usize = 64;
        if offset.saturating_add(LINES * LINE_BYTES) > self.raw.len() {
            return;
        }
        #[cfg(target_arch = "x86_64")]
        for line in 0..LINES {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: the pointer stays within the mapping, as checked above; a prefetch reads
            // nothing into the program and does not fault. SSE is part of x86-64.
            unsafe {
                let at = self.raw.as_ptr().add(offset + line * LINE_BYTES);
                _mm_prefetch::<_MM_HINT_T0>(at.cast());
            }
        }
    }

    /// Has the processor load `len` bytes (at most four cache lines of them) some way behind `offset`,
    /// without waiting: for a walk that moves on by as many.
    #[inline]
    pub(crate) fn prefetch_ahead(&self, offset: usize, len: usize) {
        const AHEAD_BYTES: usize = 640;
        const LINES_MAX: usize = 4;
        const LINE_BYTES: usize = 64;
        if offset.saturating_add(AHEAD_BYTES + LINES_MAX * LINE_BYTES) > self.raw.len() {
            return;
        }
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: the pointers stay within the mapping, as checked above; a prefetch reads
            // nothing into the program and does not fault. SSE is part of x86-64.
            unsafe {
                let at = self.raw.as_ptr().add(offset).add(AHEAD_BYTES);
                _mm_prefetch::<_MM_HINT_T0>(at.cast());
                if len > LINE_BYTES {
                    _mm_prefetch::<_MM_HINT_T0>(at.add(LINE_BYTES).cast());
                }
                if len > 2 * LINE_BYTES {
                    _mm_prefetch::<_MM_HINT_T0>(at.add(2 * LINE_BYTES).cast());
                }
                if len > 3 * LINE_BYTES {
                    _mm_prefetch::<_MM_HINT_T0>(at.add(3 * LINE_BYTES).cast());
                }
            }
        }
    }

    /// Tells the kernel that accesses jump: a fault reads one page and not its surroundings, which
    /// are 8 MiB where `read_ahead_kb` is 8192.
    pub fn advise_random(&self) -> io::Result<()> {
        if self.is_empty() { Ok(()) } else { self.raw.advise(Advice::Random) }
    }

    /// Asks the kernel to read the pages of a range in, without waiting. The part of the range that
    /// is not within the map is ignored.
    pub fn advise_willneed(&self, range: Range<usize>) -> io::Result<()> {
        let end = range.end.min(self.len());
        if range.start >= end {
            return Ok(());
        }
        self.raw.advise_range(Advice::WillNeed, range.start, end - range.start)
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map").field("len", &self.len()).finish()
    }
}

/// Versions are shared between threads, and they hold maps.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Map>();
};
