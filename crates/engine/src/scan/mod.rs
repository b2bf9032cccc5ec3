//! Scans: the runs of a version, merged.

#[cfg_attr(not(test), expect(dead_code, reason = "comes into use with compaction"))]
mod chain;
mod chain_cursor;
#[cfg_attr(not(test), expect(dead_code, reason = "comes into use with compaction"))]
mod clipped;
mod cursor;
mod merge;
mod range;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use cursor::Cursor;
pub(crate) use merge::{Merge, Runs};
pub(crate) use range::Range;
#[cfg_attr(not(test), expect(unused_imports, reason = "comes into use with compaction"))]
pub(crate) use {
    chain::{Bound, Chain, ChainEntry},
    clipped::Clipped,
};
