//! Writes that happen together.

use std::fmt;

use serde::Serialize;

use crate::collection::Collection;
use crate::database::Handle;
use crate::document;
use crate::error::{Error, Result};
use crate::format::{Kind, append_record};
use crate::id::Id;
use crate::log::Request;
use crate::options::WriteDurability;
use crate::store::{BATCH_BYTES_MAX, CollectionState};
use crate::sync::{Arc, Weak};

/// Puts and deletes, in any number of collections of one database, to be written by
/// [`Database::write`](crate::Database::write): all or nothing. Later ones win over earlier ones
/// with the same id. At most 256 MiB in the log ([`Batch::bytes`]), all of it in memory until it is
/// written.
///
/// Documents are encoded and checked as they are added. A batch does not keep its database open,
/// and cannot be written to another one.
///
/// ```
/// # use engine::{Batch, Database, Options};
/// # use serde_json::json;
/// # fn main() -> Result<(), engine::Error> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let database = Database::open(dir.path().join("db"), Options::default())?;
/// let accounts = database.collection("accounts")?;
/// let mut batch = Batch::new();
/// batch.put(&accounts, 1, &json!({ "balance": 70 }))?;
/// batch.put(&accounts, 2, &json!({ "balance": 30 }))?;
/// batch.delete(&accounts, 3)?;
/// database.write(batch)?;
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Batch {
    records: Vec<u8>,
    count: u32,
    handle: Weak<Handle>,
    collections: Vec<Arc<CollectionState>>,
}

/// Its size, not its bytes: there may be 256 MiB of them.
impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("len", &self.len())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of puts and deletes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is nothing in it. Writing an empty batch does nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Its size in the log, in bytes: ids and documents, and about 32 bytes more for each.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.records.len() as u64
    }

    /// Adds a put of any serde type that makes a document, as [`Collection::put`].
    ///
    /// # Errors
    ///
    /// `InvalidId`, `InvalidDocument`, `BatchTooLarge`, `ForeignHandle` when it has something for
    /// another database: the batch is as before, and can be used on. A dropped collection is found
    /// when the batch is written.
    pub fn put<'a, T: Serialize + ?Sized>(
        &mut self,
        collection: &Collection,
        id: impl Into<Id<'a>>,
        document: &T,
    ) -> Result<()> {
        let document = document::encode(document)?;
        self.push(Kind::Put, collection, &id.into(), &document)
    }

    /// Adds a put of raw BSON, as [`Collection::put_raw`].
    ///
    /// # Errors
    ///
    /// Those of [`Batch::put`].
    pub fn put_raw<'a>(
        &mut self,
        collection: &Collection,
        id: impl Into<Id<'a>>,
        bson: &[u8],
    ) -> Result<()> {
        document::validate(bson)?;
        self.push(Kind::Put, collection, &id.into(), bson)
    }

    /// Adds a delete. Deleting what does not exist is no error.
    ///
    /// # Errors
    ///
    /// `InvalidId`, `BatchTooLarge`, `ForeignHandle`: the batch is as before.
    pub fn delete<'a>(&mut self, collection: &Collection, id: impl Into<Id<'a>>) -> Result<()> {
        self.push(Kind::Delete, collection, &id.into(), &[])
    }

    fn push(
        &mut self,
        kind: Kind,
        collection: &Collection,
        id: &Id<'_>,
        document: &[u8],
    ) -> Result<()> {
        let id = id.encode()?;
        let handle = Arc::downgrade(collection.handle());
        if !self.collections.is_empty() && !self.handle.ptr_eq(&handle) {
            return Err(Error::ForeignHandle);
        }
        let before = self.records.len();
        append_record(&mut self.records, kind, collection.state().id, id.as_bytes(), document);
        let bytes = self.records.len() as u64;
        // Room for the batch record.
        let limit = BATCH_BYTES_MAX - 64;
        if bytes > limit {
            self.records.truncate(before);
            return Err(Error::BatchTooLarge { bytes, limit });
        }
        self.count += 1;
        self.handle = handle;
        if !self.collections.iter().any(|state| Arc::ptr_eq(state, collection.state())) {
            self.collections.push(Arc::clone(collection.state()));
        }
        Ok(())
    }

    pub(crate) fn commit(self, handle: &Arc<Handle>, durability: WriteDurability) -> Result<()> {
        handle.store.check_open()?;
        let durable = durability == WriteDurability::Durable;
        if self.is_empty() {
            // Nothing to write; but a durable answer covers every earlier write.
            return if durable { handle.store.sync() } else { Ok(()) };
        }
        if !self.handle.ptr_eq(&Arc::downgrade(handle)) {
            return Err(Error::ForeignHandle);
        }
        for state in &self.collections {
            state.check_live()?;
        }
        let mut request = Request::batch(&self.records, self.count);
        request.durable = durable;
        handle.store.write(request).map(drop)
    }
}
