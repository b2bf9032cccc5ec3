//! Bytes to values and back: pure, without I/O. `docs/format.md` draws every structure.

mod bytes;
#[cfg_attr(not(test), expect(dead_code, reason = "comes into use with compaction"))]
mod full_key;
mod index_block;
mod level1;
mod manifest;
mod record;
mod segment_header;
mod trailer;
mod types;

#[cfg(test)]
mod golden_tests;

pub(crate) use full_key::*;
pub(crate) use index_block::*;
pub(crate) use manifest::*;
pub(crate) use record::*;
pub(crate) use segment_header::*;
pub(crate) use trailer::*;
pub(crate) use types::*;
