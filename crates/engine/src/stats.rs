//! Figures about an open database.

use std::path::PathBuf;
use std::time::Duration;

use crate::compactor::{Accounting, CompactionReason};
use crate::store::Tables;
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
    /// Ids and documents written, in bytes: of a tombstone, its id.
    pub user_bytes: u64,
    /// Bytes written to files: log, zeros ahead of it, indexes, manifest, compaction.
    pub written_bytes: u64,
    /// Segments begun because the one before was full.
    pub rolls: u64,
    /// Segments sealed.
    pub seals: u64,
    /// Times that the log went on in a new segment after a failed write or sync.
    pub repairs: u64,
    /// Files that could not be removed; the next open tries again.
    pub files_left_behind: u64,
    /// Groups that waited: for a seal, or because compaction had fallen behind.
    pub stalls: u64,
    /// How long they waited, in nanoseconds, together.
    pub stall_ns: u64,
    /// Files of sealed segments, of both levels and quarantined.
    pub segments_sealed: u64,
    /// Of those, in level 0: log segments, sorted ones, and indexes over several.
    pub level0_segments: u64,
    /// Runs of level 0, each of which a read of an id looks into; see [`Options::level0_runs`].
    ///
    /// [`Options::level0_runs`]: crate::Options::level0_runs
    pub level0_runs: u64,
    /// Sealed segments in level 1, of which a read looks into one.
    pub level1_segments: u64,
    /// Segments that are kept because the id of a record in them is damaged: reads of that id
    /// report it.
    pub quarantined_segments: u64,
    /// Ids and documents that a reader sees now, sealed, in bytes: exact after
    /// [`Database::compact`](crate::Database::compact), else less what newer records supersede as
    /// estimated. What is not sealed yet is not in it.
    pub live_bytes: u64,
    /// Ids and documents in level 0 that newer records of the same run supersede, in bytes: exact as
    /// of the last merge of its runs.
    pub superseded_bytes: u64,
    /// Ids and documents that newer runs supersede, in bytes: estimated, until a sweep has merged
    /// them.
    pub superseded_estimated_bytes: u64,
    /// Superseded ids and documents that a snapshot or the history keeps, in bytes.
    pub pinned_bytes: u64,
    /// What compaction can free, in bytes of ids and documents: what is superseded and not pinned,
    /// tombstones of level 0, dropped collections.
    pub reclaimable_bytes: u64,
    /// Ids and documents in level 0, live or not, in bytes.
    pub level0_bytes: u64,
    /// Ids and documents in level 1, live or not, in bytes.
    pub level1_bytes: u64,
    /// The oldest sequence that [`Database::snapshot_at`](crate::Database::snapshot_at) reads.
    pub horizon: u64,
    /// Whether compaction has something to do, or will once nothing was written for a while.
    pub compaction_due: bool,
    /// Compaction since opening, by reason.
    pub compactions: Vec<CompactionStats>,
    /// Compaction jobs that failed; each was tried again.
    pub compaction_failures: u64,
    /// What the last one failed with.
    pub last_compaction_error: Option<String>,
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
    /// Answered bytes that are kept in memory until they are synced.
    pub tail_bytes: u64,
    /// Bytes of index blocks held in memory (few while files are mapped).
    pub index_heap_bytes: u64,
    /// Buffers of the compaction job that runs, in bytes, at most.
    pub compaction_memory_bytes: u64,
    /// What the seal that is under way holds, in bytes, at most.
    pub sealing_memory_bytes: u64,
    /// What the options allow for all of these.
    pub memory_budget: u64,
    /// Live snapshots.
    pub snapshots: u64,
    /// Whether documents are read as slices of mapped files now.
    pub reads_mapped: bool,
    /// Whether the disk is full, and the space that was reserved for deletes given up to them:
    /// documents are refused until there is space for the reserve again.
    pub deletes_only: bool,
    /// What opening found.
    pub recovery: RecoveryReport,
}

/// What compaction did for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionStats {
    /// Why.
    pub reason: CompactionReason,
    /// How often: sweeps that began, or merges.
    pub count: u64,
    /// Jobs that this took.
    pub steps: u64,
    /// Ids and documents read, in bytes.
    pub read_bytes: u64,
    /// Bytes written to files.
    pub written_bytes: u64,
    /// Time in jobs, in nanoseconds.
    pub time_ns: u64,
}

impl CompactionStats {
    pub(crate) fn new(reason: CompactionReason) -> Self {
        Self { reason, count: 0, steps: 0, read_bytes: 0, written_bytes: 0, time_ns: 0 }
    }
}

impl Stats {
    /// Bytes written to files for each byte of id and document since the database was opened; 0
    /// before the first write.
    pub fn write_amplification(&self) -> f64 {
        if self.user_bytes == 0 {
            return 0.0;
        }
        // As of 2^53 bytes the last digits are rounded.
        self.written_bytes as f64 / self.user_bytes as f64
    }

    /// Memory of the engine itself by now, in bytes: memtables as large as they get, the unsynced
    /// tail, index blocks, and the seal and the compaction that run.
    pub fn memory_bytes(&self) -> u64 {
        self.memtable_bytes
            + self.tail_bytes
            + self.index_heap_bytes
            + self.sealing_memory_bytes
            + self.compaction_memory_bytes
    }

    pub(crate) fn count_tables(&mut self, tables: &Tables) {
        for meta in tables.metas() {
            self.segments_sealed += 1;
            self.sealed_records += meta.records;
            self.sealed_bytes += meta.file_bytes();
        }
        for segment in tables.segments() {
            self.index_heap_bytes += segment.heap_bytes() as u64;
        }
        self.level0_runs = tables.level0.len() as u64;
        self.level1_segments = tables.level1.entries().len() as u64;
        self.quarantined_segments = tables.quarantined.len() as u64;
        self.level0_segments =
            self.segments_sealed - self.level1_segments - self.quarantined_segments;
    }

    pub(crate) fn account(&mut self, accounting: &Accounting) {
        self.live_bytes = accounting.live_bytes();
        self.superseded_bytes = accounting.superseded_bytes;
        self.superseded_estimated_bytes = accounting.shadowed_bytes;
        self.pinned_bytes = accounting.pinned_bytes;
        self.reclaimable_bytes = accounting.reclaimable_bytes();
        self.level0_bytes = accounting.level0_bytes;
        self.level1_bytes = accounting.level1_bytes;
    }
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
    user_bytes: AtomicU64,
    written_bytes: AtomicU64,
    rolls: AtomicU64,
    seals: AtomicU64,
    repairs: AtomicU64,
    left_behind: AtomicU64,
    stalls: AtomicU64,
    stall_ns: AtomicU64,
}

impl Counters {
    pub(crate) fn committed(&self, records: u64, content_bytes: u64) {
        add(&self.records, records);
        add(&self.user_bytes, content_bytes);
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
            user_bytes: get(&self.user_bytes),
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
