//! The tables of `docs/performance.md`.
//!
//! 1. A figure of time comes from criterion's files; a figure of space or of false positives is
//!    counted here, from seeded data. None is typed.
//! 2. A table is whole or an error: a figure that is missing is never left blank.

mod candidates;
mod counts;
mod estimates;
mod markdown;
mod model;
pub mod names;
mod run;

pub use estimates::{Estimates, Missing};

use std::path::Path;

/// The tables, by the names of their marks on the page.
pub const TABLES: [&str; 11] = [
    "run",
    "machine",
    "cost",
    "memtable 65536",
    "memtable 1000000",
    "memtable beside a writer",
    "segment 1000000",
    "segment 10000000",
    "segments passed",
    "segment size",
    "placement",
];

/// A table in Markdown; `root` is the repository's folder.
///
/// # Errors
///
/// [`Missing`] when a bench has not run, or when there is no such table.
pub fn table(name: &str, estimates: &Estimates, root: &Path) -> Result<String, Missing> {
    match name {
        "run" => Ok(run::line(root)),
        "machine" => model::machine(estimates),
        "cost" => model::cost(estimates),
        "memtable 65536" => candidates::memtable(estimates, names::MEMTABLE_SIZES[0]),
        "memtable 1000000" => candidates::memtable(estimates, names::MEMTABLE_SIZES[1]),
        "memtable beside a writer" => candidates::beside_a_writer(estimates),
        "segment 1000000" => candidates::segment(estimates, names::SEGMENT_SIZES[0]),
        "segment 10000000" => candidates::segment(estimates, names::SEGMENT_SIZES[1]),
        "segments passed" => candidates::passed(estimates),
        "segment size" => candidates::sizes(estimates),
        "placement" => candidates::placement(estimates),
        _ => Err(Missing { name: name.to_owned() }),
    }
}
