//! YCSB A-F against Sediment and a RocksDB oracle, measured the same way.
//!
//! The words (bench, run, cell, repeat), every field of a row, and the rules that keep the
//! comparison fair are in `docs/bench/README.md`. The modules, in the order of the data:
//! `cli` → `run` (the parent orchestrates, one child process a repeat) → `workload` (what to do)
//! → `store` (who does it) → `measure` (what it cost) → `report` (rows, the table and the page);
//! `verify` compares what the stores answered.

mod cli;
mod error;
mod measure;
mod report;
mod run;
mod store;
mod verify;
mod workload;

use std::process::ExitCode;

/// The whole program: parses the arguments, runs the command, and prints a failure as one line.
///
/// Exit codes: 0 for success, 1 for a failure, 2 for bad arguments (and for files that `compare`
/// cannot work with), 130 after Ctrl-C.
#[must_use]
pub fn main() -> ExitCode {
    let command = match cli::parse() {
        Ok(command) => command,
        Err(exit) => return exit,
    };
    match run::command(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}
