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
/// The iterator's rows are the caller's to keep, which costs each an allocation for its id and an
/// atomic increment for its document. [`Scan::next_row`] lends them instead.
///
/// Keeps the segments that it reads from on the disk until dropped, but not the database open.
pub struct Scan {
    merge: Merge<ScanRuns>,
    /// The document of the row that was lent last.
    lent: Option<Document>,
}

/// A row that a scan lends: see [`Scan::next_row`].
#[derive(Clone, Copy)]
pub struct Row<'a> {
    record: &'a Record,
    document: &'a Document,
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

impl fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Row");
        if let Ok(id) = self.id() {
            debug.field("id", &format_args!("{id}"));
        }
        debug.field("document", self.document).finish()
    }
}

impl fmt::Debug for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ids").finish_non_exhaustive()
    }
}

impl Scan {
    pub(crate) fn new(merge: Merge<ScanRuns>) -> Self {
        Self { merge, lent: None }
    }

    /// The next row by rising id, lent until the next call: for those who look at rows and keep
    /// few. It is the row that `next` would yield, and the two may be mixed.
    ///
    /// Costs the row's bytes and their checksum. Nothing is allocated where files are mapped, and
    /// no count of references is touched while rows come from one file.
    ///
    /// ```
    /// # use engine::{Database, Options};
    /// # use serde_json::json;
    /// # fn main() -> Result<(), engine::Error> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let database = Database::open(dir.path().join("db"), Options::default())?;
    /// let cities = database.collection("cities")?;
    /// cities.put("bergen", &json!({ "people": 291_940 }))?;
    /// cities.put("oslo", &json!({ "people": 717_710 }))?;
    /// let mut scan = cities.scan(..)?;
    /// let mut largest = None;
    /// while let Some(row) = scan.next_row() {
    ///     let row = row?;
    ///     let people = row.document().get_i64("people")?;
    ///     if largest.as_ref().is_none_or(|(most, _)| *most < people) {
    ///         largest = Some((people, row.to_document()));
    ///     }
    /// }
    /// assert_eq!(largest.map(|(people, _)| people), Some(Some(717_710)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `Corrupt` when a record or an index block on the way does not verify, `Io`. An error is the
    /// last row: after it, as at the end, there is `None`.
    #[inline]
    pub fn next_row(&mut self) -> Option<Result<Row<'_>>> {
        self.lend(Direction::Forward)
    }

    /// The next row by falling id, as [`Scan::next_row`]: the one that `next_back` would yield.
    ///
    /// # Errors
    ///
    /// Those of [`Scan::next_row`].
    #[inline]
    pub fn next_row_back(&mut self) -> Option<Result<Row<'_>>> {
        self.lend(Direction::Reverse)
    }

    #[inline]
    fn lend(&mut self, direction: Direction) -> Option<Result<Row<'_>>> {
        match self.merge.advance(direction) {
            Some(Ok(record)) => {
                let document = self.lent.get_or_insert_with(|| Document::new(record.clone()));
                document.show(record);
                Some(Ok(Row { record, document }))
            }
            Some(Err(error)) => {
                self.lent = None;
                Some(Err(error))
            }
            None => {
                self.lent = None;
                None
            }
        }
    }
}

impl<'a> Row<'a> {
    /// The document's id. Strings and bytes borrow the row's own.
    ///
    /// Costs a check that a string is UTF-8.
    ///
    /// # Errors
    ///
    /// `InvalidId` when the stored bytes are no id, which another program must have written.
    #[inline]
    pub fn id(&self) -> Result<Id<'a>> {
        Id::decode(self.record.id())
    }

    /// The document. A clone of it outlives the row, and costs an atomic increment: see
    /// [`Row::to_document`].
    #[inline]
    pub fn document(&self) -> &'a Document {
        self.document
    }

    /// The document, to keep. Costs an atomic increment; the bytes are not copied.
    pub fn to_document(&self) -> Document {
        self.document.clone()
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
        Some(self.merge.advance(Direction::Forward)?.and_then(row))
    }
}

impl DoubleEndedIterator for Scan {
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.merge.advance(Direction::Reverse)?.and_then(row))
    }
}

impl FusedIterator for Scan {}

impl Iterator for Ids {
    type Item = Result<Id<'static>>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.merge.advance(Direction::Forward)?.and_then(id))
    }
}

impl DoubleEndedIterator for Ids {
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.merge.advance(Direction::Reverse)?.and_then(id))
    }
}

impl FusedIterator for Ids {}
