//! The lock of a closed database is free at once, even while another thread starts a process.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Database, Options};

/// Between fork and exec a child has all descriptors of its parent, the lock file's included.
#[test]
fn a_process_started_elsewhere_does_not_keep_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    Command::new("true").status().unwrap();
                }
            });
        }
        let outcome = (0..300).try_for_each(|_| {
            Database::open(&path, Options::default()).and_then(|database| database.close())
        });
        done.store(true, Ordering::Relaxed);
        outcome.unwrap();
    });
}
