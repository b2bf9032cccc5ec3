//! What a run was of: the commit and the machine.

use std::fs;
use std::path::Path;
use std::process::Command;

/// One line for the page.
pub(super) fn line(root: &Path) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split(':').nth(1));
        value.map_or_else(|| "unknown".to_owned(), |value| value.trim().to_owned())
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let kib: u64 = memory.split(' ').next().and_then(|kib| kib.parse().ok()).unwrap_or(0);
    let huge_pages = read("/sys/kernel/mm/transparent_hugepage/enabled");
    let chosen = huge_pages.split(['[', ']']).nth(1).unwrap_or("unknown");
    let target = if cfg!(target_feature = "avx2") { "haswell or newer" } else { "any x86-64" };
    format!(
        "`just bench-structures`, commit `{}`; {} with {processors} cores and {} MiB, Linux {}, \
         huge pages `{chosen}`, compiled for {target}.",
        commit(root),
        field(&read("/proc/cpuinfo"), "model name"),
        kib / 1024,
        read("/proc/sys/kernel/osrelease").trim(),
    )
}

/// The commit, with `-dirty` when anything but the page that is being filled differs from it.
fn commit(root: &Path) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "HEAD"]) else { return "unknown".to_owned() };
    let changed = git(&["status", "--porcelain", "--", ".", ":!docs/performance.md"]);
    let suffix = if changed.is_none_or(|changed| !changed.is_empty()) { "-dirty" } else { "" };
    format!("{commit}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_a_repository_the_commit_is_unknown() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(commit(folder.path()), "unknown");
        assert!(line(folder.path()).starts_with("`just bench-structures`, commit `unknown`; "));
    }
}
