//! Merging runs of level 0 with each other, so that a read meets few of them.
//!
//! Of indexes, while the records are in memory: each record is read once for its id (about 0.3 us)
//! and some 20 bytes are written for it. Of documents beyond: the files are read through first, in
//! order, so that the merge finds them in the page cache.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::super::Store;
use super::super::tables::{Level0, Tables};
use super::Work;
use super::merging::{Kept, Rules, index_memory, kept, retire, sorted_memory, sorted_records_max};
use super::suspects::Suspects;
use super::sweep::{files_of, room_for};
use crate::compactor::{
    CompactionReason, Fate, Merge, Older, Outputs, RunCounts, SegmentSize, files_made,
};
use crate::error::{Error, Result};
use crate::format::{Age, CollectionId, Edit, Key, Placement, SealedMeta, SegmentId, Sequence};
use crate::planted::{self, Bug};
use crate::segment::{DataSegment, IndexEntry, IndexWriter, SealedSegment};
use crate::sync::Arc;

/// The most ids that are looked up in older runs to estimate what a run supersedes there: all of
/// them up to here, then at least half as many.
const SAMPLES_MAX: usize = 512;

/// Every n-th id of those that pass, with an n that grows with their number.
#[derive(Debug)]
pub(in super::super) struct Sample {
    one_in: u64,
    seen: u64,
    ids: Vec<(CollectionId, Vec<u8>)>,
}

impl Default for Sample {
    fn default() -> Self {
        Self { one_in: 1, seen: 0, ids: Vec::new() }
    }
}

impl Sample {
    pub(in super::super) fn pass(&mut self, collection: CollectionId, id: &[u8]) {
        if self.seen.is_multiple_of(self.one_in) {
            if self.ids.len() == SAMPLES_MAX {
                let mut number = 0;
                self.ids.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
                self.one_in *= 2;
            }
            // The maximum is even, so that this one is a multiple of the new step as well.
            self.ids.push((collection, id.to_vec()));
        }
        self.seen += 1;
    }
}

