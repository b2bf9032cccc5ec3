//! Segment files: their records, the index that sealing adds, and lookups and scans in both; and the
//! writers of the segments that compaction makes.

mod builder;
mod cursor;
mod damage;
mod data;
mod draft;
mod file;
mod fingerprints;
mod index;
mod index_writer;
mod levels;
mod names;
mod pin;
mod reader;
mod reaper;
mod record;
mod record_format;
mod sorted;
mod window;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use builder::{IndexEntry, build_index, index_bytes_max};
pub(crate) use cursor::SegmentCursor;
#[cfg(test)]
pub(crate) use damage::DamagedEntry;
pub(crate) use data::DataSegment;
pub(crate) use draft::NewSegment;
pub(crate) use file::{Regime, SegmentFile};
#[cfg(feature = "internals")]
pub(crate) use fingerprints::{BUCKET_BYTES, TableBuilder};
pub(crate) use index_writer::IndexWriter;
pub(crate) use names::{parse_segment_name, segment_path};
pub(crate) use reader::SealedSegment;
pub(crate) use reaper::Reaper;
pub(crate) use record::{Record, RecordDocument};
pub(crate) use record_format::RecordFormat;
pub(crate) use writer::SortedWriter;
