//! Ctrl-C in the middle of a run.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{bench_in, data_is_gone, rows};

#[test]
fn ctrl_c_leaves_a_valid_file_and_no_data() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = "table-bound --records 300 --seconds 0.2 --warmup-seconds 0.05 \
        --operations 50 --digest-operations 50 --repeats 100";
    let mut command = bench_in(folder.path(), arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut run = command.spawn().expect("the program starts");
    let patience = Instant::now() + Duration::from_secs(60);
    while rows_so_far(folder.path()) < 3 {
        assert!(run.try_wait().expect("a status").is_none(), "the run ended by itself");
        assert!(Instant::now() < patience, "no rows");
        thread::sleep(Duration::from_millis(20));
    }
    let signal = format!("kill -INT {}", run.id());
    assert!(Command::new("sh").args(["-c", &signal]).status().expect("a shell").success());
    let output = run.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(130));
    assert!(data_is_gone(folder.path()));
    let rows = rows(folder.path());
    assert!(rows.len() >= 3);
    assert!(rows.iter().all(|row| row["schema"] == 1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("rows in"), "the table is printed");
}

/// Whole lines; the last one may be on its way.
fn rows_so_far(folder: &std::path::Path) -> usize {
    let files = std::fs::read_dir(folder.join("results")).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    texts.map(|text| text.matches('\n').count()).sum()
}
