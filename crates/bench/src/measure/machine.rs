//! The machine under a run: what a reader needs to judge figures from elsewhere.

use std::fs;
use std::path::Path;

use procfs::process::Process;
use serde::{Deserialize, Serialize};

use super::device::Device;

/// Everything a file of `/proc` or `/sys` did not tell is "unknown" or absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) kernel: String,
    /// Type of the file system that holds the data folder.
    pub(crate) file_system: String,
    pub(crate) mount_options: String,
    /// Readahead of the data folder's device, KiB.
    pub(crate) read_ahead_kb: Option<u64>,
    /// `damon_reclaim` enabled, and the state of each `kdamond`.
    pub(crate) damon: Damon,
    /// The chosen mode of transparent huge pages: always, madvise or never.
    pub(crate) transparent_huge_pages: String,
}

/// Data access monitoring: it can take pages away from a process under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Damon {
    pub(crate) reclaim: String,
    pub(crate) kdamonds: Vec<String>,
}

impl Machine {
    /// `data` is the folder that will hold the stores.
    pub(crate) fn describe(data: &Path) -> Self {
        let mount = mount_of(data);
        Self {
            cpu: cpu_model(),
            cores: cores(),
            memory_bytes: memory_bytes(),
            kernel: line("/proc/sys/kernel/osrelease"),
            file_system: mount.as_ref().map_or_else(unknown, |mount| mount.0.clone()),
            mount_options: mount.map_or_else(unknown, |mount| mount.1),
            read_ahead_kb: Device::of(data).and_then(|device| device.read_ahead_kb()),
            damon: Damon {
                reclaim: line("/sys/module/damon_reclaim/parameters/enabled"),
                kdamonds: kdamonds(),
            },
            transparent_huge_pages: bracketed("/sys/kernel/mm/transparent_hugepage/enabled"),
        }
    }
}

/// The host's name with everything but letters, digits, `.` and `_` replaced by `_`: it is part of
/// a file name, where `-` separates.
pub(crate) fn host() -> String {
    sanitised(&line("/proc/sys/kernel/hostname"))
}

fn sanitised(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    name.chars().take(64).map(|c| if fits(c) { c } else { '_' }).collect()
}

/// Processors that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn line(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| unknown(), |text| text.trim().to_owned())
}

fn bracketed(path: &str) -> String {
    let text = line(path);
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or_else(|| text.clone(), |(word, _)| word.to_owned())
}

fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(':'));
    model.map_or_else(unknown, |(_, name)| name.trim().to_owned())
}

fn memory_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Type and options of the mount with the longest matching mount point; later mounts cover
/// earlier ones.
fn mount_of(folder: &Path) -> Option<(String, String)> {
    let folder = folder.canonicalize().ok()?;
    let mounts = Process::myself().ok()?.mountinfo().ok()?;
    let covering = mounts.into_iter().filter(|mount| folder.starts_with(&mount.mount_point));
    let mount = covering.max_by_key(|mount| mount.mount_point.as_os_str().len())?;
    let options = mount.mount_options.into_iter().map(|(name, value)| match value {
        Some(value) => format!("{name}={value}"),
        None => name,
    });
    let mut options: Vec<String> = options.collect();
    options.sort_unstable();
    Some((mount.fs_type, options.join(",")))
}

fn kdamonds() -> Vec<String> {
    let folder = fs::read_dir("/sys/kernel/mm/damon/admin/kdamonds");
    let mut states: Vec<String> = folder
        .into_iter()
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("state")).ok())
        .map(|state| state.trim().to_owned())
        .collect();
    states.sort_unstable();
    states
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_processor_memory_and_a_file_system() {
        let machine = Machine::describe(Path::new("/"));
        assert!(machine.cores > 0 && machine.memory_bytes > 0, "{machine:?}");
        assert_ne!(machine.file_system, "unknown");
        assert_ne!(machine.kernel, "unknown");
    }

    #[test]
    fn a_host_name_cannot_break_a_file_name() {
        assert_eq!(sanitised("a/b-c d.e_1"), "a_b_c_d.e_1");
    }
}
