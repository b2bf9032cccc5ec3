//! The one walker over raw elements: single-field reads, merges and the validator step with it.
//!
//! Invariants:
//!
//! 1. An element that is returned lies within the document, before its terminator.
//! 2. Lengths, and the terminators of strings and documents, are checked on the way; content
//!    (UTF-8, booleans, what is in a nested document) is not.

use crate::error::{Error, Result};

/// Element types of the BSON specification, deprecated ones included.
pub(super) mod kind {
    pub(in crate::document) const DOUBLE: u8 = 0x01;
    pub(in crate::document) const STRING: u8 = 0x02;
    pub(in crate::document) const DOCUMENT: u8 = 0x03;
    pub(in crate::document) const ARRAY: u8 = 0x04;
    pub(in crate::document) const BINARY: u8 = 0x05;
    pub(in crate::document) const UNDEFINED: u8 = 0x06;
    pub(in crate::document) const OBJECT_ID: u8 = 0x07;
    pub(in crate::document) const BOOLEAN: u8 = 0x08;
    pub(in crate::document) const DATE_TIME: u8 = 0x09;
    pub(in crate::document) const NULL: u8 = 0x0A;
    pub(in crate::document) const REGEX: u8 = 0x0B;
    pub(in crate::document) const DB_POINTER: u8 = 0x0C;
    pub(in crate::document) const CODE: u8 = 0x0D;
    pub(in crate::document) const SYMBOL: u8 = 0x0E;
    pub(in crate::document) const CODE_WITH_SCOPE: u8 = 0x0F;
    pub(in crate::document) const INT32: u8 = 0x10;
    pub(in crate::document) const TIMESTAMP: u8 = 0x11;
    pub(in crate::document) const INT64: u8 = 0x12;
    pub(in crate::document) const DECIMAL128: u8 = 0x13;
    pub(in crate::document) const MAX_KEY: u8 = 0x7F;
    pub(in crate::document) const MIN_KEY: u8 = 0xFF;
}

/// Bytes of the smallest document: a length and a terminator.
pub(super) const EMPTY_DOCUMENT_BYTES: usize = 5;

const PAST_END: &str = "a value runs past the end of its document";

/// What is wrong with a document, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// In bytes, from the start of the outermost document.
    pub(super) at: usize,
    pub(super) what: &'static str,
}

impl From<Fault> for Error {
    fn from(Fault { at, what }: Fault) -> Self {
        Self::InvalidDocument { what: format!("malformed BSON at byte {at}: {what}") }
    }
}

/// One element of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'a> {
    pub(super) kind: u8,
    /// Without its terminator; not checked to be UTF-8.
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
    /// Kind, name and value.
    pub(super) whole: &'a [u8],
}

/// Walks the elements of a document without looking into nested ones. Ends after the first error.
#[derive(Clone, Debug)]
pub(super) struct Elements<'a> {
    /// Up to the terminator, without it.
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Elements<'a> {
    /// Begins to walk `document`, which is nothing but the document.
    pub(super) fn new(document: &'a [u8]) -> Result<Self> {
        let fault = |what| Fault { at: 0, what };
        if document_len(document).map_err(fault)? != document.len() {
            return Err(fault("the document's length is not that of its bytes").into());
        }
        Ok(Self { bytes: &document[..document.len() - 1], at: 4 })
    }

    fn step(&self) -> Result<Element<'a>, Fault> {
        let rest = &self.bytes[self.at..];
        let fault = |at, what| Fault { at: self.at + at, what };
        let name_len =
            cstring_len(&rest[1..]).ok_or(fault(1, "a field's name has no terminator"))?;
        let start = 1 + name_len + 1;
        let len = value_len(rest[0], &rest[start..]).map_err(|what| fault(start, what))?;
        Ok(Element {
            kind: rest[0],
            name: &rest[1..=name_len],
            value: &rest[start..start + len],
            whole: &rest[..start + len],
        })
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Element<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.bytes.len() {
            return None;
        }
        let step = self.step();
        self.at = match &step {
            Ok(element) => self.at + element.whole.len(),
            Err(_) => self.bytes.len(),
        };
        Some(step.map_err(Error::from))
    }
}

/// The first element with this name.
pub(super) fn find<'a>(document: &'a [u8], name: &str) -> Result<Option<Element<'a>>> {
    for element in Elements::new(document)? {
        let element = element?;
        if element.name == name.as_bytes() {
            return Ok(Some(element));
        }
    }
    Ok(None)
}

