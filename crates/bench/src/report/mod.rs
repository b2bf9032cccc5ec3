//! Rows, the files that hold them, the table that sums them up, the page that shows them, and the
//! comparison of two files.

mod chart;
mod compare;
mod file;
mod history;
mod jobs;
mod markdown;
mod micro;
mod page;
mod render;
mod row;
mod superseded;
mod table;

pub(crate) use compare::{CompareRequest, compare};
pub(crate) use file::{ResultsFile, read_files};
pub(crate) use history::print as print_history;
pub(crate) use jobs::tables;
pub(crate) use micro::write as write_micro;
pub(crate) use page::{PageRequest, report};
pub(crate) use render::{Format, print};
pub(crate) use row::{DEVIATIONS, Phase, Row, SCHEMA};
pub(crate) use superseded::refuse_superseded;
