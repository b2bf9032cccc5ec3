//! The rolling merge of level 0 into level 1, a step at a time.
//!
//! Expected cost of a step, in a store in which level 0 is half of level 1: each byte of a segment
//! is read and written once, and half as many bytes of level 0 are read, one `pread` a record (about
//! 0.3 us while it is in memory). Two syncs and one edit for some 16 to 32 MiB.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::super::Store;
use super::super::tables::{Cover, Level0, Level0Run, Tables};
use super::merging::{Rules, kept, retire, sorted_memory, sorted_records_max};
use super::{Sample, Work, share};
use crate::compactor::{
    CompactionReason, Fate, Input, Merge, Older, Output, Outputs, Plan, SegmentSize, Sizes,
    accounting, files_made, plan, territory,
};
use crate::error::Result;
use crate::format::{
    Age, Bound, Edit, FullKey, KeyRange, Placement, SegmentId, Sequence, Side, SweepState,
};
use crate::planted::{self, Bug};
use crate::scan::ChainEntry;
use crate::segment::{SealedSegment, index_bytes_max};
use crate::sync::Arc;

/// Of a segment of level 1, to that of a log segment.
const TARGET_ONE_IN: u64 = 4;
const TARGET_BYTES_MIN: u64 = 8 << 10;
/// A step ends at so many segments.
const STEP_SEGMENTS: u64 = 2;
/// See [`Sizes::carry_one_in`].
const CARRY_ONE_IN: u64 = 10;

/// Where the records of a step go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Level1,
    /// A run of level 0, as new as the sweep's cut.
    Carried,
}

impl Store {
    /// Freezes the cut.
    pub(super) fn begin_sweep(
        self: &Arc<Self>,
        tables: &Tables,
        reason: CompactionReason,
    ) -> Result<()> {
        let horizon = self.advance_horizon();
        let cut = tables.level0.iter().map(|run| run.age.last).max().unwrap_or_default();
        let number = self.manifest.lock().state().sweeps + 1;
        let sweep = SweepState {
            number,
            cut,
            cursor: None,
            merged_bytes: 0,
            // A drop that is not sealed is not known to the manifest yet.
            horizon: horizon.min(tables.sealed_up_to),
        };
        let edits = [Edit::Sweep(sweep), Edit::Horizon(horizon)];
        self.publish_compaction(tables, &edits, &[], &[])?;
        self.compactor.control.lock().began(reason);
        Ok(())
    }

    /// Takes the next step of the sweep under way.
    pub(super) fn sweep_step(
        self: &Arc<Self>,
        tables: &Tables,
        reason: CompactionReason,
    ) -> Result<Work> {
        let Some(sweep) = tables.sweep.clone() else { return Ok(Work::default()) };
        let level0: Vec<Input> = swept(tables).map(|run| run.run.input()).collect();
        // Where so little is live that what was carried is worth a sweep by itself, it is merged: to
        // carry it again would go on for ever.
        let is_carried_only = swept(tables).all(|run| matches!(run.run, Level0Run::Chain(_)));
        let sizes = Sizes {
            target: self.level1_bytes(),
            // A sweep that somebody waits for, or that costs nobody anything, leaves nothing.
            carry_one_in: match reason {
                CompactionReason::Idle | CompactionReason::Forced => 0,
                // What makes much dead may be small.
                CompactionReason::Garbage => 0,
                _ if is_carried_only => 0,
                _ => CARRY_ONE_IN,
            },
        };
        let territories = self.territories(tables);
        let planned = plan(&territories, sweep.cursor.as_ref(), sizes, |from, until| {
            level0.iter().map(|input| content_between(input, from, until)).sum()
        })?;
        match planned {
            Plan::End => {
                let (edits, gone) = self.end_edits(tables, &sweep, &BTreeSet::new());
                self.publish_compaction(tables, &edits, &[], &gone)?;
                self.sweep_ended();
                Ok(Work::default())
            }
            Plan::Rewrite { segments, from, until, share } => {
                let inputs = &tables.level1.entries()[segments];
                let step = Step { sweep, target: Target::Level1, level0, from, until, share };
                self.take_step(tables, step, inputs, sizes)
            }
            Plan::Carry { from, until, share } => {
                let step = Step { sweep, target: Target::Carried, level0, from, until, share };
                self.take_step(tables, step, &[], sizes)
            }
        }
    }

    /// Bytes of a segment of level 1.
    fn level1_bytes(&self) -> u64 {
        (self.options.segment_bytes / TARGET_ONE_IN).max(TARGET_BYTES_MIN)
    }

    fn territories(&self, tables: &Tables) -> Vec<territory::Territory> {
        let horizon = self.snapshots.horizon();
        let manifest = self.manifest.lock();
        let state = manifest.state();
        let territory = |entry: &ChainEntry| {
            let (first, last) = (entry.first().clone(), entry.last().clone());
            let keys = KeyRange { first: first.clone(), last: last.clone() };
            let meta = entry.segment().meta();
            // Of a segment that a step ended in, the beginning is in new ones already.
            let has_garbage = entry.lower() == Bound::Clipped
                || accounting::garbage(state, meta, &keys, horizon).is_some();
            territory::Territory { first, last, bytes: meta.content_bytes, has_garbage }
        };
        tables.level1.entries().iter().map(territory).collect()
    }

