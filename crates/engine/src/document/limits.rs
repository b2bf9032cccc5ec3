//! What a document may be, and the errors that say so.

use crate::error::Error;

/// The largest document, in bytes.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 16 << 20;

/// The deepest nesting: the document is level 1, and each document or array in it is one more.
pub(super) const LEVELS_MAX: usize = 100;

/// The longest text of another's error that is repeated in ours, in bytes.
const DETAIL_BYTES_MAX: usize = 300;

pub(super) fn invalid(what: impl Into<String>) -> Error {
    Error::InvalidDocument { what: what.into() }
}

pub(super) fn too_large(bytes: usize) -> Error {
    invalid(format!("it takes {bytes} bytes and {DOCUMENT_BYTES_MAX} are allowed"))
}

pub(super) fn too_deep(levels: usize) -> Error {
    invalid(format!("it nests {levels} or more levels deep and {LEVELS_MAX} are allowed"))
}

/// An error of the `bson` crate, without that crate's vocabulary where it has a message.
pub(super) fn from_bson(error: &bson::error::Error) -> Error {
    let mut what = error.message.clone().unwrap_or_else(|| error.kind.to_string());
    if let Some(key) = &error.key {
        what = format!("at the field `{key}`: {what}");
    }
    if what.len() > DETAIL_BYTES_MAX {
        what.truncate(what.floor_char_boundary(DETAIL_BYTES_MAX));
        what.push('…');
    }
    invalid(what)
}
