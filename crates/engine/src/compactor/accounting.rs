//! Which bytes are live, and which are not: a pure function of what the manifest knows.
//!
//! All figures are of ids and documents, whatever their records' headers take. Nothing is looked up
//! for them: sealing and merging count what they pass anyway, and the manifest keeps it, so that the
//! figures are the same after a reopen. Exact are those of each run by itself: what it superseded
//! within, as of the last merge of its index. What a run supersedes of older ones is estimated when
//! it is sealed or merged, from a sample of its ids, until a sweep has merged them.

use std::collections::BTreeSet;

use crate::format::{CollectionId, FileKind, KeyRange, Placement, SealedMeta, SegmentId, Sequence};
use crate::manifest::{ManifestState, SegmentState};

/// Bytes of ids and documents in sealed segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accounting {
    /// In level 0, whatever becomes of them; what a sweep has merged by now is not counted.
    pub(crate) level0_bytes: u64,
    /// In the files of level 0, also what a sweep has merged and not removed yet.
    pub(crate) level0_disk_bytes: u64,
    /// In level 1.
    pub(crate) level1_bytes: u64,
    /// Superseded within a run of level 0. Exact as of the last merge of the run's index.
    pub(crate) superseded_bytes: u64,
    /// Superseded by newer runs. Estimated.
    pub(crate) shadowed_bytes: u64,
    /// Superseded or deleted, and kept because the horizon is below.
    pub(crate) pinned_bytes: u64,
    /// In level 1, seen by nobody: what the horizon has passed, and dropped collections.
    pub(crate) garbage_bytes: u64,
    /// Ids of tombstones in level 0.
    pub(crate) tombstone_bytes: u64,
    /// The largest log segment's.
    pub(crate) segment_bytes: u64,
}

impl Accounting {
    /// Of what the manifest knows, as of a horizon.
    pub(crate) fn of(state: &ManifestState, horizon: Sequence) -> Self {
        let mut sum = Self::default();
        let (mut swept_bytes, mut swept_shadowed) = (0, 0);
        let members = members(state);
        for (&id, segment) in &state.segments {
            let SegmentState::Sealed(meta) = segment else { continue };
            if meta.file_kind == FileKind::Log {
                sum.segment_bytes = sum.segment_bytes.max(all_bytes(meta));
            }
            match state.placements.get(&id) {
                Some(Placement::Level1 { keys, .. }) => sum.add_level1(state, meta, keys, horizon),
                Some(Placement::Quarantined) => {}
                _ if members.contains(&id) => {}
                _ => {
                    let shadowed = state.shadowed.get(&id).copied().unwrap_or(0);
                    sum.add_level0(meta, shadowed);
                    if is_swept(state, id) {
                        swept_bytes += meta.content_bytes;
                        swept_shadowed += shadowed;
                    }
                }
            }
        }
        sum.level0_disk_bytes = sum.level0_bytes;
        if let Some(sweep) = &state.sweep {
            // Its share of everything that the sweep covers is in level 1 now.
            let merged = sweep.merged_bytes.min(swept_bytes);
            let share = |bytes: u64| {
                let part = u128::from(bytes) * u128::from(merged) / u128::from(swept_bytes.max(1));
                u64::try_from(part).unwrap_or(bytes)
            };
            sum.level0_bytes -= merged;
            sum.shadowed_bytes -= share(swept_shadowed);
        }
        sum
    }

    fn add_level0(&mut self, meta: &SealedMeta, shadowed: u64) {
        self.level0_bytes += all_bytes(meta);
        self.superseded_bytes += meta.superseded_bytes;
        self.pinned_bytes += meta.pinned_bytes;
        self.tombstone_bytes += meta.tombstone_bytes;
        self.shadowed_bytes += shadowed;
    }

    fn add_level1(
        &mut self,
        state: &ManifestState,
        meta: &SealedMeta,
        keys: &KeyRange,
        horizon: Sequence,
    ) {
        self.level1_bytes += meta.content_bytes;
        match garbage(state, meta, keys, horizon) {
            Some(bytes) => self.garbage_bytes += bytes,
            None => self.pinned_bytes += meta.pinned_bytes + meta.tombstone_bytes,
        }
    }

    /// Documents that a reader sees now: exact when level 0 is empty and nothing was dropped since.
    pub(crate) fn live_bytes(&self) -> u64 {
        let dead = self.superseded_bytes
            + self.shadowed_bytes
            + self.pinned_bytes
            + self.garbage_bytes
            + self.tombstone_bytes;
        (self.level0_bytes + self.level1_bytes).saturating_sub(dead)
    }

    /// What compaction can free.
    pub(crate) fn reclaimable_bytes(&self) -> u64 {
        self.superseded_bytes + self.shadowed_bytes + self.garbage_bytes + self.tombstone_bytes
    }
}

/// Ids and documents in a segment's files, indexed or not.
fn all_bytes(meta: &SealedMeta) -> u64 {
    meta.content_bytes + meta.superseded_bytes
}

/// What a sweep of this segment of level 1 would free, in bytes; `None` when nothing. Of a segment
/// that has a part of a dropped collection, half: how much it is only the sweep will tell.
pub(crate) fn garbage(
    state: &ManifestState,
    meta: &SealedMeta,
    keys: &KeyRange,
    horizon: Sequence,
) -> Option<u64> {
    let (first, last) = (keys.first.collection(), keys.last.collection());
    if state.collections.range(first..=last).any(|(&id, _)| is_gone(state, id, horizon)) {
        let is_whole = first == last;
        return Some(if is_whole { meta.content_bytes } else { meta.content_bytes.div_ceil(2) });
    }
    let kept = meta.pinned_bytes + meta.tombstone_bytes;
    (kept > 0 && meta.sequence_max <= horizon).then_some(kept)
}

/// The segments whose records an index of another file names.
pub(crate) fn members(state: &ManifestState) -> BTreeSet<SegmentId> {
    let mut all = BTreeSet::new();
    for placement in state.placements.values() {
        if let Placement::Index { members, .. } = placement {
            all.extend(members);
        }
    }
    all
}

/// Whether the sweep under way merges this run of level 0.
pub(crate) fn is_swept(state: &ManifestState, id: SegmentId) -> bool {
    let Some(sweep) = &state.sweep else { return false };
    match state.placements.get(&id) {
        Some(Placement::Index { age, .. }) => age.last <= sweep.cut,
        Some(Placement::Sorted { age, sweep: number, .. }) => {
            age.last <= sweep.cut && *number != sweep.number
        }
        Some(Placement::Level1 { .. } | Placement::Quarantined) => false,
        None => id <= sweep.cut,
    }
}

/// Whether a collection was dropped, and no reader is left that sees it.
pub(crate) fn is_gone(state: &ManifestState, collection: CollectionId, horizon: Sequence) -> bool {
    state
        .collections
        .get(&collection)
        .is_some_and(|entry| entry.dropped.is_some_and(|at| at <= horizon))
}