    fn take_step(
        self: &Arc<Self>,
        tables: &Tables,
        step: Step,
        inputs: &[ChainEntry],
        sizes: Sizes,
    ) -> Result<Work> {
        let horizon = self.advance_horizon();
        let collections = kept(self.manifest.lock().state(), step.sweep.horizon);
        let level0_sources = step.level0.len();
        let capacity = room_for(&step.level0) + room_for(&[Input::Chain(inputs.to_vec())]);
        let level1_bytes: u64 = inputs.iter().map(|e| e.segment().meta().content_bytes).sum();
        let mut sources = step.level0.clone();
        if !inputs.is_empty() {
            sources.push(Input::Chain(inputs.to_vec()));
        }
        let records_max = sorted_records_max(self.options.compaction_bytes(), sources.len());
        self.note_memory(sorted_memory(sources.len(), records_max.min(sizes.target / 32)));
        let mut merge = Merge::new(sources, step.from.clone(), self.compaction_access())?;
        let rules = Rules {
            until: step.until.as_ref(),
            horizon,
            level0_sources,
            collections: &collections,
            bytes_max: STEP_SEGMENTS * sizes.target,
        };
        let bytes = even(level1_bytes + step.share, sizes.target);
        let size = SegmentSize { bytes, records_max };
        let mut outputs = Outputs::new(|| self.sorted_writer(capacity), size);
        let suspects = self.suspects(tables);
        let mut sample = Sample::default();
        let merged = self.merge(
            &mut merge,
            &rules,
            |merge, key| match step.target {
                // Level 0 up to the cut and level 1 are all there is below.
                Target::Level1 if !suspects.have((key.collection, key.id), merge.lost())? => {
                    Ok(Older::Impossible)
                }
                _ => Ok(Older::Possible),
            },
            |merge, kept| {
                if step.target == Target::Carried && kept.fate == Fate::Newest {
                    sample.pass(kept.entry.collection(), kept.entry.id());
                }
                let sequence = match step.target {
                    // Every reader sees what is at or below the horizon.
                    Target::Level1
                        if kept.entry.sequence() <= horizon
                            && !suspects.have(kept.entry.key(), merge.lost())? =>
                    {
                        Sequence(0)
                    }
                    _ => kept.entry.sequence(),
                };
                outputs.push(kept.entry, sequence, kept.is_new_id)?;
                Ok(outputs.bytes())
            },
        )?;
        let outputs = outputs.finish()?;
        let lost = merge.into_lost();
        let next = merged.next.or(step.until.clone());
        let (mut edits, mut gone) =
            self.step_edits(tables, &step, &outputs, inputs, &lost, next.as_ref());
        edits.push(Edit::Horizon(horizon));
        if let (Target::Carried, Some(first)) = (step.target, outputs.first()) {
            let age = carried_age(tables, &step.sweep);
            let bytes = self.estimate_shadowed(tables, age, &sample);
            edits.push(Edit::Shadowed { segment: first.meta.id, bytes });
        }
        match &next {
            Some(next) => {
                debug_assert!(Some(next) > step.sweep.cursor.as_ref(), "a sweep goes on");
                edits.push(Edit::Sweep(SweepState {
                    cursor: Some(next.clone()),
                    merged_bytes: step.sweep.merged_bytes + merged.level0_bytes,
                    ..step.sweep.clone()
                }));
            }
            None => {
                let (last_edits, last_gone) = self.end_edits(tables, &step.sweep, &lost);
                edits.extend(last_edits);
                gone.extend(last_gone);
            }
        }
        let (written_bytes, made) = files_made(outputs);
        self.publish_compaction(tables, &edits, &made, &gone)?;
        if next.is_none() {
            self.sweep_ended();
        }
        Ok(Work { read_bytes: merged.read_bytes, written_bytes })
    }

    /// What a step changes, and the files that it makes superfluous.
    fn step_edits(
        &self,
        tables: &Tables,
        step: &Step,
        outputs: &[Output],
        inputs: &[ChainEntry],
        lost: &BTreeSet<SegmentId>,
        next: Option<&FullKey>,
    ) -> (Vec<Edit>, Vec<SegmentId>) {
        let mut edits: Vec<_> = lost.iter().map(|&segment| Edit::Damaged { segment }).collect();
        let mut gone = Vec::new();
        for output in outputs {
            let keys = output.keys.clone();
            let placement = match step.target {
                Target::Level1 => Placement::Level1 { keys, lower: Bound::Own },
                Target::Carried => Placement::Sorted {
                    age: carried_age(tables, &step.sweep),
                    sweep: step.sweep.number,
                    keys,
                },
            };
            edits.push(Edit::Sealed(output.meta.clone()));
            edits.push(Edit::Placed { segment: output.meta.id, placement });
        }
        let manifest = self.manifest.lock();
        for input in inputs {
            let segment = input.segment().meta().id;
            match next {
                Some(next) if next <= input.first() => {}
                Some(next) if next <= input.last() => {
                    let keys = KeyRange { first: next.clone(), last: input.last().clone() };
                    let placement = Placement::Level1 { keys, lower: Bound::Clipped };
                    edits.push(Edit::Placed { segment, placement });
                }
                _ => edits.push(retire(segment, manifest.state(), lost, &mut gone)),
            }
        }
        (edits, gone)
    }

