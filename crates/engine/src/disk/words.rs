//! Memory that comes from the operating system by itself and goes back to it at once.
//!
//! A memtable's arrays are megabytes, written from the front and dropped whole. From the allocator
//! they would be zeroed ahead (what it recycles is not zero) and kept (glibc raises the size from
//! which it maps with each block of that size that is freed): a database with two memtables of 4 MiB
//! had 26 MiB of its own memory. A map of their own is zero, takes memory as it is written, and none
//! when dropped.
#![expect(unsafe_code, reason = "words in mapped memory can only be made from a pointer")]

use std::alloc::{Layout, handle_alloc_error};
use std::fmt;
use std::ops::Deref;
use std::slice;

use memmap2::MmapRaw;

use crate::sync::AtomicU32;

/// Words that are zero until they are written.
pub(crate) struct Words {
    memory: MmapRaw,
    len: usize,
}

impl Words {
    /// So many words. Aborts, as allocators do, when there is no memory left.
    pub(crate) fn zeroed(len: usize) -> Self {
        let layout = Layout::array::<AtomicU32>(len.max(1)).expect("fewer than 2^60 words");
        let memory = memmap2::MmapMut::map_anon(layout.size());
        let memory = memory.unwrap_or_else(|_| handle_alloc_error(layout));
        Self { memory: memory.into(), len }
    }
}

impl Words {
    /// Has the processor load the cache line of a word, without waiting. A place beyond the end is
    /// ignored.
    #[inline]
    pub(crate) fn prefetch(&self, word: usize) {
        #[cfg(target_arch = "x86_64")]
        if let Some(word) = self.get(word) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: the pointer is a reference's; a prefetch reads nothing into the program and
            // does not fault. SSE is part of x86-64.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(word).cast()) };
        }
    }
}

impl Deref for Words {
    type Target = [AtomicU32];

    #[inline]
    fn deref(&self) -> &[AtomicU32] {
        // SAFETY: the map is readable and writable for at least `len` words as long as `self` is
        // borrowed; it begins at a page, and so is aligned; it was zero at first, and every word
        // pattern is a valid `AtomicU32`. All access goes through such slices, so it is atomic.
        unsafe { slice::from_raw_parts(self.memory.as_ptr().cast(), self.len) }
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Words").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Ordering;

    #[test]
    fn words_are_zero_until_they_are_written() {
        for len in [0, 1, 1023, 1 << 20] {
            let words = Words::zeroed(len);
            assert_eq!(words.len(), len);
            assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
            if let Some(last) = words.last() {
                last.store(7, Ordering::Relaxed);
                assert_eq!(words[len - 1].load(Ordering::Relaxed), 7);
            }
        }
    }
}
