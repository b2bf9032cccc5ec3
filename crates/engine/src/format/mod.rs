//! Bytes to values and back: pure, without I/O. `docs/format.md` draws every structure.

mod bytes;
mod full_key;
mod index_block;
mod manifest;
mod record;
mod sealed_meta;
mod segment_header;
mod sorted_record;
mod trailer;
mod types;

#[cfg(test)]
mod golden_tests;

pub(crate) use full_key::*;
pub(crate) use index_block::*;
pub(crate) use manifest::*;
pub(crate) use record::*;
pub(crate) use sealed_meta::*;
pub(crate) use segment_header::*;
pub(crate) use sorted_record::*;
pub(crate) use trailer::*;
pub(crate) use types::*;
