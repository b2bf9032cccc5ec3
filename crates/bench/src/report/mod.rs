//! Rows, the files that hold them, and the table that sums them up.

mod file;
mod markdown;
mod row;
mod table;

pub(crate) use file::{ResultsFile, read_files};
pub(crate) use markdown::markdown;
pub(crate) use row::{DEVIATIONS, Row, SCHEMA};
pub(crate) use table::table;
