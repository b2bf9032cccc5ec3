//! What several tests need: seeded random numbers, small options, and disks and clocks that tests
//! hold up or watch.

#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    reason = "each test file uses a part, and a test may panic"
)]

mod clock;
mod gate;
mod hook;
mod meanwhile;
mod random;
mod threads;

use std::path::Path;
use std::sync::Arc;

use engine::disk::{Disk, MemoryDisk};
use engine::{Durability, Options, Reads, Stats};

pub(crate) use clock::WatchedClock;
pub(crate) use gate::GateDisk;
pub(crate) use hook::{Hook, HookDisk};
pub(crate) use meanwhile::{Meanwhile, Work};
pub(crate) use random::{Random, Seed};
pub(crate) use threads::{current_thread, wait_until_blocked};

/// The folder of a database on a disk in memory.
pub(crate) const DB: &str = "/db";

pub(crate) const DURABILITIES: [Durability; 2] = [Durability::Durable, Durability::BUFFERED];
pub(crate) const READS: [Reads; 2] = [Reads::Mapped, Reads::Pread];

/// The smallest limits: a memtable of 64 records, 16 KiB of log. It seals all the time.
pub(crate) fn tiny() -> Options {
    Options::default().memory_budget(1 << 20).memtable_bytes(4 << 10).segment_bytes(16 << 10)
}

/// [`tiny`] on a disk in memory.
pub(crate) fn tiny_on(disk: &MemoryDisk) -> Options {
    tiny().disk(Arc::new(disk.clone()))
}

/// The bytes of each kind, which do not depend on when the database was opened.
pub(crate) fn accounted(stats: &Stats) -> [u64; 7] {
    [
        stats.live_bytes,
        stats.superseded_bytes,
        stats.superseded_estimated_bytes,
        stats.pinned_bytes,
        stats.reclaimable_bytes,
        stats.level0_bytes,
        stats.level1_bytes,
    ]
}

/// What a killed process leaves: everything that the operating system has.
pub(crate) fn killed(disk: &MemoryDisk) -> MemoryDisk {
    disk.power_cut(|_| true).unwrap()
}

/// What a power cut leaves at worst: only what is synced.
pub(crate) fn power_lost(disk: &MemoryDisk) -> MemoryDisk {
    disk.power_cut(|_| false).unwrap()
}

/// Copies the files of a folder, as a kill at this moment would leave them.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
