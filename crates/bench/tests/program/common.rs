//! Running the program and reading what it left behind.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The program with arguments separated by spaces.
pub(crate) fn bench(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    command.args(arguments.split_whitespace()).stdin(Stdio::null());
    command
}

/// As `bench`, with its data and its results below `folder`.
pub(crate) fn bench_in(folder: &Path, arguments: &str) -> Command {
    let mut command = bench(arguments);
    command.current_dir(folder).args(["--data", "data", "--results", "results"]);
    command
}

pub(crate) fn run(mut command: Command) -> Output {
    command.output().expect("the program starts")
}

/// Asserts the failure of a run and gives its one line on standard error.
pub(crate) fn failure_line(command: Command) -> String {
    let output = run(command);
    let errors = String::from_utf8(output.stderr).expect("messages are text");
    assert!(!output.status.success(), "succeeded: {errors}");
    assert_eq!(errors.lines().count(), 1, "more than a line: {errors}");
    assert!(errors.starts_with("error: "), "{errors}");
    errors.trim_end().to_owned()
}

/// All rows of the results files below `folder`; every line must be whole.
pub(crate) fn rows(folder: &Path) -> Vec<Value> {
    let Ok(files) = std::fs::read_dir(folder.join("results")) else { return Vec::new() };
    let mut rows = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file.expect("an entry").path()).expect("a text file");
        assert!(text.is_empty() || text.ends_with('\n'), "the last line is cut: {text}");
        rows.extend(text.lines().map(|line| serde_json::from_str(line).expect(line)));
    }
    rows
}

/// Whether the run's data has gone.
pub(crate) fn data_is_gone(folder: &Path) -> bool {
    std::fs::read_dir(folder.join("data")).is_ok_and(|mut entries| entries.next().is_none())
}
