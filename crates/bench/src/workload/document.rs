//! The documents that every store keeps, byte for byte: BSON with string fields `field0`,
//! `field1`, …, of random printable bytes.

use serde::{Deserialize, Serialize};

use super::random::Random;

/// How many fields of how many bytes a record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DocumentShape {
    pub(crate) fields: u32,
    pub(crate) field_bytes: u32,
}

const STRING: u8 = 0x02;

impl DocumentShape {
    /// User data in a record, without the encoding.
    pub(crate) fn value_bytes(self) -> u64 {
        u64::from(self.fields) * u64::from(self.field_bytes)
    }

    /// Bytes of the encoded document.
    pub(crate) fn document_bytes(self) -> u64 {
        let digits: u64 = (0..self.fields).map(|field| u64::from(decimal_digits(field))).sum();
        // Per field: type, "field", NUL, length, NUL; per document: length, NUL.
        5 + digits + u64::from(self.fields) * (12 + u64::from(self.field_bytes))
    }

    /// Replaces `out` with a whole record.
    pub(crate) fn write_record(self, random: &mut Random, out: &mut Vec<u8>) {
        self.write_fields(0..self.fields, random, out);
    }

    /// Replaces `out` with a document of one field, chosen uniformly: YCSB's update.
    pub(crate) fn write_update(self, random: &mut Random, out: &mut Vec<u8>) {
        let field = random.below(u64::from(self.fields));
        let field = u32::try_from(field).expect("below the number of fields");
        self.write_fields(field..field + 1, random, out);
    }

    fn write_fields(self, fields: std::ops::Range<u32>, random: &mut Random, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&[0; 4]);
        for field in fields {
            out.push(STRING);
            out.extend_from_slice(b"field");
            push_decimal(field, out);
            out.push(0);
            out.extend_from_slice(&(self.field_bytes + 1).to_le_bytes());
            push_printable(self.field_bytes, random, out);
            out.push(0);
        }
        out.push(0);
        let length = u32::try_from(out.len()).expect("the command line bounds documents");
        out[..4].copy_from_slice(&length.to_le_bytes());
    }
}

fn decimal_digits(number: u32) -> u32 {
    number.checked_ilog10().unwrap_or(0) + 1
}

fn push_decimal(number: u32, out: &mut Vec<u8>) {
    use std::io::Write;
    write!(out, "{number}").expect("writing to a vector cannot fail");
}

/// YCSB's random bytes: six characters from 32 bits, overlapping as YCSB's do, so 5.3 random
/// bits a byte.
fn push_printable(count: u32, random: &mut Random, out: &mut Vec<u8>) {
    const MASKS: [u8; 6] = [31, 63, 95, 31, 63, 95];
    let mut left = usize::try_from(count).expect("a field fits the address space");
    while left > 0 {
        let word = random.word();
        for half in [word & 0xFFFF_FFFF, word >> 32] {
            for (position, mask) in MASKS.into_iter().enumerate().take(left) {
                let bits = (half >> (5 * position)) & u64::from(mask);
                out.push(b' ' + u8::try_from(bits).expect("a mask has seven bits"));
            }
            left = left.saturating_sub(MASKS.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_bson_of_the_shapes_size() {
        for (fields, field_bytes) in [(1, 100), (10, 100), (12, 1), (101, 7)] {
            let shape = DocumentShape { fields, field_bytes };
            let mut bytes = Vec::new();
            shape.write_record(&mut Random::new(1), &mut bytes);
            assert_eq!(bytes.len() as u64, shape.document_bytes());
            assert_eq!(bytes[..4], u32::try_from(bytes.len()).unwrap().to_le_bytes());
            assert_eq!(bytes.last(), Some(&0));
        }
    }

    #[test]
    fn a_field_is_written_as_the_bson_specification_says() {
        let shape = DocumentShape { fields: 1, field_bytes: 2 };
        let mut bytes = Vec::new();
        shape.write_record(&mut Random::new(1), &mut bytes);
        let (head, tail) = bytes.split_at(16);
        assert_eq!(head, b"\x14\0\0\0\x02field0\0\x03\0\0\0");
        assert!(tail[..2].iter().all(|byte| (b' '..=127).contains(byte)));
        assert_eq!(tail[2..], [0, 0]);
    }

    #[test]
    fn an_update_has_one_field_and_every_field_gets_its_turn() {
        let shape = DocumentShape { fields: 3, field_bytes: 4 };
        let (mut random, mut bytes) = (Random::new(1), Vec::new());
        let mut seen = std::collections::HashSet::new();
        for _ in 0..100 {
            shape.write_update(&mut random, &mut bytes);
            assert_eq!(bytes.len(), 5 + 13 + 4);
            seen.insert(bytes[5..11].to_vec());
        }
        assert_eq!(seen.len(), 3);
    }
}
