//! Beginning a new segment.

use std::time::Duration;

use super::commit::flush_bytes;
use super::files::segment_header;
use super::{LogState, Store, Version};
use crate::error::{Error, Result};
use crate::format::{Edit, LOG_START, SegmentId, Sequence, record_len};
use crate::governor;
use crate::log::Run;
use crate::manifest::write_all;
use crate::memtable::Index;
use crate::segment::index_bytes_max;
use crate::sync::{Arc, Ordering};

/// Bytes of memtable a record takes, about; what `memtable_bytes` is divided by.
pub(crate) const MEMTABLE_RECORD_BYTES: u64 = 64;

/// A segment that is ready to take the log: created, named in the manifest, zeroed a little ahead.
#[derive(Debug)]
pub(super) struct Prepared {
    run: Arc<Run>,
}

impl Prepared {
    pub(super) fn run(&self) -> &Arc<Run> {
        &self.run
    }
}

impl Store {
    /// Records that a memtable of the configured size holds.
    pub(super) fn memtable_records(&self) -> usize {
        usize::try_from(self.options.memtable_bytes / MEMTABLE_RECORD_BYTES).unwrap_or(usize::MAX)
    }

    /// Where a segment's log must end: behind it is room for its index.
    pub(super) fn log_limit(&self, run: &Run) -> u64 {
        run.file.capacity() - index_bytes_max(run.memtable.capacity())
    }

    /// How long the next group waits, so that writers slow down before they would have to stop: for
    /// a seal under way when the active segment is full, for a flush under way when twice as much as
    /// starts one is kept.
    pub(super) fn write_delay(&self) -> Duration {
        let (tail_bytes, flush_bytes) =
            (self.tail_bytes.load(Ordering::Relaxed), flush_bytes(&self.options));
        let tail = (tail_bytes.saturating_sub(flush_bytes), flush_bytes);
        let version = self.version.load();
        if version.frozen.is_empty() {
            return governor::write_delay(&[tail]);
        }
        let active = &version.active;
        governor::write_delay(&[
            tail,
            (active.memtable.len() as u64, active.memtable.capacity() as u64),
            (active.end() - LOG_START, self.log_limit(active) - LOG_START),
        ])
    }

    /// Makes a segment with room for at least this much; the caller names it in the manifest.
    pub(super) fn create_run(&self, id: SegmentId, log_bytes: u64, records: usize) -> Result<Run> {
        let records = records.max(self.memtable_records());
        self.files.create_run(id, log_bytes.max(self.options.segment_bytes), records)
    }

    /// The id of a segment to be made. Fails before anything is made while the manifest cannot be
    /// written: each attempt would leave a file that may have been named.
    pub(super) fn next_segment_id(&self) -> Result<SegmentId> {
        let mut manifest = self.manifest.lock();
        manifest.ensure_whole()?;
        Ok(manifest.next_segment())
    }

    fn prepare(&self, log_bytes: u64, records: usize, unfit: Option<&Run>) -> Result<Prepared> {
        let id = self.next_segment_id()?;
        let run = self.create_run(id, log_bytes, records)?;
        let mut edits = vec![Edit::Created { segment: id, incarnation: run.file.incarnation() }];
        edits.extend(unfit.map(|unfit| Edit::Removed { segment: unfit.id() }));
        let mut manifest = self.manifest.lock();
        if let Err(e) = manifest.append(&edits) {
            manifest.abandon(Arc::clone(&run.file));
            return Err(e);
        }
        Ok(Prepared { run: Arc::new(run) })
    }

    /// Has the next segment ready before it is needed. A failure is left to whoever needs it.
    pub(super) fn prepare_in_background(self: &Arc<Self>) {
        let mut slot = self.prepared.lock();
        // A closed database has no use for it, and its manifest is complete.
        if slot.is_none() && !self.closed.load(Ordering::Acquire) {
            *slot = self.prepare(0, 0, None).ok();
        }
    }

