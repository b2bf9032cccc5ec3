//! Opening and closing.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use arc_swap::ArcSwap;

use super::{
    Catalogue, Compactor, Files, LogState, Padded, Snapshots, Store, Tables, Version, Work,
};
use crate::disk::{Access, Disk, DiskLock, OpenMode};
use crate::error::{Error, Result};
use crate::format::{
    Edit, LOG_START, MANIFEST_MAGIC, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentId, Sequence,
};
use crate::governor::{Governor, Throttle};
use crate::log::GroupCommit;
use crate::manifest::{self, MANIFEST_NAME, MANIFEST_NEW_NAME, Manifest};
use crate::options::Options;
use crate::random::Random;
use crate::recovery::{self, Recovered};
use crate::segment::{Reaper, parse_segment_name};
use crate::stats::{Counters, RecoveryReport};
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering, Weak};

const LOCK_NAME: &str = "LOCK";

/// What a folder is, before anything in it is touched.
enum Folder {
    /// Missing, empty, or what a creation that did not finish leaves.
    New,
    Database,
}

fn inspect(disk: &dyn Disk, dir: &Path) -> Result<(Folder, Vec<OsString>)> {
    let names = match disk.list(dir) {
        Ok(names) => names,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((Folder::New, Vec::new())),
        Err(e) => return Err(Error::io("open", dir, e)),
    };
    if names.iter().any(|name| name == MANIFEST_NAME) {
        return Ok((Folder::Database, names));
    }
    // The lock's name is made durable first: beside it a file may hold anything that a power cut
    // leaves of bytes that were never synced.
    let is_locked = names.iter().any(|name| name == LOCK_NAME)
        && is_of_a_creation(disk, dir, OsStr::new(LOCK_NAME))?;
    let mut foreign = false;
    for name in &names {
        let is_unfinished = is_locked && name == MANIFEST_NEW_NAME;
        foreign |= !is_unfinished && !is_of_a_creation(disk, dir, name)?;
    }
    if !foreign {
        return Ok((Folder::New, names));
    }
    // A creation makes its first segment only once the manifest is in place.
    if names.iter().any(|name| parse_segment_name(name).is_some()) {
        let what = "it is missing although the folder holds segments; restore it from a copy";
        return Err(Error::corrupt(&dir.join(MANIFEST_NAME), 0, what));
    }
    Err(Error::NotADatabase { path: dir.to_owned() })
}

/// Whether a file is what a creation that did not finish leaves: the lock file, which is empty, or
/// the beginning of a manifest. Others use the same names.
fn is_of_a_creation(disk: &dyn Disk, dir: &Path, name: &OsStr) -> Result<bool> {
    if name != LOCK_NAME && name != MANIFEST_NEW_NAME {
        return Ok(false);
    }
    let path = dir.join(name);
    let mut bytes = [0; 8];
    let read =
        disk.open(&path, OpenMode::Read).and_then(|f| f.read_at(&mut bytes, 0, Access::Once));
    match read {
        Ok(0) => Ok(true),
        // Space that was reserved reads as zeros until it is written.
        Ok(read) if name == MANIFEST_NEW_NAME => {
            Ok(bytes == [0; 8] || bytes[..read] == MANIFEST_MAGIC[..read])
        }
        Ok(_) => Ok(false),
        // Another opener is creating the database at this moment.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::IsADirectory => Ok(false),
        Err(e) => Err(Error::io("read", &path, e)),
    }
}

fn take_lock(disk: &dyn Disk, dir: &Path) -> Result<Box<dyn DiskLock>> {
    let path = dir.join(LOCK_NAME);
    disk.lock(&path).map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => Error::Locked { path: dir.to_owned() },
        _ => Error::io("lock", &path, e),
    })
}

fn new_database_id(random: &Random) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&random.next().to_le_bytes());
    id[8..].copy_from_slice(&random.next().to_le_bytes());
    id
}

