//! Results files: JSON lines, appended row by row.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::row::{Row, SCHEMA};
use crate::error::{Context, Failure, Result};

/// The file of a run in progress.
pub(crate) struct ResultsFile {
    path: PathBuf,
    run: String,
    file: File,
    rows: Vec<Row>,
}

impl ResultsFile {
    /// Creates `<folder>/<run>.jsonl`, which must not exist.
    pub(crate) fn create(folder: &Path, run: &str) -> Result<Self> {
        let path = folder.join(format!("{run}.jsonl"));
        let what = || format!("cannot create the results file {}", path.display());
        fs::create_dir_all(folder).context(what)?;
        let file = OpenOptions::new().append(true).create_new(true).open(&path).context(what)?;
        Ok(Self { path, run: run.to_owned(), file, rows: Vec::new() })
    }

    /// Goes on with the file of a run that was stopped.
    pub(crate) fn resume(path: &Path) -> Result<Self> {
        let what = || format!("cannot go on with {}", path.display());
        let rows = read_files(&[path.to_path_buf()])?;
        let mut runs = rows.iter().map(|row| &row.run);
        let first = runs.next().cloned().unwrap_or_default();
        if runs.any(|run| *run != first) {
            return Err(Failure::new(format_args!("{}: it has rows of several runs", what())));
        }
        let file = OpenOptions::new().append(true).open(path).context(what)?;
        Ok(Self { path: path.to_path_buf(), run: first, file, rows })
    }

    /// The rows so far, those of the stopped run included.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    /// Writes the row with one call, so that a line is there whole or not at all.
    pub(crate) fn append(&mut self, row: Row) -> Result<()> {
        let what = || format!("cannot write to {}", self.path.display());
        let line = serde_json::to_string(&row).context(what)? + "\n";
        self.file.write_all(line.as_bytes()).context(what)?;
        self.rows.push(row);
        Ok(())
    }

    /// Syncs the file, or removes it when no row was written.
    pub(crate) fn finish(self) -> Result<(PathBuf, Vec<Row>)> {
        let what = || format!("cannot finish {}", self.path.display());
        if self.rows.is_empty() {
            fs::remove_file(&self.path).context(what)?;
        } else {
            self.file.sync_all().context(what)?;
        }
        Ok((self.path, self.rows))
    }
}

/// All rows of the files.
pub(crate) fn read_files(paths: &[PathBuf]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for path in paths {
        let bytes = fs::read(path).context(|| format!("cannot read {}", path.display()))?;
        for (number, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let row = parse(line).context(|| format!("{}:{}", path.display(), number + 1))?;
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Err(Failure::new("there are no rows in these files"));
    }
    Ok(rows)
}

fn parse(line: &[u8]) -> Result<Row> {
    #[derive(Deserialize)]
    struct Versioned {
        schema: u32,
    }
    let what = || "not a row of a bench";
    let Versioned { schema } = serde_json::from_slice(line).context(what)?;
    if schema != SCHEMA {
        return Err(Failure::new(format_args!("schema {schema}, but this program knows {SCHEMA}")));
    }
    serde_json::from_slice(line).context(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_schema_is_named() {
        let failure = parse(br#"{"schema":2}"#).unwrap_err();
        assert_eq!(failure.to_string(), "schema 2, but this program knows 1");
    }

    #[test]
    fn a_results_file_without_rows_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let results = ResultsFile::create(&folder.path().join("new"), "run").unwrap();
        let (path, _) = results.finish().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn an_existing_results_file_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("run.jsonl"), "old").unwrap();
        assert!(ResultsFile::create(folder.path(), "run").is_err());
        assert_eq!(fs::read(folder.path().join("run.jsonl")).unwrap(), b"old");
    }
}
