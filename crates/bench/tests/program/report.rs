//! The page of a run, from the program's own results file.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{bench, bench_in, failure_line, run};

/// The files with a suffix below a folder.
fn files(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|found| found == suffix)).collect()
}

#[test]
fn a_runs_page_is_written_and_checked_and_an_edited_digit_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = "table-bound --records 300 --workloads c --repeats 2 --seconds 0.05 \
        --warmup-seconds 0.02 --operations 50 --digest-operations 50";
    let output = run(bench_in(folder.path(), arguments));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = |more: &[&str]| {
        let mut command = bench("report --out pages");
        command.current_dir(folder.path()).args(files(&folder.path().join("results"), "jsonl"));
        command.args(more);
        command
    };
    assert!(failure_line(report(&["--check"])).contains("there is no pages/"));
    let output = run(report(&["--title", "A small run"]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let pages = files(&folder.path().join("pages"), "md");
    let [page] = pages.as_slice() else { panic!("{pages:?}") };
    let text = fs::read_to_string(page).expect("a page");
    assert!(text.starts_with("# A small run\n"), "{text}");
    for part in ["| C | sediment |", "| C | rocksdb |", "Throughput of sediment: ", "--records 300"]
    {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert_eq!(files(&page.with_extension(""), "svg").len(), 1 + 2 + 2);
    assert!(run(report(&["--check"])).status.success());

    let line = text.lines().find(|line| line.starts_with("| C | sediment |")).expect("a line");
    fs::write(page, text.replace(line, &format!("{line}1"))).expect("an edited page");
    let message = failure_line(report(&["--check"]));
    assert!(message.contains("the page has") && message.contains("the files give"), "{message}");
}

#[test]
fn what_is_no_results_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("run.jsonl"), "\n{\"schema\":1}\n").expect("a file");
    let cases = [
        ("report", "required"),
        ("report missing.jsonl", "missing.jsonl"),
        ("report run.jsonl", "run.jsonl:2"),
        ("report run.jsonl --suffix ../x", "--suffix"),
    ];
    for (arguments, expected) in cases {
        let mut command = bench(arguments);
        command.current_dir(folder.path());
        let line = failure_line(command);
        assert!(line.contains(expected), "{arguments}: {line}");
        assert!(!folder.path().join("docs").exists(), "{arguments}: wrote something");
    }
}
