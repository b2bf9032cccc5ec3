//! Turning a frozen segment into a sealed one. No document is copied.

use super::Store;
use super::compaction::Sample;
use crate::compactor::{Fate, Keeper, Older};
use crate::error::{Error, Result};
use crate::format::{Age, CollectionId, Edit, Key, SealedMeta, Sequence};
use crate::log::Run;
use crate::memtable::{Entry, Index, NodeRef};
use crate::segment::{DataSegment, IndexEntry, Regime, build_index};
use crate::sync::{Arc, AtomicU64, MutexGuard, Ordering};

const PAGE_BYTES: u64 = 4096;

impl Store {
    pub(super) fn seal_in_background(self: &Arc<Self>) {
        // A failure is left to the writer that needs the room, who tries again.
        drop(self.seal_frozen());
        self.measure_debt();
        self.schedule_compaction();
    }

    /// Seals every frozen run, oldest first.
    pub(super) fn seal_frozen(&self) -> Result<()> {
        let sealing = self.sealing.lock();
        while let Some(run) = self.version.load_full().frozen.last() {
            self.seal(run, &sealing)?;
        }
        Ok(())
    }

    /// Writes the run's index behind everything ever tried in its file, syncs, names the segment in
    /// the manifest, and swaps it in.
    pub(super) fn seal(&self, run: &Arc<Run>, _sealing: &MutexGuard<'_, ()>) -> Result<()> {
        // First: while the manifest cannot be written, each attempt would leave an index behind.
        self.manifest.lock().ensure_whole()?;
        let horizon = self.advance_horizon();
        let survivors = survivors(run, horizon);
        let mut edits: Vec<Edit> = run
            .catalogue
            .lock()
            .iter()
            .map(|record| Edit::Catalogue(record.change.clone()))
            .collect();
        edits.push(Edit::Next {
            segment: run.id(),
            collection: CollectionId(0),
            sequence: run.last_sequence().next(),
        });
        edits.push(Edit::Horizon(horizon));
        let _memory = self.note_sealing(survivors.nodes.len());
        let sealed = if survivors.is_empty() {
            // What its catalogue records say goes into the manifest; nothing else is left.
            run.sync()?;
            edits.push(Edit::Removed { segment: run.id() });
            None
        } else {
            let meta = write_index(run, &survivors, self.governor.regime())?;
            self.counters.wrote(meta.file_bytes() - meta.index_offset);
            edits.push(Edit::Sealed(meta.clone()));
            let tables = Arc::clone(&self.version.load().tables);
            let (segment, age) = (run.id(), Age::of(run.id()));
            let bytes = self.estimate_shadowed(&tables, age, &survivors.sample);
            edits.push(Edit::Shadowed { segment, bytes });
            Some(DataSegment::from_file(meta, Arc::clone(&run.file)))
        };
        self.manifest.lock().append(&edits)?;
        if sealed.is_none() {
            run.file.doom();
        } else {
            self.counters.sealed();
        }
        self.publish_tables(Some((run, sealed)));
        Ok(())
    }

    /// Says that a seal of so many records is under way, until the result is dropped.
    fn note_sealing(&self, records: usize) -> impl Drop {
        struct Noted<'a>(&'a AtomicU64);
        impl Drop for Noted<'_> {
            fn drop(&mut self) {
                self.0.store(0, Ordering::Relaxed);
            }
        }
        self.sealing_memory_bytes.store(seal_memory(records as u64), Ordering::Relaxed);
        Noted(&self.sealing_memory_bytes)
    }
}

/// What a record takes while its run is sealed: a place in the memtable's order, and a narrow slot.
const SEAL_BYTES_A_RECORD: u64 = 14;
/// The pieces that an index is written in, and the last block of each level.
const SEAL_BUFFER_BYTES: u64 = 96 << 10;

