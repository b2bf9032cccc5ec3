//! After a failed or short write, or a failed sync.
//!
//! Nothing is tried again at its offset. The segment ends at its synced end; what was answered but
//! not synced (kept in memory) is written to a new segment, synced, and one manifest edit says that
//! the old one ends there and the new one follows. Records of the failed group are in neither. If
//! the disk does not allow that, the database is read-only until it does: each write tries again.

use super::{LogState, Store, TailChunk, Version};
use crate::error::{Error, Result};
use crate::format::{Edit, Kind, LOG_START, SegmentId, Sequence, place_record, unplace_record};
use crate::log::{Run, records};
use crate::manifest::write_all;
use crate::sync::Arc;

impl Store {
    pub(super) fn repair(self: &Arc<Self>, state: &mut LogState) -> Result<()> {
        let _sealing = self.sealing.lock();
        let version = self.version.load_full();
        // Oldest first. What is older than the first run with a gap is whole, and stays.
        let mut runs: Vec<Arc<Run>> = version.frozen.iter().rev().cloned().collect();
        runs.push(Arc::clone(&version.active));
        let gap = runs
            .iter()
            .position(|run| run.has_failed() || !run.is_synced())
            .unwrap_or(runs.len() - 1);
        let later = runs.split_off(gap + 1);
        let broken = runs.pop().ok_or(Error::Closed)?;
        broken.zeros.stop();
        later.iter().for_each(|run| run.zeros.stop());

        // Read once: a sync that is still under way may raise it, and the new segment's header, the
        // copied tail, the manifest and the cut must agree to the byte.
        let end = broken.synced().min(broken.end());
        let broken_is_empty = end <= LOG_START;
        // The run that the new segment goes on from: the last one that remains, so that the chain
        // tells if that lost its end.
        let follows = match runs.last() {
            Some(before) if broken_is_empty => (before.id(), before.end()),
            _ => (broken.id(), end),
        };
        // Before anything is made that a failure would leave behind.
        let cut = broken.cut(end, self.governor.regime())?;
        let new = self.copy_tail(state, &broken, end, follows)?;
        let mut edits = vec![
            Edit::Created { segment: new.id(), incarnation: new.file.incarnation() },
            Edit::Ended { segment: broken.id(), end },
        ];
        let gone = || later.iter().chain(broken_is_empty.then_some(&broken));
        edits.extend(gone().map(|run| Edit::Removed { segment: run.id() }));
        // Its id is lower than the new segment's, and ids rise with age.
        let mut prepared = self.prepared.lock();
        edits.extend(prepared.iter().map(|next| Edit::Removed { segment: next.run().id() }));
        {
            let mut manifest = self.manifest.lock();
            if let Err(e) = manifest.append(&edits) {
                manifest.abandon(Arc::clone(&new.file));
                return Err(e);
            }
        }

        if let Some(next) = prepared.take() {
            next.run().file.doom();
        }
        drop(prepared);
        gone().for_each(|run| run.file.doom());
        let new = Arc::new(new);
        if !broken_is_empty {
            runs.push(Arc::new(cut));
        }
        self.publish(|version| Version {
            active: Arc::clone(&new),
            frozen: runs.iter().rev().cloned().collect(),
            tables: Arc::clone(&version.tables),
        });
        state.unsynced.clear();
        state.tail.clear();
        self.set_tail_bytes(state, 0);
        state.marked = 0;
        state.active = new;
        self.counters.repaired();
        self.spawn("seal", Self::seal_in_background);
        self.spawn("prepare", Self::prepare_in_background);
        Ok(())
    }

    /// A new segment that follows `broken` at `end` and holds the answered groups behind it,
    /// synced.
    fn copy_tail(
        &self,
        state: &LogState,
        broken: &Run,
        end: u64,
        follows: (SegmentId, u64),
    ) -> Result<Run> {
        let chunks = || behind(state, broken, end);
        let records_max = chunks().map(|chunk| records(&chunk.bytes).count()).sum();
        let id = self.next_segment_id()?;
        let run = self.create_run(id, state.tail_bytes, records_max)?;
        let first = self.copied_from(state, broken, end);
        let filled = self
            .write_header(&run, first, follows)
            .and_then(|()| self.fill(state, broken, end, &run));
        match filled {
            Ok(()) => Ok(run),
            Err(e) => {
                // No edit has named it yet.
                run.file.doom();
                Err(e)
            }
        }
    }

    /// The lowest sequence that is copied, or that the next write may get.
    fn copied_from(&self, state: &LogState, broken: &Run, end: u64) -> Sequence {
        let first = behind(state, broken, end)
            .flat_map(|chunk| records(&chunk.bytes))
            .find(|(_, header)| header.is_counted());
        first.map_or_else(|| state.last.next(), |(_, header)| header.sequence)
    }

    /// Writes the answered groups behind `broken`'s end, and syncs the file.
    fn fill(&self, state: &LogState, broken: &Run, broken_end: u64, run: &Run) -> Result<()> {
        let mut bytes = Vec::with_capacity(usize::try_from(state.tail_bytes).unwrap_or(0));
        for chunk in behind(state, broken, broken_end) {
            let incarnation = self.incarnation_of(chunk.segment)?;
            for (at, header) in records(&chunk.bytes) {
                if header.kind == Kind::Mark {
                    continue;
                }
                let start = bytes.len();
                bytes.extend_from_slice(&chunk.bytes[at..at + header.record_len()]);
                let record = &mut bytes[start..];
                unplace_record(record, incarnation, chunk.offset + at as u64);
                let offset = LOG_START + start as u64;
                place_record(record, run.file.incarnation(), offset, header.sequence);
            }
        }
        let end = LOG_START + bytes.len() as u64;
        run.attempt(end);
        write_all(&**run.file.disk_file(), run.path(), &bytes, LOG_START)?;
        self.counters.wrote(bytes.len() as u64);
        // The catalogue applied them when they were answered.
        run.index(&bytes, LOG_START, |_| {})?;
        // Sequences of the failed group are skipped, not reused.
        let last = Sequence(broken.last_sequence().0.min(state.last.0));
        let last = records(&bytes).map(|(_, header)| header.sequence).fold(last, Sequence::max);
        run.publish(end, last);
        run.sync_index()
    }

    fn incarnation_of(&self, segment: SegmentId) -> Result<u64> {
        let version = self.version.load();
        std::iter::once(&version.active)
            .chain(&version.frozen)
            .find(|run| run.id() == segment)
            .map(|run| run.file.incarnation())
            .ok_or_else(|| Error::Background {
                what: format!("segment {segment} left the version while its tail was kept"),
            })
    }

    pub(super) fn report_panic(&self, what: String) {
        self.panic.lock().get_or_insert(what);
    }

    pub(super) fn panicked(&self) -> Option<String> {
        self.panic.lock().clone()
    }
}

/// The answered groups that stand behind an end of a run, or in later runs.
fn behind<'a>(
    state: &'a LogState,
    broken: &Run,
    end: u64,
) -> impl Iterator<Item = &'a TailChunk> + use<'a> {
    let id = broken.id();
    let is_behind =
        move |chunk: &&TailChunk| chunk.segment > id || chunk.segment == id && chunk.offset >= end;
    state.tail.iter().filter(is_behind)
}
