//! The device under a folder, and what it has read and written since the machine started.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The kernel counts in these, whatever the device's own blocks are.
const SECTOR: u64 = 512;

/// A block device's folder in `/sys`.
#[derive(Clone, Debug)]
pub(crate) struct Device(PathBuf);

/// Bytes that the device read and wrote, for everybody on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeviceCost {
    pub(crate) device_read_bytes: u64,
    pub(crate) device_written_bytes: u64,
}

impl Device {
    /// Nothing where no block device is below the folder, as in memory or on a network.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let device = fs::metadata(folder).ok()?.dev();
        // The kernel's encoding of major and minor numbers, as in glibc's `gnu_dev_major`.
        let major = (device >> 8) & 0xFFF | (device >> 32) & 0xFFFF_F000;
        let minor = device & 0xFF | (device >> 12) & 0xFFFF_FF00;
        let path = Path::new("/sys/dev/block").join(format!("{major}:{minor}"));
        path.exists().then_some(Self(path))
    }

    pub(crate) fn read_ahead_kb(&self) -> Option<u64> {
        // A partition's queue is that of the whole disk, one folder up.
        let queues = ["queue", "../queue"].map(|queue| self.0.join(queue).join("read_ahead_kb"));
        queues.iter().find_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok())
    }

    /// Since the machine started.
    pub(crate) fn cost(&self) -> Option<DeviceCost> {
        parse(&fs::read_to_string(self.0.join("stat")).ok()?)
    }
}

/// A line of `/sys/dev/block/…/stat`: reads, reads merged, sectors read, milliseconds, writes,
/// writes merged, sectors written, …
fn parse(stat: &str) -> Option<DeviceCost> {
    let sectors = |field| stat.split_whitespace().nth(field)?.parse::<u64>().ok();
    Some(DeviceCost {
        device_read_bytes: sectors(2)? * SECTOR,
        device_written_bytes: sectors(6)? * SECTOR,
    })
}

impl DeviceCost {
    pub(crate) fn since(self, start: Self) -> Self {
        Self {
            device_read_bytes: self.device_read_bytes.saturating_sub(start.device_read_bytes),
            device_written_bytes: self
                .device_written_bytes
                .saturating_sub(start.device_written_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_half_a_kibibyte() {
        let stat = "  100  1  8 30  200  2  16  40  0 50 60 0 0 0 0 3 4\n";
        let expected = DeviceCost { device_read_bytes: 4096, device_written_bytes: 8192 };
        assert_eq!(parse(stat), Some(expected));
        assert_eq!(parse("1 2 3"), None);
        let earlier = DeviceCost { device_read_bytes: 96, device_written_bytes: 8192 };
        let since = DeviceCost { device_read_bytes: 4000, device_written_bytes: 0 };
        assert_eq!(expected.since(earlier), since);
    }

    #[test]
    fn what_is_kept_in_no_block_device_has_none() {
        assert!(Device::of(Path::new("/proc")).is_none());
        assert!(Device::of(Path::new("/nonexistent")).is_none());
    }
}
