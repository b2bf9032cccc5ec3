//! Reading back a log that was not sealed.
//!
//! Invariants:
//!
//! 1. What replay yields is a prefix of the log: whole batches, in commit order.
//! 2. Where it ends is told apart: the end of the log, a torn tail, or damage below what a mark
//!    says was synced.

use crate::disk::{Access, DiskFile};
use crate::error::{Error, Result};
use crate::format::{
    Kind, LOG_START, RECORD_ALIGNMENT, RECORD_HEADER_BYTES, RecordHeader, Sequence,
};
use std::path::Path;

const WINDOW_BYTES: usize = 1 << 20;

/// Reads a file through a window, with `pread`, so that a failing disk is an error.
#[derive(Debug)]
pub(crate) struct LogReader<'a> {
    file: &'a dyn DiskFile,
    path: &'a Path,
    len: u64,
    start: u64,
    window: Vec<u8>,
}

impl<'a> LogReader<'a> {
    /// Reads at most the first `limit` bytes of the file.
    pub(crate) fn new(file: &'a dyn DiskFile, path: &'a Path, limit: u64) -> Result<Self> {
        let len = file.len().map_err(|e| Error::io("read", path, e))?.min(limit);
        Ok(Self { file, path, len, start: 0, window: Vec::new() })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn path(&self) -> &Path {
        self.path
    }

    /// The bytes at `offset`: `len` of them, fewer at the end of the file.
    pub(crate) fn at(&mut self, offset: u64, len: usize) -> Result<&[u8]> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = len.min(left);
        let inside =
            offset >= self.start && offset + len as u64 <= self.start + self.window.len() as u64;
        if !inside {
            self.window.resize(len.max(WINDOW_BYTES).min(left), 0);
            self.start = offset;
            let read = self.file.read_exact_at(&mut self.window, offset, Access::Once);
            if let Err(e) = read {
                self.window.clear();
                return Err(Error::io("read", self.path, e));
            }
        }
        let from = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        Ok(&self.window[from..from + len])
    }

    /// The bytes from `offset` on that are at hand, at least a header's worth unless the file ends
    /// before. Reads a new window only when the old one has fewer: a search does not read each byte
    /// more than about once.
    fn ahead(&mut self, offset: u64) -> Result<&[u8]> {
        match self.at_hand(offset) {
            Some(from) => Ok(&self.window[from..]),
            None => self.at(offset, WINDOW_BYTES),
        }
    }

    /// Where in the window an offset is, if a header's worth of bytes follows.
    fn at_hand(&self, offset: u64) -> Option<usize> {
        offset
            .checked_sub(self.start)
            .and_then(|from| usize::try_from(from).ok())
            .filter(|from| from + RECORD_HEADER_BYTES <= self.window.len())
    }

    /// The first place at or behind `offset` where a record could begin that is not at hand: what
    /// was never written is a hole, which holds none and is most of a segment.
    fn behind_hole(&self, offset: u64) -> Result<u64> {
        if self.at_hand(offset).is_some() {
            return Ok(offset);
        }
        let data = self.file.next_data(offset).map_err(|e| Error::io("read", self.path, e))?;
        // A record's kind is in its first eight bytes, and so not in a hole that its end is behind.
        Ok(offset.max(data - data % RECORD_ALIGNMENT as u64))
    }

    /// The whole record at `offset` if there is one that verifies.
    fn record(&mut self, incarnation: u64, offset: u64) -> Result<Option<(RecordHeader, &[u8])>> {
        let head = self.at(offset, RECORD_HEADER_BYTES)?;
        let Ok(header) = RecordHeader::parse(head, incarnation, offset) else { return Ok(None) };
        let bytes = self.at(offset, header.used_len())?;
        Ok(header.verify(bytes, incarnation, offset).is_ok().then_some((header, bytes)))
    }
}

/// What replay found besides the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replay {
    /// The end of the last whole record (or batch) that was yielded, marks included.
    pub(crate) end: u64,
    /// How far the log is known to have been synced, by marks before and behind `end`; 0 without
    /// any.
    pub(crate) synced: u64,
    /// Whether a record verifies behind `end`: bytes between were lost.
    pub(crate) later_record: bool,
}

