//! The folder of a database: making segments in it, and getting rid of them.

use std::path::PathBuf;

use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::format::{
    FileKind, LOG_START, SealedMeta, SegmentHeader, SegmentId, Sequence, record_len,
};
use crate::log::Run;
use crate::memtable::{Index, Memtable};
use crate::planted::{self, Bug};
use crate::random::Random;
use crate::segment::{DataSegment, NewSegment, Reaper, RecordFormat, SegmentFile, index_bytes_max};
use crate::sync::Arc;

/// What it takes to make a segment.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) dir: PathBuf,
    pub(crate) random: Arc<Random>,
    pub(crate) reaper: Arc<Reaper>,
}

impl Files {
    /// Creates a segment's file, durably named in the folder, with room for so many bytes of log,
    /// so many records in its memtable, a mark, and the index of them all.
    pub(crate) fn create_run(&self, id: SegmentId, log_bytes: u64, records: usize) -> Result<Run> {
        let log = (log_bytes + record_len(0, 8) as u64).next_multiple_of(4096);
        let capacity = LOG_START + log + index_bytes_max(records);
        let incarnation = self.random.next();
        let (name, format) = ((id, incarnation), RecordFormat::Log);
        let file =
            SegmentFile::create(&self.disk, &self.dir, name, format, capacity, &self.reaper)?;
        if !planted::is(Bug::DirectoryNotSynced)
            && let Err(e) = self.disk.sync_dir(&self.dir)
        {
            file.doom();
            return Err(Error::io("sync", &self.dir, e));
        }
        Ok(Run::new(file, Memtable::with_capacity(records)))
    }

    /// What it takes to make a segment that compaction writes.
    pub(crate) fn new_segment(&self, id: SegmentId, database_id: [u8; 16]) -> NewSegment<'_> {
        NewSegment {
            disk: &self.disk,
            dir: &self.dir,
            id,
            incarnation: self.random.next(),
            database_id,
            reaper: &self.reaper,
        }
    }

    /// The file of a sealed segment. Touches no file.
    pub(crate) fn data(&self, meta: SealedMeta) -> Arc<DataSegment> {
        DataSegment::new(meta, &self.disk, &self.dir, &self.reaper)
    }
}

/// The header of a log segment that goes on where its predecessor's log ends.
pub(crate) fn segment_header(
    run: &Run,
    database_id: [u8; 16],
    first_sequence: Sequence,
    (predecessor, predecessor_end): (SegmentId, u64),
) -> SegmentHeader {
    SegmentHeader {
        file_kind: FileKind::Log,
        database_id,
        segment: run.id(),
        incarnation: run.file.incarnation(),
        first_sequence,
        predecessor,
        predecessor_end,
    }
}
