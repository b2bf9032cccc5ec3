//! Rows, the files that hold them, the table that sums them up, and the page that shows them.

mod chart;
mod file;
mod markdown;
mod page;
mod row;
mod table;

pub(crate) use file::{ResultsFile, read_files};
pub(crate) use markdown::markdown;
pub(crate) use page::{PageRequest, report};
pub(crate) use row::{DEVIATIONS, Row, SCHEMA};
pub(crate) use table::table;