/// Yields the records of a log from its beginning: every put, delete and catalogue record, with its
/// bytes (header included, padding not) and offset. Ends at the first thing that does not verify,
/// and looks behind it for marks.
pub(crate) fn replay(
    reader: &mut LogReader<'_>,
    incarnation: u64,
    mut visit: impl FnMut(&RecordHeader, &[u8], u64) -> Result<()>,
) -> Result<Replay> {
    let mut found = Replay { end: LOG_START, ..Replay::default() };
    let mut last = Sequence(0);
    loop {
        let offset = found.end;
        let Some((header, bytes)) = reader.record(incarnation, offset)? else { break };
        if header.is_counted() && header.sequence <= last {
            break;
        }
        match header.kind {
            Kind::Mark => {
                found.synced = found.synced.max(mark(bytes).unwrap_or(0));
                found.end = offset + header.record_len() as u64;
            }
            Kind::Batch => {
                let Some((count, len)) = batch(bytes) else { break };
                let start = offset + header.record_len() as u64;
                if !batch_is_whole(reader, incarnation, start, count, len)? {
                    break;
                }
                let mut at = start;
                while at < start + len {
                    let Some((header, bytes)) = reader.record(incarnation, at)? else {
                        return Err(Error::corrupt(
                            reader.path(),
                            at,
                            "a record changed while read",
                        ));
                    };
                    visit(&header, bytes, at)?;
                    last = header.sequence;
                    at += header.record_len() as u64;
                }
                found.end = start + len;
            }
            Kind::Put | Kind::Delete | Kind::Catalogue => {
                visit(&header, bytes, offset)?;
                last = header.sequence;
                found.end = offset + header.record_len() as u64;
            }
            kind => {
                return Err(Error::UnsupportedFormat {
                    file: reader.path().to_owned(),
                    what: format!("log record kind {kind:?} at byte {offset}"),
                });
            }
        }
    }
    search_behind(reader, incarnation, &mut found)?;
    Ok(found)
}

/// Verifies every record of a batch before the first is yielded.
fn batch_is_whole(
    reader: &mut LogReader<'_>,
    incarnation: u64,
    start: u64,
    count: u32,
    len: u64,
) -> Result<bool> {
    let Some(end) = start.checked_add(len).filter(|&end| end <= reader.len()) else {
        return Ok(false);
    };
    let (mut at, mut seen) = (start, 0);
    while at < end {
        match reader.record(incarnation, at)? {
            Some((header, _)) if header.is_counted() => {
                at += header.record_len() as u64;
                seen += 1;
            }
            _ => return Ok(false),
        }
    }
    Ok(at == end && seen == count)
}

/// Looks at every place behind the end where a record could begin.
fn search_behind(reader: &mut LogReader<'_>, incarnation: u64, found: &mut Replay) -> Result<()> {
    let mut offset = found.end;
    loop {
        offset = reader.behind_hole(offset)?;
        if offset + RECORD_HEADER_BYTES as u64 > reader.len() {
            break;
        }
        let window = reader.ahead(offset)?;
        let Some(skip) = next_candidate(window) else {
            // The last header's worth of bytes may begin a record that the next window shows whole.
            let tried = window.len().saturating_sub(RECORD_HEADER_BYTES) / RECORD_ALIGNMENT + 1;
            offset += (tried * RECORD_ALIGNMENT) as u64;
            continue;
        };
        offset += skip as u64;
        if let Some((header, bytes)) = reader.record(incarnation, offset)? {
            found.later_record = true;
            if header.kind == Kind::Mark {
                found.synced = found.synced.max(mark(bytes).unwrap_or(0));
            }
            offset += header.record_len() as u64;
        } else {
            offset += RECORD_ALIGNMENT as u64;
        }
    }
    Ok(())
}

/// The first aligned place with a byte that could be a record's kind: most of what lies behind a
/// log is zeros.
fn next_candidate(window: &[u8]) -> Option<usize> {
    let last = window.len().checked_sub(RECORD_HEADER_BYTES)?;
    (0..=last).step_by(RECORD_ALIGNMENT).find(|&at| Kind::from_byte(window[at + 4]).is_some())
}

/// How far a mark says the log is synced.
fn mark(bytes: &[u8]) -> Option<u64> {
    let content = bytes.get(RECORD_HEADER_BYTES..)?;
    Some(u64::from_le_bytes(content.try_into().ok()?))
}

/// A batch record's count of records, and their length in bytes.
fn batch(bytes: &[u8]) -> Option<(u32, u64)> {
    let (count, len) = bytes.get(RECORD_HEADER_BYTES..)?.split_first_chunk()?;
    Some((u32::from_le_bytes(*count), u64::from_le_bytes(len.try_into().ok()?)))
}
