//! When a thread is known to wait: the kernel says so.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// The calling thread's folder below `/proc`.
pub(crate) fn current_thread() -> PathBuf {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    PathBuf::from("/proc").join(link)
}

/// Waits until a thread sleeps, several looks in a row: it waits for another one, and not for a
/// moment; or until it has ended.
pub(crate) fn wait_until_blocked(thread: &Path) {
    let mut asleep = 0;
    while asleep < 5 {
        let Ok(stat) = std::fs::read_to_string(thread.join("stat")) else { return };
        let state = stat.rsplit(") ").next().unwrap().chars().next();
        asleep = if state == Some('S') { asleep + 1 } else { 0 };
        std::thread::sleep(Duration::from_millis(2));
    }
}