impl Store {
    /// Opens or creates a database. Its cost does not depend on what is sealed, only on the log
    /// that was not.
    pub(crate) fn open(dir: &Path, options: Options) -> Result<Arc<Self>> {
        options.validate()?;
        let disk = Arc::clone(&options.disk);
        let random = Arc::new(Random::new(options.seed));
        if matches!(inspect(&*disk, dir)?.0, Folder::New) {
            if !options.create_if_missing {
                return Err(Error::NoDatabase { path: dir.to_owned() });
            }
            disk.create_dir_all(dir).map_err(|e| Error::io("create", dir, e))?;
        }
        let lock = take_lock(&*disk, dir)?;
        // Again, now that nobody else changes it.
        let (folder, names) = inspect(&*disk, dir)?;
        let files = Files { disk, dir: dir.to_owned(), random, reaper: Reaper::new() };
        let recover = |names: &[OsString]| {
            let (database_id, recovered) = match folder {
                Folder::New => {
                    files.disk.sync_dir(dir).map_err(|e| Error::io("sync", dir, e))?;
                    (new_database_id(&files.random), Recovered::default())
                }
                Folder::Database => {
                    let (header, state) = manifest::load(&*files.disk, dir)?;
                    let id = header.database_id;
                    let (mode, history) = (options.recovery, options.history);
                    (id, recovery::recover(&files, id, state, names, mode, history)?)
                }
            };
            let Recovered { state, report } = recovered;
            let (disk, random) = (Arc::clone(&files.disk), Arc::clone(&files.random));
            let manifest = Manifest::create(disk, dir, database_id, state, random)?;
            Ok((database_id, manifest, report))
        };
        let recovered = recover(&names).or_else(|e: Error| {
            let is_full = e.is_of_full_disk() && matches!(folder, Folder::Database);
            let has_room = is_full && manifest::give_up_reserve(&*files.disk, dir).unwrap_or(false);
            // With what the first try has left.
            let names = || files.disk.list(dir).map_err(|e| Error::io("open", dir, e));
            if has_room { recover(&names()?) } else { Err(e) }
        });
        let (database_id, manifest, report) = recovered?;
        // From here on the database is what the new manifest says; what it does not name is left
        // over.
        let names = files.disk.list(dir).map_err(|e| Error::io("open", dir, e))?;
        remove_leftovers(&files, database_id, &manifest, &names);
        Self::start(files, options, lock, manifest, report)
    }

    fn start(
        files: Files,
        options: Options,
        lock: Box<dyn DiskLock>,
        mut manifest: Manifest,
        recovery: RecoveryReport,
    ) -> Result<Arc<Self>> {
        let tables = Tables::build(manifest.state(), &files, &Tables::default(), None);
        let horizon = manifest.state().horizon;
        let last = Sequence(manifest.state().next_sequence.0 - 1);
        let records = usize::try_from(options.memtable_bytes / super::roll::MEMTABLE_RECORD_BYTES)
            .unwrap_or(usize::MAX);
        let id = manifest.next_segment();
        let active = Arc::new(files.create_run(id, options.segment_bytes, records)?);
        active.publish(LOG_START, last);
        let incarnation = active.file.incarnation();
        manifest.append(&[Edit::Created { segment: id, incarnation }])?;

        let governor = Governor::new(options.reads);
        governor.observe_files(tables.file_bytes());
        let state = LogState {
            active: Arc::clone(&active),
            unsynced: Vec::new(),
            last,
            buffer: Vec::new(),
            tail: VecDeque::new(),
            tail_bytes: 0,
            marked: LOG_START,
            failure: None,
            closed: false,
            flush_scheduled: false,
            flush_hurried: false,
            mark_scheduled: false,
        };
        let store = Arc::new(Self {
            clock: Arc::clone(&options.clock),
            executor: options.make_executor()?,
            governor,
            version: ArcSwap::from_pointee(Version {
                active,
                frozen: Vec::new(),
                tables: Arc::new(tables),
            }),
            older_versions: Mutex::default(),
            visible: Padded(AtomicU64::new(last.0)),
            closed: AtomicBool::new(false),
            queue: GroupCommit::default(),
            log: Mutex::new(state),
            sealing: Mutex::new(()),
            prepared: Mutex::new(None),
            panic: Mutex::new(None),
            catalogue: Catalogue::new(manifest.state()),
            database_id: manifest.database_id(),
            manifest_broken: manifest.broken(),
            deletes_only: manifest.is_reserve_given_up(),
            manifest: Mutex::new(manifest),
            snapshots: Snapshots::new(horizon),
            compactor: Compactor::default(),
            throttle: Throttle::default(),
            tail_bytes: AtomicU64::new(0),
            sealing_memory_bytes: AtomicU64::new(0),
            last_write_ns: AtomicU64::new(0),
            work: Arc::new(Work::default()),
            counters: Counters::default(),
            recovery,
            lock: Mutex::new(Some(lock)),
            files,
            options,
        });
        let first = store.version.load_full();
        store.write_header(&first.active, last.next(), (SegmentId(0), 0))?;
        let weak = Arc::downgrade(&store);
        store.files.reaper.set_notify(Box::new(move || {
            if let Some(store) = weak.upgrade() {
                store.spawn("reap", Self::reap);
            }
        }));
        store.spawn("prepare", Self::prepare_in_background);
        // What was left to do when the database was closed.
        store.schedule_compaction();
        store.arm_idle();
        Ok(store)
    }

