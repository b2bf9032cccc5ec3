//! Writing a group: conditions, placement, one write, the sync, visibility.
//!
//! Expected cost of a put without contention, besides the caller's encoding: one copy of the
//! record, one CRC of its header, one `pwrite` (about 1 µs buffered), the memtable's insert (about
//! 0.4 µs), and with durability one fdatasync (about 120 µs on the machine of the design's
//! figures).

use std::time::Duration;

use super::{LogState, Store, TailChunk};
use crate::error::{Error, Result};
use crate::format::{
    CollectionId, Key, Kind, LOG_START, RECORD_HEADER_BYTES, RecordHeader, Sequence, append_record,
    key_hash, place_record, record_len,
};
use crate::log::{Committed, Condition, Member, Outcome, Request, records};
use crate::manifest::write_all;
use crate::memtable::Index;
use crate::options::{Durability, Options};
use crate::planted::{self, Bug};
use crate::sync::{Arc, Ordering};

/// The largest batch, in bytes of log.
pub(crate) const BATCH_BYTES_MAX: u64 = 256 << 20;

/// Buffered bytes after which a flush starts, whatever the interval: at most, if the memory budget
/// allows.
const FLUSH_BYTES_MAX: u64 = 8 << 20;
const FLUSH_BYTES_MIN: u64 = 256 << 10;

/// A log that has been idle for this long gets a mark of what is synced.
pub(super) const IDLE_BEFORE_MARK: Duration = Duration::from_millis(100);

const MARK_BYTES: usize = record_len_const();

const fn record_len_const() -> usize {
    (RECORD_HEADER_BYTES + 8).next_multiple_of(8)
}

impl Store {
    /// Has the request committed; a condition that no longer holds is [`Committed::Conflict`].
    pub(crate) fn write(self: &Arc<Self>, request: Request) -> Outcome {
        self.check_open()?;
        let bytes = request.bytes.len() as u64;
        if bytes > BATCH_BYTES_MAX {
            return Err(Error::BatchTooLarge { bytes, limit: BATCH_BYTES_MAX });
        }
        self.queue.submit(request, &*self.clock, self.options.gather, |members| {
            self.commit(members);
        })
    }

    fn commit(self: &Arc<Self>, members: &mut [Member]) {
        let bytes = members.iter().map(|member| member.request.bytes.len() as u64).sum();
        let paced = self.throttle.wait(bytes, || self.schedule_compaction());
        let delay = self.write_delay().max(paced);
        // Without the log's lock, so that what writers wait for can go on: one group is led at a
        // time.
        if !delay.is_zero() {
            self.clock.sleep(delay);
            self.counters.stalled(delay);
        }
        let mut state = self.log.lock();
        self.refuse_puts(members);
        let mut first = 0;
        // What failed before room was made: a write may be on disk until another one succeeds.
        let mut unsure = None;
        while first < members.len() {
            if members[first].outcome.is_some() {
                first += 1;
                continue;
            }
            let outcome = self.commit_some(&mut state, &mut members[first..]);
            match outcome {
                Ok(decided) => {
                    first += decided;
                    unsure = None;
                }
                Err(e) if self.make_room(&mut state, &e, &mut members[first..]) => {
                    unsure = Some(e).filter(|e| matches!(e, Error::WriteFailed { .. }));
                }
                Err(e) => {
                    let e = unsure.unwrap_or(e);
                    for member in &mut members[first..] {
                        member.outcome.get_or_insert_with(|| Err(e.clone()));
                    }
                    return;
                }
            }
        }
    }

    /// Writes as many members as the active segment takes. How many were decided; at least one.
    fn commit_some(
        self: &Arc<Self>,
        state: &mut LogState,
        members: &mut [Member],
    ) -> Result<usize> {
        self.ensure_writable(state)?;
        let marked = state.marked;
        let group = self.stage(state, members)?;
        if group.decided == 0 {
            // The mark that was staged goes with the buffer.
            state.marked = marked;
            let request = &members[0].request;
            self.roll(state, request.bytes.len() as u64, request.count as usize)?;
            return self.commit_some(state, members);
        }
        if !state.buffer.is_empty() {
            if planted::is(Bug::MemberAnsweredBeforeSync) {
                for member in &mut members[1..group.decided] {
                    member.outcome.get_or_insert(Ok(Committed::At(group.last)));
                    member.answer();
                }
            }
            let written = if group.records == 0 {
                self.write_mark(state)
            } else {
                self.write_group(state, &group)
            };
            written.map_err(|e| {
                state.failure = Some(e.clone());
                Error::WriteFailed { source: Arc::new(e) }
            })?;
        }
        for member in &mut members[..group.decided] {
            member.outcome.get_or_insert(Ok(Committed::At(group.last)));
        }
        Ok(group.decided)
    }

