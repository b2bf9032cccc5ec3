//! A record that was read and verified.
//!
//! Invariants:
//!
//! 1. A `Record` exists only for bytes whose checksum matched their file, place and sequence.
//! 2. Its bytes outlive the segment's removal: it borrows the map through a pin, or owns them.

use std::fmt;
use std::path::Path;

use super::pin::{Mapping, Pin};
use super::record_format::Head;
use crate::error::{Error, Result};
use crate::format::{CollectionId, Key, Kind, Sequence};
use crate::sync::Arc;

/// A verified record: borrows its segment's map and pins it, or owns its bytes.
///
/// A clone costs one atomic increment; `clone_from` a record of the same file none.
pub(crate) struct Record {
    head: Head,
    offset: u64,
    bytes: Bytes,
}

/// From the header to the document's last byte.
#[derive(Clone)]
enum Bytes {
    Mapped(Arc<Pin>),
    Owned(Arc<[u8]>),
}

impl Clone for Record {
    fn clone(&self) -> Self {
        Self { head: self.head, offset: self.offset, bytes: self.bytes.clone() }
    }

    #[inline]
    fn clone_from(&mut self, source: &Self) {
        match (&self.bytes, &source.bytes) {
            (Bytes::Mapped(own), Bytes::Mapped(pin)) if Arc::ptr_eq(own, pin) => {
                self.head = source.head;
                self.offset = source.offset;
            }
            _ => *self = source.clone(),
        }
    }
}

impl Record {
    /// A record whose bytes at `offset` of the pin's map were verified.
    pub(super) fn mapped(head: Head, offset: u64, pin: Arc<Pin>) -> Self {
        Self { head, offset, bytes: Bytes::Mapped(pin) }
    }

    /// A record whose bytes, from the header on, were verified.
    pub(super) fn owned(head: Head, offset: u64, bytes: Arc<[u8]>) -> Self {
        Self { head, offset, bytes: Bytes::Owned(bytes) }
    }

    /// Whether the record borrows from this map.
    pub(super) fn borrows_from(&self, mapping: &Arc<Mapping>) -> bool {
        matches!(&self.bytes, Bytes::Mapped(pin) if pin.is_of(mapping))
    }

    /// Makes this the record at `offset` of the same file, whose bytes were verified. `None` when
    /// the record has no pin that the other could use.
    #[inline]
    pub(super) fn move_to(&mut self, head: Head, offset: u64) -> Option<()> {
        let Bytes::Mapped(_) = &self.bytes else { return None };
        self.head = head;
        self.offset = offset;
        Some(())
    }

    /// A marker in memory for a record whose bytes are damaged.
    pub(crate) fn damaged(collection: CollectionId, id: &[u8]) -> Self {
        let id_len = u16::try_from(id.len()).unwrap_or(u16::MAX);
        let bytes = &id[..usize::from(id_len)];
        Self::owned(Head::damaged(collection, id_len), 0, bytes.into())
    }

    #[cfg(test)]
    pub(crate) fn owned_for_test(
        collection: CollectionId,
        id: &[u8],
        document: &[u8],
        sequence: Sequence,
        kind: Kind,
    ) -> Self {
        let mut bytes = Vec::new();
        crate::format::append_record(&mut bytes, kind, collection, id, document);
        crate::format::place_record(&mut bytes, 0, 0, sequence);
        let head = super::record_format::RecordFormat::Log.parse(&bytes, 0, 0);
        Self::owned(head.expect("it was just written"), 0, bytes.into())
    }

    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        self.head.kind
    }

    #[inline]
    pub(crate) fn collection(&self) -> CollectionId {
        self.head.collection
    }

    #[inline]
    pub(crate) fn sequence(&self) -> Sequence {
        self.head.sequence
    }

    /// The encoded id.
    #[inline]
    pub(crate) fn id(&self) -> &[u8] {
        self.bytes(self.head.id_start(), usize::from(self.head.id_len))
    }

    #[inline]
    pub(crate) fn document(&self) -> &[u8] {
        self.bytes(self.head.document_start(), self.head.document_len as usize)
    }

    /// The checksum of what the record says, wherever it stands: a copy carries it.
    pub(crate) fn content_checksum(&self) -> u32 {
        self.head.content_checksum
    }

    /// Id and document, in bytes.
    pub(crate) fn content_len(&self) -> u64 {
        self.head.content_len()
    }

    /// What the record takes in its file without padding, in bytes.
    #[inline]
    pub(super) fn used_len(&self) -> usize {
        self.head.used_len()
    }

    /// Where the record stands in its file, in bytes.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    #[cfg(test)]
    /// Whether the bytes are the file's own, mapped.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self.bytes, Bytes::Mapped(_))
    }

    /// Whether this is a version of the key.
    pub(crate) fn is_of(&self, key: &Key<'_>) -> bool {
        self.collection() == key.collection && self.id() == key.id
    }

    /// Whether [`Record::check_servable`] lets the record pass.
    #[inline]
    pub(super) fn is_servable(&self) -> bool {
        matches!(self.kind(), Kind::Put | Kind::Delete)
    }

    /// Lets puts and tombstones pass. A marker of lost bytes, and a record that an index must not
    /// name, are damage; kinds that this version cannot read need a newer one.
    pub(crate) fn check_servable(&self, file: &Path) -> Result<()> {
        match self.kind() {
            Kind::Put | Kind::Delete => Ok(()),
            Kind::Damaged => Err(Error::corrupt(
                file,
                self.offset,
                "an earlier copy of the record was damaged, and this marks its place",
            )),
            kind @ (Kind::RangeDelete | Kind::Expiry | Kind::Patch) => {
                let what = format!("a record of kind {kind:?} at byte {}", self.offset);
                Err(Error::UnsupportedFormat { file: file.to_owned(), what })
            }
            Kind::Mark | Kind::Catalogue | Kind::Batch => Err(Error::corrupt(
                file,
                self.offset,
                "the index names a record that has no document",
            )),
        }
    }

    #[inline]
    fn bytes(&self, start: usize, len: usize) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(pin) => pin.bytes(self.offset + start as u64, len),
            Bytes::Owned(bytes) => bytes.get(start..start + len),
        }
        .unwrap_or_else(|| unreachable!("a record's bounds were checked when it was read"))
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("kind", &self.kind())
            .field("collection", &self.collection())
            .field("sequence", &self.sequence())
            .field("id", &format_args!("{}", self.id().escape_ascii()))
            .field("document_len", &self.head.document_len)
            .field("offset", &self.offset)
            .finish()
    }
}
