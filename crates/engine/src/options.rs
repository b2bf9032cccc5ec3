//! How a database is opened.

use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::disk::{Disk, RealDisk};
use crate::error::{Error, Result};
use crate::executor::{Executor, Threads};
use crate::store::{MEMTABLE_RECORD_BYTES, seal_memory};
use crate::sync::Arc;

const MIB: u64 = 1 << 20;

/// When a write is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After an fdatasync: an answered write survives power loss. Clients that write at the same
    /// time share one sync.
    Durable,
    /// Once the operating system has the bytes: an answered write survives the process being
    /// killed, and power loss after the next flush. A flush starts after this long, or after 8 MiB
    /// (less with a small memory budget); what a power cut takes is the end of what was written,
    /// never a piece before it.
    Buffered {
        /// How long an answered write waits for its flush: above zero, and at most an hour.
        flush_interval: Duration,
    },
}

impl Durability {
    /// Buffered with a flush every 250 ms.
    pub const BUFFERED: Self = Self::Buffered { flush_interval: Duration::from_millis(250) };
}

/// When one write is answered, if not as the database's [`Durability`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteDurability {
    /// As the database was opened.
    AsOpened,
    /// After an fdatasync that covers it and every earlier write.
    Durable,
}

/// How documents are read from segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Mapped while the files fit in half of the memory, `pread` beyond.
    Automatic,
    /// Always as slices of the mapped file: no copy and no system call, but a failing disk raises
    /// SIGBUS, and beyond memory each fault reads around.
    Mapped,
    /// Always with `pread` into memory of the document's own.
    Pread,
}

/// What opening does with a log that is damaged below what was synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Fails with [`Error::Corrupt`] and changes nothing.
    Strict,
    /// Keeps what precedes the damage and discards the rest. `Stats::recovery` says how much.
    CutAtDamage,
}

/// When level 0 is merged into level 1, and what is dead goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// In the background, as the amount of it asks for, and when nothing is written.
    Automatic,
    /// Only when [`Database::compact`](crate::Database::compact) is called. Reads slow down and
    /// files grow until then.
    Manual,
}

/// How a database is opened. Every setting has a default that suits a service with some memory to
/// spare. [`Database::open`] checks them, and answers [`Error::InvalidOptions`] with the setting's
/// name and range. None of them is stored: the next open may choose others.
///
/// [`Database::open`]: crate::Database::open
///
/// ```
/// use engine::{Durability, Options};
///
/// let options = Options::default().durability(Durability::BUFFERED).memtable_bytes(8 << 20);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) create_if_missing: bool,
    pub(crate) durability: Durability,
    pub(crate) memory_budget: u64,
    pub(crate) memtable_bytes: u64,
    pub(crate) segment_bytes: u64,
    pub(crate) reads: Reads,
    pub(crate) recovery: Recovery,
    pub(crate) gather: Duration,
    pub(crate) compaction: Compaction,
    pub(crate) level0_runs: usize,
    pub(crate) history: u64,
    pub(crate) seed: Option<u64>,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) executor: Option<Arc<dyn Executor>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create_if_missing: true,
            durability: Durability::Durable,
            memory_budget: 64 * MIB,
            memtable_bytes: 16 * MIB,
            segment_bytes: 64 * MIB,
            reads: Reads::Automatic,
            recovery: Recovery::Strict,
            gather: Duration::from_micros(20),
            compaction: Compaction::Automatic,
            level0_runs: 6,
            history: 0,
            seed: None,
            disk: Arc::new(RealDisk::default()),
            clock: Arc::new(SystemClock::default()),
            executor: None,
        }
    }
}

/// A memtable addresses 2^24 records, and recovery takes those of two into one: half as many, of 64
/// bytes.
const MEMTABLE_BYTES_MAX: u64 = 512 * MIB;

/// With less, merges would have to be so small that there were too many.
const COMPACTION_BYTES_MIN: u64 = MIB;

/// Background threads of a database: one compacts, one seals, one prepares and zeroes ahead.
const THREADS: usize = 3;

impl Options {
    /// Whether a missing database is created (default) or refused with [`Error::NoDatabase`].
    #[must_use]
    pub fn create_if_missing(mut self, yes: bool) -> Self {
        self.create_if_missing = yes;
        self
    }

