//! Figures about an open database.

use std::path::PathBuf;
use std::time::Duration;

use crate::sync::{AtomicU64, Ordering};

/// Figures about an open database. Counters run from its opening.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The sequence of the newest visible write: how many records were ever written, about.
    pub visible_sequence: u64,
    /// Records written.
    pub records_written: u64,
    /// Groups written: records divided by groups is what group commit saves.
    pub groups: u64,
    /// Syncs of the log.
    pub syncs: u64,
    /// Bytes written to files: log, zeros ahead of it, indexes, manifest.
    pub written_bytes: u64,
    /// Segments begun because the one before was full.
    pub rolls: u64,
    /// Segments sealed.
    pub seals: u64,
    /// Times that the log went on in a new segment after a failed write or sync.
    pub repairs: u64,
    /// Files that could not be removed; the next open tries again.
    pub files_left_behind: u64,
    /// Groups that waited for background work.
    pub stalls: u64,
    /// How long they waited, in nanoseconds, together.
    pub stall_ns: u64,
    /// Sealed segments, all in level 0 so far.
    pub segments_sealed: u64,
    /// Segments with a memtable: the active one, and one that is being sealed.
    pub segments_unsealed: u64,
    /// Records in sealed segments' indexes, superseded ones and tombstones included.
    pub sealed_records: u64,
    /// Bytes of sealed segments' files.
    pub sealed_bytes: u64,
    /// Records in memtables.
    pub memtable_records: u64,
    /// Bytes that the memtables take when full.
    pub memtable_bytes: u64,
    /// Bytes of log that are not sealed.
    pub log_bytes: u64,
    /// Bytes of index blocks held in memory (none while files are mapped).
    pub index_heap_bytes: u64,
    /// Live snapshots.
    pub snapshots: u64,
    /// Whether documents are read as slices of mapped files now.
    pub reads_mapped: bool,
    /// What opening found.
    pub recovery: RecoveryReport,
}

/// What opening found in the log that was not sealed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Records copied into a new segment. Zero after a clean close.
    pub records: u64,
    /// Bytes of log read back.
    pub log_bytes: u64,
    /// Unsealed segments found.
    pub segments: u64,
    /// Whether bytes behind the recovered end looked written: a torn tail, which a crash leaves.
    pub torn_tail: bool,
    /// Damage below what was synced, which `Recovery::CutAtDamage` cut away: the file and the
    /// offset in bytes.
    pub damage: Option<(PathBuf, u64)>,
}

/// The counters behind [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    records: AtomicU64,
    groups: AtomicU64,
    syncs: AtomicU64,
    written_bytes: AtomicU64,
    rolls: AtomicU64,
    seals: AtomicU64,
    repairs: AtomicU64,
    left_behind: AtomicU64,
    stalls: AtomicU64,
    stall_ns: AtomicU64,
}

impl Counters {
    pub(crate) fn committed(&self, records: u64) {
        add(&self.records, records);
        add(&self.groups, 1);
    }

    pub(crate) fn synced(&self) {
        add(&self.syncs, 1);
    }

    pub(crate) fn wrote(&self, bytes: u64) {
        add(&self.written_bytes, bytes);
    }

    pub(crate) fn rolled(&self) {
        add(&self.rolls, 1);
    }

    pub(crate) fn sealed(&self) {
        add(&self.seals, 1);
    }

    pub(crate) fn repaired(&self) {
        add(&self.repairs, 1);
    }

    pub(crate) fn left_behind(&self, files: u64) {
        add(&self.left_behind, files);
    }

    pub(crate) fn stalled(&self, waited: Duration) {
        add(&self.stalls, 1);
        add(&self.stall_ns, u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn stats(&self) -> Stats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            records_written: get(&self.records),
            groups: get(&self.groups),
            syncs: get(&self.syncs),
            written_bytes: get(&self.written_bytes),
            rolls: get(&self.rolls),
            seals: get(&self.seals),
            repairs: get(&self.repairs),
            files_left_behind: get(&self.left_behind),
            stalls: get(&self.stalls),
            stall_ns: get(&self.stall_ns),
            ..Stats::default()
        }
    }
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}
