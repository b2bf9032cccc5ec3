//! Segment files: their records, the index that sealing adds, and lookups and scans in both.

mod builder;
mod cursor;
mod file;
mod fingerprints;
mod index;
mod pin;
mod reader;
mod reaper;
mod record;
mod sorted;

#[cfg(test)]
mod tests;

pub(crate) use builder::{IndexEntry, build_index};
pub(crate) use file::{Regime, SegmentFile, parse_segment_name, segment_path};
pub(crate) use reader::SealedSegment;
pub(crate) use reaper::Reaper;
pub(crate) use record::Record;
