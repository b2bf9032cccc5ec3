//! The short record header of sorted segments, where the file says what most records share.
//!
//! Invariants:
//!
//! 1. The content checksum is the log record's, carried over without being computed again.
//! 2. A header has one form: each part is left out exactly when what it says goes without saying.
//! 3. A record verifies only in its own file, at its own offset, with its own sequence.

use super::record::{RECORD_ALIGNMENT, RecordFault, mix};
use super::types::{CollectionId, Kind, Sequence};

/// The shortest header, in bytes.
pub(crate) const SORTED_HEADER_BYTES_MIN: usize = NARROW_BYTES;
/// The longest.
pub(crate) const SORTED_HEADER_BYTES_MAX: usize = WIDE_BYTES + SEQUENCE_BYTES + COLLECTION_BYTES;

const KIND_MASK: u8 = 0x0F;
const WIDE: u8 = 0x10;
const SEQUENCED: u8 = 0x20;
const COLLECTION: u8 = 0x40;
const KNOWN: u8 = KIND_MASK | WIDE | SEQUENCED | COLLECTION;

const NARROW_BYTES: usize = 8;
const WIDE_BYTES: usize = 16;
const SEQUENCE_BYTES: usize = 8;
const COLLECTION_BYTES: usize = 4;

/// What stands before the id and the document of a record in a sorted segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SortedHeader {
    pub(crate) kind: Kind,
    pub(crate) id_len: u16,
    pub(crate) document_len: u32,
    pub(crate) collection: CollectionId,
    /// 0 when every reader sees the record.
    pub(crate) sequence: Sequence,
    /// See [`content_checksum`](super::content_checksum).
    pub(crate) content_checksum: u32,
}

impl SortedHeader {
    fn flags(&self, default_collection: CollectionId) -> u8 {
        let narrow = self.id_len <= u16::from(u8::MAX) && self.document_len <= u32::from(u16::MAX);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        flag(!narrow, WIDE)
            | flag(self.sequence != Sequence(0), SEQUENCED)
            | flag(self.collection != default_collection, COLLECTION)
    }

    /// The header's own length in bytes.
    fn header_len(flags: u8) -> usize {
        let part = |flag: u8, bytes: usize| if flags & flag == 0 { 0 } else { bytes };
        NARROW_BYTES
            + part(WIDE, WIDE_BYTES - NARROW_BYTES)
            + part(SEQUENCED, SEQUENCE_BYTES)
            + part(COLLECTION, COLLECTION_BYTES)
    }

    /// The bytes that the record takes in a file with this default collection, padding included.
    pub(crate) fn record_len(&self, default_collection: CollectionId) -> usize {
        let header_len = Self::header_len(self.flags(default_collection));
        (header_len + usize::from(self.id_len) + self.document_len as usize)
            .next_multiple_of(RECORD_ALIGNMENT)
    }

    /// Appends the header of a record that stands at `offset` of a file.
    pub(crate) fn append(
        &self,
        out: &mut Vec<u8>,
        default_collection: CollectionId,
        incarnation: u64,
        offset: u64,
    ) {
        let flags = self.flags(default_collection);
        let (id_len, document_len) = (self.id_len.to_le_bytes(), self.document_len.to_le_bytes());
        let is_wide = flags & WIDE != 0;
        out.push(self.kind as u8 | flags);
        if is_wide {
            out.extend_from_slice(&[0; 3]);
        } else {
            out.extend_from_slice(&[id_len[0], document_len[0], document_len[1]]);
        }
        let checksum = self.content_checksum ^ mix(incarnation, offset, self.sequence.0);
        out.extend_from_slice(&checksum.to_le_bytes());
        if is_wide {
            out.extend_from_slice(&document_len);
            out.extend_from_slice(&id_len);
            out.extend_from_slice(&[0; 2]);
        }
        if flags & SEQUENCED != 0 {
            out.extend_from_slice(&self.sequence.0.to_le_bytes());
        }
        if flags & COLLECTION != 0 {
            out.extend_from_slice(&self.collection.0.to_le_bytes());
        }
    }

    /// Reads the header at the beginning of `bytes`, and its length in bytes. Only the content's
    /// verification, against [`content_checksum`](super::content_checksum), tells whether to
    /// believe it.
    // Inlined, and with the rare parts apart, so that the header is made in registers: a scan waits for
    // a header that goes through memory, because it is written a field at a time and read at once.
    #[inline(always)]
    pub(crate) fn parse(
        bytes: &[u8],
        default_collection: CollectionId,
        incarnation: u64,
        offset: u64,
    ) -> Result<(Self, usize), RecordFault> {
        let Some((&[flags, id_len, d0, d1, c0, c1, c2, c3], rest)) = bytes.split_first_chunk()
        else {
            return Err(RecordFault::Short);
        };
        let kind = Kind::from_byte(flags & KIND_MASK).ok_or(RecordFault::Header)?;
        let checksum = u32::from_le_bytes([c0, c1, c2, c3]);
        let narrow = Self {
            kind,
            id_len: u16::from(id_len),
            document_len: u32::from(u16::from_le_bytes([d0, d1])),
            collection: default_collection,
            sequence: Sequence(0),
            content_checksum: checksum ^ mix(incarnation, offset, 0),
        };
        if flags & !KIND_MASK == 0 {
            return Ok((narrow, NARROW_BYTES));
        }
        let header = narrow.with_rest(flags, rest)?;
        let content_checksum = checksum ^ mix(incarnation, offset, header.sequence.0);
        Ok((Self { content_checksum, ..header }, Self::header_len(flags)))
    }