/// The bytes before the first NUL, eight at a time: most names end within the first eight.
#[inline]
pub(super) fn cstring_len(bytes: &[u8]) -> Option<usize> {
    const LOW: u64 = u64::from_le_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    let (chunks, tail) = bytes.as_chunks::<8>();
    for (chunk, at) in chunks.iter().zip((0..).step_by(8)) {
        let word = u64::from_le_bytes(*chunk);
        // The lowest bit set is that of the first zero byte; those above it may be wrong.
        let zeros = word.wrapping_sub(LOW) & !word & HIGH;
        if zeros != 0 {
            return Some(at + zeros.trailing_zeros() as usize / 8);
        }
    }
    let at = tail.iter().position(|&byte| byte == 0)?;
    Some(bytes.len() - tail.len() + at)
}

/// The length of a value of this kind. `rest` is what is left of its document, without the
/// terminator.
#[inline]
pub(super) fn value_len(kind: u8, rest: &[u8]) -> Result<usize, &'static str> {
    let len = match kind {
        kind::NULL | kind::UNDEFINED | kind::MIN_KEY | kind::MAX_KEY => 0,
        kind::BOOLEAN => 1,
        kind::INT32 => 4,
        kind::DOUBLE | kind::DATE_TIME | kind::TIMESTAMP | kind::INT64 => 8,
        kind::OBJECT_ID => 12,
        kind::DECIMAL128 => 16,
        kind::STRING | kind::CODE | kind::SYMBOL => return string_len(rest),
        kind::DOCUMENT | kind::ARRAY => return document_len(rest),
        kind::BINARY => binary_len(rest)?,
        kind::REGEX => {
            let pattern = cstring_len(rest).ok_or(PAST_END)?;
            let options = cstring_len(&rest[pattern + 1..]).ok_or(PAST_END)?;
            pattern + 1 + options + 1
        }
        kind::DB_POINTER => string_len(rest)? + 12,
        kind::CODE_WITH_SCOPE => return code_with_scope_len(rest),
        _ => return Err("a value's type is none of BSON's"),
    };
    if len <= rest.len() { Ok(len) } else { Err(PAST_END) }
}

/// A length field. Negative ones come out as more than any document has.
#[inline]
pub(super) fn length_at(bytes: &[u8], at: usize) -> Result<usize, &'static str> {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).ok_or(PAST_END)?;
    usize::try_from(i32::from_le_bytes(*field)).map_err(|_| "a length is negative")
}

/// The length of a string with its length field and terminator.
#[inline]
pub(super) fn string_len(rest: &[u8]) -> Result<usize, &'static str> {
    let content = length_at(rest, 0)?;
    if content == 0 {
        return Err("a string's length leaves no room for its terminator");
    }
    match rest.get(3 + content) {
        Some(0) => Ok(4 + content),
        Some(_) => Err("a string has no terminator where its length says"),
        None => Err(PAST_END),
    }
}

/// The length of a document or an array, all of it.
#[inline]
pub(super) fn document_len(rest: &[u8]) -> Result<usize, &'static str> {
    let len = length_at(rest, 0)?;
    if len < EMPTY_DOCUMENT_BYTES {
        return Err("a document's length is less than 5");
    }
    match rest.get(len - 1) {
        Some(0) => Ok(len),
        Some(_) => Err("a document has no terminator where its length says"),
        None => Err(PAST_END),
    }
}

/// The length of a binary value: a length field, a subtype and the bytes.
fn binary_len(rest: &[u8]) -> Result<usize, &'static str> {
    const OLD_SUBTYPE: u8 = 2;
    let content = length_at(rest, 0)?;
    // The old subtype repeats the length inside.
    if rest.get(4) == Some(&OLD_SUBTYPE) && (content < 4 || length_at(rest, 5)? != content - 4) {
        return Err("the two lengths of a binary value of the old subtype disagree");
    }
    Ok(4 + 1 + content)
}

/// The length of code with scope, which its own length field, the code's and the scope's must agree
/// on.
fn code_with_scope_len(rest: &[u8]) -> Result<usize, &'static str> {
    let len = length_at(rest, 0)?;
    let parts = rest.get(4..len).ok_or(PAST_END)?;
    let code = string_len(parts)?;
    if document_len(&parts[code..])? != parts.len() - code {
        return Err("the lengths of a code with scope disagree");
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::cstring_len;

    #[test]
    fn the_first_nul_is_found_wherever_it_is() {
        for len in 0..40 {
            for filler in [1, 0x7F, 0x80, 0xFF] {
                let mut bytes = vec![filler; len];
                assert_eq!(cstring_len(&bytes), None, "{len} of {filler}");
                for at in (0..len).rev() {
                    bytes[at] = 0;
                    assert_eq!(cstring_len(&bytes), Some(at), "{at} in {len} of {filler}");
                }
            }
        }
    }
}
