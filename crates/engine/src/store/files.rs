//! The folder of a database: making segments in it, and getting rid of them.

use std::path::PathBuf;

use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::format::{
    FileKind, LOG_START, SealedMeta, SegmentHeader, SegmentId, Sequence, record_len,
};
use crate::log::Run;
use crate::memtable::{Index, Memtable};
use crate::random::Random;
use crate::segment::{Reaper, SealedSegment, SegmentFile};
use crate::sync::Arc;

/// The most bytes that the index of so many records takes, wide places included: 16 an entry with
/// its share of the levels above, 9.2 a slot, and a few blocks.
pub(crate) fn index_bytes_max(records: usize) -> u64 {
    (records as u64 * 28 + (64 << 10)).next_multiple_of(4096)
}

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
        let file =
            SegmentFile::create(&self.disk, &self.dir, id, incarnation, capacity, &self.reaper)?;
        if let Err(e) = self.disk.sync_dir(&self.dir) {
            file.doom();
            return Err(Error::io("sync", &self.dir, e));
        }
        Ok(Run::new(file, Memtable::with_capacity(records)))
    }

    /// A sealed segment; the file that is open already serves it if its map reaches far enough.
    pub(crate) fn sealed(
        &self,
        meta: SealedMeta,
        open: Option<&Arc<SegmentFile>>,
    ) -> Arc<SealedSegment> {
        match open {
            Some(file) if meta.file_bytes() <= file.capacity() => {
                SealedSegment::from_file(meta, Arc::clone(file))
            }
            _ => SealedSegment::new(meta, &self.disk, &self.dir, &self.reaper),
        }
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