    /// What the end of a sweep changes, and the files that it makes superfluous: level 0 up to the
    /// cut, all at once, but for what has records whose ids are not known.
    fn end_edits(
        &self,
        tables: &Tables,
        sweep: &SweepState,
        lost: &BTreeSet<SegmentId>,
    ) -> (Vec<Edit>, Vec<SegmentId>) {
        let mut edits = vec![Edit::SweepEnded, Edit::Horizon(self.snapshots.horizon())];
        let mut superfluous = Vec::new();
        let manifest = self.manifest.lock();
        let state = manifest.state();
        // The runs come newest first: this is the oldest of several.
        let is_left = |run: &&Level0| {
            planted::is(Bug::RemovalOutOfAgeOrder)
                && swept(tables).skip(1).last().is_some_and(|oldest| oldest.age == run.age)
        };
        let removed = swept(tables).filter(|run| !is_left(run));
        for segment in removed.flat_map(|run| run.run.segments()) {
            for segment in files_of(&segment) {
                edits.push(retire(segment, state, lost, &mut superfluous));
            }
        }
        let all = state.collections.keys().copied();
        let gone = all.filter(|&id| accounting::is_gone(state, id, sweep.horizon));
        edits.extend(gone.map(|collection| Edit::Forgotten { collection }));
        (edits, superfluous)
    }

    fn sweep_ended(&self) {
        let mut control = self.compactor.control.lock();
        control.forced_done = control.forced_done.max(control.forced_by_sweep);
    }
}

/// The runs that the sweep under way merges.
fn swept(tables: &Tables) -> impl Iterator<Item = &Level0> {
    tables.level0.iter().filter(|run| run.cover == Cover::FromCursor)
}

/// Of the records that a sweep carries forward: of all runs that it merges.
fn carried_age(tables: &Tables, sweep: &SweepState) -> Age {
    let first = swept(tables).map(|run| run.age.first).min().unwrap_or(sweep.cut);
    Age { first, last: sweep.cut }
}

/// One step: its keys, and what level 0 has there.
struct Step {
    sweep: SweepState,
    target: Target,
    level0: Vec<Input>,
    from: Option<FullKey>,
    until: Option<FullKey>,
    share: u64,
}

/// The files of a segment: its own, and those that its index is over.
pub(super) fn files_of(segment: &SealedSegment) -> Vec<SegmentId> {
    let own = segment.meta().id;
    let members = segment.members().iter().map(|member| member.meta().id);
    std::iter::once(own).chain(members.filter(|&id| id != own)).collect()
}

/// A size for segments that makes them alike, near the target, where so many bytes are expected.
fn even(expected: u64, target: u64) -> u64 {
    let pieces = (expected + target / 2) / target.max(1);
    // A little more, so that an estimate that is short does not leave a last piece of nothing.
    let piece = expected / pieces.max(1);
    (piece + piece / 16).clamp(target / 2, target + target / 2)
}

/// The most that the records of these runs, and an index of them, take in a sorted segment.
pub(super) fn room_for(inputs: &[Input]) -> u64 {
    let room = |segment: &SealedSegment| {
        let meta = segment.meta();
        // A header of at most 28 bytes and padding.
        let count = usize::try_from(meta.records).unwrap_or(usize::MAX);
        meta.content_bytes + meta.records * 36 + index_bytes_max(count)
    };
    let rooms = inputs.iter().map(|input| match input {
        Input::Segment(segment) => room(segment),
        Input::Chain(parts) => parts.iter().map(|part| room(part.segment())).sum(),
    });
    rooms.sum::<u64>().next_multiple_of(4096) + (64 << 10)
}

/// What a run has from a key on up to another one, ids and documents in bytes: by the number of its
/// records there, at their mean size.
pub(super) fn content_between(
    input: &Input,
    from: Option<&FullKey>,
    until: Option<&FullKey>,
) -> Result<u64> {
    let within = |segment: &SealedSegment| {
        let meta = segment.meta();
        let rank = |key: &FullKey| segment.rank(key.position(Side::Before));
        let first = from.map_or(Ok(0), rank)?;
        let last = until.map_or(Ok(meta.records), rank)?;
        Ok(share(meta.content_bytes, last.saturating_sub(first), meta.records))
    };
    match input {
        Input::Segment(segment) => within(segment),
        Input::Chain(parts) => {
            let overlaps = |part: &&ChainEntry| {
                from.is_none_or(|from| part.last().cmp(from) != Ordering::Less)
                    && until.is_none_or(|until| part.first() < until)
            };
            parts.iter().filter(overlaps).map(|part| within(part.segment())).sum()
        }
    }
}
