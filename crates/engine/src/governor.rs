//! Decides what depends on the machine's memory and on the state of the log: pure functions of what
//! they are told.

use std::time::Duration;

use crate::options::Reads;
use crate::segment::Regime;
use crate::sync::{AtomicBool, Ordering};

/// The longest wait that one group is asked for.
const DELAY_MAX: Duration = Duration::from_millis(1);

/// How long a group waits while a seal is under way, by how full the active memtable and log are
/// (used, size): nothing below half, then rising with the square, so that writers slow down before
/// they would have to stop.
pub(crate) fn write_delay(memtable: (u64, u64), log: (u64, u64)) -> Duration {
    let percent = |(used, size): (u64, u64)| used.saturating_mul(100) / size.max(1);
    let fill = percent(memtable).max(percent(log)).min(100);
    let above_half = u32::try_from(fill.saturating_sub(50)).unwrap_or(50);
    DELAY_MAX * (above_half * above_half) / (50 * 50)
}

/// The read regime for files of so many bytes on a machine, or in a group, with so much memory.
pub(crate) fn regime(reads: Reads, file_bytes: u64, memory_bytes: Option<u64>) -> Regime {
    match (reads, memory_bytes) {
        (Reads::Mapped, _) => Regime::Mapped,
        (Reads::Pread, _) => Regime::Pread,
        (Reads::Automatic, Some(memory)) if file_bytes > memory / 2 => Regime::Pread,
        (Reads::Automatic, _) => Regime::Mapped,
    }
}

/// The memory that this process may use for pages: the machine's, or its control group's limit if
/// lower.
fn memory_bytes() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().filter_map(group_path);
    groups
        .into_iter()
        .map(str::to_owned)
        .chain(own)
        .filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse().ok())
        .chain(machine)
        .min()
}

/// `MemTotal` of `/proc/meminfo`, in bytes.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Where a line of `/proc/self/cgroup` says that the memory limit stands.
fn group_path(line: &str) -> Option<String> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let path = path.trim_end_matches('/');
    if controllers.is_empty() {
        Some(format!("/sys/fs/cgroup{path}/memory.max"))
    } else if controllers.split(',').any(|name| name == "memory") {
        Some(format!("/sys/fs/cgroup/memory{path}/memory.limit_in_bytes"))
    } else {
        None
    }
}

/// Holds the decisions that reads look at.
#[derive(Debug)]
pub(crate) struct Governor {
    reads: Reads,
    memory: Option<u64>,
    is_mapped: AtomicBool,
}

impl Governor {
    pub(crate) fn new(reads: Reads) -> Self {
        let memory = memory_bytes();
        let is_mapped = regime(reads, 0, memory) == Regime::Mapped;
        Self { reads, memory, is_mapped: AtomicBool::new(is_mapped) }
    }

    /// The sealed files have this many bytes now.
    pub(crate) fn observe_files(&self, bytes: u64) {
        let is_mapped = regime(self.reads, bytes, self.memory) == Regime::Mapped;
        self.is_mapped.store(is_mapped, Ordering::Relaxed);
    }

    pub(crate) fn regime(&self) -> Regime {
        if self.is_mapped.load(Ordering::Relaxed) { Regime::Mapped } else { Regime::Pread }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_rises_gradually_with_whichever_is_fuller() {
        let table = [
            ((0, 100), (0, 100), 0),
            ((50, 100), (0, 100), 0),
            ((60, 100), (0, 100), 40),
            ((0, 100), (75, 100), 250),
            ((75, 100), (60, 100), 250),
            ((100, 100), (0, 100), 1000),
            ((300, 100), (0, 0), 1000),
        ];
        for (memtable, log, micros) in table {
            let delay = write_delay(memtable, log);
            assert_eq!(delay, Duration::from_micros(micros), "{memtable:?} {log:?}");
        }
    }

    #[test]
    fn files_beyond_half_of_memory_are_not_mapped() {
        assert_eq!(regime(Reads::Automatic, 49, Some(100)), Regime::Mapped);
        assert_eq!(regime(Reads::Automatic, 51, Some(100)), Regime::Pread);
        assert_eq!(regime(Reads::Automatic, 51, None), Regime::Mapped);
        assert_eq!(regime(Reads::Mapped, 1000, Some(1)), Regime::Mapped);
        assert_eq!(regime(Reads::Pread, 0, None), Regime::Pread);
    }

    #[test]
    fn limits_are_read_where_the_kernel_puts_them() {
        assert_eq!(total("MemTotal:       16 kB\nMemFree: 3 kB\n"), Some(16384));
        assert_eq!(total("nothing"), None);
        assert_eq!(group_path("0::/a/b"), Some("/sys/fs/cgroup/a/b/memory.max".to_owned()));
        assert_eq!(
            group_path("5:cpu,memory:/x"),
            Some("/sys/fs/cgroup/memory/x/memory.limit_in_bytes".to_owned())
        );
        assert_eq!(group_path("5:cpu:/x"), None);
    }
}
