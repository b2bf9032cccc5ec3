//! From what a crash left to a database that opens.
//!
//! Invariants:
//!
//! 1. Nothing old is written to: the valid part of the unsealed log is copied into a new segment,
//!    which is sealed, synced, and named by the new manifest; then the old files are unlinked. A
//!    crash at any step leaves what was there before.
//! 2. What is kept is a prefix of the commit order. A segment is believed only if its predecessor's
//!    log replays to the very byte that its header names.
//! 3. Damage below what was synced is reported, never passed over. With [`Recovery::Strict`]
//!    nothing is changed then.
//! 4. Sealed segments are not visited.
//! 5. A segment that the manifest does not know and yet holds a mark is damage of the manifest:
//!    marks are written only to segments that a synced edit named.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::disk::{Access, DiskFile, OpenMode};
use crate::error::{Error, Result};
use crate::format::{
    CollectionId, Edit, FileKind, FormatFault, LOG_START, RecordHeader, SEGMENT_HEADER_BYTES,
    SegmentHeader, SegmentId, Sequence, place_record, unplace_record,
};
use crate::log::{LogReader, Replay, Run, replay};
use crate::manifest::{MANIFEST_NAME, ManifestState, SegmentState, write_all};
use crate::options::Recovery;
use crate::planted::{self, Bug};
use crate::segment::{Regime, parse_segment_name, segment_path};
use crate::stats::RecoveryReport;
use crate::store::{Files, segment_header, survivors, write_index};
use crate::sync::Arc;

const COPY_BYTES: usize = 1 << 20;

/// Records copied into one segment: fewer than a memtable can hold, whatever was unsealed together.
const RECORDS_MAX: usize = if cfg!(test) { 1_000 } else { 1 << 22 };

/// What recovery leads to: the state for a new manifest.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    pub(crate) state: ManifestState,
    pub(crate) report: RecoveryReport,
}

/// An unsealed segment, and how much of it is the log.
struct Tail {
    id: SegmentId,
    incarnation: u64,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    /// `None` when the header does not verify.
    header: Option<SegmentHeader>,
    /// Where a failed write or sync ended it: all below was synced.
    ended: Option<u64>,
    replay: Replay,
    records: usize,
    /// The sequence of its last record.
    last: Sequence,
}

/// Brings the unsealed log into a sealed segment. `names` are the files in the folder.
pub(crate) fn recover(
    files: &Files,
    database_id: [u8; 16],
    mut state: ManifestState,
    names: &[OsString],
    mode: Recovery,
    history: u64,
) -> Result<Recovered> {
    let mut tails = Vec::new();
    for (&id, segment) in &state.segments {
        if let SegmentState::Log { incarnation, end } = *segment {
            tails.push(Tail::open(files, database_id, id, incarnation, end)?);
        }
    }
    let mut report = RecoveryReport { segments: tails.len() as u64, ..RecoveryReport::default() };
    check_manifest_is_whole(files, database_id, &state, names, mode, &mut report)?;
    let believed = believe(&tails, &state, mode, &mut report)?;

    // An earlier recovery may have crashed and left a file that no manifest names.
    let ids = names.iter().filter_map(|name| parse_segment_name(name));
    // Ids near the end of the range are nobody's: files that only look like segments.
    let highest = ids.filter(|id| id.0 < u64::MAX / 2).max().unwrap_or_default();
    state.next_segment = state.next_segment.max(SegmentId(highest.0 + 1));
    for tail in &tails {
        state.apply(&Edit::Removed { segment: tail.id });
    }
    let believed = &tails[..believed];
    // As a seal would move it: nobody reads below.
    let newest = believed.iter().map(|tail| tail.last).fold(state.newest_sequence(), Sequence::max);
    let horizon = Sequence(newest.0.saturating_sub(history)).max(state.horizon);
    state.apply(&Edit::Horizon(horizon));
    let edits = copy(files, database_id, &state, believed, &mut report)?;
    edits.iter().for_each(|edit| state.apply(edit));
    Ok(Recovered { state, report })
}

