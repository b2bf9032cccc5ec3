//! Whole pages: written, written again, compared.

use std::fs;
use std::path::{Path, PathBuf};

use super::samples::{Cell, row, small_run};
use super::{PageRequest, report};
use crate::error::Result;
use crate::report::row::Row;

struct Folder {
    folder: tempfile::TempDir,
    request: PageRequest,
}

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let request = PageRequest {
            files: vec![folder.path().join("run.jsonl")],
            out: folder.path().join("docs"),
            title: None,
            suffix: None,
            superseded: false,
            check: false,
        };
        let new = Self { folder, request };
        new.rows(&small_run());
        new
    }

    fn rows(&self, rows: &[Row]) {
        let lines = rows.iter().map(|row| serde_json::to_string(row).unwrap() + "\n");
        fs::write(self.folder.path().join("run.jsonl"), lines.collect::<String>()).unwrap();
    }

    fn path(&self) -> PathBuf {
        self.request.out.join("2026-11-30-table-bound.md")
    }

    fn page(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    fn pictures(&self) -> PathBuf {
        self.request.out.join("2026-11-30-table-bound")
    }

    fn write(&self) -> Result<()> {
        report(&self.request)
    }

    fn check(&self) -> Result<()> {
        report(&PageRequest { check: true, ..self.request.clone() })
    }

    fn edit(&self, path: &Path, from: &str, to: &str) {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains(from), "no {from} in {text}");
        fs::write(path, text.replacen(from, to, 1)).unwrap();
    }
}

#[test]
fn a_page_has_its_parts_and_every_picture_beside_a_table() {
    let folder = Folder::new();
    folder.write().unwrap();
    let page = folder.page();
    let parts = [
        "# Table-bound, 30 November 2026\n",
        "The machines are shared: figures are indicative, not claims",
        "## What was run\n\nThe rows are in `run.jsonl`.",
        "1. `bench table-bound`, commit `unknown`",
        "| Table-bound, durable, 1 client, 300 000 records of 118 bytes | 2 | 12 | 0 | 0 | 0 | no",
        "## What the numbers say\n\n<!-- text numbers -->\n**Table-bound",
        "### Throughput\n\n![Throughput. load: ",
        "| C | sediment | 5 000 | 4 000 - 6 000 | 5.00 | 4.00 - 6.00 |",
        "### Latency",
        "### Memory and disk",
        "## What is not measured\n\n- Buffered writes.",
    ];
    let mut rest = page.as_str();
    for part in parts {
        let place = rest.find(part);
        rest = &rest[place.unwrap_or_else(|| panic!("no {part} in\n{page}"))..];
    }
    let references: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("!["))
        .filter_map(|line| line.rsplit('(').next())
        .collect();
    assert_eq!(references.len(), 1 + 3 + 2);
    for reference in references {
        assert!(folder.request.out.join(reference.trim_end_matches(')')).is_file(), "{reference}");
    }
    folder.check().unwrap();
}

#[test]
fn writing_again_changes_no_byte() {
    let folder = Folder::new();
    folder.write().unwrap();
    let before = folder.page();
    folder.write().unwrap();
    assert_eq!(before, folder.page());
}

#[test]
fn an_edited_digit_is_found() {
    let folder = Folder::new();
    folder.write().unwrap();
    folder.edit(&folder.path(), "| 5 000 |", "| 5 900 |");
    let message = folder.check().unwrap_err().to_string();
    assert!(message.contains("5 900") && message.contains("5 000"), "{message}");
    folder.write().unwrap();
    let picture = folder.pictures().join("table-bound-durable-1-300000x1x100-throughput.svg");
    folder.edit(&picture, "5 000 · 5.00×", "5 000 · 6.00×");
    let message = folder.check().unwrap_err().to_string();
    assert!(message.contains("throughput.svg:") && message.contains("6.00×"), "{message}");
}

#[test]
fn a_missing_and_a_foreign_file_are_found() {
    let folder = Folder::new();
    assert!(folder.check().unwrap_err().to_string().contains("there is no"));
    folder.write().unwrap();
    let foreign = folder.pictures().join("old.svg");
    fs::write(&foreign, "").unwrap();
    assert!(folder.check().unwrap_err().to_string().contains("old.svg does not belong"));
    folder.write().unwrap();
    assert!(!foreign.exists());
    folder.check().unwrap();
}

