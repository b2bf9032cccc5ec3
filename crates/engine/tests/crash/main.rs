//! Crashes at every step of scripted and generated lives, and calls that fail one after the other.
//!
//! A life is a list of steps (`script`), done on a disk in memory that records every change (`world`)
//! and remembers which states the database went through, and when each was answered and durable
//! (`history`). Then:
//!
//! - `power_cut` builds what a crash may leave at each point of the recording (`images`), writes it
//!   to a fresh folder, opens it with the operating system's own files and maps, and holds what is
//!   there to the history (`check`); generations of crashes follow, and crashes inside of recovery.
//! - `failing` lets each call of the disk fail in turn, and holds what the caller was told to what
//!   is there.
//! - `sites` finds every place in the engine that calls the disk, and asserts that each was a crash
//!   point and a call that failed.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod cases;
mod check;
mod counts;
mod failing;
#[path = "../faults/mod.rs"]
mod faults;
mod full_disk;
mod history;
mod images;
mod power_cut;
mod recovery;
mod script;
mod sites;
mod world;
