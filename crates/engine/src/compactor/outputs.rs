//! Sorted segments on their way to the disk: one after the other, each of about the size that is
//! wanted, cut between ids.

use crate::error::Result;
use crate::format::{FullKey, KeyRange, SealedMeta, Sequence};
use crate::segment::{SegmentFile, SortedWriter};
use crate::sync::Arc;

use super::merge::Entry;

/// A complete segment, synced, that no manifest names yet.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) meta: SealedMeta,
    pub(crate) file: Arc<SegmentFile>,
    pub(crate) keys: KeyRange,
}

/// The bytes of the files that were made, and the files, for who publishes them.
pub(crate) fn files_made(outputs: Vec<Output>) -> (u64, Vec<Arc<SegmentFile>>) {
    let bytes = outputs.iter().map(|output| output.meta.file_bytes()).sum();
    (bytes, outputs.into_iter().map(|output| output.file).collect())
}

/// When a segment is complete: at whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentSize {
    /// Bytes of its records.
    pub(crate) bytes: u64,
    pub(crate) records_max: u64,
}

/// Writes entries to as many segments as it takes. Dropped, it leaves no file behind.
pub(crate) struct Outputs<M> {
    make: M,
    size: SegmentSize,
    writer: Option<SortedWriter>,
    done: Vec<Output>,
    written_bytes: u64,
}

impl<M: FnMut() -> Result<SortedWriter>> Outputs<M> {
    /// `make` creates a segment with room for at least the target and the largest record.
    pub(crate) fn new(make: M, size: SegmentSize) -> Self {
        Self { make, size, writer: None, done: Vec::new(), written_bytes: 0 }
    }

    /// Bytes of records so far, in all segments.
    pub(crate) fn bytes(&self) -> u64 {
        let current = self.writer.as_ref().map_or(0, SortedWriter::data_bytes);
        self.written_bytes + current
    }

    /// Adds an entry behind all others; a version of the same id follows into the same segment.
    pub(crate) fn push(
        &mut self,
        entry: &Entry,
        sequence: Sequence,
        is_new_id: bool,
    ) -> Result<()> {
        if is_new_id && self.is_full(entry) {
            self.complete()?;
        }
        if self.writer.is_none() {
            self.writer = Some((self.make)()?);
        }
        let Some(writer) = &mut self.writer else { return Ok(()) };
        match entry {
            Entry::Record(record) => writer.push(record, sequence),
            Entry::Damaged { key, .. } => writer.push_damaged(key.collection(), key.id(), sequence),
        }
    }

    fn is_full(&self, entry: &Entry) -> bool {
        let Some(writer) = &self.writer else { return false };
        let is_too_long = match entry {
            Entry::Record(record) => !writer.room_for(record),
            Entry::Damaged { .. } => false,
        };
        writer.data_bytes() >= self.size.bytes
            || writer.records() as u64 >= self.size.records_max
            || is_too_long
    }

    fn complete(&mut self) -> Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let bytes = writer.data_bytes();
        let range = writer.first_key().zip(writer.last_key());
        let keys = range.map(|((first, first_id), (last, last_id))| KeyRange {
            first: FullKey::new(first, first_id),
            last: FullKey::new(last, last_id),
        });
        let Some(keys) = keys else { return Ok(()) };
        let (meta, file) = writer.finish()?;
        self.written_bytes += bytes;
        self.done.push(Output { meta, file, keys });
        Ok(())
    }

    /// Completes the last segment. All are synced; their names are not.
    pub(crate) fn finish(mut self) -> Result<Vec<Output>> {
        self.complete()?;
        Ok(std::mem::take(&mut self.done))
    }
}

impl<M> Drop for Outputs<M> {
    fn drop(&mut self) {
        for output in &self.done {
            output.file.doom();
        }
    }
}