impl Store {
    /// Ids that damaged records may have.
    pub(super) fn suspects<'a>(&self, tables: &'a Tables) -> Suspects<'a> {
        Suspects::new(tables, &self.manifest.lock().state().damaged, self.governor.regime())
    }

    /// What all ids of a sample's run supersede in older runs and level 1, in bytes, as estimated.
    /// An id that cannot be read there counts as nothing.
    pub(in super::super) fn estimate_shadowed(
        &self,
        tables: &Tables,
        age: Age,
        sample: &Sample,
    ) -> u64 {
        let regime = self.governor.regime();
        let superseded = sample.ids.iter().map(|(collection, id)| {
            tables.superseded_by(age, Key::new(*collection, id), regime).unwrap_or(0)
        });
        superseded.sum::<u64>().saturating_mul(sample.one_in)
    }

    /// Makes one index of several runs; their records stay where they are.
    pub(super) fn merge_indexes(
        self: &Arc<Self>,
        tables: &Tables,
        runs: &[(Level0, RunCounts)],
        range: Range<usize>,
    ) -> Result<Work> {
        let parts = Parts::of(runs, range);
        let metas: Vec<&SealedMeta> = parts.data.iter().map(|data| data.meta()).collect();
        let numbers: BTreeMap<SegmentId, usize> =
            metas.iter().enumerate().map(|(number, meta)| (meta.id, number)).collect();
        let horizon = self.advance_horizon();
        let collections = kept(self.manifest.lock().state(), horizon);
        let mut merge = parts.merge(self)?;
        self.note_memory(index_memory(parts.records));
        let mut writer = self.index_writer(&metas, parts.records)?;
        let mut sample = Sample::default();
        let rules = parts.rules(horizon, &collections);
        let suspects = self.suspects(tables);
        let merged = self.merge(
            &mut merge,
            &rules,
            |merge, key| self.older(tables, &parts, &suspects, merge, key),
            |merge, Kept { source, entry, fate, .. }| {
                let key = Key::new(entry.collection(), entry.id());
                let (file, offset) = merge.place(source)?;
                let member = numbers[&file];
                if fate == Fate::Newest {
                    sample.pass(key.collection, key.id);
                }
                let (sequence, kind) = (entry.sequence(), entry.kind());
                let content_len = entry.content_len();
                let entry = IndexEntry { key, offset, sequence, kind, content_len };
                writer.push(member, &entry)?;
                Ok(0)
            },
        )?;
        let lost = merge.into_lost();
        if !lost.is_empty() {
            // An index cannot name them: from now on these runs are merged by their documents.
            let edits: Vec<_> = lost.into_iter().map(|segment| Edit::Damaged { segment }).collect();
            self.publish_compaction(tables, &edits, &[], &[])?;
            return Ok(Work { read_bytes: merged.read_bytes, written_bytes: 0 });
        }
        let mut edits = vec![Edit::Horizon(horizon)];
        // The indexes of merged runs go, their records do not. Of an index without entries the
        // records go as well.
        let mut superfluous = parts.index_files();
        let mut made = Vec::new();
        let mut work = Work { read_bytes: merged.read_bytes, written_bytes: 0 };
        if writer.is_empty() {
            drop(writer);
            superfluous.extend(metas.iter().map(|meta| meta.id));
        } else {
            let (meta, file) = writer.finish()?;
            let segment = meta.id;
            work.written_bytes = meta.file_bytes();
            let members = metas.iter().map(|meta| meta.id).collect();
            edits.push(Edit::Sealed(meta));
            let placement = Placement::Index { age: parts.age, members };
            edits.push(Edit::Placed { segment, placement });
            let bytes = self.estimate_shadowed(tables, parts.age, &sample);
            edits.push(Edit::Shadowed { segment, bytes });
            made.push(file);
        }
        edits.extend(superfluous.iter().map(|&segment| Edit::Removed { segment }));
        self.publish_compaction(tables, &edits, &made, &superfluous)?;
        self.began(CompactionReason::Indexes);
        Ok(work)
    }

    /// Makes one sorted run of several.
    pub(super) fn merge_documents(
        self: &Arc<Self>,
        tables: &Tables,
        runs: &[(Level0, RunCounts)],
        range: Range<usize>,
    ) -> Result<Work> {
        let parts = Parts::of(runs, range);
        for data in &parts.data {
            data.read_through()?;
            self.check_open()?;
        }
        let horizon = self.advance_horizon();
        let collections = kept(self.manifest.lock().state(), horizon);
        let mut merge = parts.merge(self)?;
        let records_max = sorted_records_max(self.options.compaction_bytes(), parts.inputs);
        self.note_memory(sorted_memory(parts.inputs, parts.records.min(records_max)));
        let size = SegmentSize { bytes: self.options.segment_bytes, records_max };
        let capacity = parts.room;
        let mut outputs = Outputs::new(|| self.sorted_writer(capacity), size);
        let mut sample = Sample::default();
        let rules = parts.rules(horizon, &collections);
        let suspects = self.suspects(tables);
        let merged = self.merge(
            &mut merge,
            &rules,
            |merge, key| self.older(tables, &parts, &suspects, merge, key),
            |_, Kept { entry, fate, is_new_id, .. }| {
                if fate == Fate::Newest {
                    sample.pass(entry.collection(), entry.id());
                }
                outputs.push(entry, entry.sequence(), is_new_id)?;
                Ok(outputs.bytes())
            },
        )?;
        let outputs = outputs.finish()?;
        let lost = merge.into_lost();
        let mut edits = vec![Edit::Horizon(horizon)];
        let mut shadowed = Some(self.estimate_shadowed(tables, parts.age, &sample));
        for output in &outputs {
            let (age, segment, keys) = (parts.age, output.meta.id, output.keys.clone());
            edits.push(Edit::Sealed(output.meta.clone()));
            let placement = Placement::Sorted { age, sweep: 0, keys };
            edits.push(Edit::Placed { segment, placement });
            // The run's, all with its first piece.
            edits.extend(shadowed.take().map(|bytes| Edit::Shadowed { segment, bytes }));
        }
        let mut superfluous = Vec::new();
        {
            let manifest = self.manifest.lock();
            for segment in parts.files() {
                let edit = retire(segment, manifest.state(), &lost, &mut superfluous);
                edits.push(edit);
            }
        }
        let (written_bytes, made) = files_made(outputs);
        self.publish_compaction(tables, &edits, &made, &superfluous)?;
        self.began(CompactionReason::Documents);
        Ok(Work { read_bytes: merged.read_bytes, written_bytes })
    }

    fn began(&self, reason: CompactionReason) {
        self.compactor.control.lock().count(reason);
    }

    /// Whether older runs than those that are merged, level 1, or a record whose id is damaged may
    /// be a version of the key.
    fn older(
        &self,
        tables: &Tables,
        parts: &Parts,
        suspects: &Suspects<'_>,
        merge: &Merge,
        key: Key<'_>,
    ) -> Result<Older> {
        let is_oldest = tables.level0.last().is_some_and(|oldest| oldest.age == parts.oldest);
        if !is_oldest && !planted::is(Bug::TombstoneDroppedEarly) {
            return Ok(Older::Possible);
        }
        match tables.level1.find_newest(key, self.governor.regime()) {
            Ok(None) if suspects.have((key.collection, key.id), merge.lost())? => {
                Ok(Older::Possible)
            }
            Ok(None) => Ok(Older::Impossible),
            Ok(Some(_)) | Err(Error::Corrupt { .. }) => Ok(Older::Possible),
            Err(e) => Err(e),
        }
    }

    fn index_writer(&self, metas: &[&SealedMeta], records: u64) -> Result<IndexWriter> {
        let id = self.next_segment_id()?;
        let database_id = self.database_id;
        let new = self.files.new_segment(id, database_id);
        let count = usize::try_from(records).unwrap_or(usize::MAX);
        IndexWriter::create(&new, metas, count)
    }
}