/// Tells a manifest that lost its last edit to damage from one whose last edit was never finished.
fn check_manifest_is_whole(
    files: &Files,
    database_id: [u8; 16],
    state: &ManifestState,
    names: &[OsString],
    mode: Recovery,
    report: &mut RecoveryReport,
) -> Result<()> {
    // What an edit once named and another removed has a lower id.
    let unknown = names.iter().filter_map(|name| parse_segment_name(name));
    for id in unknown.filter(|&id| id >= state.next_segment) {
        let path = segment_path(&files.dir, id);
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        let opened = files.disk.open(&path, OpenMode::Read).and_then(|file| {
            let read = file.read_at(&mut bytes, 0, Access::Once)?;
            Ok((file, read))
        });
        let (file, read) = match opened {
            Err(e) if e.kind() == io::ErrorKind::IsADirectory => continue,
            opened => opened.map_err(|e| Error::io("read", &path, e))?,
        };
        let Ok(header) = SegmentHeader::decode(&bytes[..read]) else { continue };
        let is_ours = header.database_id == database_id && header.segment == id;
        // What compaction was writing has no marks, and is named only once it is complete.
        if !is_ours || header.file_kind != FileKind::Log {
            continue;
        }
        let mut reader = LogReader::new(&*file, &path, u64::MAX)?;
        let found = replay(&mut reader, header.incarnation, |_, _, _| Ok(()))?;
        if found.synced == 0 {
            continue;
        }
        let manifest = files.dir.join(MANIFEST_NAME);
        if mode == Recovery::Strict {
            let what = format!(
                "its last edit is damaged: it does not name segment {id}, which was in use"
            );
            return Err(Error::corrupt(&manifest, 0, what));
        }
        report.damage.get_or_insert((manifest, 0));
    }
    Ok(())
}

impl Tail {
    fn open(
        files: &Files,
        database_id: [u8; 16],
        id: SegmentId,
        incarnation: u64,
        ended: Option<u64>,
    ) -> Result<Self> {
        let path = segment_path(&files.dir, id);
        let file = files.disk.open(&path, OpenMode::Read).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => {
                Error::corrupt(&path, 0, "the manifest names this segment and it is missing")
            }
            _ => Error::io("open", &path, e),
        })?;
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        let read = file.read_at(&mut bytes, 0, Access::Once);
        let read = read.map_err(|e| Error::io("read", &path, e))?;
        let header = match SegmentHeader::decode(&bytes[..read]) {
            Ok(header) => Some(header).filter(|header| {
                header.database_id == database_id
                    && header.segment == id
                    && header.incarnation == incarnation
            }),
            Err(FormatFault::Damaged(_)) => None,
            Err(fault @ FormatFault::Unsupported(_)) => return Err(fault.into_error(&path, 0)),
        };
        let (mut records, mut last) = (0, Sequence(0));
        let mut reader = LogReader::new(&*file, &path, ended.unwrap_or(u64::MAX))?;
        let found = replay(&mut reader, incarnation, |header, _, _| {
            records += 1;
            last = header.sequence;
            Ok(())
        })?;
        Ok(Self { id, incarnation, path, file, header, ended, replay: found, records, last })
    }

    /// Where the log is damaged below what was synced, if it is.
    fn damage(&self) -> Option<u64> {
        let synced = self.replay.synced.max(self.ended.unwrap_or(0));
        if self.header.is_none() {
            // Its header was synced with the first group that was.
            return (synced > LOG_START).then_some(0);
        }
        (synced > self.replay.end).then_some(self.replay.end)
    }

    /// Whether nothing was ever written here: prepared and not used.
    fn is_unused(&self) -> bool {
        self.header.is_none() && self.replay.end == LOG_START && !self.replay.later_record
    }
}

