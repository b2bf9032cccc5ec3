//! Scans: the runs of a version, merged.

mod cursor;
mod merge;
mod range;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use cursor::Cursor;
pub(crate) use merge::{Merge, Runs};
pub(crate) use range::Range;