/// The runs of a merge.
struct Parts {
    runs: Vec<Level0>,
    age: Age,
    oldest: Age,
    /// Files with records, the newest run's first.
    data: Vec<Arc<DataSegment>>,
    records: u64,
    inputs: usize,
    room: u64,
}

impl Parts {
    fn of(runs: &[(Level0, RunCounts)], range: Range<usize>) -> Self {
        let runs: Vec<Level0> = runs[range].iter().map(|(run, _)| run.clone()).collect();
        let ages = || runs.iter().map(|run| run.age);
        let age = ages().reduce(|a, b| Age::span(b, a)).unwrap_or(Age::of(SegmentId(0)));
        let oldest = ages().next_back().unwrap_or(age);
        let segments: Vec<Arc<SealedSegment>> =
            runs.iter().flat_map(|run| run.run.segments()).collect();
        let data = segments.iter().flat_map(|segment| segment.members().to_vec()).collect();
        let records = segments.iter().map(|segment| segment.meta().records).sum();
        let inputs: Vec<_> = runs.iter().map(|run| run.run.input()).collect();
        let room = room_for(&inputs);
        Self { age, oldest, data, records, inputs: inputs.len(), room, runs }
    }

    fn merge(&self, store: &Store) -> Result<Merge> {
        let inputs = self.runs.iter().map(|run| run.run.input()).collect();
        Merge::new(inputs, None, store.compaction_access())
    }

    /// To the end of all keys, however much that writes.
    fn rules<'a>(&self, horizon: Sequence, collections: &'a BTreeSet<CollectionId>) -> Rules<'a> {
        let (level0_sources, bytes_max) = (self.inputs, u64::MAX);
        Rules { until: None, horizon, level0_sources, collections, bytes_max }
    }

    /// All files of the runs.
    fn files(&self) -> Vec<SegmentId> {
        let segments = self.runs.iter().flat_map(|run| run.run.segments());
        segments.flat_map(|segment| files_of(&segment)).collect()
    }

    /// Those that hold an index and no records.
    fn index_files(&self) -> Vec<SegmentId> {
        let records: Vec<SegmentId> = self.data.iter().map(|data| data.meta().id).collect();
        self.files().into_iter().filter(|id| !records.contains(id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sample of so many ids, as their numbers.
    fn sampled(ids: u32) -> (u64, Vec<u32>) {
        let mut sample = Sample::default();
        for id in 0..ids {
            sample.pass(CollectionId(1), &id.to_be_bytes());
        }
        let number = |id: &[u8]| u32::from_be_bytes(id.try_into().unwrap());
        (sample.one_in, sample.ids.iter().map(|(_, id)| number(id)).collect())
    }

    #[test]
    fn a_sample_is_all_ids_up_to_its_size_and_then_every_second_fourth_eighth() {
        let table = [(0, 1), (1, 1), (512, 1), (513, 2), (1024, 2), (1025, 4), (100_000, 256)];
        for (ids, one_in) in table {
            let (step, found) = sampled(ids);
            assert_eq!(step, one_in, "{ids} ids");
            let every: Vec<_> = (0..ids).step_by(usize::try_from(one_in).unwrap()).collect();
            assert_eq!(found, every, "{ids} ids");
            assert!(ids < 512 || (257..=512).contains(&found.len()), "{ids} ids");
        }
    }
}