    /// Places members in the buffer until one does not fit.
    fn stage(&self, state: &mut LogState, members: &mut [Member]) -> Result<Staged> {
        let run = Arc::clone(&state.active);
        let limit = self.log_limit(&run);
        let room = run.memtable.capacity() - run.memtable.len();
        let conditional = members.iter().any(|member| member.request.condition.is_some());
        let mut staged = Staged {
            decided: 0,
            records: 0,
            content_bytes: 0,
            durable: self.is_durable(),
            last: state.last,
        };
        let mut keys: Vec<u64> = Vec::new();
        let mut count = 0;
        state.buffer.clear();
        self.stage_mark(state);
        for member in members {
            if member.outcome.is_some() {
                staged.decided += 1;
                continue;
            }
            let request = &member.request;
            if let Some(condition) = &request.condition
                && (keys.contains(&condition.hash()) || !self.holds(condition))
            {
                member.outcome = Some(Ok(Committed::Conflict));
                staged.decided += 1;
                continue;
            }
            let end = run.end() + (state.buffer.len() + request.bytes.len()) as u64;
            if end > limit || count + request.count as usize > room {
                break;
            }
            staged.last = place(&mut state.buffer, &run, request, staged.last, |header, id| {
                staged.content_bytes += header.content_len();
                if conditional {
                    keys.push(key_hash(header.collection, id));
                }
            });
            count += request.count as usize;
            staged.durable |= request.durable;
            staged.decided += 1;
        }
        staged.records = count;
        Ok(staged)
    }

    /// Begins the group with a mark when more is synced than the last one said.
    fn stage_mark(&self, state: &mut LogState) {
        let run = &state.active;
        let synced = run.synced();
        // Where nothing is synced yet, the first mark says that the segments before are.
        let is_true = synced > LOG_START || state.unsynced.is_empty();
        let fits = run.end() + MARK_BYTES as u64 <= self.log_limit(run);
        if synced <= state.marked || !is_true || !fits {
            return;
        }
        let start = state.buffer.len();
        append_record(&mut state.buffer, Kind::Mark, CollectionId(0), &[], &synced.to_le_bytes());
        let offset = run.end() + start as u64;
        place_record(&mut state.buffer[start..], run.file.incarnation(), offset, state.last);
        state.marked = synced;
    }

    /// Whether no record of the condition's id is newer than what the writer saw. Looks at memory
    /// only: a segment sealed since then that might hold one counts as a conflict.
    fn holds(&self, condition: &Condition) -> bool {
        let version = self.version.load();
        if version.tables.sealed_up_to > condition.seen {
            return false;
        }
        let key = Key::new(condition.collection, &condition.id);
        std::iter::once(&version.active)
            .chain(&version.frozen)
            .filter_map(|run| run.newest(key))
            .all(|newest| newest <= condition.seen)
    }

    /// One write, the sync if asked for, then visibility. After an error nothing of the group is
    /// visible.
    fn write_group(self: &Arc<Self>, state: &mut LogState, group: &Staged) -> Result<()> {
        let Staged { durable, last, .. } = *group;
        // Sequences of a failed group are never used again, so that its bytes cannot be taken for
        // later ones.
        let before = std::mem::replace(&mut state.last, last);
        let (offset, end) = self.append(state)?;
        let run = Arc::clone(&state.active);
        if durable && !planted::is(Bug::SyncIgnored) {
            self.sync_older(state)?;
            run.sync_up_to(end)?;
            self.counters.synced();
        }
        run.index(&state.buffer, offset, |change| self.catalogue.apply(change))?;
        run.publish(end, last);
        self.visible.0.store(last.0, Ordering::Release);
        self.counters.committed(last.0 - before.0, group.content_bytes);

        self.last_write_ns.store(self.now_ns(), Ordering::Relaxed);
        self.arm_idle();
        if durable {
            state.tail.clear();
            self.set_tail_bytes(state, 0);
            self.schedule_mark(state);
        } else {
            self.keep_tail(state, offset);
        }
        Ok(())
    }

    /// Writes a group that is only a mark. It is worth no sync: what it says is true whether or not
    /// it survives.
    fn write_mark(self: &Arc<Self>, state: &mut LogState) -> Result<()> {
        let (_, end) = self.append(state)?;
        let run = &state.active;
        run.publish(end, run.last_sequence());
        // A mark needs no mark.
        state.marked = end;
        Ok(())
    }

    /// Writes the buffer at the log's end, in one call: where it begins and ends.
    fn append(self: &Arc<Self>, state: &LogState) -> Result<(u64, u64)> {
        let run = &state.active;
        let offset = run.end();
        let end = offset + state.buffer.len() as u64;
        if self.is_durable() && run.zeros.log_to(end) {
            self.spawn("zero ahead", Self::zero_ahead);
        }
        run.attempt(end);
        let with_holes = planted::is(Bug::DroppedWrite).then(|| planted::with_holes(&state.buffer));
        let bytes = with_holes.as_ref().unwrap_or(&state.buffer);
        write_all(&**run.file.disk_file(), run.path(), bytes, offset)?;
        self.counters.wrote(state.buffer.len() as u64);
        Ok((offset, end))
    }

