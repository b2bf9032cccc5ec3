//! Log records in memory, laid out as in a segment, for structures that hold places.
//!
//! 1. Record n stands at `n * stride`, after one empty stride, so that no place is 0.
//! 2. Records stay for good, so that keys can borrow their ids as the engine borrows them from a
//!    mapped segment.

use engine::internals::{Ids, Place};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::ids::{ID_BYTES, Id, encoded};

/// The BSON document of one field `field0` of 100 bytes, as the benchmark of whole stores has it.
pub const DOCUMENT_BYTES: usize = 118;

/// A log record's header.
pub const HEADER_BYTES: usize = 28;
const ID_LEN: usize = 6;
const SEQUENCE: usize = 16;

/// The bytes of a log record of such a document: header, id, document, padding.
pub const RECORD_BYTES: usize = (HEADER_BYTES + ID_BYTES + DOCUMENT_BYTES).next_multiple_of(8);

/// Records 0 to `len`, in the order of their numbers.
#[derive(Debug)]
pub struct Records {
    bytes: Vec<u8>,
    len: usize,
}

impl Records {
    /// Records of 100-byte documents.
    #[must_use]
    pub fn leak(len: usize) -> &'static Self {
        let mut bytes = vec![0; (len + 1) * RECORD_BYTES];
        let mut random = Xoshiro256PlusPlus::seed_from_u64(len as u64);
        let records = bytes.chunks_exact_mut(RECORD_BYTES).skip(1);
        for (n, record) in (0u64..).zip(records) {
            record[ID_LEN..ID_LEN + 2].copy_from_slice(&(ID_BYTES as u16).to_le_bytes());
            record[SEQUENCE..SEQUENCE + 8].copy_from_slice(&(n + 1).to_le_bytes());
            record[HEADER_BYTES..HEADER_BYTES + ID_BYTES].copy_from_slice(&encoded(n));
            random.fill_bytes(&mut record[HEADER_BYTES + ID_BYTES..]);
        }
        Box::leak(Box::new(Self { bytes, len }))
    }

    /// The number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the log ends, in bytes.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Where a record is.
    #[must_use]
    #[inline]
    pub fn place(&self, record: usize) -> Place {
        Place { offset: Self::offset(record), sequence: record as u64 + 1 }
    }

    /// Where a record stands, in bytes.
    #[must_use]
    #[inline]
    pub fn offset(record: usize) -> u64 {
        ((record + 1) * RECORD_BYTES) as u64
    }

    /// The id of a record.
    #[must_use]
    #[inline]
    pub fn id(&self, record: usize) -> &Id {
        let at = Self::offset(record) as usize + HEADER_BYTES;
        self.bytes[at..].first_chunk().unwrap_or(&[0; ID_BYTES])
    }

    /// The sequence in the header of the record at an offset.
    #[must_use]
    #[inline]
    pub fn sequence(&self, offset: u64) -> u64 {
        let sequence = self.bytes[offset as usize + SEQUENCE..].first_chunk();
        u64::from_le_bytes(*sequence.unwrap_or(&[0; 8]))
    }

    /// The bytes from a record's id to the end of its document, and their checksum, which is what
    /// a read verifies.
    #[must_use]
    #[inline]
    pub fn verified(&self, offset: u64) -> (&[u8], u32) {
        let at = offset as usize + HEADER_BYTES;
        let content = &self.bytes[at..at + ID_BYTES + DOCUMENT_BYTES];
        (content, crc32fast::hash(content))
    }

    /// A record as it stands in the log.
    #[must_use]
    #[inline]
    pub fn record(&self, record: usize) -> &[u8] {
        let at = Self::offset(record) as usize;
        &self.bytes[at..at + RECORD_BYTES]
    }
}

impl Ids for Records {
    /// As in a segment, the record's header says how long the id is.
    #[inline]
    fn id_at(&self, offset: u64) -> &[u8] {
        let at = offset as usize;
        let len = u16::from_le_bytes([self.bytes[at + ID_LEN], self.bytes[at + ID_LEN + 1]]);
        &self.bytes[at + HEADER_BYTES..at + HEADER_BYTES + usize::from(len)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_stand_where_their_places_say() {
        let records = Records::leak(10);
        assert_eq!(RECORD_BYTES, 176);
        for n in 0..10 {
            let place = records.place(n);
            assert_eq!(records.id_at(place.offset), encoded(n as u64));
            assert_eq!(records.sequence(place.offset), place.sequence);
            assert_eq!(records.id(n), &encoded(n as u64));
            let (content, checksum) = records.verified(place.offset);
            assert_eq!(content[..ID_BYTES], encoded(n as u64));
            assert_eq!(checksum, crc32fast::hash(&records.record(n)[HEADER_BYTES..171]));
        }
    }
}
