//! The first bytes of a segment file: what the file is, and where in the log it belongs.
//!
//! Invariants:
//!
//! 1. The magic, the check over the first 124 bytes and the place of the version stay the same in
//!    all versions: a damaged header is never taken for a newer one.
//! 2. What a reader does not know, it refuses by name; unknown compatible features it ignores.

use std::path::Path;

use super::bytes::Reader;
use super::types::{SegmentId, Sequence};
use crate::error::Error;

/// The header's length in bytes; zeros follow up to [`LOG_START`].
pub(crate) const SEGMENT_HEADER_BYTES: usize = 128;
/// Where a segment's first record stands, in bytes.
pub(crate) const LOG_START: u64 = 4096;

/// The version of segment files that this library reads and writes.
pub(super) const SEGMENT_VERSION: u16 = 1;
const MAGIC: &[u8; 8] = b"SEDIMENT";
const CHECK: usize = 124;
/// CRC-32 with the polynomial of IEEE 802.3.
const CHECKSUM_CRC32: u8 = 1;
const CODEC_NONE: u8 = 0;

/// Why bytes of a file are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FormatFault {
    /// They do not verify, or contradict each other.
    Damaged(&'static str),
    /// They need a newer version of this library, which this names.
    Unsupported(String),
}

impl FormatFault {
    /// The error for bytes at a place of a file.
    pub(crate) fn into_error(self, file: &Path, offset: u64) -> Error {
        match self {
            Self::Damaged(what) => Error::corrupt(file, offset, what),
            Self::Unsupported(what) => Error::UnsupportedFormat { file: file.to_owned(), what },
        }
    }
}

/// What a segment file holds. Explicit, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FileKind {
    /// Log records in the order of arrival: level 0.
    Log = 1,
    /// Records in the order of ids, with the short header.
    Sorted = 2,
    /// One index over the records of other segments, and no records of its own.
    Index = 3,
}

impl FileKind {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Log),
            2 => Some(Self::Sorted),
            3 => Some(Self::Index),
            _ => None,
        }
    }
}

/// The header of a segment file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) file_kind: FileKind,
    pub(crate) database_id: [u8; 16],
    pub(crate) segment: SegmentId,
    /// Random; bound into every check in the file.
    pub(crate) incarnation: u64,
    /// No record in the file has a lower one.
    pub(crate) first_sequence: Sequence,
    /// The segment whose log this one goes on; 0 where there is none.
    pub(crate) predecessor: SegmentId,
    /// Where the predecessor's log ends exactly, in bytes.
    pub(crate) predecessor_end: u64,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut out = [0; SEGMENT_HEADER_BYTES];
        out[..8].copy_from_slice(MAGIC);
        out[8..10].copy_from_slice(&SEGMENT_VERSION.to_le_bytes());
        out[10] = self.file_kind as u8;
        out[11] = CHECKSUM_CRC32;
        out[12] = CODEC_NONE;
        out[32..48].copy_from_slice(&self.database_id);
        out[48..56].copy_from_slice(&self.segment.0.to_le_bytes());
        out[56..64].copy_from_slice(&self.incarnation.to_le_bytes());
        out[64..72].copy_from_slice(&self.first_sequence.0.to_le_bytes());
        out[72..80].copy_from_slice(&self.predecessor.0.to_le_bytes());
        out[80..88].copy_from_slice(&self.predecessor_end.to_le_bytes());
        let check = crc32fast::hash(&out[..CHECK]);
        out[CHECK..].copy_from_slice(&check.to_le_bytes());
        out
    }

    /// Reads the header at the beginning of `bytes`. Whether it is this database's, and the segment
    /// that the file's name says, is for the caller to compare.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, FormatFault> {
        const SHORT: FormatFault = FormatFault::Damaged("the segment is shorter than its header");
        let header = bytes.get(..SEGMENT_HEADER_BYTES).ok_or(SHORT)?;
        if &header[..8] != MAGIC {
            return Err(FormatFault::Damaged("the file does not begin as a segment"));
        }
        let crc = Reader::new(&header[CHECK..]).u32().ok_or(SHORT)?;
        if crc != crc32fast::hash(&header[..CHECK]) {
            return Err(FormatFault::Damaged("the segment's header does not verify"));
        }
        Self::parse(Reader::new(&header[8..])).ok_or(SHORT)?
    }

    fn parse(mut from: Reader<'_>) -> Option<Result<Self, FormatFault>> {
        let unsupported = |what| Some(Err(FormatFault::Unsupported(what)));
        let version = from.u16()?;
        if version != SEGMENT_VERSION {
            return unsupported(format!("segment version {version}"));
        }
        let kind = from.u8()?;
        let Some(file_kind) = FileKind::from_byte(kind) else {
            return unsupported(format!("segment kind {kind}"));
        };
        let (checksum, codec) = (from.u8()?, from.u8()?);
        if checksum != CHECKSUM_CRC32 {
            return unsupported(format!("checksum {checksum}"));
        }
        if codec != CODEC_NONE {
            return unsupported(format!("codec {codec}"));
        }
        from.take(3)?;
        let [_compatible, read_only, incompatible] = [from.u32()?, from.u32()?, from.u32()?];
        if read_only != 0 || incompatible != 0 {
            return unsupported(format!(
                "segment features {read_only:#x} (read-only) and {incompatible:#x} (incompatible)"
            ));
        }
        from.take(4)?;
        Some(Ok(Self {
            file_kind,
            database_id: from.take(16)?.try_into().ok()?,
            segment: SegmentId(from.u64()?),
            incarnation: from.u64()?,
            first_sequence: Sequence(from.u64()?),
            predecessor: SegmentId(from.u64()?),
            predecessor_end: from.u64()?,
        }))
    }
}
