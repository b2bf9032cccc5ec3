//! Whether the tests find what they are there to find: each bug of `engine::planted` is switched on
//! and must fail the tests that are named here for it, which pass without it.
//!
//! Empty unless the engine is compiled with `--cfg sediment_planted_bugs`: `just planted-bugs`. With
//! `SEDIMENT_REPORT` set to a folder, the outcome is in its `planted.json` as well.

#![cfg(sediment_planted_bugs)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// What a test is called: its file, and its name there.
type Test = (&'static str, &'static str);

/// Each bug, and the tests that catch it.
const CAUGHT_BY: &[(&str, &[Test])] = &[
    (
        "sync_ignored",
        &[(
            "fault_lifecycle",
            "a14_a_power_cut_at_any_step_of_the_first_open_leaves_a_folder_that_opens",
        )],
    ),
    (
        "directory_not_synced",
        &[(
            "fault_lifecycle",
            "a14_a_power_cut_at_any_step_of_the_first_open_leaves_a_folder_that_opens",
        )],
    ),
    (
        "checksum_not_verified",
        &[
            ("fault_corruption", "b16_a_scan_that_meets_damage_yields_one_error_and_ends"),
            ("fault_log_tail", "a2_a_record_with_any_suffix_zeroed_is_a_torn_tail_too"),
        ],
    ),
    (
        "incarnation_left_out_of_checksum",
        &[("fault_log_tail", "a24_records_of_an_earlier_use_of_the_same_blocks_do_not_verify")],
    ),
    (
        "dropped_write",
        &[("fault_log_tail", "a24_stale_bytes_never_return_while_zeroing_ahead_is_on_off_and_on")],
    ),
    (
        "member_answered_before_sync",
        &[("group_commit", "b5_a_leaders_failed_sync_fails_all_eight_and_the_next_write_succeeds")],
    ),
    (
        "tombstone_dropped_early",
        &[("fault_compaction", "c1_a_merge_of_newer_runs_keeps_what_deletes_in_older_ones")],
    ),
    (
        "snapshot_version_dropped",
        &[(
            "fault_compaction",
            "c10_what_snapshots_see_stays_at_every_step_of_merges_of_documents",
        )],
    ),
    (
        "horizon_moved_before_durable",
        &[(
            "fault_compaction_crash",
            "a16_after_a_crash_a_view_of_the_past_is_complete_or_refused",
        )],
    ),
    (
        "inputs_unlinked_early",
        &[(
            "fault_compaction_crash",
            "a16_a_crash_at_any_step_of_a_merge_loses_nothing_and_leaves_nothing_behind",
        )],
    ),
    (
        "cut_ignored_by_read",
        &[("fault_compaction_damage", "c24_what_a_sweep_has_merged_is_not_read_in_level_0_again")],
    ),
    (
        "removal_out_of_age_order",
        &[("fault_compaction", "c4_what_was_put_merged_deleted_and_merged_stays_away")],
    ),
    (
        "checksum_recomputed",
        &[(
            "fault_compaction_damage",
            "c25_a_flip_between_the_read_and_the_write_of_a_merge_is_detected",
        )],
    ),
    ("successor_accepted", &[("fault_log_tail", "a11_a_power_cut_across_a_roll_leaves_a_prefix")]),
    (
        "old_tail_appended_to",
        &[("fault_failed_io", "b4_a_failed_sync_is_not_believed_when_the_next_one_succeeds")],
    ),
];

/// The child has hung: the slowest of these tests takes seconds. A bound for the runner alone, no
/// test is judged by its time.
const HUNG_AFTER: Duration = Duration::from_secs(300);

