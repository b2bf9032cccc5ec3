//! A document as a history has it: a hash of each field's value.

use xxhash_rust::xxh3::xxh3_64;

use super::entry::Met;
use crate::workload::DocumentShape;

/// Calls `visit` with the number and the value of each field, in their order; `None` when these are
/// not the bytes of a document of the workloads.
fn fields<'a>(
    document: &'a [u8],
    mut visit: impl FnMut(u64, &'a [u8]) -> Option<()>,
) -> Option<()> {
    let (length, rest) = document.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*length) as usize != document.len() {
        return None;
    }
    let mut rest = rest.strip_suffix(&[0])?;
    while !rest.is_empty() {
        let named = rest.strip_prefix(b"\x02field")?;
        let name_end = named.iter().position(|&byte| byte == 0)?;
        let (digits, after) = named.split_at(name_end);
        let (length, after) = after.get(1..)?.split_first_chunk::<4>()?;
        let length = (u32::from_le_bytes(*length) as usize).checked_sub(1)?;
        let (value, after) = after.split_at_checked(length)?;
        visit(std::str::from_utf8(digits).ok()?.parse().ok()?, value)?;
        rest = after.strip_prefix(&[0])?;
    }
    Some(())
}

/// Replaces `hashes` with the hashes of a whole record's fields.
pub(super) fn record(shape: DocumentShape, document: &[u8], hashes: &mut Vec<u64>) -> Met {
    hashes.clear();
    let whole = fields(document, |field, value| {
        let fits = field == hashes.len() as u64
            && value.len() as u64 == u64::from(shape.field_bytes)
            && value.iter().all(|byte| (b' '..=127).contains(byte));
        fits.then(|| hashes.push(xxh3_64(value)))
    });
    if whole.is_some() && hashes.len() as u64 == u64::from(shape.fields) {
        return Met::Whole;
    }
    hashes.clear();
    Met::Torn
}

/// Replaces `pairs` with the number and the value's hash of each field that a payload writes.
pub(super) fn written(payload: &[u8], pairs: &mut Vec<u64>) {
    pairs.clear();
    let made = fields(payload, |field, value| {
        pairs.extend([field, xxh3_64(value)]);
        Some(())
    });
    debug_assert!(made.is_some(), "the workloads make documents");
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: DocumentShape = DocumentShape { fields: 2, field_bytes: 3 };
    const WHOLE: &[u8] = b"\x25\0\0\0\x02field0\0\x04\0\0\0abc\0\x02field1\0\x04\0\0\0def\0\0";

    fn met(document: &[u8]) -> Met {
        record(SHAPE, document, &mut Vec::new())
    }

    #[test]
    fn a_whole_record_has_a_hash_for_each_field() {
        let mut hashes = Vec::new();
        assert_eq!(record(SHAPE, WHOLE, &mut hashes), Met::Whole);
        assert_eq!(hashes, [xxh3_64(b"abc"), xxh3_64(b"def")]);
        let mut pairs = Vec::new();
        written(WHOLE, &mut pairs);
        assert_eq!(pairs, [0, hashes[0], 1, hashes[1]]);
    }

    #[test]
    fn whatever_is_not_of_the_shape_is_torn() {
        for cut in 0..WHOLE.len() {
            assert_eq!(met(&WHOLE[..cut]), Met::Torn, "cut at {cut}");
            let mut zeroed = WHOLE.to_vec();
            zeroed[cut..].fill(0);
            let is_same = zeroed == WHOLE;
            assert_eq!(met(&zeroed) == Met::Whole, is_same, "zeros from {cut}");
        }
        let twice = [WHOLE, WHOLE].concat();
        let (one, other) = (&WHOLE[4..20], &WHOLE[20..36]);
        let swapped = [&WHOLE[..4], other, one, &[0]].concat();
        for wrong in [&twice[..], &swapped, b""] {
            assert_eq!(met(wrong), Met::Torn);
        }
        assert_eq!(
            record(DocumentShape { fields: 3, ..SHAPE }, WHOLE, &mut Vec::new()),
            Met::Torn,
            "a field is missing"
        );
    }
}
