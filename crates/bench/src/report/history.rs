//! The history of the micro suite: a line of JSON for each run, appended and never changed.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use comfy_table::{CellAlignment, Table, presets};
use serde::{Deserialize, Serialize};

use crate::error::{Context, Failure, Result};
use crate::measure::machine::Machine;

/// Beside the results files.
pub(super) const FILE: &str = "history.jsonl";

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) schema: u32,
    pub(super) date: String,
    pub(super) run: String,
    pub(super) command: String,
    pub(super) commit: String,
    pub(super) machine: Machine,
    pub(super) target_cpu: String,
    /// Medians by store and name; null for what a store does not have.
    pub(super) figures: BTreeMap<String, BTreeMap<String, Option<f64>>>,
}

/// Adds a line with one call, so that it is there whole or not at all.
pub(super) fn append(file: &Path, entry: &Entry) -> Result<()> {
    let what = || format!("cannot add to {}", file.display());
    let line = serde_json::to_string(entry).context(what)? + "\n";
    let mut history = OpenOptions::new().append(true).create(true).open(file).context(what)?;
    history.write_all(line.as_bytes()).context(what)?;
    history.sync_all().context(what)
}

/// Prints the history, oldest first.
pub(crate) fn print(file: &Path) -> Result<()> {
    let text = fs::read_to_string(file).context(|| format!("cannot read {}", file.display()))?;
    let mut entries = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let entry: Entry = serde_json::from_str(line)
            .context(|| format!("{}:{}: not a line of the history", file.display(), number + 1))?;
        entries.push(entry);
    }
    if entries.is_empty() {
        return Err(Failure::new(format_args!("{} has no lines", file.display())));
    }
    println!("{}", table(&entries));
    Ok(())
}

fn table(entries: &[Entry]) -> String {
    // In the order in which runs first had them.
    let mut names: Vec<&str> = Vec::new();
    for name in entries.iter().flat_map(|entry| entry.figures.values()).flat_map(BTreeMap::keys) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["date", "commit", "processor", "store"].iter().chain(&names));
    for entry in entries {
        for (store, figures) in &entry.figures {
            let processor = format!("{} x {}", entry.machine.cores, entry.machine.cpu);
            let mut line = vec![entry.date.clone(), short(&entry.commit), processor, store.clone()];
            let figures = names.iter().map(|&name| figures.get(name).copied().flatten());
            line.extend(figures.map(|value| value.map_or_else(|| "-".to_owned(), figure)));
            table.add_row(line);
        }
    }
    for column in 4..4 + names.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// Eight digits of a commit, and whether the working folder differed from it.
fn short(commit: &str) -> String {
    match commit.split_once('-') {
        Some((hash, mark)) => format!("{}-{mark}", hash.get(..8).unwrap_or(hash)),
        None => commit.get(..8).unwrap_or(commit).to_owned(),
    }
}

fn figure(value: f64) -> String {
    if value < 100.0 { format!("{value:.3}") } else { super::table::thousands(value) }
}

#[cfg(test)]
mod tests {
    use super::super::row::samples;
    use super::*;

    fn entry(commit: &str, rate: Option<f64>) -> Entry {
        let row = samples::row("sediment", 1, 1.0);
        let figures = BTreeMap::from([("lookup".to_owned(), rate)]);
        Entry {
            schema: 1,
            date: "2026-12-01".to_owned(),
            run: row.run,
            command: row.command,
            commit: commit.to_owned(),
            machine: row.machine,
            target_cpu: row.target_cpu,
            figures: BTreeMap::from([("sediment".to_owned(), figures)]),
        }
    }

    #[test]
    fn lines_are_appended_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        let entries = [entry("a", Some(1.5)), entry("b", None)];
        entries.iter().for_each(|entry| append(&file, entry).unwrap());
        let text = fs::read_to_string(&file).unwrap();
        let read: Vec<Entry> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(read, entries);
    }

    #[test]
    fn a_run_is_a_line_with_a_dash_for_what_it_does_not_have() {
        let entries =
            [entry("0123456789abcdef-dirty", Some(123_456.7)), entry("fedcba9876543210", None)];
        let text = table(&entries);
        let line = |commit: &str| text.lines().find(|line| line.contains(commit)).unwrap();
        assert!(line("01234567-dirty").trim_end().ends_with("123 457"), "{text}");
        assert!(line("fedcba98 ").trim_end().ends_with('-'), "{text}");
    }

    #[test]
    fn a_broken_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        append(&file, &entry("a", None)).unwrap();
        let text = fs::read_to_string(&file).unwrap() + "{\"schema\":1}\n";
        fs::write(&file, text).unwrap();
        let failure = print(&file).unwrap_err().to_string();
        assert!(failure.contains("history.jsonl:2: not a line of the history"), "{failure}");
    }
}
