//! What is merged, when, and by which rules. Does not know the open database: `store::compaction`
//! carries out what this decides.
//!
//! - `policy` decides what is due: a pure function of counts.
//! - `accounting` says which bytes are live, from what the manifest knows.
//! - `merge` brings the records of several runs into one order; `keeper` says which versions stay.
//! - `territory` cuts a sweep into steps.
//! - `outputs` writes sorted segments.

pub(crate) mod accounting;
mod keeper;
mod merge;
mod outputs;
mod policy;
pub(crate) mod territory;

pub(crate) use accounting::Accounting;
pub(crate) use keeper::{Fate, Keeper, Older};
pub(crate) use merge::{Entry, Input, Merge};
pub(crate) use outputs::{Output, Outputs, SegmentSize, files_made};
pub use policy::CompactionReason;
pub(crate) use policy::{Activity, Counts, Decision, Mergeable, RunCounts, decide};
pub(crate) use territory::{Plan, Sizes, plan};
