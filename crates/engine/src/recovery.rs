//! From what a crash left to a database that opens.
//!
//! Invariants:
//!
//! 1. Nothing old is written to: the valid part of the unsealed log is copied into a new segment, which is sealed, synced, and named
//!    by the new manifest; then the old files are unlinked. A crash at any step leaves what was there before.
//! 2. What is kept is a prefix of the commit order. A segment is believed only if its predecessor's log replays to the very byte that
//!    its header names.
//! 3. Damage below what was synced is reported, never passed over. With [`Recovery::Strict`] nothing is changed then.
//! 4. Sealed segments are not visited.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::disk::{Access, DiskFile, OpenMode};
use crate::error::{Error, Result};
use crate::format::{
    CatalogueChange, Edit, FormatFault, Key, Kind, LOG_START, RECORD_HEADER_BYTES, RecordHeader,
    SEGMENT_HEADER_BYTES, SegmentHeader, SegmentId, Sequence, place_record, unplace_record,
};
use crate::log::{LogReader, Replay, Run, replay};
use crate::manifest::{ManifestState, SegmentState, write_all};
use crate::memtable::{Entry, Index};
use crate::options::Recovery;
use crate::segment::{parse_segment_name, segment_path};
use crate::stats::RecoveryReport;
use crate::store::{Files, catalogue_change, segment_header, survivors, write_index};
use crate::sync::Arc;

const COPY_BYTES: usize = 1 << 20;

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
}

/// Brings the unsealed log into a sealed segment. `names` are the files in the folder.
pub(crate) fn recover(
    files: &Files,
    database_id: [u8; 16],
    mut state: ManifestState,
    names: &[OsString],
    mode: Recovery,
) -> Result<Recovered> {
    let mut tails = Vec::new();
    for (&id, segment) in &state.segments {
        if let SegmentState::Log { incarnation, end } = *segment {
            tails.push(Tail::open(files, database_id, id, incarnation, end)?);
        }
    }
    let mut report = RecoveryReport { segments: tails.len() as u64, ..RecoveryReport::default() };
    let believed = believe(&tails, &state, mode, &mut report)?;

    // An earlier recovery may have crashed and left a file that no manifest names.
    let highest = names.iter().filter_map(|name| parse_segment_name(name)).max();
    let next = highest.map_or(SegmentId(1), |id| SegmentId(id.0 + 1));
    state.next_segment = state.next_segment.max(next);
    for tail in &tails {
        state.apply(&Edit::Removed { segment: tail.id });
    }
    let id = state.next_segment;
    if let Some(edits) = copy(files, database_id, id, &tails[..believed], &mut report)? {
        edits.iter().for_each(|edit| state.apply(edit));
    }
    Ok(Recovered { state, report })
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
        let mut records = 0;
        let mut reader = LogReader::new(&*file, &path, ended.unwrap_or(u64::MAX))?;
        let found = replay(&mut reader, incarnation, |_, _, _| {
            records += 1;
            Ok(())
        })?;
        Ok(Self { id, incarnation, path, file, header, ended, replay: found, records })
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

/// How many of the segments, from the oldest on, are the log. Damage is an error, or noted in the report.
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
            end == Some(header.predecessor_end)
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
                    lost = damage;
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
    // A segment without a valid header has no log to copy.
    Ok(believed)
}

/// Copies the segments' records into a new, sealed segment. The edits that name it; `None` when there is nothing to copy.
fn copy(
    files: &Files,
    database_id: [u8; 16],
    id: SegmentId,
    tails: &[Tail],
    report: &mut RecoveryReport,
) -> Result<Option<Vec<Edit>>> {
    let tails: Vec<&Tail> = tails.iter().filter(|tail| tail.header.is_some()).collect();
    let records = tails.iter().map(|tail| tail.records).sum();
    if records == 0 {
        return Ok(None);
    }
    let log_bytes = tails.iter().map(|tail| tail.replay.end - LOG_START).sum();
    let run = files.create_run(id, log_bytes, records)?;
    let mut copy = Copy {
        run: &run,
        bytes: Vec::new(),
        end: LOG_START,
        last: Sequence(0),
        changes: Vec::new(),
    };
    for tail in tails {
        let limit = tail.replay.end;
        let mut reader = LogReader::new(&*tail.file, &tail.path, limit)?;
        let again = replay(&mut reader, tail.incarnation, |header, bytes, offset| {
            copy.push(header, bytes, tail.incarnation, offset)
        })?;
        if again.end != limit {
            return Err(Error::corrupt(&tail.path, again.end, "the log changed while it was read"));
        }
        report.log_bytes += limit - LOG_START;
    }
    copy.flush()?;
    let Copy { last, changes, .. } = copy;
    report.records = records as u64;

    let header = segment_header(&run, database_id, Sequence(0), (SegmentId(0), 0));
    write_all(&**run.file.disk_file(), run.path(), &header.encode(), 0)?;
    let mut edits: Vec<Edit> = changes.into_iter().map(Edit::Catalogue).collect();
    let survivors = survivors(&run, &[]);
    if survivors.is_empty() {
        run.file.doom();
    } else {
        edits.push(Edit::Sealed(write_index(&run, &survivors)?));
    }
    edits.push(Edit::Next {
        segment: SegmentId(id.0 + 1),
        collection: crate::format::CollectionId(0),
        sequence: last.next(),
    });
    Ok(Some(edits))
}

/// Records on their way into a new segment.
struct Copy<'a> {
    run: &'a Run,
    bytes: Vec<u8>,
    /// Where `bytes` will stand.
    end: u64,
    last: Sequence,
    changes: Vec<CatalogueChange>,
}

impl Copy<'_> {
    fn push(
        &mut self,
        header: &RecordHeader,
        bytes: &[u8],
        incarnation: u64,
        offset: u64,
    ) -> Result<()> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(start + header.record_len(), 0);
        let record = &mut self.bytes[start..];
        unplace_record(record, incarnation, offset);
        let to = self.end + start as u64;
        place_record(record, self.run.file.incarnation(), to, header.sequence);
        self.last = header.sequence;
        if header.kind == Kind::Catalogue {
            let name = &bytes[RECORD_HEADER_BYTES..header.document_start()];
            let action = &bytes[header.document_start()..];
            let change = catalogue_change(header.collection, header.sequence, name, action);
            self.changes.extend(change);
        }
        if self.bytes.len() >= COPY_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes what is gathered, then lets the memtable know: it reads ids from the file.
    fn flush(&mut self) -> Result<()> {
        let run = self.run;
        run.attempt(self.end + self.bytes.len() as u64);
        write_all(&**run.file.disk_file(), run.path(), &self.bytes, self.end)?;
        for (at, header) in crate::log::records(&self.bytes) {
            if header.kind == Kind::Catalogue {
                continue;
            }
            let id = &self.bytes[at + RECORD_HEADER_BYTES..at + header.document_start()];
            let offset = self.end + at as u64;
            let entry = Entry { offset, sequence: header.sequence, kind: header.kind };
            let key = Key::new(header.collection, id);
            run.memtable.insert(key, entry, &*run.file).map_err(|_| Error::Background {
                what: "the log has more records than were counted".to_owned(),
            })?;
        }
        self.end += self.bytes.len() as u64;
        self.bytes.clear();
        run.publish(self.end, self.last);
        Ok(())
    }
}
