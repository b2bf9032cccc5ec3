//! Documents by id.

use std::fmt;

use serde::Serialize;

use crate::database::Handle;
use crate::document::{self, Document};
use crate::error::{Error, Result};
use crate::format::Kind;
use crate::id::{EncodedId, Id, IdRange};
use crate::log::{Committed, Request};
use crate::rows::{Ids, Scan};
use crate::store::CollectionState;
use crate::sync::Arc;

/// A collection of documents. Cheap to clone; keeps its database open.
///
/// Ids are integers, strings or bytes, in this order (see [`Id`]), 1 to 65 535 bytes encoded.
/// Documents are BSON, at most 16 MiB and 100 levels deep.
#[derive(Clone)]
pub struct Collection {
    handle: Arc<Handle>,
    state: Arc<CollectionState>,
}

impl fmt::Debug for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collection").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl Collection {
    pub(crate) fn new(handle: Arc<Handle>, state: Arc<CollectionState>) -> Self {
        Self { handle, state }
    }

    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    pub(crate) fn state(&self) -> &Arc<CollectionState> {
        &self.state
    }

    /// The collection's name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The document with this id. It borrows its segment or owns its bytes, and stays valid
    /// whatever is written, and after a close.
    ///
    /// Takes no lock. Costs one probe of the memtable, one cache line of each segment that does not
    /// have the id, and the record with its checksum.
    ///
    /// # Errors
    ///
    /// `InvalidId`, `Corrupt` when the document or an index block on the way does not verify,
    /// `CollectionDropped`, `Closed`, `Io`.
    pub fn get<'a>(&self, id: impl Into<Id<'a>>) -> Result<Option<Document>> {
        let id = id.into().encode()?;
        let record = self.handle.store.get(&self.state, id.as_bytes(), None)?;
        Ok(record.map(Document::new))
    }

    /// Puts a document, replacing one with the same id: any serde type that serializes as a struct
    /// or map, `serde_json::Value` objects included.
    ///
    /// # Errors
    ///
    /// `InvalidId`, `InvalidDocument`, `CollectionDropped`, and those of
    /// [`Database::write`](crate::Database::write).
    pub fn put<'a, T: Serialize + ?Sized>(
        &self,
        id: impl Into<Id<'a>>,
        document: &T,
    ) -> Result<()> {
        let document = document::encode(document)?;
        self.put_encoded(&id.into(), &document)
    }

    /// Puts raw BSON, which is validated whole.
    ///
    /// # Errors
    ///
    /// Those of [`Collection::put`].
    pub fn put_raw<'a>(&self, id: impl Into<Id<'a>>, bson: &[u8]) -> Result<()> {
        document::validate(bson)?;
        self.put_encoded(&id.into(), bson)
    }

    fn put_encoded(&self, id: &Id<'_>, document: &[u8]) -> Result<()> {
        let id = id.encode()?;
        self.write(Kind::Put, &id, document)
    }

    /// Puts a document with an id that must be new. Of inserts of one id at the same time one
    /// succeeds. Costs a look for the id, and a [`Collection::put`].
    ///
    /// # Errors
    ///
    /// `AlreadyExists`, and those of [`Collection::put`].
    pub fn insert<'a, T: Serialize + ?Sized>(
        &self,
        id: impl Into<Id<'a>>,
        document: &T,
    ) -> Result<()> {
        let document = document::encode(document)?;
        self.insert_encoded(&id.into(), &document)
    }

    /// As [`Collection::insert`], of raw BSON.
    ///
    /// # Errors
    ///
    /// Those of [`Collection::insert`].
    pub fn insert_raw<'a>(&self, id: impl Into<Id<'a>>, bson: &[u8]) -> Result<()> {
        document::validate(bson)?;
        self.insert_encoded(&id.into(), bson)
    }

    fn insert_encoded(&self, id: &Id<'_>, document: &[u8]) -> Result<()> {
        let encoded = id.encode()?;
        self.read_modify_write(&encoded, |existing| match existing {
            None => Ok(document.to_vec()),
            Some(_) => {
                Err(Error::AlreadyExists { collection: self.name().to_owned(), id: id.to_string() })
            }
        })
    }

    /// Replaces the named top-level fields of an existing document in their places, and appends
    /// those that it does not have. Nested documents are replaced whole. Atomic: of updates at the
    /// same time none is lost.
    ///
    /// Costs a [`Collection::get`] and a [`Collection::put`] of the whole document; both again for
    /// each time that another write to the id came between.
    ///
    /// ```
    /// # use engine::{Database, Options};
    /// # use serde_json::json;
    /// # fn main() -> Result<(), engine::Error> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let database = Database::open(dir.path().join("db"), Options::default())?;
    /// # let cities = database.collection("cities")?;
    /// cities.put("oslo", &json!({ "country": "NO", "people": 709_037 }))?;
    /// cities.update("oslo", &json!({ "people": 717_710, "area": 454 }))?;
    /// let oslo = cities.get("oslo")?.expect("it was just put");
    /// assert_eq!(oslo.to_json()?, json!({ "country": "NO", "people": 717_710, "area": 454 }));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `NotFound`, `InvalidDocument` also when the result would be too large, `Corrupt` when the
    /// existing document does not verify, and those of [`Collection::put`].
    pub fn update<'a, T: Serialize + ?Sized>(
        &self,
        id: impl Into<Id<'a>>,
        fields: &T,
    ) -> Result<()> {
        let fields = document::encode(fields)?;
        self.update_encoded(&id.into(), &fields)
    }

    /// As [`Collection::update`], with the fields as raw BSON.
    ///
    /// # Errors
    ///
    /// Those of [`Collection::update`].
    pub fn update_raw<'a>(&self, id: impl Into<Id<'a>>, fields: &[u8]) -> Result<()> {
        document::validate(fields)?;
        self.update_encoded(&id.into(), fields)
    }

    fn update_encoded(&self, id: &Id<'_>, fields: &[u8]) -> Result<()> {
        let encoded = id.encode()?;
        self.read_modify_write(&encoded, |existing| match existing {
            Some(existing) => document::merge(existing, fields),
            None => Err(Error::NotFound { collection: self.name().to_owned(), id: id.to_string() }),
        })
    }

    /// Deletes a document. Deleting what does not exist is no error, and costs the same: one small
    /// write.
    ///
    /// # Errors
    ///
    /// `InvalidId`, `CollectionDropped`, and those of [`Database::write`](crate::Database::write).
    pub fn delete<'a>(&self, id: impl Into<Id<'a>>) -> Result<()> {
        let id = id.into().encode()?;
        self.write(Kind::Delete, &id, &[])
    }

    /// The documents of a range of ids, by rising id; from the back by falling id. The scan sees
    /// the collection as it is now, whatever is written meanwhile. Lazy: nothing is read before the
    /// first row.
    ///
    /// ```
    /// # use engine::{Database, Options};
    /// # use serde_json::json;
    /// # fn main() -> Result<(), engine::Error> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let database = Database::open(dir.path().join("db"), Options::default())?;
    /// # let letters = database.collection("letters")?;
    /// for id in ["a", "b", "c"] {
    ///     letters.put(id, &json!({ "upper": id.to_uppercase() }))?;
    /// }
    /// let last = letters.scan("a".."c")?.next_back().expect("two rows")?;
    /// assert_eq!(last.0.to_string(), "\"b\"");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `InvalidId`, `CollectionDropped`, `Closed`. An error while scanning is a row of its own, and
    /// the last.
    pub fn scan<'a>(&self, range: impl IdRange<'a>) -> Result<Scan> {
        Ok(Scan::new(self.handle.store.scan(&self.state, &range.bounds()?, None)?))
    }

    /// The ids of a range, as [`Collection::scan`]. The documents are read and verified all the
    /// same.
    ///
    /// # Errors
    ///
    /// Those of [`Collection::scan`].
    pub fn scan_ids<'a>(&self, range: impl IdRange<'a>) -> Result<Ids> {
        Ok(Ids::new(self.handle.store.scan(&self.state, &range.bounds()?, None)?))
    }

    fn write(&self, kind: Kind, id: &EncodedId, document: &[u8]) -> Result<()> {
        self.state.check_live()?;
        let request = Request::single(kind, self.state.id, id.as_bytes(), document);
        self.handle.store.write(request).map(drop)
    }

    /// Writes what `change` makes of the newest document, unless another write to the id comes
    /// between: then again.
    fn read_modify_write(
        &self,
        id: &EncodedId,
        mut change: impl FnMut(Option<&[u8]>) -> Result<Vec<u8>>,
    ) -> Result<()> {
        loop {
            let seen = self.handle.store.see(&self.state, id.as_bytes())?;
            let document = change(seen.record.as_ref().map(|record| record.document()))?;
            let mut request = Request::single(Kind::Put, self.state.id, id.as_bytes(), &document);
            request.condition = Some(seen.condition);
            if let Committed::At(_) = self.handle.store.write(request)? {
                return Ok(());
            }
        }
    }
}