    /// Writes a segment's header: where the log before it ended, to the byte.
    pub(super) fn write_header(
        &self,
        run: &Run,
        first_sequence: Sequence,
        predecessor: (SegmentId, u64),
    ) -> Result<()> {
        let header = segment_header(run, self.database_id, first_sequence, predecessor);
        write_all(&**run.file.disk_file(), run.path(), &header.encode(), 0)
    }

    /// Nobody waits here for an edit under way, whose sync takes as long as a busy disk makes it:
    /// what is prepared was named before, and an edit that takes it back has the slot's lock.
    fn ensure_whole_manifest(&self) -> Result<()> {
        if self.manifest_broken.load(Ordering::Acquire) {
            self.manifest.lock().ensure_whole()
        } else {
            Ok(())
        }
    }

    /// Freezes the active segment, to be sealed in the background, and goes on in a new one with
    /// room for at least this much.
    pub(super) fn roll(
        self: &Arc<Self>,
        state: &mut LogState,
        log_bytes: u64,
        records: usize,
    ) -> Result<()> {
        self.wait_for_frozen()?;
        // Held until the segment is in use: the background might make one with a lower id
        // meanwhile, which would be used later, and ids of segments rise with age.
        let mut slot = self.prepared.lock();
        let prepared = match slot.take() {
            Some(prepared) if self.fits(&prepared.run, log_bytes, records) => {
                if let Err(e) = self.ensure_whole_manifest() {
                    *slot = Some(prepared);
                    return Err(e);
                }
                prepared
            }
            // Too small for this batch. Not kept for later: ids of segments rise with age.
            unfit => {
                let unfit = unfit.map(|prepared| prepared.run);
                let prepared = self.prepare(log_bytes, records, unfit.as_deref());
                match (&prepared, unfit) {
                    (Ok(_), Some(unfit)) => unfit.file.doom(),
                    (Err(_), Some(run)) => *slot = Some(Prepared { run }),
                    (_, None) => {}
                }
                prepared?
            }
        };
        let old = Arc::clone(&state.active);
        old.zeros.stop();
        let new = Arc::clone(&prepared.run);
        // While the header is not known to be whole, after a panic too, what stands there is
        // unknown, and the old segment must not grow past the end that it may name. The repair that
        // the next write begins with removes both risks in one edit.
        *slot = Some(prepared);
        state.failure = Some(Error::Background { what: "a roll was interrupted".to_owned() });
        if let Err(e) = self.write_header(&new, state.last.next(), (old.id(), old.end())) {
            state.failure = Some(e.clone());
            return Err(Error::WriteFailed { source: Arc::new(e) });
        }
        state.failure = None;
        *slot = None;
        drop(slot);
        // The runs before it are sealed by now, and a memtable must not outlive that.
        state.unsynced.retain(|run| !run.is_synced());
        self.trim_tail(state);
        if !old.is_synced() {
            state.unsynced.push(Arc::clone(&old));
        }
        state.active = Arc::clone(&new);
        state.marked = 0;
        {
            let _sealing = self.sealing.lock();
            self.publish(|version| Version {
                active: Arc::clone(&new),
                frozen: std::iter::once(&old).chain(&version.frozen).cloned().collect(),
                tables: Arc::clone(&version.tables),
            });
        }
        self.counters.rolled();
        self.spawn("seal", Self::seal_in_background);
        self.spawn("prepare", Self::prepare_in_background);
        Ok(())
    }

    fn fits(&self, run: &Run, log_bytes: u64, records: usize) -> bool {
        let mark_bytes = record_len(0, 8) as u64;
        LOG_START + mark_bytes + log_bytes <= self.log_limit(run)
            && records <= run.memtable.capacity()
    }

    /// Waits until no frozen segment is left, and seals what the background has not come to:
    /// whoever needs the room may as well make it. It runs no other job: those may want the log,
    /// which the caller holds. An error is the writer's.
    fn wait_for_frozen(&self) -> Result<()> {
        if self.version.load().frozen.is_empty() {
            return Ok(());
        }
        let start = self.clock.now();
        if let Some(what) = self.panicked() {
            return Err(Error::Background { what });
        }
        let outcome = self.seal_frozen();
        self.counters.stalled(self.clock.now().saturating_sub(start));
        outcome
    }
}