/// How many of the segments, from the oldest on, are the log. Damage is an error, or noted in the
/// report.
fn believe(
    tails: &[Tail],
    state: &ManifestState,
    mode: Recovery,
    report: &mut RecoveryReport,
) -> Result<usize> {
    let mut believed = 0;
    // The first place where the log does not go on.
    let mut gap: Option<(&Tail, u64)> = None;
    for tail in tails {
        if tail.is_unused() {
            // Nothing follows an unused segment but unused ones; copying it copies nothing.
            believed += usize::from(gap.is_none());
            continue;
        }
        let follows = tail.header.as_ref().is_some_and(|header| {
            let end = match state.segments.get(&header.predecessor) {
                Some(SegmentState::Sealed(meta)) => Some(meta.log_end),
                Some(SegmentState::Log { .. }) => {
                    tails.iter().find(|tail| tail.id == header.predecessor).map(|t| t.replay.end)
                }
                // Removed, which happens only once nothing of it is needed; or none.
                None => Some(header.predecessor_end),
            };
            end == Some(header.predecessor_end) || planted::is(Bug::SuccessorAccepted)
        });
        let damage = tail.damage().map(|offset| (tail, offset));
        // A mark in a later segment says that all before it was synced.
        let mut lost = gap.filter(|_| tail.replay.synced > 0);
        if gap.is_none() && !follows {
            let before = tails[..believed].iter().rfind(|before| !before.is_unused());
            match before {
                Some(before) if tail.header.is_some() => {
                    gap = Some((before, before.replay.end));
                    lost = gap.filter(|_| tail.replay.synced > 0);
                }
                _ => {
                    gap = Some((tail, 0));
                    // A header that verifies and names another end than that of its predecessor,
                    // which is sealed or removed and so whole: no crash leaves that.
                    let contradicts = tail.header.is_some() && tail.replay.synced > 0;
                    lost = damage.or(gap.filter(|_| contradicts));
                }
            }
        } else if gap.is_none() {
            lost = damage;
        }
        if let Some((damaged, offset)) = lost {
            if mode == Recovery::Strict {
                let what = "the log is damaged below what was synced; Recovery::CutAtDamage keeps \
                            what precedes it";
                return Err(Error::corrupt(&damaged.path, offset, what));
            }
            report.damage.get_or_insert((damaged.path.clone(), offset));
        }
        report.torn_tail |= tail.replay.later_record || gap.is_some();
        if gap.is_none() {
            believed += 1;
            if let Some((damaged, offset)) = damage {
                gap = Some((damaged, offset));
            }
        }
    }
    Ok(believed)
}

/// Copies the segments' records into new, sealed segments. The edits that name them.
fn copy(
    files: &Files,
    database_id: [u8; 16],
    state: &ManifestState,
    tails: &[Tail],
    report: &mut RecoveryReport,
) -> Result<Vec<Edit>> {
    // A segment without a valid header has no log to copy.
    let tails: Vec<&Tail> = tails.iter().filter(|tail| tail.header.is_some()).collect();
    let mut copy = Copy {
        files,
        database_id,
        next: state.next_segment,
        horizon: state.horizon,
        records_left: tails.iter().map(|tail| tail.records).sum(),
        log_bytes_left: tails.iter().map(|tail| tail.replay.end - LOG_START).sum(),
        run: None,
        records: 0,
        bytes: Vec::new(),
        end: LOG_START,
        last: Sequence(0),
        edits: Vec::new(),
    };
    report.records = copy.records_left as u64;
    report.log_bytes = copy.log_bytes_left;
    for tail in tails {
        let limit = tail.replay.end;
        let mut reader = LogReader::new(&*tail.file, &tail.path, limit)?;
        let again = replay(&mut reader, tail.incarnation, |header, bytes, offset| {
            copy.push(header, bytes, tail.incarnation, offset)
        })?;
        if again.end != limit {
            return Err(Error::corrupt(&tail.path, again.end, "the log changed while it was read"));
        }
    }
    copy.seal()?;
    let Copy { last, next, mut edits, .. } = copy;
    let collection = CollectionId(0);
    edits.push(Edit::Next { segment: next, collection, sequence: last.next() });
    Ok(edits)
}

