//! Log records: one write each.
//!
//! Invariants:
//!
//! 1. A record verifies only in its own file (incarnation), at its own offset, with its own
//!    sequence: stale, misplaced and aliased bytes never do.
//! 2. The content checksum covers the kind, the collection, both lengths, the id and the document,
//!    and depends on no place: a copy keeps it, unrecomputed.
//! 3. The header has a check of its own, so that a damaged length is found before it is believed.

use super::types::{CollectionId, Kind, Sequence};
use crate::planted::{self, Bug};

/// Bytes before the id.
pub(crate) const RECORD_HEADER_BYTES: usize = 28;
/// Records begin at multiples of this, so that a search past damage tries one offset in eight.
pub(crate) const RECORD_ALIGNMENT: usize = 8;
/// The longest encoded id, in bytes.
pub(crate) const ID_BYTES_MAX: usize = 65_535;

const CHECK: usize = 0;
const KIND: usize = 4;
const FLAGS: usize = 5;
const ID_LEN: usize = 6;
const DOCUMENT_LEN: usize = 8;
const COLLECTION: usize = 12;
const SEQUENCE: usize = 16;
const CHECKSUM: usize = 24;

/// Stands for the sequence in a header's check, which must not equal the record's checksum mix.
const HEADER_SALT: u64 = !0;

/// A header that passed its own check. The record's content may still be damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) kind: Kind,
    pub(crate) id_len: u16,
    pub(crate) document_len: u32,
    pub(crate) collection: CollectionId,
    pub(crate) sequence: Sequence,
    /// As stored: the content checksum mixed with the record's place.
    checksum: u32,
}

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordFault {
    /// Fewer bytes than the record needs.
    Short,
    /// The header's check does not match.
    Header,
    /// The content's checksum does not match.
    Content,
}

impl RecordFault {
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Short => "the record ends beyond its segment",
            Self::Header => "the record's header does not verify",
            Self::Content => "the record's checksum does not match its content",
        }
    }
}

/// Binds bytes to a file, a place and a sequence.
#[inline]
pub(crate) fn mix(incarnation: u64, offset: u64, sequence: u64) -> u32 {
    let is_left_out = planted::is(Bug::IncarnationLeftOutOfChecksum);
    finalise(if is_left_out { 0 } else { incarnation }, offset, sequence)
}

