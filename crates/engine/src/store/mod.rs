//! The inside of an open database: what its public handles share.
//!
//! Owns the version (which segments a read consults), the log's state, the manifest, the catalogue
//! and the background work: writing is in `commit`, `roll`, `seal`, `flush` and `repair`, reading in
//! `read` and `tables`, compaction in `compaction`. Invariants:
//!
//! 1. A read loads the version first and `visible` second. A version holds every record that was
//!    visible when it was current, so the read sees a prefix of the commit order; a version loaded
//!    after `visible` might already have dropped what that prefix shows.
//! 2. Publication of a segment: data synced, folder synced, manifest synced, version swapped, old
//!    files removed after the last reader.
//! 3. Locks are taken in this order: the log's state, sealing, the prepared segment, the manifest,
//!    the catalogue, snapshots. The swap of the version is under the sealing lock.
//! 4. At most two segments are unsealed in normal work: the active one, and one being sealed. A
//!    repair may add one.

mod any_cursor;
mod catalogue;
mod commit;
mod compaction;
mod files;
mod flush;
mod lifecycle;
mod quarantine;
mod read;
mod repair;
mod reserve;
mod roll;
mod seal;
mod snapshots;
mod tables;
mod work;

use std::collections::VecDeque;
use std::path::Path;

use arc_swap::ArcSwap;

use crate::clock::Clock;
use crate::disk::DiskLock;
use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::format::{SegmentId, Sequence};
use crate::governor::{Governor, Throttle};
use crate::log::{GroupCommit, Run};
use crate::manifest::Manifest;
use crate::memtable::Index;
use crate::options::{Durability, Options};
use crate::segment::DataSegment;
use crate::stats::{Counters, RecoveryReport, Stats};
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering, Weak};

pub(crate) use catalogue::{Catalogue, CollectionState};
pub(crate) use commit::BATCH_BYTES_MAX;
use compaction::Compactor;
pub(crate) use files::{Files, segment_header};
pub(crate) use read::ScanRuns;
pub(crate) use roll::MEMTABLE_RECORD_BYTES;
use roll::Prepared;
pub(crate) use seal::{seal_memory, survivors, write_index};
pub(crate) use snapshots::Snapshots;
pub(crate) use tables::Tables;
pub(crate) use work::Work;

/// The runs that a read consults, newest first in each list.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) active: Arc<Run>,
    pub(crate) frozen: Vec<Arc<Run>>,
    pub(crate) tables: Arc<Tables>,
}

/// An answered group whose bytes are not yet synced, kept in case the sync fails.
#[derive(Debug)]
struct TailChunk {
    segment: SegmentId,
    offset: u64,
    bytes: Vec<u8>,
}

/// What the leader of a group owns.
#[derive(Debug)]
struct LogState {
    active: Arc<Run>,
    /// Older runs that are not known to be synced, oldest first.
    unsynced: Vec<Arc<Run>>,
    /// The sequence of the last record written.
    last: Sequence,
    /// The group being built.
    buffer: Vec<u8>,
    tail: VecDeque<TailChunk>,
    tail_bytes: u64,
    /// How far the last mark in the active segment says it is synced; 0 where the first would say
    /// that the segments before are.
    marked: u64,
    /// Why writes need a repair before they go on.
    failure: Option<Error>,
    closed: bool,
    /// A flush will run when its interval is over.
    flush_scheduled: bool,
    /// A flush runs, or will as soon as a thread is free.
    flush_hurried: bool,
    mark_scheduled: bool,
}

