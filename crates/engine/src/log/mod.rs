//! The log: active segments, group commit, and what recovery reads back.
//!
//! Owns the mechanisms; [`crate::store`] decides when they run. Invariants:
//!
//! 1. One group is written at a time, by its leader, in one call.
//! 2. A record enters a memtable only after its group's write (buffered) or sync (durable)
//!    succeeded.
//! 3. Nothing is written twice at one offset, zeros written ahead aside.

mod queue;
mod replay;
mod request;
mod run;
mod zeros;

pub(crate) use queue::{GroupCommit, Member};
pub(crate) use replay::{LogReader, Replay, replay};
pub(crate) use request::{Committed, Condition, Outcome, Request};
pub(crate) use run::{Run, RunCursor, records};
pub(crate) use zeros::ZeroFill;
