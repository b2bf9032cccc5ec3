//! Counts what the allocator hands out: the bytes that a structure really takes.
//!
//! Counted is what glibc's allocator spends: the usable size of a block, which it rounds up, and 8
//! bytes in front of it. A program that wants counts makes [`Counting`] its global allocator;
//! benches do not, for it makes every allocation slower.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

static BYTES: AtomicI64 = AtomicI64::new(0);
const OVERHEAD: i64 = 8;

/// The system's allocator, counted.
#[derive(Debug)]
pub struct Counting;

#[expect(unsafe_code, reason = "an allocator is unsafe by its interface")]
// SAFETY: every call goes to the system's allocator as it came; the count beside it touches no
// memory that was handed out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the ones that the system's allocator asks for.
        let block = unsafe { System.alloc(layout) };
        BYTES.fetch_add(spent(block), Ordering::Relaxed);
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`. Forwarded, so that large zeroed blocks stay untouched.
        let block = unsafe { System.alloc_zeroed(layout) };
        BYTES.fetch_add(spent(block), Ordering::Relaxed);
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        BYTES.fetch_sub(spent(block), Ordering::Relaxed);
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(block, layout) };
    }
}

/// What a block costs; nothing where there is none.
#[expect(unsafe_code, reason = "glibc's question takes a raw pointer")]
fn spent(block: *mut u8) -> i64 {
    if block.is_null() {
        return 0;
    }
    // SAFETY: the block was handed out by the system's allocator, which is malloc, and is live.
    let usable = unsafe { libc::malloc_usable_size(block.cast()) };
    OVERHEAD + i64::try_from(usable).unwrap_or(i64::MAX)
}

/// What `make` makes, and the bytes that were allocated meanwhile and not given back: 0 unless
/// [`Counting`] is the program's allocator. Other threads must not allocate.
pub fn bytes_of<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = BYTES.load(Ordering::Relaxed);
    let made = make();
    let bytes = BYTES.load(Ordering::Relaxed) - before;
    (made, usize::try_from(bytes).unwrap_or(0))
}
