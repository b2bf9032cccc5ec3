//! What all merges have in common: the loop over the records, and where they go.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::time::Duration;

use super::super::Store;
use crate::compactor::accounting::is_gone;
use crate::compactor::{Entry, Fate, Keeper, Merge, Older};
use crate::disk::Access;
use crate::error::Result;
use crate::format::{CollectionId, Edit, FullKey, Key, Kind, Placement, SegmentId, Sequence};
use crate::manifest::ManifestState;
use crate::planted::{self, Bug};
use crate::segment::{Regime, SortedWriter};
use crate::sync::Ordering as MemoryOrdering;

/// Ids after which a job looks whether it should end or rest.
const LOOK_EVERY: u64 = 512;
/// The longest rest at once.
const REST_MAX: Duration = Duration::from_millis(20);

/// How far a merge goes, and by which rules.
pub(super) struct Rules<'a> {
    /// Up to and without this key.
    pub(super) until: Option<&'a FullKey>,
    /// No reader is below.
    pub(super) horizon: Sequence,
    /// The first sources are of level 0.
    pub(super) level0_sources: usize,
    /// Collections whose records are kept. A sealed record of any other is of one that was dropped:
    /// the record that created its collection is sealed no later.
    pub(super) collections: &'a BTreeSet<CollectionId>,
    /// It stops at the next id once so many bytes were written.
    pub(super) bytes_max: u64,
}

/// Where a merge has come to.
#[derive(Debug, Default)]
pub(super) struct Merged {
    /// The first key that is not merged, if it stopped before the end.
    pub(super) next: Option<FullKey>,
    /// What was read of level 0, in bytes of ids and documents.
    pub(super) level0_bytes: u64,
    /// What was read of all.
    pub(super) read_bytes: u64,
}

/// A version that stays: where it comes from, and whether it is the first of its id.
pub(super) struct Kept<'a> {
    pub(super) source: usize,
    pub(super) entry: &'a Entry,
    pub(super) is_new_id: bool,
    pub(super) fate: Fate,
}

/// The collections that were not dropped at or below a horizon.
pub(super) fn kept(state: &ManifestState, horizon: Sequence) -> BTreeSet<CollectionId> {
    state.collections.keys().copied().filter(|&id| !is_gone(state, id, horizon)).collect()
}

/// What becomes of a file whose records were merged: it goes, unless it has records whose ids are
/// not known. `superfluous` gathers those that go.
pub(super) fn retire(
    segment: SegmentId,
    state: &ManifestState,
    lost: &BTreeSet<SegmentId>,
    superfluous: &mut Vec<SegmentId>,
) -> Edit {
    if lost.contains(&segment) || state.damaged.contains(&segment) {
        return Edit::Placed { segment, placement: Placement::Quarantined };
    }
    superfluous.push(segment);
    Edit::Removed { segment }
}

impl Store {
    /// Goes through the records of a merge and hands on those that stay. `put` says how many bytes
    /// it has written so far.
    pub(super) fn merge(
        &self,
        merge: &mut Merge,
        rules: &Rules<'_>,
        mut older: impl FnMut(&Merge, Key<'_>) -> Result<Older>,
        mut put: impl FnMut(&Merge, Kept<'_>) -> Result<u64>,
    ) -> Result<Merged> {
        let ignores_snapshots = planted::is(Bug::SnapshotVersionDropped);
        let horizon = if ignores_snapshots { self.visible() } else { rules.horizon };
        let mut keeper = Keeper::new(horizon);
        let mut merged = Merged::default();
        let mut is_new_id = true;
        let (mut ids, mut written) = (0u64, 0);
        let mut since = self.clock.now();
        while let Some(source) = merge.least() {
            let Some(entry) = merge.entry(source) else { break };
            let (collection, id) = entry.key();
            if !keeper.is_same_id(collection, id) {
                let is_end = |until: &FullKey| until.compare(collection, id) != Ordering::Greater;
                if rules.until.is_some_and(is_end) {
                    break;
                }
                if written >= rules.bytes_max {
                    merged.next = Some(FullKey::new(collection, id));
                    break;
                }
                ids += 1;
                is_new_id = true;
                if ids.is_multiple_of(LOOK_EVERY) {
                    self.check_open()?;
                    since = self.rest(since);
                }
            }
            merged.read_bytes += entry.content_len();
            if source < rules.level0_sources {
                merged.level0_bytes += entry.content_len();
            }
            if rules.collections.contains(&collection) {
                let (sequence, kind) = (entry.sequence(), entry.kind());
                let older = match kind {
                    Kind::Delete => older(merge, Key::new(collection, id))?,
                    _ => Older::Possible,
                };
                let fate = keeper.judge((collection, id), sequence, kind, older);
                if fate != Fate::Dropped {
                    written = put(merge, Kept { source, entry, is_new_id, fate })?;
                    is_new_id = false;
                }
            }
            merge.advance(source)?;
        }
        Ok(merged)
    }

    /// Where nothing presses, leaves the processor and the disk to others for as long as it worked.
    fn rest(&self, since: Duration) -> Duration {
        let now = self.clock.now();
        if self.may_yield() {
            self.clock.sleep(now.saturating_sub(since).min(REST_MAX));
        }
        self.clock.now()
    }

    /// Whether what compaction reads and writes stays in the page cache: while the files fit in
    /// memory reads want it there; beyond, it would displace what they want.
    pub(super) fn compaction_access(&self) -> Access {
        match self.governor.regime() {
            Regime::Mapped => Access::Keep,
            Regime::Pread => Access::Once,
        }
    }

    /// A new sorted segment with room for so many bytes of records and index.
    pub(super) fn sorted_writer(&self, capacity_bytes: u64) -> Result<SortedWriter> {
        let id = self.next_segment_id()?;
        let database_id = self.database_id;
        let new = self.files.new_segment(id, database_id);
        SortedWriter::create(&new, capacity_bytes, self.compaction_access())
    }

    pub(super) fn note_memory(&self, bytes: u64) {
        self.compactor.memory_bytes.fetch_max(bytes, MemoryOrdering::Relaxed);
    }
}

/// What the index of a record takes while it is written: a wide slot, filled to three quarters.
pub(super) const INDEX_BYTES_A_RECORD: u64 = 11;
/// A record of a sorted segment: a hash, and a narrow slot.
const SORTED_BYTES_A_RECORD: u64 = 14;
const WINDOW_BYTES: u64 = 128 << 10;
const WRITE_BYTES: u64 = 512 << 10;
/// The pieces that an index is written in, and the last block of each level.
const INDEX_BUFFER_BYTES: u64 = 96 << 10;

/// Bytes that the writing of an index of so many records holds.
pub(super) fn index_memory(records: u64) -> u64 {
    INDEX_BUFFER_BYTES + records * INDEX_BYTES_A_RECORD
}

/// Bytes that a merge into sorted segments holds: a window a source, the write buffer, and what
/// becomes the index of the segment that is being written.
pub(super) fn sorted_memory(sources: usize, records: u64) -> u64 {
    sources as u64 * WINDOW_BYTES + WRITE_BYTES + records * SORTED_BYTES_A_RECORD
}

/// The most records of a sorted segment, so that a merge of so many sources stays within its memory.
pub(super) fn sorted_records_max(memory: u64, sources: usize) -> u64 {
    let left = memory.saturating_sub(sorted_memory(sources, 0));
    (left / SORTED_BYTES_A_RECORD).max(SORTED_RECORDS_MIN)
}

/// Segments are not made smaller than this, whatever the memory.
const SORTED_RECORDS_MIN: u64 = 1 << 12;