/// Records on their way into new segments.
struct Copy<'a> {
    files: &'a Files,
    database_id: [u8; 16],
    next: SegmentId,
    /// No reader is below.
    horizon: Sequence,
    /// What is still to come.
    records_left: usize,
    log_bytes_left: u64,
    /// The segment that is being filled, and how many records it has got.
    run: Option<Run>,
    records: usize,
    bytes: Vec<u8>,
    /// Where `bytes` will stand.
    end: u64,
    last: Sequence,
    edits: Vec<Edit>,
}

impl Copy<'_> {
    fn push(
        &mut self,
        header: &RecordHeader,
        bytes: &[u8],
        incarnation: u64,
        offset: u64,
    ) -> Result<()> {
        if self.records == RECORDS_MAX {
            self.seal()?;
        }
        if self.run.is_none() {
            let records = self.records_left.min(RECORDS_MAX);
            self.run = Some(self.files.create_run(self.next, self.log_bytes_left, records)?);
            self.next = SegmentId(self.next.0 + 1);
        }
        let Some(run) = &self.run else { return Ok(()) };
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(start + header.record_len(), 0);
        let record = &mut self.bytes[start..];
        unplace_record(record, incarnation, offset);
        let to = self.end + start as u64;
        place_record(record, run.file.incarnation(), to, header.sequence);
        self.last = header.sequence;
        self.records += 1;
        self.records_left -= 1;
        self.log_bytes_left -= header.record_len() as u64;
        if self.bytes.len() >= COPY_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes what is gathered, then lets the memtable know: it reads ids from the file.
    fn flush(&mut self) -> Result<()> {
        let Some(run) = &self.run else { return Ok(()) };
        run.attempt(self.end + self.bytes.len() as u64);
        write_all(&**run.file.disk_file(), run.path(), &self.bytes, self.end)?;
        let edits = &mut self.edits;
        run.index(&self.bytes, self.end, |change| edits.push(Edit::Catalogue(change.clone())))?;
        self.end += self.bytes.len() as u64;
        self.bytes.clear();
        run.publish(self.end, self.last);
        Ok(())
    }

    /// Completes the segment that is being filled.
    fn seal(&mut self) -> Result<()> {
        self.flush()?;
        let Some(run) = self.run.take() else { return Ok(()) };
        self.records = 0;
        self.end = LOG_START;
        let header = segment_header(&run, self.database_id, Sequence(0), (SegmentId(0), 0));
        write_all(&**run.file.disk_file(), run.path(), &header.encode(), 0)?;
        let survivors = survivors(&run, self.horizon);
        if survivors.is_empty() {
            run.file.doom();
        } else {
            self.edits.push(Edit::Sealed(write_index(&run, &survivors, Regime::Pread)?));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::disk::MemoryDisk;
    use crate::sync::Arc;
    use crate::{Database, Durability, Options};

    #[test]
    fn a_log_of_more_records_than_a_memtable_takes_is_recovered_into_several_segments() {
        let last = 2 * i64::try_from(super::RECORDS_MAX).unwrap() + 9;
        let disk = MemoryDisk::new();
        let open = |disk: MemoryDisk| {
            let options = Options::default().durability(Durability::BUFFERED).disk(Arc::new(disk));
            Database::open("/db", options).unwrap()
        };
        let killed = {
            let database = open(disk.clone());
            let numbers = database.collection("numbers").unwrap();
            for n in 0..=last {
                numbers.put(n % 700, &serde_json::json!({ "n": n })).unwrap();
            }
            disk.power_cut(|_| true).unwrap()
        };
        let database = open(killed);
        assert!(database.stats().segments_sealed >= 3, "{:?}", database.stats());
        let numbers = database.collection("numbers").unwrap();
        assert_eq!(numbers.scan(..).unwrap().count(), 700);
        let newest = numbers.get(last % 700).unwrap().unwrap();
        assert_eq!(newest.get_i64("n").unwrap(), Some(last));
    }
}
