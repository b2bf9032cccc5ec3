//! Views of the past.

use std::fmt;

use crate::collection::Collection;
use crate::database::Handle;
use crate::document::Document;
use crate::error::{Error, Result};
use crate::format::Sequence;
use crate::id::{Id, IdRange};
use crate::rows::{Ids, Scan};
use crate::sync::Arc;

/// The database as it was when the snapshot was taken, whatever is written since. It keeps superseded documents that it sees, and
/// the database open, until dropped.
pub struct Snapshot {
    handle: Arc<Handle>,
    at: Sequence,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("sequence", &self.at.0).finish_non_exhaustive()
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.handle.store.snapshots.release(self.at);
    }
}

impl Snapshot {
    pub(crate) fn new(handle: &Arc<Handle>) -> Result<Self> {
        let store = &handle.store;
        store.check_open()?;
        let at = store.snapshots.register(|| store.visible());
        Ok(Self { handle: Arc::clone(handle), at })
    }

    /// The sequence of the newest write that the snapshot sees.
    pub fn sequence(&self) -> u64 {
        self.at.0
    }

    /// As [`Collection::get`], then.
    ///
    /// # Errors
    ///
    /// Those of [`Collection::get`], and `ForeignHandle` for a collection of another database.
    pub fn get<'a>(
        &self,
        collection: &Collection,
        id: impl Into<Id<'a>>,
    ) -> Result<Option<Document>> {
        self.check(collection)?;
        let id = id.into().encode()?;
        let record = self.handle.store.get(collection.state(), id.as_bytes(), Some(self.at))?;
        Ok(record.map(Document::new))
    }

    /// As [`Collection::scan`], then.
    ///
    /// # Errors
    ///
    /// Those of [`Collection::scan`], and `ForeignHandle` for a collection of another database.
    pub fn scan<'a>(&self, collection: &Collection, range: impl IdRange<'a>) -> Result<Scan> {
        self.check(collection)?;
        let range = range.bounds()?;
        Ok(Scan::new(self.handle.store.scan(collection.state(), &range, Some(self.at))?))
    }

    /// As [`Collection::scan_ids`], then.
    ///
    /// # Errors
    ///
    /// Those of [`Collection::scan`], and `ForeignHandle` for a collection of another database.
    pub fn scan_ids<'a>(&self, collection: &Collection, range: impl IdRange<'a>) -> Result<Ids> {
        self.check(collection)?;
        let range = range.bounds()?;
        Ok(Ids::new(self.handle.store.scan(collection.state(), &range, Some(self.at))?))
    }

    fn check(&self, collection: &Collection) -> Result<()> {
        if Arc::ptr_eq(&self.handle, collection.handle()) {
            Ok(())
        } else {
            Err(Error::ForeignHandle)
        }
    }
}
