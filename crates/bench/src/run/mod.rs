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
mod parent;
mod progress;
mod protocol;
mod signal;

use crate::cli::{Command, TableForm};
use crate::error::Result;
use crate::report;

pub(crate) use grid::{Bench, Folder, Grid};

/// Does what the command line says.
pub(crate) fn command(command: Command) -> Result<()> {
    match command {
        Command::Bench(grid) => parent::bench(&grid),
        Command::Table { files, form } => {
            let rows = report::read_files(&files)?;
            match form {
                TableForm::Terminal => println!("{}", report::table(&rows)),
                TableForm::Markdown => println!("{}", report::markdown(&rows)),
            }
            Ok(())
        }
        Command::Report(request) => report::report(&request),
        Command::Child => protocol::serve(),
    }
}
