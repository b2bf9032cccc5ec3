//! Document ids and their encoding.
//!
//! Invariants:
//!
//! 1. Comparing two encodings byte by byte gives the order of the ids: integers, then strings, then
//!    bytes.
//! 2. An encoding is between 1 and 65 535 bytes long, and equal ids have equal encodings.
//! 3. A range's bounds are encodings too, but need not decode: the end of a prefix is not an id.

mod encoded;
mod range;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use encoded::EncodedId;
pub use range::{IdRange, prefix};
pub use value::Id;