#[test]
fn the_authors_text_and_title_survive_other_figures() {
    let folder = Folder::new();
    folder.write().unwrap();
    let words = "Reads are\n\nfast.";
    let mark = "<!-- text table-bound-durable-1-300000x1x100 -->\n";
    folder.edit(&folder.path(), mark, &format!("{mark}{words}\n"));
    folder.edit(&folder.path(), "# Table-bound, 30 November 2026", "# My title");
    folder.check().unwrap();
    let mut rows = small_run();
    rows.push(row(Cell { workload: "b", ..Cell::default() }));
    folder.rows(&rows);
    assert!(folder.check().is_err(), "the files have another workload");
    folder.write().unwrap();
    let page = folder.page();
    assert!(page.starts_with("# My title\n") && page.contains(words), "{page}");
    assert!(page.contains("| B | sediment |"), "{page}");
}

#[test]
fn generated_sentences_stay_until_they_are_emptied() {
    let folder = Folder::new();
    folder.write().unwrap();
    folder.edit(&folder.path(), "Throughput of sediment", "What I see");
    folder.write().unwrap();
    assert!(folder.page().contains("What I see"));
    let page = folder.page();
    let (start, rest) = page.split_once("<!-- text numbers -->\n").unwrap();
    let (_, end) = rest.split_once("<!-- /text -->\n").unwrap();
    let emptied = format!("{start}<!-- text numbers -->\n<!-- /text -->\n{end}");
    fs::write(folder.path(), emptied).unwrap();
    folder.write().unwrap();
    assert!(folder.page().contains("Throughput of sediment"));
}

#[test]
fn runs_with_other_arguments_have_their_own_sections() {
    let folder = Folder::new();
    let mut rows = small_run();
    rows.extend(small_run().into_iter().map(|mut row| {
        row.command += " --seconds 40";
        row.run = "20261130T170000Z-host-table-bound".to_owned();
        row
    }));
    folder.rows(&rows);
    folder.write().unwrap();
    let page = folder.page();
    for source in ["source 1", "source 2"] {
        let heading = format!(
            "\n## Table-bound, durable, 1 client, 300 000 records of 118 bytes, {source}\n"
        );
        assert!(page.contains(&heading), "{page}");
    }
    assert!(page.contains("   Options as under 1.\n"), "{page}");
    folder.check().unwrap();
}

#[test]
fn text_without_a_section_stops_the_writing() {
    let folder = Folder::new();
    folder.write().unwrap();
    let mark = "<!-- text table-bound-durable-1-300000x1x100 -->\n";
    folder.edit(&folder.path(), mark, &format!("{mark}Words.\n"));
    let before = folder.page();
    folder.rows(&[row(Cell { clients: 2, ..Cell::default() })]);
    let message = folder.write().unwrap_err().to_string();
    assert!(message.contains("table-bound-durable-1"), "{message}");
    assert_eq!(folder.page(), before);
}

#[test]
fn a_page_of_another_hand_is_not_overwritten() {
    let mut folder = Folder::new();
    fs::create_dir_all(&folder.request.out).unwrap();
    fs::write(folder.path(), "# Mine\n").unwrap();
    assert!(folder.write().unwrap_err().to_string().contains("--suffix"));
    assert_eq!(folder.page(), "# Mine\n");
    folder.request.suffix = Some("charts".to_owned());
    folder.write().unwrap();
    assert!(folder.request.out.join("2026-11-30-table-bound-charts.md").is_file());
}

#[test]
fn superseded_rows_are_mentioned() {
    let folder = Folder::new();
    let mut rows = small_run();
    rows.push(row(Cell { repeat: 2, rate: 8_000.0, ..Cell::default() }));
    folder.rows(&rows);
    folder.write().unwrap();
    let page = folder.page();
    assert!(page.contains(" 1 of them were measured again"), "{page}");
    assert!(page.contains("| C | sediment | 6 000 | 4 000 - 8 000 |"), "{page}");
}

#[test]
fn a_corrupt_line_is_named() {
    let folder = Folder::new();
    fs::write(folder.folder.path().join("run.jsonl"), "\n{\"schema\":1,\n").unwrap();
    let message = folder.write().unwrap_err().to_string();
    assert!(message.contains("run.jsonl:2"), "{message}");
    assert!(!folder.request.out.exists());
}
