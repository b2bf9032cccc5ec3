//! What this process costs, as the kernel counts it.

use procfs::process::Process;

use crate::error::{Context, Result};

/// A moment's counters of this process, all its threads included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessCost {
    /// Resident anonymous memory: heaps and stacks.
    pub(crate) rss_anon_bytes: u64,
    /// Resident pages of mapped files: shared with the page cache, and the kernel's to take back.
    pub(crate) rss_file_bytes: u64,
    /// Bytes that this process caused to be sent to the storage layer since it started.
    pub(crate) written_bytes: u64,
    /// Those of them that never had to be sent, because their file was cut or removed before.
    pub(crate) cancelled_bytes: u64,
    /// User and system time since the process started, in steps of a clock tick (10 ms).
    pub(crate) cpu_seconds: f64,
}

impl ProcessCost {
    pub(crate) fn now() -> Result<Self> {
        let process = Process::myself().context(|| "cannot read /proc/self")?;
        let status = process.status().context(|| "cannot read /proc/self/status")?;
        let stat = process.stat().context(|| "cannot read /proc/self/stat")?;
        let io = process.io().context(|| "cannot read /proc/self/io")?;
        Ok(Self {
            rss_anon_bytes: status.rssanon.unwrap_or(0) * 1024,
            rss_file_bytes: status.rssfile.unwrap_or(0) * 1024,
            written_bytes: io.write_bytes,
            cancelled_bytes: io.cancelled_write_bytes,
            cpu_seconds: (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touched_memory_is_counted_as_anonymous() {
        let before = ProcessCost::now().unwrap();
        let bytes = std::hint::black_box(vec![1_u8; 64 << 20]);
        let after = ProcessCost::now().unwrap();
        assert!(after.rss_anon_bytes >= before.rss_anon_bytes + (60 << 20));
        assert!(after.cpu_seconds >= before.cpu_seconds);
        drop(bytes);
    }
}