#[test]
fn every_planted_bug_is_caught_by_the_tests_named_for_it() {
    let stories: BTreeMap<&str, &str> = engine::planted::bugs().collect();
    let known: BTreeSet<&str> = stories.keys().copied().collect();
    let caught: BTreeSet<&str> = CAUGHT_BY.iter().map(|(bug, _)| *bug).collect();
    assert_eq!(caught, known, "the table has each bug");
    assert_eq!(caught.len(), CAUGHT_BY.len(), "once");
    assert!(CAUGHT_BY.iter().all(|(_, tests)| !tests.is_empty()), "with a test that catches it");

    let tests: BTreeSet<Test> = CAUGHT_BY.iter().flat_map(|(_, tests)| *tests).copied().collect();
    let programs = build(&tests.iter().map(|(file, _)| *file).collect());
    let without = tests.iter().map(|test| (None, *test));
    let with =
        CAUGHT_BY.iter().flat_map(|(bug, tests)| tests.iter().map(|test| (Some(*bug), *test)));
    let runs: Vec<(Option<&str>, Test)> = without.chain(with).collect();

    let mut failures = Vec::new();
    let mut report: Vec<Value> = Vec::new();
    for ((bug, (file, name)), outcome) in runs.iter().zip(run_all(&programs, &runs)) {
        match (bug, outcome) {
            (None, Outcome::Passed) => {}
            (Some(bug), Outcome::Failed { message }) => {
                println!("{bug}: {file} {name}: {message}");
                report.push(json!({
                    "bug": bug,
                    "story": stories[bug],
                    "caught_by": format!("{file} {name}"),
                    "message": message,
                }));
            }
            (bug, outcome) => {
                let bug = bug.unwrap_or("no bug");
                let what = match outcome {
                    Outcome::Passed => "passes".to_owned(),
                    Outcome::Failed { message } => format!("fails: {message}"),
                    Outcome::Broken { what } => what,
                };
                failures.push(format!("{bug}: {file} {name}: {what}"));
            }
        }
    }
    if let Some(folder) = std::env::var_os("SEDIMENT_REPORT") {
        let folder = Path::new(&folder);
        fs::create_dir_all(folder).unwrap();
        let report = serde_json::to_string_pretty(&report).unwrap();
        fs::write(folder.join("planted.json"), report + "\n").unwrap();
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// The page that tells readers of it.
#[test]
fn the_documentation_names_each_bug_beside_its_tests() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/testing.md");
    let page = fs::read_to_string(path).unwrap();
    for (bug, tests) in CAUGHT_BY {
        let row = page.lines().find(|line| line.contains(&format!("`{bug}`")));
        let row = row.unwrap_or_else(|| panic!("docs/testing.md does not name {bug}"));
        for (file, name) in *tests {
            assert!(row.contains(&format!("*{file}* `{name}`")), "{bug}: {file} {name}");
        }
    }
}

/// The test programs of these files, built as this one was: with the same flags, in the same target
/// folder.
fn build(files: &BTreeSet<&str>) -> BTreeMap<String, PathBuf> {
    let cargo = std::env::var_os("CARGO").expect("it runs under cargo");
    let mut command = Command::new(cargo);
    command.args(["test", "-p", "engine", "--no-run", "--message-format=json"]);
    command.args(files.iter().flat_map(|file| ["--test", file]));
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let built = command.current_dir(env!("CARGO_MANIFEST_DIR")).stderr(Stdio::inherit()).output();
    let built = built.unwrap();
    assert!(built.status.success(), "the tests do not compile");
    let messages = String::from_utf8(built.stdout).unwrap();
    let programs: BTreeMap<String, PathBuf> = messages
        .lines()
        .filter_map(|line| {
            let message: Value = serde_json::from_str(line).ok()?;
            let executable = message["executable"].as_str()?;
            Some((message["target"]["name"].as_str()?.to_owned(), executable.into()))
        })
        .collect();
    for file in files {
        assert!(programs.contains_key(*file), "cargo built no test program {file}");
    }
    programs
}

enum Outcome {
    Passed,
    /// As a test fails; what it said first.
    Failed {
        message: String,
    },
    /// It ended in another way: killed, hung, or nothing ran.
    Broken {
        what: String,
    },
}

/// Runs tests, on as many processors as there are. The outcomes, in the same order.
fn run_all(programs: &BTreeMap<String, PathBuf>, runs: &[(Option<&str>, Test)]) -> Vec<Outcome> {
    let scratch = tempfile::tempdir().unwrap();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((bug, (file, name))) = runs.get(number) else { return done };
            let output = scratch.path().join(number.to_string());
            fs::create_dir(&output).unwrap();
            done.push((number, run(&programs[*file], name, *bug, &output)));
        }
    };
    let workers = thread::available_parallelism().map_or(1, |n| n.get());
    let mut done: Vec<(usize, Outcome)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Runs one test, whose output and temporary files go to a folder.
fn run(program: &Path, name: &str, bug: Option<&str>, folder: &Path) -> Outcome {
    let (out, err) = (folder.join("out"), folder.join("err"));
    let mut command = Command::new(program);
    command.args(["--exact", name, "--test-threads=1"]);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).env("TMPDIR", folder);
    command
        .env_remove("SEDIMENT_BUG")
        .env_remove("RUST_BACKTRACE")
        .envs(bug.map(|bug| ("SEDIMENT_BUG", bug)));
    command.stdin(Stdio::null());
    command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > HUNG_AFTER {
            child.kill().unwrap();
            child.wait().unwrap();
            return Outcome::Broken {
                what: format!("it hung, and was killed after {HUNG_AFTER:?}"),
            };
        }
        thread::sleep(Duration::from_millis(10));
    };
    let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    judge(name, status, &text(&out), &text(&err))
}

/// What the test harness says of its only test.
fn judge(name: &str, status: ExitStatus, out: &str, err: &str) -> Outcome {
    let has_line = |line: String| out.lines().any(|found| found == line);
    let is_one = has_line("running 1 test".to_owned());
    if is_one && status.success() && has_line(format!("test {name} ... ok")) {
        return Outcome::Passed;
    }
    // What the harness exits with when a test failed.
    let is_failure = status.code() == Some(101) && has_line(format!("test {name} ... FAILED"));
    if is_one
        && is_failure
        && let Some(message) = first_panic(out)
    {
        return Outcome::Failed { message };
    }
    Outcome::Broken { what: format!("{status}\n{out}{err}") }
}

/// The first line of what the first panic said: it follows the one that says where.
fn first_panic(out: &str) -> Option<String> {
    let is_panic = |line: &str| line.starts_with("thread '") && line.contains(" panicked at ");
    let mut lines = out.lines().skip_while(|line| !is_panic(line)).skip(1);
    lines.find(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
}