    /// When a write is answered. Default: [`Durability::Durable`].
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Bytes of memory for the engine itself, the page cache not counted: two memtables, since one
    /// fills while another is sealed, a quarter for sealing and compaction, and buffered writes that
    /// are not synced yet. At least twice `memtable_bytes`. Default: 64 MiB. [`Stats::memory_bytes`] says
    /// what is taken.
    ///
    /// Not within it: a batch of more than a memtable's records, which gets one of its own size, the
    /// fingerprint tables that reads with `pread` keep (5.3 bytes a document), and what compaction
    /// takes however small the budget: 1 MiB, and 128 KiB for each sorted run.
    ///
    /// [`Stats::memory_bytes`]: crate::Stats::memory_bytes
    #[must_use]
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.memory_budget = bytes;
        self
    }

    /// Bytes of one memtable, 4 KiB to 512 MiB, a part of the budget. It holds a record in about 64
    /// bytes, whatever its document's size, and is sealed when full. Default: 16 MiB.
    #[must_use]
    pub fn memtable_bytes(mut self, bytes: u64) -> Self {
        self.memtable_bytes = bytes;
        self
    }

    /// Bytes of log after which a segment is sealed even if its memtable has room, 16 KiB to 4 GiB.
    /// A batch that is larger gets a segment of its own size. Default: 64 MiB.
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// How documents are read. Default: [`Reads::Automatic`].
    #[must_use]
    pub fn reads(mut self, reads: Reads) -> Self {
        self.reads = reads;
        self
    }

    /// When level 0 is merged into level 1. Default: [`Compaction::Automatic`].
    #[must_use]
    pub fn compaction(mut self, compaction: Compaction) -> Self {
        self.compaction = compaction;
        self
    }

    /// How many runs level 0 may have before some of them are merged into one, 2 to 64: a read of an
    /// id looks into each for a cache line, and a scan for its next row. Fewer merge more often.
    /// While merging lags behind there are more; writers slow down from one and a half times as many
    /// on. Default: 6.
    #[must_use]
    pub fn level0_runs(mut self, runs: usize) -> Self {
        self.level0_runs = runs;
        self
    }

    /// How many sequences behind the newest one [`Database::snapshot_at`] can go back: each document
    /// written, deleted or replaced takes one. Superseded documents are kept for so long. Default: 0,
    /// what a snapshot sees is kept without it.
    ///
    /// [`Database::snapshot_at`]: crate::Database::snapshot_at
    #[must_use]
    pub fn history(mut self, sequences: u64) -> Self {
        self.history = sequences;
        self
    }

    /// What opening does with a damaged log. Default: [`Recovery::Strict`].
    #[must_use]
    pub fn recovery(mut self, recovery: Recovery) -> Self {
        self.recovery = recovery;
        self
    }

    /// Where files live. Default: the operating system's file system. For tests.
    #[must_use]
    pub fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = disk;
        self
    }

    /// What tells the time. Default: the operating system's monotonic clock. For tests.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// What runs background work; the database shuts it down when it closes, so two databases
    /// cannot share one. Default: three threads. For tests.
    #[must_use]
    pub fn executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.executor = Some(executor);
        self
    }

    /// Fixes what is otherwise random (the ids of the database and of its files), so that two runs
    /// write the same bytes. For tests: files of two databases with one seed are not told apart.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// What sealing a full memtable holds in memory, in bytes.
    pub(crate) fn sealing_bytes(&self) -> u64 {
        seal_memory(self.memtable_bytes / MEMTABLE_RECORD_BYTES)
    }

    /// What compaction may hold, in bytes: a seal may be under way beside it.
    pub(crate) fn compaction_bytes(&self) -> u64 {
        (self.memory_budget / 4).saturating_sub(self.sealing_bytes()).max(COMPACTION_BYTES_MIN)
    }

    pub(crate) fn make_executor(&self) -> Result<Arc<dyn Executor>> {
        if let Some(executor) = &self.executor {
            return Ok(Arc::clone(executor));
        }
        match Threads::new(THREADS) {
            Ok(threads) => Ok(Arc::new(threads)),
            Err(e) => Err(Error::Background { what: format!("cannot start its threads: {e}") }),
        }
    }

    pub(crate) fn validate(&self) -> Result<()> {
        let invalid = |what: String| Err(Error::InvalidOptions { what });
        if !(4 << 10..=MEMTABLE_BYTES_MAX).contains(&self.memtable_bytes) {
            return invalid(format!(
                "memtable_bytes is {} and must be 4096 to {MEMTABLE_BYTES_MAX} (4 KiB to 512 MiB)",
                self.memtable_bytes
            ));
        }
        if !(16 << 10..=4 << 30).contains(&self.segment_bytes) {
            return invalid(format!(
                "segment_bytes is {} and must be 16384 to 4294967296 (16 KiB to 4 GiB)",
                self.segment_bytes
            ));
        }
        if self.memory_budget < 2 * self.memtable_bytes {
            return invalid(format!(
                "memory_budget is {} and must be at least twice memtable_bytes ({})",
                self.memory_budget, self.memtable_bytes
            ));
        }
        if !(2..=64).contains(&self.level0_runs) {
            return invalid(format!("level0_runs is {} and must be 2 to 64", self.level0_runs));
        }
        if let Durability::Buffered { flush_interval } = self.durability
            && (flush_interval.is_zero() || flush_interval > Duration::from_secs(3600))
        {
            return invalid(format!(
                "flush_interval is {flush_interval:?} and must be above zero and at most an hour; \
                 Durability::Durable syncs at once"
            ));
        }
        Ok(())
    }
}
