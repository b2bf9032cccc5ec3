//! Values of any serde type to BSON.

use serde::Serialize;

use super::guard::{Guard, Refusal, WRAPPERS_MAX};
use super::limits::{DOCUMENT_BYTES_MAX, from_bson, invalid, too_deep};
use super::validate;
use crate::error::{Error, Result};

/// Room for most documents without growing.
const CAPACITY: usize = 256;

/// A value whose top level is a struct or a map, as a BSON document.
///
/// # Errors
///
/// [`Error::InvalidDocument`] when the top level is anything else, the document is too large or too
/// deep, an integer does not fit into an `i64`, a name contains a NUL, or the value itself refuses
/// to be serialized.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>> {
    let guard = Guard::default();
    let mut bytes = Vec::with_capacity(CAPACITY);
    let outcome = bson::serialize_to_buffer(&guard.value(value), &mut bytes);
    if let Some(refusal) = guard.refusal() {
        return Err(refusal.into());
    }
    outcome.map_err(|error| from_bson(&error))?;
    // The guard counts on the way; what counts is the result. Raw documents within the value came
    // through unseen, too.
    validate(&bytes)?;
    Ok(bytes)
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TopLevel(kind) => {
                invalid(format!("its top level must be a struct or a map, and is {kind}"))
            }
            Refusal::Levels(levels) => too_deep(levels),
            Refusal::Wrappers(wrappers) => invalid(format!(
                "a value is wrapped in {wrappers} or more options and newtypes \
                 and {WRAPPERS_MAX} are allowed"
            )),
            Refusal::Integer(number) => invalid(format!(
                "the integer {number} is above {}, the largest that BSON holds",
                i64::MAX
            )),
            Refusal::Bytes(bytes) => invalid(format!(
                "its values take {bytes} bytes or more and {DOCUMENT_BYTES_MAX} are allowed"
            )),
        }
    }
}
