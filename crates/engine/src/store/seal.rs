//! Turning a frozen segment into a sealed one. No document is copied.

use super::{Store, Version};
use crate::error::{Error, Result};
use crate::format::{CollectionId, Edit, Key, SealedMeta, Sequence};
use crate::log::Run;
use crate::memtable::Entry;
use crate::memtable::Index;
use crate::segment::{IndexEntry, Regime, build_index};
use crate::sync::{Arc, MutexGuard};

const PAGE_BYTES: u64 = 4096;

impl Store {
    pub(super) fn seal_in_background(self: &Arc<Self>) {
        // A failure is left to the writer that needs the room, who tries again.
        drop(self.seal_frozen());
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
        let survivors = survivors(run, &self.snapshots.list());
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
        let sealed = if survivors.is_empty() {
            // What its catalogue records say goes into the manifest; nothing else is left.
            run.sync()?;
            edits.push(Edit::Removed { segment: run.id() });
            None
        } else {
            let meta = write_index(run, &survivors, self.governor.regime())?;
            self.counters.wrote(meta.file_bytes() - meta.index_offset);
            edits.push(Edit::Sealed(meta.clone()));
            Some(self.files.sealed(meta, Some(&run.file)))
        };
        self.manifest.lock().append(&edits)?;
        if sealed.is_none() {
            run.file.doom();
        } else {
            self.counters.sealed();
        }
        self.publish(|version| Version {
            active: Arc::clone(&version.active),
            frozen: without(&version.frozen, run),
            sealed: sealed.iter().chain(&version.sealed).cloned().collect(),
        });
        Ok(())
    }
}

/// Writes a run's index behind everything ever tried in its file, and syncs all of it. What is
/// indexed is read first: an id that was damaged since it was written must not enter an index that
/// verifies.
pub(crate) fn write_index(
    run: &Run,
    survivors: &[(CollectionId, Entry)],
    regime: Regime,
) -> Result<SealedMeta> {
    for (collection, entry) in survivors {
        run.check_id(*collection, *entry, regime)?;
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

fn build(run: &Run, survivors: &[(CollectionId, Entry)], index_offset: u64) -> Result<SealedMeta> {
    let entries = survivors.iter().map(|(collection, entry)| IndexEntry {
        key: Key::new(*collection, run.file.id_at(entry.offset)),
        offset: entry.offset,
        sequence: entry.sequence,
        kind: entry.kind,
    });
    build_index(&run.file, run.end(), index_offset, survivors.len(), entries)
}

/// The versions that a run's index keeps: of each id the newest, and the newest at or below each
/// live snapshot.
pub(crate) fn survivors(run: &Run, snapshots: &[Sequence]) -> Vec<(CollectionId, Entry)> {
    let mut kept: Vec<(CollectionId, Entry)> = Vec::with_capacity(run.memtable.len());
    let mut same_id = SameId::default();
    run.for_each(|collection, entry| {
        let id = run.file.id_at(entry.offset);
        let newer = same_id.newer_version(collection, id, entry.sequence);
        if newer.is_none_or(|newer| sees(snapshots, entry.sequence, newer)) {
            kept.push((collection, entry));
        }
    });
    kept
}

/// Whether a snapshot looks at the version from `version` to just below `newer`.
fn sees(snapshots: &[Sequence], version: Sequence, newer: Sequence) -> bool {
    let at = snapshots.partition_point(|&at| at < version);
    snapshots.get(at).is_some_and(|&at| at < newer)
}

/// Remembers the entry before, in the order newest version first.
#[derive(Default)]
struct SameId {
    id: Vec<u8>,
    last: Option<(CollectionId, Sequence)>,
}

impl SameId {
    /// The sequence of the next newer version, if the entry before was one.
    fn newer_version(
        &mut self,
        collection: CollectionId,
        id: &[u8],
        sequence: Sequence,
    ) -> Option<Sequence> {
        let newer = self
            .last
            .filter(|&(last, _)| last == collection && self.id == id)
            .map(|(_, newer)| newer);
        if newer.is_none() {
            self.id.clear();
            self.id.extend_from_slice(id);
        }
        self.last = Some((collection, sequence));
        newer
    }
}

fn without(runs: &[Arc<Run>], run: &Arc<Run>) -> Vec<Arc<Run>> {
    runs.iter().filter(|other| !Arc::ptr_eq(other, run)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_kept_while_a_snapshot_lies_between_it_and_the_next() {
        let at = |n: &[u64]| n.iter().map(|&n| Sequence(n)).collect::<Vec<_>>();
        let sees = |snapshots: &[u64], version, newer| {
            sees(&at(snapshots), Sequence(version), Sequence(newer))
        };
        assert!(!sees(&[], 1, 2));
        assert!(sees(&[5], 5, 6));
        assert!(sees(&[5], 3, 6));
        assert!(!sees(&[5], 6, 9), "the snapshot is older than the version");
        assert!(!sees(&[5], 3, 5), "the snapshot sees the newer version");
        assert!(sees(&[1, 5, 9], 4, 6));
        assert!(!sees(&[1, 9], 4, 6));
    }
}
