//! Scans: the runs of a version, merged.

mod chain;
mod chain_cursor;
mod clipped;
mod cursor;
mod end;
mod merge;
mod met_id;
mod range;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use chain::{Chain, ChainEntry};
pub(crate) use chain_cursor::ChainCursor;
pub(crate) use clipped::Clipped;
pub(crate) use cursor::Cursor;
pub(crate) use merge::{Merge, Runs};
pub(crate) use range::Range;
