//! Runs a bench: the parent orchestrates, and each repeat of a cell is a process of its own.
//!
//! 1. A repeat opens the store's folder as the cell before left it; only a load starts fresh.
//! 2. Stores take turns cell by cell, and their order is swapped each repeat.
//! 3. A row is appended whole and at once, so the results file is valid whenever the run ends.
//! 4. The data folder goes away however the run ends, Ctrl-C included.

pub(crate) mod cell;
mod client;
mod data;
mod grid;
mod history;
mod micro;
mod open_cell;
mod open_time;
mod overwrite;
mod parent;
mod progress;
mod protocol;
mod session;
mod signal;
mod tail;
mod verification;
mod write_amplification;

use crate::cli::Command;
use crate::error::Result;
use crate::report;

pub(crate) use cell::Window;
pub(crate) use grid::{Bench, Folder, Grid};
pub(crate) use micro::cell::Oversize;
pub(crate) use micro::{Micro, Part};
pub(crate) use open_time::OpenTime;
pub(crate) use session::Place;
pub(crate) use tail::Opening;
pub(crate) use verification::VerifyJob;
pub(crate) use write_amplification::Amplification;

/// Does what the command line says.
pub(crate) fn command(command: Command) -> Result<()> {
    match command {
        Command::Bench { place, grids } => parent::bench(&place, &grids),
        Command::WriteAmplification { place, job } => write_amplification::run(&place, &job),
        Command::OpenTime { place, job } => open_time::run(&place, &job),
        Command::Verify { place, job } => verification::run(&place, &job),
        Command::Table { files, format, superseded } => {
            if !superseded {
                report::refuse_superseded(&files)?;
            }
            report::print(&report::read_files(&files)?, format)
        }
        Command::Micro { place, job } => micro::run(&place, &job),
        Command::History { file } => report::print_history(&file),
        Command::Report(request) => report::report(&request),
        Command::Compare(request) => report::compare(&request),
        Command::Child => protocol::serve(),
    }
}
