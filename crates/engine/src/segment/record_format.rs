//! The two forms of a record's header, log and sorted, brought to one.
//!
//! Invariant: a header is believed only once its content verified, and the content's checksum covers
//! every field of it.

use crate::format::{
    CollectionId, FileKind, Kind, RECORD_HEADER_BYTES, RecordFault, RecordHeader,
    SORTED_HEADER_BYTES_MAX, SORTED_HEADER_BYTES_MIN, SealedMeta, Sequence, SortedHeader,
    content_checksum,
};
use crate::planted::{self, Bug};

/// How the records of a file begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordFormat {
    /// With the log record's header.
    Log,
    /// With the short header; records that name no collection are of this one.
    Sorted { collection: CollectionId },
}

/// The longest header of either form, in bytes.
pub(super) const HEADER_BYTES_MAX: usize = SORTED_HEADER_BYTES_MAX;
const _: () = assert!(HEADER_BYTES_MAX >= RECORD_HEADER_BYTES);

impl RecordFormat {
    /// The format of a sealed segment's records.
    pub(super) fn of(meta: &SealedMeta) -> Self {
        match meta.file_kind {
            FileKind::Sorted => Self::Sorted { collection: meta.default_collection() },
            // An index segment has no records of its own.
            FileKind::Log | FileKind::Index => Self::Log,
        }
    }

    /// The shortest header, in bytes.
    #[inline]
    pub(super) fn header_bytes_min(self) -> u64 {
        match self {
            Self::Log => RECORD_HEADER_BYTES as u64,
            Self::Sorted { .. } => SORTED_HEADER_BYTES_MIN as u64,
        }
    }

    /// Reads the header at the beginning of `bytes`, unverified.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "headers are at most 28 bytes long")]
    pub(super) fn parse(
        self,
        bytes: &[u8],
        incarnation: u64,
        offset: u64,
    ) -> Result<Head, RecordFault> {
        match self {
            Self::Log => {
                let header = RecordHeader::parse_unchecked(bytes)?;
                Ok(Head {
                    kind: header.kind,
                    header_len: RECORD_HEADER_BYTES as u8,
                    id_len: header.id_len,
                    document_len: header.document_len,
                    collection: header.collection,
                    content_checksum: header.content_checksum(incarnation, offset),
                    sequence: header.sequence,
                })
            }
            Self::Sorted { collection } => {
                let (header, len) = SortedHeader::parse(bytes, collection, incarnation, offset)?;
                Ok(Head {
                    kind: header.kind,
                    header_len: len as u8,
                    id_len: header.id_len,
                    document_len: header.document_len,
                    collection: header.collection,
                    content_checksum: header.content_checksum,
                    sequence: header.sequence,
                })
            }
        }
    }
}

/// What a record's header says, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    header_len: u8,
    pub(super) id_len: u16,
    pub(super) document_len: u32,
    pub(super) collection: CollectionId,
    /// Of the content alone, whatever its place.
    pub(super) content_checksum: u32,
    pub(super) sequence: Sequence,
}

impl Head {
    /// Of a marker that has its id and nothing else.
    pub(super) fn damaged(collection: CollectionId, id_len: u16) -> Self {
        Self {
            kind: Kind::Damaged,
            header_len: 0,
            id_len,
            document_len: 0,
            collection,
            content_checksum: 0,
            sequence: Sequence(0),
        }
    }

    /// Where the id begins in the record.
    #[inline]
    pub(super) fn id_start(&self) -> usize {
        usize::from(self.header_len)
    }

    /// Where the document begins in the record.
    #[inline]
    pub(super) fn document_start(&self) -> usize {
        self.id_start() + usize::from(self.id_len)
    }

    /// Header, id and document, without the padding.
    #[inline]
    pub(super) fn used_len(&self) -> usize {
        self.document_start() + self.document_len as usize
    }

    /// Id and document, in bytes.
    pub(super) fn content_len(&self) -> u64 {
        u64::from(self.id_len) + u64::from(self.document_len)
    }

    /// Verifies the content. `bytes` begins with the record.
    // Inlined, so that the header need not be in memory.
    #[inline(always)]
    pub(super) fn verify(&self, bytes: &[u8]) -> Result<(), RecordFault> {
        let content = bytes.get(self.id_start()..self.used_len()).ok_or(RecordFault::Short)?;
        let checksum =
            content_checksum(self.kind, self.collection, self.id_len, self.document_len, content);
        if checksum == self.content_checksum || planted::is(Bug::ChecksumNotVerified) {
            Ok(())
        } else {
            Err(RecordFault::Content)
        }
    }

    /// With the checksum of whatever content stands there, as [`Bug::ChecksumRecomputed`] has it.
    /// `bytes` are the record.
    pub(super) fn recomputed(self, bytes: &[u8]) -> Self {
        let Self { kind, collection, id_len, document_len, .. } = self;
        let content = &bytes[self.id_start()..];
        let content_checksum = content_checksum(kind, collection, id_len, document_len, content);
        Self { content_checksum, ..self }
    }
}
