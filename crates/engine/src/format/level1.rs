//! The short record header of level 1, where the index holds what a log record's header repeats.
//!
//! Reserved: compaction, which writes it, is still to come; its bytes are fixed now so that no file
//! has to change for it. Invariants:
//!
//! 1. The content checksum is the log record's, carried over without being computed again.
//! 2. Both lengths fit the narrow form, or both are in the wide one.

use super::bytes::Reader;
use super::record::{RecordFault, mix};
use super::types::Kind;

const KIND_MASK: u8 = 0x0F;
const WIDE: u8 = 0x10;
const NARROW_BYTES: usize = 8;
const WIDE_BYTES: usize = 16;

/// What stands before the id and the document of a level-1 record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level1Header {
    pub(crate) kind: Kind,
    pub(crate) id_len: u16,
    pub(crate) document_len: u32,
    /// See [`content_checksum`](super::content_checksum).
    pub(crate) content_checksum: u32,
}

#[cfg_attr(not(test), expect(dead_code, reason = "comes into use with compaction"))]
impl Level1Header {
    /// Appends the header of a record that stands at `offset` of its file.
    pub(crate) fn append(&self, out: &mut Vec<u8>, incarnation: u64, offset: u64) {
        let checksum = (self.content_checksum ^ mix(incarnation, offset, 0)).to_le_bytes();
        if let (Ok(id_len), Ok(document_len)) =
            (u8::try_from(self.id_len), u16::try_from(self.document_len))
        {
            out.extend_from_slice(&[self.kind as u8, id_len]);
            out.extend_from_slice(&document_len.to_le_bytes());
            out.extend_from_slice(&checksum);
        } else {
            out.extend_from_slice(&[self.kind as u8 | WIDE, 0, 0, 0]);
            out.extend_from_slice(&checksum);
            out.extend_from_slice(&self.document_len.to_le_bytes());
            out.extend_from_slice(&self.id_len.to_le_bytes());
            out.extend_from_slice(&[0, 0]);
        }
    }

    /// Reads the header at the beginning of `bytes`, and its length in bytes. Only the content's
    /// verification, against [`content_checksum`](super::content_checksum), tells whether to
    /// believe it.
    pub(crate) fn parse(
        bytes: &[u8],
        incarnation: u64,
        offset: u64,
    ) -> Result<(Self, usize), RecordFault> {
        Self::read(Reader::new(bytes), incarnation, offset).ok_or(RecordFault::Short)?
    }

    fn read(
        mut from: Reader<'_>,
        incarnation: u64,
        offset: u64,
    ) -> Option<Result<(Self, usize), RecordFault>> {
        let flags = from.u8()?;
        let (id_len, document_len) = (from.u8()?, from.u16()?);
        let content_checksum = from.u32()? ^ mix(incarnation, offset, 0);
        let Some(kind) = Kind::from_byte(flags & KIND_MASK) else {
            return Some(Err(RecordFault::Header));
        };
        match flags & !KIND_MASK {
            0 => {
                let (id_len, document_len) = (u16::from(id_len), u32::from(document_len));
                Some(Ok((Self { kind, id_len, document_len, content_checksum }, NARROW_BYTES)))
            }
            WIDE => {
                let (wide_document_len, wide_id_len, zero) =
                    (from.u32()?, from.u16()?, from.u16()?);
                if id_len != 0 || document_len != 0 || zero != 0 {
                    return Some(Err(RecordFault::Header));
                }
                let header = Self {
                    kind,
                    id_len: wide_id_len,
                    document_len: wide_document_len,
                    content_checksum,
                };
                Some(Ok((header, WIDE_BYTES)))
            }
            _ => Some(Err(RecordFault::Header)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(id_len: u16, document_len: u32) -> Level1Header {
        Level1Header { kind: Kind::Put, id_len, document_len, content_checksum: 0x1234_5678 }
    }

    fn encode(header: Level1Header) -> Vec<u8> {
        let mut out = Vec::new();
        header.append(&mut out, 77, 4096);
        out
    }

    #[test]
    fn the_narrow_form_is_eight_bytes_as_documented() {
        let mut expected = vec![0x01, 0x09, 0x00, 0x04];
        expected.extend_from_slice(&(0x1234_5678 ^ mix(77, 4096, 0)).to_le_bytes());
        assert_eq!(encode(header(9, 1024)), expected);
    }

    #[test]
    fn the_wide_form_is_sixteen_bytes_as_documented() {
        let mut expected = vec![0x11, 0, 0, 0];
        expected.extend_from_slice(&(0x1234_5678 ^ mix(77, 4096, 0)).to_le_bytes());
        expected.extend_from_slice(&[0x00, 0x00, 0x01, 0x00, 0x2C, 0x01, 0, 0]);
        assert_eq!(encode(header(300, 65_536)), expected);
    }

    #[test]
    fn every_length_comes_back_from_the_shorter_form_that_holds_it() {
        for id_len in [0, 1, 255, 256, 65_535] {
            for document_len in [0, 1, 65_535, 65_536, 16 << 20] {
                let bytes = encode(header(id_len, document_len));
                let narrow = id_len <= 255 && document_len <= 65_535;
                let len = if narrow { NARROW_BYTES } else { WIDE_BYTES };
                assert_eq!(bytes.len(), len);
                let parsed = Level1Header::parse(&bytes, 77, 4096);
                assert_eq!(parsed, Ok((header(id_len, document_len), len)));
            }
        }
    }

    #[test]
    fn unknown_flags_kinds_and_cut_bytes_are_refused() {
        let bytes = encode(header(300, 65_536));
        assert_eq!(Level1Header::parse(&bytes[..15], 77, 4096), Err(RecordFault::Short));
        for first in [0x21, 0x31, 0x81, 0x00, 0x0F] {
            let mut bytes = bytes.clone();
            bytes[0] = first;
            assert_eq!(Level1Header::parse(&bytes, 77, 4096), Err(RecordFault::Header));
        }
        for reserved in [1, 2, 3, 14, 15] {
            let mut bytes = bytes.clone();
            bytes[reserved] = 1;
            assert_eq!(Level1Header::parse(&bytes, 77, 4096), Err(RecordFault::Header));
        }
    }
}