    /// Adds what stands behind the narrow form.
    #[inline(never)]
    fn with_rest(mut self, flags: u8, mut rest: &[u8]) -> Result<Self, RecordFault> {
        if flags & !KNOWN != 0 {
            return Err(RecordFault::Header);
        }
        if flags & WIDE != 0 {
            let &[d0, d1, d2, d3, i0, i1, z0, z1] = take(&mut rest)?;
            if self.id_len != 0 || self.document_len != 0 || [z0, z1] != [0; 2] {
                return Err(RecordFault::Header);
            }
            self.document_len = u32::from_le_bytes([d0, d1, d2, d3]);
            self.id_len = u16::from_le_bytes([i0, i1]);
        }
        let default_collection = self.collection;
        if flags & SEQUENCED != 0 {
            self.sequence = Sequence(u64::from_le_bytes(*take(&mut rest)?));
        }
        if flags & COLLECTION != 0 {
            self.collection = CollectionId(u32::from_le_bytes(*take(&mut rest)?));
        }
        if self.flags(default_collection) == flags & !KIND_MASK {
            Ok(self)
        } else {
            Err(RecordFault::Header)
        }
    }
}

fn take<'a, const N: usize>(from: &mut &'a [u8]) -> Result<&'a [u8; N], RecordFault> {
    let (head, rest) = from.split_first_chunk().ok_or(RecordFault::Short)?;
    *from = rest;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: CollectionId = CollectionId(5);

    fn header(id_len: u16, document_len: u32, collection: u32, sequence: u64) -> SortedHeader {
        SortedHeader {
            kind: Kind::Put,
            id_len,
            document_len,
            collection: CollectionId(collection),
            sequence: Sequence(sequence),
            content_checksum: 0x1234_5678,
        }
    }

    fn encode(header: SortedHeader) -> Vec<u8> {
        let mut out = Vec::new();
        header.append(&mut out, DEFAULT, 77, 4096);
        out
    }

    fn parse(bytes: &[u8]) -> Result<(SortedHeader, usize), RecordFault> {
        SortedHeader::parse(bytes, DEFAULT, 77, 4096)
    }

    #[test]
    fn every_header_comes_back_from_the_shortest_form_that_holds_it() {
        for id_len in [0, 1, 255, 256, 65_535] {
            for document_len in [0, 1, 65_535, 65_536, 16 << 20] {
                for (collection, sequence) in [(5, 0), (5, 9), (6, 0), (0, u64::MAX)] {
                    let header = header(id_len, document_len, collection, sequence);
                    let narrow = id_len <= 255 && document_len <= 65_535;
                    let len = if narrow { 8 } else { 16 }
                        + if sequence == 0 { 0 } else { 8 }
                        + if collection == 5 { 0 } else { 4 };
                    let bytes = encode(header);
                    assert_eq!(bytes.len(), len);
                    assert_eq!(parse(&bytes), Ok((header, len)));
                    let used = len + usize::from(id_len) + document_len as usize;
                    assert_eq!(header.record_len(DEFAULT), used.div_ceil(8) * 8);
                    for cut in 0..len {
                        assert_eq!(parse(&bytes[..cut]), Err(RecordFault::Short), "{cut} bytes");
                    }
                }
            }
        }
    }

    #[test]
    fn unknown_flags_and_kinds_and_reserved_bytes_are_refused() {
        let bytes = encode(header(300, 65_536, 5, 0));
        for first in [0x91, 0x10, 0x1F, 0x81] {
            let mut bytes = bytes.clone();
            bytes[0] = first;
            assert_eq!(parse(&bytes), Err(RecordFault::Header), "{first:#x}");
        }
        for reserved in [1, 2, 3, 14, 15] {
            let mut bytes = bytes.clone();
            bytes[reserved] = 1;
            assert_eq!(parse(&bytes), Err(RecordFault::Header), "byte {reserved}");
        }
    }

    #[test]
    fn a_part_that_goes_without_saying_is_refused() {
        let with = |flags: u8, parts: &[u8]| {
            parse(&[&[flags, 2, 3, 0, 0, 0, 0, 0], parts].concat()).map(|(_, len)| len)
        };
        assert_eq!(with(0x21, &[1, 0, 0, 0, 0, 0, 0, 0]), Ok(16));
        assert_eq!(with(0x21, &[0; 8]), Err(RecordFault::Header), "sequence 0");
        assert_eq!(with(0x41, &[6, 0, 0, 0]), Ok(12));
        assert_eq!(with(0x41, &[5, 0, 0, 0]), Err(RecordFault::Header), "the default collection");
        let wide = |id_len: u8| {
            parse(&[0x11, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 255, id_len, 0, 0])
                .map(|(_, len)| len)
        };
        assert_eq!(wide(1), Ok(16));
        assert_eq!(wide(0), Err(RecordFault::Header), "lengths that fit the narrow form");
    }
}