    /// Syncs the runs before the active one, oldest first.
    pub(super) fn sync_older(&self, state: &mut LogState) -> Result<()> {
        while let Some(run) = state.unsynced.first() {
            run.sync()?;
            state.unsynced.remove(0);
        }
        Ok(())
    }

    /// Keeps a buffered group until it is synced, and sees to it that it will be.
    fn keep_tail(self: &Arc<Self>, state: &mut LogState, offset: u64) {
        let bytes = std::mem::take(&mut state.buffer);
        self.set_tail_bytes(state, state.tail_bytes + bytes.len() as u64);
        state.tail.push_back(TailChunk { segment: state.active.id(), offset, bytes });
        let flush_bytes = flush_bytes(&self.options);
        if state.tail_bytes > 2 * flush_bytes {
            // The background flush does not keep up: this writer pays. A failure does not concern
            // its group, which is written and kept; the next write begins with a repair.
            self.trim_tail(state);
            if state.tail_bytes > 2 * flush_bytes {
                let synced = self.sync_older(state).and_then(|()| state.active.sync());
                state.failure = synced.err();
                self.trim_tail(state);
            }
        }
        if state.tail_bytes > flush_bytes && !state.flush_hurried {
            state.flush_hurried = true;
            self.spawn("flush", Self::flush_in_background);
        } else if state.tail.is_empty() {
            self.schedule_mark(state);
        } else {
            self.schedule_flush(state, Duration::ZERO);
        }
    }

    /// Notes how much is kept; statistics see it without the log's lock.
    pub(super) fn set_tail_bytes(&self, state: &mut LogState, bytes: u64) {
        state.tail_bytes = bytes;
        self.tail_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Has a flush come when its interval is over, or this much time if that is longer.
    pub(super) fn schedule_flush(self: &Arc<Self>, state: &mut LogState, at_least: Duration) {
        if !state.flush_scheduled
            && !state.closed
            && let Durability::Buffered { flush_interval } = self.options.durability
        {
            state.flush_scheduled = true;
            self.spawn_after(flush_interval.max(at_least), "flush", Self::flush_at_interval);
        }
    }

    pub(super) fn schedule_mark(self: &Arc<Self>, state: &mut LogState) {
        if !state.mark_scheduled {
            state.mark_scheduled = true;
            self.spawn_after(IDLE_BEFORE_MARK, "mark", Self::mark_when_idle);
        }
    }
}

/// Buffered bytes after which a flush starts. Writers slow down at half as many again, and wait at
/// twice as many, so that these are kept within what two memtables and compaction leave of the
/// memory budget.
pub(super) fn flush_bytes(options: &Options) -> u64 {
    let others = 2 * options.memtable_bytes + options.sealing_bytes() + options.compaction_bytes();
    let left = options.memory_budget.saturating_sub(others);
    (left / 2).clamp(FLUSH_BYTES_MIN, FLUSH_BYTES_MAX)
}

/// What [`Store::stage`] put into the buffer.
struct Staged {
    decided: usize,
    records: usize,
    /// Ids and documents: marks and the framing of batches are not the user's.
    content_bytes: u64,
    durable: bool,
    last: Sequence,
}

/// Copies a request's records to the end of the buffer and gives them their places; `visit` sees
/// those that have a sequence of their own, with their ids. The sequence of the last record.
fn place(
    buffer: &mut Vec<u8>,
    run: &crate::log::Run,
    request: &Request,
    mut last: Sequence,
    mut visit: impl FnMut(&RecordHeader, &[u8]),
) -> Sequence {
    let start = buffer.len();
    buffer.extend_from_slice(&request.bytes);
    for (at, header) in records(&request.bytes) {
        let sequence = last.next();
        if header.is_counted() {
            last = sequence;
            let id = &request.bytes[at + RECORD_HEADER_BYTES..at + header.document_start()];
            visit(&header, id);
        }
        let from = start + at;
        let to = from + record_len(usize::from(header.id_len), header.document_len as usize);
        let offset = run.end() + from as u64;
        place_record(&mut buffer[from..to], run.file.incarnation(), offset, sequence);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unsynced_tail_takes_what_memtables_and_compaction_leave_of_the_budget() {
        const MIB: u64 = 1 << 20;
        let table = [
            (64 * MIB, 16 * MIB, 8 * MIB),
            (12 * MIB, 4 * MIB, MIB / 2),
            (8 * MIB, 4 * MIB, FLUSH_BYTES_MIN),
            (1 << 40, 4 * MIB, 8 * MIB),
        ];
        for (budget, memtable, expected) in table {
            let options = Options::default().memory_budget(budget).memtable_bytes(memtable);
            assert_eq!(flush_bytes(&options), expected, "{budget} {memtable}");
        }
    }
}
