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
/// A clone costs one atomic increment.
#[derive(Clone)]
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

/// The document of a verified record: borrows and pins, or owns, as the record does.
///
/// Where it stands in two words of its own, and not in a copy of the record's header: a scan makes
/// the document of each row from the record that it just read, and would wait for that header to come
/// out of the processor's store buffer.
#[derive(Clone)]
pub(crate) struct RecordDocument {
    bytes: Bytes,
    /// In the file if its bytes are mapped, else in the record.
    start: u64,
    len: u32,
}

impl RecordDocument {
    pub(crate) fn of(record: Record) -> Self {
        let (start, len) = record.document_place();
        Self { bytes: record.bytes, start, len }
    }

    /// Becomes the document of another record. Costs no count of references where both are of one
    /// file.
    #[inline]
    pub(crate) fn show(&mut self, record: &Record) {
        match (&self.bytes, &record.bytes) {
            (Bytes::Mapped(own), Bytes::Mapped(pin)) if Arc::ptr_eq(own, pin) => {}
            _ => self.bytes = record.bytes.clone(),
        }
        (self.start, self.len) = record.document_place();
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.at(self.start, self.len as usize)
    }
}

impl Bytes {
    /// What was verified: mapped bytes by their place in the file, others by that in the record.
    #[inline]
    fn at(&self, start: u64, len: usize) -> &[u8] {
        match self {
            Self::Mapped(pin) => pin.bytes(start, len),
            Self::Owned(bytes) => usize::try_from(start)
                .ok()
                .and_then(|start| bytes.get(start..start.checked_add(len)?)),
        }
        .unwrap_or_else(|| unreachable!("a record's bounds were checked when it was read"))
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

    /// Where the document begins, for [`Bytes::at`], and its length.
    #[inline]
    fn document_place(&self) -> (u64, u32) {
        (self.start_of(self.head.document_start()), self.head.document_len)
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
        self.bytes.at(self.start_of(start), len)
    }

    /// A place in the record, for [`Bytes::at`].
    #[inline]
    fn start_of(&self, in_record: usize) -> u64 {
        match self.bytes {
            Bytes::Mapped(_) => self.offset + in_record as u64,
            Bytes::Owned(_) => in_record as u64,
        }
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