/// A finaliser over three numbers (the constants are splitmix64's and XXH64's).
#[expect(clippy::cast_possible_truncation, reason = "a hash: the low half is as good as any")]
#[inline]
fn finalise(first: u64, second: u64, third: u64) -> u32 {
    let mut h = first
        ^ second.wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ third.wrapping_mul(0xC2B2_AE3D_27D4_EB4F).rotate_left(31);
    h = (h ^ (h >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (h ^ (h >> 31)) as u32
}

/// The checksum of what a record says, wherever it stands. `content` is the id followed by the
/// document.
#[inline]
pub(crate) fn content_checksum(
    kind: Kind,
    collection: CollectionId,
    id_len: u16,
    document_len: u32,
    content: &[u8],
) -> u32 {
    let lengths = u64::from(id_len) << 32 | u64::from(document_len);
    let seed = finalise(u64::from(collection.0), lengths, kind as u64);
    let mut hasher = crc32fast::Hasher::new_with_initial(seed);
    hasher.update(content);
    hasher.finalize()
}

/// The bytes a record takes in the log, padding included.
pub(crate) fn record_len(id_len: usize, document_len: usize) -> usize {
    (RECORD_HEADER_BYTES + id_len + document_len).next_multiple_of(RECORD_ALIGNMENT)
}

/// Appends a record that has no place yet: its checksum field holds the content checksum as it is.
/// [`place_record`] completes it.
///
/// # Panics
///
/// When the id or the document is longer than the format allows; callers have checked both.
pub(crate) fn append_record(
    out: &mut Vec<u8>,
    kind: Kind,
    collection: CollectionId,
    id: &[u8],
    document: &[u8],
) {
    let id_len = u16::try_from(id.len()).expect("the id's length was checked");
    let document_len = u32::try_from(document.len()).expect("the document's length was checked");
    let start = out.len();
    let len = record_len(id.len(), document.len());
    out.reserve(len);
    let mut header = [0; RECORD_HEADER_BYTES];
    header[KIND] = kind as u8;
    header[ID_LEN..ID_LEN + 2].copy_from_slice(&id_len.to_le_bytes());
    header[DOCUMENT_LEN..DOCUMENT_LEN + 4].copy_from_slice(&document_len.to_le_bytes());
    header[COLLECTION..COLLECTION + 4].copy_from_slice(&collection.0.to_le_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(id);
    out.extend_from_slice(document);
    let content = &out[start + RECORD_HEADER_BYTES..];
    let checksum = content_checksum(kind, collection, id_len, document_len, content);
    out[start + CHECKSUM..start + CHECKSUM + 4].copy_from_slice(&checksum.to_le_bytes());
    out.resize(start + len, 0);
}

/// Gives an unplaced record its file, offset and sequence.
pub(crate) fn place_record(record: &mut [u8], incarnation: u64, offset: u64, sequence: Sequence) {
    record[SEQUENCE..SEQUENCE + 8].copy_from_slice(&sequence.0.to_le_bytes());
    let checksum = u32_at(record, CHECKSUM) ^ mix(incarnation, offset, sequence.0);
    record[CHECKSUM..CHECKSUM + 4].copy_from_slice(&checksum.to_le_bytes());
    let check = crc32fast::hash(&record[KIND..CHECKSUM]) ^ mix(incarnation, offset, HEADER_SALT);
    record[CHECK..CHECK + 4].copy_from_slice(&check.to_le_bytes());
}

/// Takes a verified record's place away again, so that [`place_record`] can give it another.
pub(crate) fn unplace_record(record: &mut [u8], incarnation: u64, offset: u64) {
    let sequence = u64_at(record, SEQUENCE);
    let checksum = u32_at(record, CHECKSUM) ^ mix(incarnation, offset, sequence);
    record[CHECKSUM..CHECKSUM + 4].copy_from_slice(&checksum.to_le_bytes());
}

impl RecordHeader {
    /// Reads a header and verifies its check. `bytes` begins with the record.
    pub(crate) fn parse(bytes: &[u8], incarnation: u64, offset: u64) -> Result<Self, RecordFault> {
        let Some(header) = bytes.get(..RECORD_HEADER_BYTES) else {
            return Err(RecordFault::Short);
        };
        let check =
            crc32fast::hash(&header[KIND..CHECKSUM]) ^ mix(incarnation, offset, HEADER_SALT);
        if u32_at(header, CHECK) != check {
            return Err(RecordFault::Header);
        }
        Self::parse_unchecked(header)
    }

    /// Reads a header without its check: for reads, whose record checksum covers all of it once the
    /// lengths are within bounds.
    #[inline]
    pub(crate) fn parse_unchecked(bytes: &[u8]) -> Result<Self, RecordFault> {
        let Some(header) = bytes.get(..RECORD_HEADER_BYTES) else {
            return Err(RecordFault::Short);
        };
        let kind = Kind::from_byte(header[KIND]).ok_or(RecordFault::Header)?;
        if header[FLAGS] != 0 {
            return Err(RecordFault::Header);
        }
        Ok(Self {
            kind,
            id_len: u16::from_le_bytes([header[ID_LEN], header[ID_LEN + 1]]),
            document_len: u32_at(header, DOCUMENT_LEN),
            collection: CollectionId(u32_at(header, COLLECTION)),
            sequence: Sequence(u64_at(header, SEQUENCE)),
            checksum: u32_at(header, CHECKSUM),
        })
    }

    /// The bytes the record takes in the log, padding included.
    pub(crate) fn record_len(&self) -> usize {
        record_len(usize::from(self.id_len), self.document_len as usize)
    }

    /// Header, id and document, without the padding.
    pub(crate) fn used_len(&self) -> usize {
        RECORD_HEADER_BYTES + usize::from(self.id_len) + self.document_len as usize
    }

    /// The id and the document, in bytes.
    pub(crate) fn content_len(&self) -> u64 {
        u64::from(self.id_len) + u64::from(self.document_len)
    }

    /// Where the document begins in the record.
    pub(crate) fn document_start(&self) -> usize {
        RECORD_HEADER_BYTES + usize::from(self.id_len)
    }

    /// The checksum of the content, of a record that stands at `offset` of its file.
    #[inline]
    pub(crate) fn content_checksum(&self, incarnation: u64, offset: u64) -> u32 {
        self.checksum ^ mix(incarnation, offset, self.sequence.0)
    }

    /// Verifies the content. `bytes` begins with the record and holds at least its used length.
    #[inline]
    pub(crate) fn verify(
        &self,
        bytes: &[u8],
        incarnation: u64,
        offset: u64,
    ) -> Result<(), RecordFault> {
        let content = bytes.get(RECORD_HEADER_BYTES..self.used_len()).ok_or(RecordFault::Short)?;
        let checksum =
            content_checksum(self.kind, self.collection, self.id_len, self.document_len, content);
        if self.content_checksum(incarnation, offset) == checksum
            || planted::is(Bug::ChecksumNotVerified)
        {
            Ok(())
        } else {
            Err(RecordFault::Content)
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut le = [0; 4];
    le.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(le)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut le = [0; 8];
    le.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(le)
}
