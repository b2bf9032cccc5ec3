//! The formats of `table`, from the program's own results file.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{bench, bench_in, failure_line, run};

fn results(folder: &Path) -> PathBuf {
    let mut files = fs::read_dir(folder.join("results")).expect("results");
    files.next().expect("a file").expect("an entry").path()
}

fn printed(format: &str, file: &Path) -> (String, String) {
    let mut command = bench("table --format");
    command.arg(format).arg(file);
    let output = run(command);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let (printed, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{errors}");
    (printed, errors)
}

#[test]
fn a_run_is_printed_in_every_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = "table-bound --records 300 --workloads f --repeats 1 --seconds 0.05 \
        --warmup-seconds 0.02 --operations 50 --digest-operations 50";
    let output = run(bench_in(folder.path(), arguments));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = results(folder.path());

    let (text, errors) = printed("ycsb", &file);
    assert_eq!(errors, "", "new rows have all that YCSB prints");
    assert_eq!(text.lines().filter(|line| line.starts_with("# ")).count(), 2 + 2);
    assert_eq!(text.matches("[OVERALL], Throughput(ops/sec), ").count(), 2 + 2);
    assert_eq!(text.matches("[READ], MinLatency(us), ").count(), 2);
    assert_eq!(text.matches("[UPDATE], Return=OK, ").count(), 2);

    let (text, errors) = printed("go-ycsb", &file);
    assert_eq!(text.matches("\nREAD   - Takes(s): ").count(), 2, "{text}");
    assert_eq!(text.matches("\nTOTAL  - Takes(s): ").count(), 2 + 2, "{text}");
    assert!(!text.contains(": ,") && !errors.contains("of rows without"), "{text}{errors}");

    let (text, _) = printed("csv", &file);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 4);
    assert!(lines[0].starts_with("schema,run,bench,job,cell,repeat,"), "{text}");

    let (text, _) = printed("markdown", &file);
    let mut same = bench("table --markdown");
    same.arg(&file);
    assert_eq!(text.as_bytes(), run(same).stdout);
    assert!(text.starts_with("| workload |"), "{text}");
}

#[test]
fn a_format_that_does_not_exist_is_refused() {
    assert!(failure_line(bench("table --format xml x.jsonl")).contains("--format"));
    assert!(failure_line(bench("table --format csv --markdown x.jsonl")).contains("--markdown"));
}
