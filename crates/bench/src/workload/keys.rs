//! Key numbers to keys: `user` followed by the number, hashed so that neighbours scatter.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 1_099_511_628_211;

/// FNV-1a over the number's eight octets, least significant first, then the absolute value of
/// the signed result: YCSB's `fnvhash64`.
pub(crate) fn fnv1a64(number: u64) -> u64 {
    let hash = number
        .to_le_bytes()
        .iter()
        .fold(OFFSET_BASIS, |hash, &octet| (hash ^ u64::from(octet)).wrapping_mul(PRIME));
    hash.cast_signed().unsigned_abs()
}

/// The order in which a load meets the key space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InsertOrder {
    /// Keys are hashes of their numbers: a load is random inserts.
    Hashed,
    /// Keys are the numbers themselves.
    Ordered,
}

/// How a key number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyFormat {
    pub(crate) order: InsertOrder,
    /// Digits to which the number is left-filled with zeros.
    pub(crate) zero_padding: u8,
}

impl KeyFormat {
    /// Replaces `key` with the key of `number`.
    pub(crate) fn write(self, number: u64, key: &mut String) {
        let number = match self.order {
            InsertOrder::Hashed => fnv1a64(number),
            InsertOrder::Ordered => number,
        };
        let width = usize::from(self.zero_padding);
        key.clear();
        write!(key, "user{number:0width$}").expect("writing to a string cannot fail");
    }

    /// Bytes of the keys of the first `records` numbers, together. Makes each of them.
    pub(crate) fn bytes(self, records: u64) -> u64 {
        let mut key = String::new();
        let length = |number| {
            self.write(number, &mut key);
            key.len() as u64
        };
        (0..records).map(length).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(order: InsertOrder, zero_padding: u8, number: u64) -> String {
        let mut key = "before".to_owned();
        KeyFormat { order, zero_padding }.write(number, &mut key);
        key
    }

    #[test]
    fn hashed_keys_have_ycsbs_golden_values() {
        let golden = [
            (0, "user6284781860667377211"),
            (1, "user8517097267634966620"),
            (2, "user1820151046732198393"),
            (3, "user4052466453699787802"),
            (99, "user6405349725575133178"),
            (1000, "user5952875239596136740"),
            (999_999, "user2744965632448235251"),
        ];
        for (number, expected) in golden {
            assert_eq!(key(InsertOrder::Hashed, 1, number), expected);
        }
    }

    #[test]
    fn ordered_keys_are_padded_numbers() {
        assert_eq!(key(InsertOrder::Ordered, 1, 42), "user42");
        assert_eq!(key(InsertOrder::Ordered, 8, 42), "user00000042");
    }
}