    fn reap(self: &Arc<Self>) {
        self.files.reaper.reap();
        self.counters.left_behind(self.files.reaper.take_failures().len() as u64);
    }

    /// Syncs and seals what was written, ends background work, and releases the folder. Later calls
    /// answer `Closed`; documents and scans that are still held stay valid. The folder is released
    /// even if this fails; then the next open recovers.
    pub(crate) fn close(self: &Arc<Self>) -> Result<()> {
        // Held to the end: who closes second returns when the folder is free.
        let mut lock = self.lock.lock();
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let outcome = self.settle();
        self.executor.shutdown();
        self.open_what_scans_hold();
        self.files.reaper.retire();
        *lock = None;
        outcome
    }

    /// Scans outlive the database, and open a segment when they come to it. Once the folder is free
    /// its next owner may merge and remove what they have not come to, so that is opened now.
    fn open_what_scans_hold(&self) {
        let current = self.version.load_full();
        let mut held: Vec<_> =
            self.older_versions.lock().iter().filter_map(Weak::upgrade).collect();
        // One reference is the store's, one is here.
        if Arc::strong_count(&current) > 2 {
            held.push(current);
        }
        held.iter().for_each(|version| version.tables.open_files());
    }

    /// Repairs the log if need be, and syncs it.
    fn sync_log(self: &Arc<Self>, state: &mut LogState) -> Result<()> {
        self.ensure_writable(state)?;
        self.sync_older(state)?;
        state.active.sync()
    }

    fn settle(self: &Arc<Self>) -> Result<()> {
        let flushed = {
            let mut state = self.log.lock();
            // A sync that fails is repaired while what was answered is still in memory.
            let flushed = self.in_reserve(|| {
                self.sync_log(&mut state).or_else(|e| {
                    state.failure.get_or_insert(e);
                    self.sync_log(&mut state)
                })
            });
            state.closed = true;
            flushed
        };
        flushed?;
        self.log.lock().active.zeros.stop();
        self.in_reserve(|| self.seal_frozen())?;
        let active = Arc::clone(&self.version.load().active);
        self.in_reserve(|| {
            let sealing = self.sealing.lock();
            self.seal(&active, &sealing)
        })?;
        // The manifest's last edit is the close.
        let _compaction = self.hold_compaction();
        let prepared = self.prepared.lock().take();
        let unused = prepared.as_ref().map(|prepared| prepared.run());
        let removed = unused.map(|run| Edit::Removed { segment: run.id() });
        let edits: Vec<Edit> = removed.into_iter().chain([Edit::Closed]).collect();
        // Only then: a manifest must not name a file that is missing.
        self.manifest.lock().append(&edits)?;
        unused.into_iter().for_each(|run| run.file.doom());
        // Handles that are still held keep the last segment open; its name goes while the folder is
        // locked. If that fails, the next open tries again.
        if !self.manifest.lock().state().segments.contains_key(&active.id()) {
            drop(self.files.disk.remove(active.path()));
        }
        Ok(())
    }
}

/// Removes segment files of this database that the manifest does not name, and the manifest's
/// temporary file. Files of anyone else stay. What cannot be removed now is tried again at the next
/// open.
fn remove_leftovers(files: &Files, database_id: [u8; 16], manifest: &Manifest, names: &[OsString]) {
    for name in names {
        let path = files.dir.join(name);
        let is_leftover = match parse_segment_name(name) {
            Some(id) => {
                !manifest.state().segments.contains_key(&id)
                    && is_ours(&*files.disk, &path, database_id)
            }
            None => name == MANIFEST_NEW_NAME,
        };
        if is_leftover {
            drop(files.disk.remove(&path));
        }
    }
}

/// Whether a segment file says that it is this database's, or says nothing at all.
fn is_ours(disk: &dyn Disk, path: &Path, database_id: [u8; 16]) -> bool {
    let Ok(file) = disk.open(path, OpenMode::Read) else { return false };
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    match file.read_at(&mut bytes, 0, Access::Once) {
        Ok(read) if bytes[..read].iter().all(|&byte| byte == 0) => true,
        Ok(SEGMENT_HEADER_BYTES) => {
            SegmentHeader::decode(&bytes).is_ok_and(|header| header.database_id == database_id)
        }
        _ => false,
    }
}
