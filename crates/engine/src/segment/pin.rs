//! What keeps a mapped file in place while documents borrow from it.
//!
//! The naive way, one reference count a segment, makes every read of every thread write the same
//! cache line: at 16 threads the line's travels cost more than the lookup. So each segment has
//! several *pins*, each a count on a cache line of its own, and a thread always takes the same one.
//! Invariants:
//!
//! 1. The mapping lives as long as the segment file or any pin; its remains then go to the reaper.
//! 2. Taking and dropping a pin writes no cache line that another thread writes, up to [`PINS`]
//!    threads.

use std::path::PathBuf;

use super::reaper::{Reaper, Remains};
use crate::disk::{Disk, DiskFile, Map};
use crate::sync::{Arc, AtomicBool, AtomicUsize, Ordering, Weak};

/// Pins a segment: threads beyond this number share.
pub(super) const PINS: usize = 8;

/// An open file and its map.
#[derive(Debug)]
pub(super) struct Mapping {
    /// `None` only while being dropped.
    map: Option<Map>,
    file: Arc<dyn DiskFile>,
    disk: Arc<dyn Disk>,
    path: PathBuf,
    doomed: AtomicBool,
    reaper: Weak<Reaper>,
}

impl Mapping {
    pub(super) fn new(
        map: Map,
        file: Arc<dyn DiskFile>,
        disk: &Arc<dyn Disk>,
        path: PathBuf,
        reaper: &Arc<Reaper>,
    ) -> Arc<Self> {
        Arc::new(Self {
            map: Some(map),
            file,
            disk: Arc::clone(disk),
            path,
            doomed: AtomicBool::new(false),
            reaper: Arc::downgrade(reaper),
        })
    }

    pub(super) fn file(&self) -> &Arc<dyn DiskFile> {
        &self.file
    }

    pub(super) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    pub(super) fn reaper(&self) -> &Weak<Reaper> {
        &self.reaper
    }

    pub(super) fn path(&self) -> &PathBuf {
        &self.path
    }

    /// The bytes of a published range; `None` when they are not all mapped.
    #[inline]
    pub(super) fn bytes(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        self.map.as_ref()?.bytes(start..start.checked_add(len)?)
    }

    #[inline]
    pub(super) fn prefetch(&self, offset: u64) {
        if let (Some(map), Ok(at)) = (&self.map, usize::try_from(offset)) {
            map.prefetch(at);
        }
    }

    #[inline]
    pub(super) fn prefetch_ahead(&self, offset: u64, len: usize) {
        if let (Some(map), Ok(at)) = (&self.map, usize::try_from(offset)) {
            map.prefetch_ahead(at, len);
        }
    }

    pub(super) fn doom(&self) {
        self.doomed.store(true, Ordering::Release);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let doomed = *self.doomed.get_mut();
        Remains {
            map: self.map.take(),
            file: Some(Arc::clone(&self.file)),
            unlink: doomed.then(|| (Arc::clone(&self.disk), std::mem::take(&mut self.path))),
        }
        .hand_over(&self.reaper);
    }
}

/// A share of a mapping. The alignment keeps the count of the `Arc` around it, which stands one
/// alignment before the value, on cache lines of its own (two, because processors fetch lines in
/// pairs).
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Pin {
    mapping: Arc<Mapping>,
}

impl Pin {
    pub(super) fn new(mapping: &Arc<Mapping>) -> Arc<Self> {
        Arc::new(Self { mapping: Arc::clone(mapping) })
    }

    #[inline]
    pub(super) fn bytes(&self, offset: u64, len: usize) -> Option<&[u8]> {
        self.mapping.bytes(offset, len)
    }

    pub(super) fn is_of(&self, mapping: &Arc<Mapping>) -> bool {
        Arc::ptr_eq(&self.mapping, mapping)
    }
}

/// Which of a segment's pins the calling thread takes.
#[inline]
pub(super) fn pin_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PIN: usize = NEXT.fetch_add(1, Ordering::Relaxed) % PINS;
    }
    // While a thread ends its own values are gone; any pin is right then.
    PIN.try_with(|pin| *pin).unwrap_or(0)
}