/// Bytes that the seal of so many records holds.
pub(crate) fn seal_memory(records: u64) -> u64 {
    records * SEAL_BYTES_A_RECORD + SEAL_BUFFER_BYTES
}

/// Writes a run's index behind everything ever tried in its file, and syncs all of it. What is
/// indexed is read first: an id that was damaged since it was written must not enter an index that
/// verifies.
pub(crate) fn write_index(run: &Run, survivors: &Survivors, regime: Regime) -> Result<SealedMeta> {
    for (collection, entry) in survivors.entries(run) {
        run.check_id(collection, entry, regime)?;
    }
    let index_offset = run.end().max(run.attempted()).next_multiple_of(PAGE_BYTES);
    let file = run.file.disk_file();
    let built = build(run, survivors, index_offset).and_then(|meta| {
        // Behind the trailer is only reserved space, which no reader was ever given.
        file.set_len(meta.file_bytes()).map_err(|e| Error::io("truncate", run.path(), e))?;
        Ok(meta)
    });
    let meta = built.inspect_err(|_| {
        // Nothing refers to a part of an index: its space goes back to a disk that may be full. If
        // that fails as well, the next attempt writes over it, and is synced whole.
        // The length comes back, as a hole: ids are read through the map.
        let whole = index_offset.max(run.file.capacity());
        drop(file.set_len(index_offset).and_then(|()| file.set_len(whole)));
    })?;
    run.attempt(meta.file_bytes());
    run.sync_index()?;
    Ok(meta)
}

fn build(run: &Run, survivors: &Survivors, index_offset: u64) -> Result<SealedMeta> {
    let entries = survivors.entries(run).map(|(collection, entry)| IndexEntry {
        key: Key::new(collection, run.file.id_at(entry.offset)),
        offset: entry.offset,
        sequence: entry.sequence,
        kind: entry.kind,
        content_len: run.file.content_len_at(entry.offset),
    });
    let (ids, superseded) = (survivors.ids, survivors.superseded_bytes);
    build_index(&run.file, (run.end(), index_offset), ids, superseded, entries)
}

/// What a run's index keeps: 8 bytes a record, where the memtable has the rest.
#[derive(Debug)]
pub(crate) struct Survivors {
    nodes: Vec<NodeRef>,
    sample: Sample,
    /// Different ids among them.
    ids: usize,
    /// Bytes of the ids and documents of the versions that it does not keep.
    superseded_bytes: u64,
}

impl Survivors {
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Those of the run that they are of.
    fn entries(&self, run: &Run) -> impl Iterator<Item = (CollectionId, Entry)> {
        self.nodes.iter().map(|node| run.memtable.entry(*node))
    }
}

/// The versions that a run's index keeps: those that a reader at or above the horizon may see. Of
/// tombstones all, since older runs may have what they delete.
pub(crate) fn survivors(run: &Run, horizon: Sequence) -> Survivors {
    let mut nodes = Vec::with_capacity(run.memtable.len());
    let mut sample = Sample::default();
    let (mut ids, mut superseded_bytes) = (0, 0);
    let mut keeper = Keeper::new(horizon);
    for node in run.nodes() {
        let (collection, entry) = run.memtable.entry(node);
        let key = (collection, run.file.id_at(entry.offset));
        match keeper.judge(key, entry.sequence, entry.kind, Older::Possible) {
            Fate::Newest => {
                ids += 1;
                // All versions of an id together supersede one older record.
                sample.pass(key.0, key.1);
                nodes.push(node);
            }
            Fate::Pinned => nodes.push(node),
            Fate::Dropped => superseded_bytes += run.file.content_len_at(entry.offset),
        }
    }
    Survivors { nodes, sample, ids, superseded_bytes }
}

pub(super) fn without(runs: &[Arc<Run>], run: &Arc<Run>) -> Vec<Arc<Run>> {
    runs.iter().filter(|other| !Arc::ptr_eq(other, run)).cloned().collect()
}
