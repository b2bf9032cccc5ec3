//! A segment's file on its way to be complete.
//!
//! Invariant: a file that is not completed, for whatever reason, is doomed and leaves no name.

use std::io::{self, IoSlice};
use std::path::Path;

use super::file::SegmentFile;
use super::reaper::Reaper;
use super::record_format::RecordFormat;
use crate::disk::{Access, Disk};
use crate::error::{Error, Result};
use crate::format::{FileKind, LOG_START, SegmentHeader, SegmentId, Sequence};
use crate::sync::Arc;

/// What it takes to make a segment that compaction writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewSegment<'a> {
    pub(crate) disk: &'a Arc<dyn Disk>,
    pub(crate) dir: &'a Path,
    pub(crate) id: SegmentId,
    /// Random.
    pub(crate) incarnation: u64,
    pub(crate) database_id: [u8; 16],
    pub(crate) reaper: &'a Arc<Reaper>,
}

/// A file that is doomed unless it is completed.
#[derive(Debug)]
pub(super) struct Draft {
    file: Arc<SegmentFile>,
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Discard,
    Keep,
}

impl Draft {
    /// Creates the file: empty, sparse and mapped to `capacity` bytes. Its first page is for the
    /// caller to write, who knows best when.
    pub(super) fn create(new: &NewSegment<'_>, capacity: u64) -> Result<Self> {
        let name = (new.id, new.incarnation);
        let file =
            SegmentFile::create(new.disk, new.dir, name, RecordFormat::Log, capacity, new.reaper)?;
        Ok(Self { file, outcome: Outcome::Discard })
    }

    pub(super) fn file(&self) -> &Arc<SegmentFile> {
        &self.file
    }

    /// Syncs the file, which is complete now. Its name is not synced.
    pub(super) fn complete(mut self) -> Result<Arc<SegmentFile>> {
        let file = &self.file;
        file.disk_file().sync_data().map_err(|e| Error::io("sync", file.path(), e))?;
        self.outcome = Outcome::Keep;
        Ok(Arc::clone(&self.file))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.outcome == Outcome::Discard {
            self.file.doom();
        }
    }
}

/// The first page of a segment that has no predecessor: its header, and zeros.
pub(super) fn first_page(new: &NewSegment<'_>, file_kind: FileKind) -> Vec<u8> {
    let header = SegmentHeader {
        file_kind,
        database_id: new.database_id,
        segment: new.id,
        incarnation: new.incarnation,
        first_sequence: Sequence(0),
        predecessor: SegmentId(0),
        predecessor_end: 0,
    };
    let mut page = header.encode().to_vec();
    page.resize(usize::try_from(LOG_START).expect("4096"), 0);
    page
}

/// Writes all bytes, in as many calls as it takes.
pub(super) fn write_all(
    file: &SegmentFile,
    mut bytes: &[u8],
    mut offset: u64,
    access: Access,
) -> Result<()> {
    let failed = |e| Error::io("write", file.path(), e);
    while !bytes.is_empty() {
        match file.disk_file().write_at(&[IoSlice::new(bytes)], offset, access) {
            Ok(0) => return Err(failed(io::ErrorKind::WriteZero.into())),
            Ok(n) => {
                bytes = &bytes[n..];
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(failed(e)),
        }
    }
    Ok(())
}
