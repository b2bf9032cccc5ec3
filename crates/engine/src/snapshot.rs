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

/// The database as it was when the snapshot was taken, whatever is written since. It keeps
/// superseded documents that it sees, and the database open, until dropped. It reads collections by
/// their handles, also by those of collections that were dropped since.
///
/// ```
/// # use engine::{Database, Options};
/// # use serde_json::json;
/// # fn main() -> Result<(), engine::Error> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let database = Database::open(dir.path().join("db"), Options::default())?;
/// let accounts = database.collection("accounts")?;
/// accounts.put(1, &json!({ "balance": 70 }))?;
/// let before = database.snapshot()?;
/// accounts.update(1, &json!({ "balance": 50 }))?;
/// let then = before.get(&accounts, 1)?.expect("it was there then");
/// assert_eq!(then.get_i64("balance")?, Some(70));
/// # Ok(())
/// # }
/// ```
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
        self.handle.store.release_snapshot(self.at);
    }
}

impl Snapshot {
    pub(crate) fn new(handle: &Arc<Handle>) -> Result<Self> {
        let store = &handle.store;
        store.check_open()?;
        let at = store.snapshots.register(|| store.visible());
        Ok(Self { handle: Arc::clone(handle), at })
    }

    pub(crate) fn at(handle: &Arc<Handle>, sequence: u64) -> Result<Self> {
        let store = &handle.store;
        store.check_open()?;
        let (at, newest) = (Sequence(sequence), store.visible());
        let oldest = match store.snapshots.register_at(at) {
            Ok(()) if at <= newest => return Ok(Self { handle: Arc::clone(handle), at }),
            Ok(()) => {
                store.snapshots.release(at);
                store.snapshots.horizon()
            }
            Err(horizon) => horizon,
        };
        Err(Error::HistoryGone { sequence, oldest: oldest.0, newest: newest.0 })
    }

    /// The sequence of the newest write that the snapshot sees: later snapshots have the same or a
    /// larger one.
    pub fn sequence(&self) -> u64 {
        self.at.0
    }

    /// As [`Collection::get`], at the time of the snapshot. Of a collection that did not exist
    /// then: none.
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

    /// As [`Collection::scan`], at the time of the snapshot. The scan stays valid when the snapshot
    /// is dropped.
    ///
    /// # Errors
    ///
    /// Those of [`Collection::scan`], and `ForeignHandle` for a collection of another database.
    pub fn scan<'a>(&self, collection: &Collection, range: impl IdRange<'a>) -> Result<Scan> {
        self.check(collection)?;
        let range = range.bounds()?;
        Ok(Scan::new(self.handle.store.scan(collection.state(), &range, Some(self.at))?))
    }

    /// As [`Collection::scan_ids`], at the time of the snapshot.
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