/// An open database.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) options: Options,
    clock: Arc<dyn Clock>,
    executor: Arc<dyn Executor>,
    files: Files,
    pub(crate) governor: Governor,
    version: ArcSwap<Version>,
    /// Versions before it, some of which a scan may still hold.
    older_versions: Mutex<Vec<Weak<Version>>>,
    /// The sequence up to which reads see. Alone on its cache line: every read loads it.
    visible: Padded<AtomicU64>,
    closed: AtomicBool,
    queue: GroupCommit,
    log: Mutex<LogState>,
    sealing: Mutex<()>,
    prepared: Mutex<Option<Prepared>>,
    /// What a background job panicked with.
    panic: Mutex<Option<String>>,
    manifest: Mutex<Manifest>,
    pub(crate) catalogue: Catalogue,
    pub(crate) snapshots: Snapshots,
    compactor: Compactor,
    throttle: Throttle,
    /// Answered bytes that are kept until they are synced.
    tail_bytes: AtomicU64,
    /// What the seal that is under way holds.
    sealing_memory_bytes: AtomicU64,
    last_write_ns: AtomicU64,
    /// Of the folder, for good.
    database_id: [u8; 16],
    /// An edit of the manifest failed.
    manifest_broken: Arc<AtomicBool>,
    /// The reserve for a full disk is given up.
    deletes_only: Arc<AtomicBool>,
    work: Arc<Work>,
    counters: Counters,
    recovery: RecoveryReport,
    lock: Mutex<Option<Box<dyn DiskLock>>>,
}

/// A value alone on its cache lines (two, because of the adjacent-line prefetcher).
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded<T>(T);

impl Store {
    pub(crate) fn visible(&self) -> Sequence {
        Sequence(self.visible.0.load(Ordering::Acquire))
    }

    /// Fails once the database is closed.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) { Err(Error::Closed) } else { Ok(()) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.files.dir
    }

    fn is_durable(&self) -> bool {
        self.options.durability == Durability::Durable
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.clock.now().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Publishes a version made from the current one. The caller holds the sealing lock.
    fn publish(&self, change: impl Fn(&Version) -> Version) {
        let current = self.version.load_full();
        self.version.store(Arc::new(change(&current)));
        let mut older = self.older_versions.lock();
        older.retain(|version| version.strong_count() > 0);
        older.push(Arc::downgrade(&current));
        drop(older);
    }

    /// Publishes a version whose sealed segments are what the manifest says now. The caller holds
    /// the sealing lock.
    fn publish_tables(&self, sealed: Option<(&Arc<Run>, Option<Arc<DataSegment>>)>) {
        let before = Arc::clone(&self.version.load().tables);
        let (run, handed) = sealed.unzip();
        let tables = {
            let manifest = self.manifest.lock();
            Tables::build(manifest.state(), &self.files, &before, handed.flatten())
        };
        self.governor.observe_files(tables.file_bytes());
        let tables = Arc::new(tables);
        self.publish(|version| Version {
            active: Arc::clone(&version.active),
            frozen: match run {
                Some(run) => seal::without(&version.frozen, run),
                None => version.frozen.clone(),
            },
            tables: Arc::clone(&tables),
        });
    }

    /// Figures about the open database. Takes no lock that a writer holds for long.
    pub(crate) fn stats(&self) -> Stats {
        let version = self.version.load_full();
        let tables = &version.tables;
        let horizon = self.snapshots.horizon();
        // As compaction would see it: what a released snapshot saw is no longer pinned.
        let survey = self.survey(tables);
        let mut stats = Stats {
            segments_unsealed: 1 + version.frozen.len() as u64,
            visible_sequence: self.visible().0,
            snapshots: self.snapshots.len() as u64,
            horizon: horizon.0,
            reads_mapped: self.governor.regime() == crate::segment::Regime::Mapped,
            memory_budget: self.options.memory_budget,
            tail_bytes: self.tail_bytes.load(Ordering::Relaxed),
            deletes_only: self.takes_deletes_only(),
            sealing_memory_bytes: self.sealing_memory_bytes.load(Ordering::Relaxed),
            recovery: self.recovery.clone(),
            ..self.counters.stats()
        };
        stats.written_bytes += self.manifest.lock().written_bytes();
        stats.count_tables(tables);
        stats.account(&survey.accounting);
        for run in version.frozen.iter().chain(std::iter::once(&version.active)) {
            stats.memtable_records += run.memtable.len() as u64;
            stats.memtable_bytes += run.memtable.bytes() as u64;
            stats.log_bytes += run.end();
        }
        self.compaction_stats(tables, &survey, &mut stats);
        stats
    }
}
