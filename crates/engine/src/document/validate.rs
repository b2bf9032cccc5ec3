//! Checks documents that come in as bytes.
//!
//! Invariant: what passes decodes with the `bson` crate, without a fault of structure and within
//! 100 levels of recursion.
//!
//! The walk keeps its place in nested documents on a stack of its own, so that input chooses
//! neither how deep we recurse nor whether we do.

use super::elements::{Fault, cstring_len, document_len, kind, string_len, value_len};
use super::limits::{DOCUMENT_BYTES_MAX, LEVELS_MAX, too_deep, too_large};
use crate::error::Result;

/// Checks a document in whole: lengths, types, terminators, UTF-8, booleans, nesting, size, and
/// that nothing follows it.
///
/// # Errors
///
/// [`Error::InvalidDocument`](crate::Error::InvalidDocument) says what is wrong and where.
pub(crate) fn validate(bytes: &[u8]) -> Result<()> {
    if bytes.len() > DOCUMENT_BYTES_MAX {
        return Err(too_large(bytes.len()));
    }
    check(bytes).map_err(|problem| match problem {
        Problem::Fault(fault) => fault.into(),
        Problem::Levels => too_deep(LEVELS_MAX + 1),
    })
}

enum Problem {
    Fault(Fault),
    Levels,
}

fn fault(at: usize, what: &'static str) -> Problem {
    Problem::Fault(Fault { at, what })
}

fn check(bytes: &[u8]) -> Result<(), Problem> {
    let len = document_len(bytes).map_err(|what| fault(0, what))?;
    if len != bytes.len() {
        return Err(fault(len, "bytes follow the document"));
    }
    // Where the terminators of the open documents are; the last is the innermost's.
    let mut terminators = [0; LEVELS_MAX];
    let mut level = 0;
    let mut end = len - 1;
    let mut at = 4;
    loop {
        if at == end {
            if level == 0 {
                return Ok(());
            }
            level -= 1;
            at += 1;
            end = terminators[level];
            continue;
        }
        let element = &bytes[at..end];
        let kind = element[0];
        let name_len = checked_cstring(&element[1..]).map_err(|what| fault(at + 1, what))?;
        let start = at + 1 + name_len + 1;
        let rest = &bytes[start..end];
        let value_len = value_len(kind, rest).map_err(|what| fault(start, what))?;
        let scope = content(kind, &rest[..value_len]).map_err(|what| fault(start, what))?;
        match scope {
            None => at = start + value_len,
            Some(nested) => {
                if level + 1 == LEVELS_MAX {
                    return Err(Problem::Levels);
                }
                terminators[level] = end;
                level += 1;
                end = start + value_len - 1;
                at = start + nested + 4;
            }
        }
    }
}

/// Checks what `value_len` does not look at. Where the value ends with a document, says where in
/// the value that begins.
#[inline]
fn content(kind: u8, value: &[u8]) -> Result<Option<usize>, &'static str> {
    match kind {
        kind::STRING | kind::CODE | kind::SYMBOL => utf8(&value[4..value.len() - 1])?,
        kind::DB_POINTER => utf8(&value[4..value.len() - 12 - 1])?,
        kind::BOOLEAN if value[0] > 1 => return Err("a boolean is neither 0 nor 1"),
        kind::REGEX => {
            let pattern = checked_cstring(value)?;
            checked_cstring(&value[pattern + 1..])?;
        }
        kind::DOCUMENT | kind::ARRAY => return Ok(Some(0)),
        kind::CODE_WITH_SCOPE => {
            let code = string_len(&value[4..])?;
            utf8(&value[8..4 + code - 1])?;
            return Ok(Some(4 + code));
        }
        _ => {}
    }
    Ok(None)
}

fn utf8(bytes: &[u8]) -> Result<(), &'static str> {
    match std::str::from_utf8(bytes) {
        Ok(_) => Ok(()),
        Err(_) => Err("a string is not UTF-8"),
    }
}

#[inline]
fn checked_cstring(bytes: &[u8]) -> Result<usize, &'static str> {
    let len = cstring_len(bytes).ok_or("a name or a regular expression has no terminator")?;
    let text = &bytes[..len];
    if text.is_ascii() || std::str::from_utf8(text).is_ok() {
        Ok(len)
    } else {
        Err("a name or a regular expression is not UTF-8")
    }
}
