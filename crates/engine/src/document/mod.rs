//! Documents: BSON bytes, and the ways in and out of them.
//!
//! Invariants:
//!
//! 1. What [`encode`] returns and [`validate`] passes is well-formed throughout, at most 16 MiB
//!    long and 100 levels deep (the document is level 1; each document or array in it is one more).
//! 2. [`merge`] of two such documents is well-formed and no deeper than they are; its size is
//!    checked again.
//! 3. Nothing recurses on bytes that [`validate`] has not passed.
//! 4. Where a name occurs twice at the top level, the first is the field.

mod elements;
mod encode;
mod guard;
mod json;
mod layer;
mod limits;
mod merge;
mod read;
#[cfg(test)]
mod tests;
mod validate;

pub(crate) use encode::encode;
pub(crate) use merge::merge;
pub use merge::merge_documents;
pub use read::Document;
pub(crate) use validate::validate;
