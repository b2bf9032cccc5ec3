//! The keys of a history, in the order of their bytes, and since when each is certainly there.

use crate::workload::KeyFormat;

const PREFIX: &[u8] = b"user";
/// Decimal digits of the largest number.
const DIGITS_MAX: u32 = 20;

/// The number that is written in a key, which is hashed already where keys are; `None` when no
/// client writes such a key.
pub(super) fn number_in(format: KeyFormat, key: &[u8]) -> Option<u64> {
    let digits = key.strip_prefix(PREFIX)?;
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (digits.len() as u64 == u64::from(length(format, number))).then_some(number)
}

/// The key in which a number is written.
pub(super) fn key_of(format: KeyFormat, number: u64) -> String {
    format!("user{number:0width$}", width = usize::from(format.zero_padding))
}

fn length(format: KeyFormat, number: u64) -> u32 {
    let digits = number.checked_ilog10().unwrap_or(0) + 1;
    digits.max(u32::from(format.zero_padding))
}

/// Orders numbers as their keys' bytes are ordered: "user10" comes before "user9".
pub(super) fn rank(format: KeyFormat, number: u64) -> u128 {
    let length = length(format, number);
    let shift = DIGITS_MAX.saturating_sub(length);
    // Of two keys that are equal as far as the shorter one goes, the shorter one comes first.
    ((u128::from(number) * 10_u128.pow(shift)) << 8) | u128::from(length)
}

/// A key that a load or an insert writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inserted {
    pub(super) key: u64,
    /// When the first of its writes was answered; `UNANSWERED` if none was.
    pub(super) answered: u64,
}

/// All keys that were written, 16 bytes each.
#[derive(Debug)]
pub(super) struct KeySet {
    format: KeyFormat,
    keys: Vec<Inserted>,
}

impl KeySet {
    pub(super) fn new(format: KeyFormat, mut keys: Vec<Inserted>) -> Self {
        keys.sort_unstable_by_key(|inserted| (rank(format, inserted.key), inserted.answered));
        keys.dedup_by_key(|inserted| inserted.key);
        Self { format, keys }
    }

    /// The place of the first key at or after `key`.
    pub(super) fn place(&self, key: u64) -> usize {
        let wanted = rank(self.format, key);
        self.keys.partition_point(|inserted| rank(self.format, inserted.key) < wanted)
    }

    pub(super) fn get(&self, place: usize) -> Option<Inserted> {
        self.keys.get(place).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::InsertOrder;

    fn format(zero_padding: u8) -> KeyFormat {
        KeyFormat { order: InsertOrder::Hashed, zero_padding }
    }

    #[test]
    fn ranks_are_ordered_as_keys_are() {
        let numbers =
            [0, 1, 2, 9, 10, 11, 19, 90, 99, 100, 101, 1_000, 12_345, u64::MAX - 1, u64::MAX];
        for width in [1, 2, 3, 8, 19, 20, 21, 250] {
            let format = format(width);
            for a in numbers {
                for b in numbers {
                    let by_key = key_of(format, a).cmp(&key_of(format, b));
                    assert_eq!(rank(format, a).cmp(&rank(format, b)), by_key, "{width} {a} {b}");
                }
            }
        }
    }

    #[test]
    fn only_keys_that_a_client_writes_have_a_number() {
        for width in [1, 5] {
            for number in [0, 7, 99_999, 100_000, u64::MAX] {
                let key = key_of(format(width), number);
                assert_eq!(number_in(format(width), key.as_bytes()), Some(number));
            }
        }
        for key in ["", "user", "user-1", "user+1", "user01", "users1", "user18446744073709551616"]
        {
            assert_eq!(number_in(format(1), key.as_bytes()), None, "{key}");
        }
        assert_eq!(number_in(format(5), b"user1"), None);
    }

    #[test]
    fn a_key_is_there_since_its_first_answered_write() {
        let inserted = |key, answered| Inserted { key, answered };
        let keys = vec![inserted(9, 5), inserted(10, 7), inserted(9, u64::MAX), inserted(9, 3)];
        let set = KeySet::new(format(1), keys);
        assert_eq!(set.get(0), Some(inserted(10, 7)));
        assert_eq!((set.get(1), set.get(2)), (Some(inserted(9, 3)), None));
        assert_eq!((set.place(1), set.place(10), set.place(11), set.place(95)), (0, 0, 1, 2));
    }
}
