//! What scans yield.

use std::fmt;
use std::iter::FusedIterator;

use crate::document::Document;
use crate::error::Result;
use crate::format::Direction;
use crate::id::Id;
use crate::scan::Merge;
use crate::segment::Record;
use crate::store::ScanRuns;

/// The rows of a scan: ids and documents, by rising id; by falling id from the back. An error is
/// the last row, whichever end met it.
///
/// Keeps the segments that it reads from on the disk until dropped, but not the database open.
pub struct Scan {
    merge: Merge<ScanRuns>,
}

/// The ids of a scan, as [`Scan`].
pub struct Ids {
    merge: Merge<ScanRuns>,
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").finish_non_exhaustive()
    }
}

impl fmt::Debug for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ids").finish_non_exhaustive()
    }
}

impl Scan {
    pub(crate) fn new(merge: Merge<ScanRuns>) -> Self {
        Self { merge }
    }
}

impl Ids {
    pub(crate) fn new(merge: Merge<ScanRuns>) -> Self {
        Self { merge }
    }
}

fn id(record: &Record) -> Result<Id<'static>> {
    Ok(Id::decode(record.id())?.into_owned())
}

fn row(record: &Record) -> Result<(Id<'static>, Document)> {
    Ok((id(record)?, Document::new(record.clone())))
}

impl Iterator for Scan {
    type Item = Result<(Id<'static>, Document)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.merge.pull(Direction::Forward, row)
    }
}

impl DoubleEndedIterator for Scan {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.merge.pull(Direction::Reverse, row)
    }
}

impl FusedIterator for Scan {}

impl Iterator for Ids {
    type Item = Result<Id<'static>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.merge.pull(Direction::Forward, id)
    }
}

impl DoubleEndedIterator for Ids {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.merge.pull(Direction::Reverse, id)
    }
}

impl FusedIterator for Ids {}
