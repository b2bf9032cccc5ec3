//! What this process costs, as the kernel counts it.

use nix::sys::resource::{UsageWho, getrusage};
use procfs::process::Process;
use serde::{Deserialize, Serialize};

use crate::error::{Context, Result};

/// A moment's counters of this process, all its threads included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessCost {
    /// Resident anonymous memory: heaps and stacks.
    pub(crate) rss_anon_bytes: u64,
    /// Resident pages of mapped files: shared with the page cache, and the kernel's to take back.
    pub(crate) rss_file_bytes: u64,
    /// Bytes that this process caused to be fetched from the storage layer since it started.
    pub(crate) read_bytes: u64,
    /// Bytes that this process caused to be sent to the storage layer since it started.
    pub(crate) written_bytes: u64,
    /// Those of them that never had to be sent, because their file was cut or removed before.
    pub(crate) cancelled_bytes: u64,
    /// User and system time since the process started, in steps of a clock tick (10 ms).
    pub(crate) cpu_seconds: f64,
    /// Times that a thread gave up its processor, because it waited for something.
    pub(crate) voluntary_switches: u64,
    /// Times that a thread lost its processor to another one.
    pub(crate) involuntary_switches: u64,
    /// Pages that were mapped without a read.
    pub(crate) minor_faults: u64,
    /// Pages that were read because they were touched.
    pub(crate) major_faults: u64,
}

/// What a cell's window and the wait after it cost beside time, as a row has it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct KernelCost {
    pub(crate) read_bytes: u64,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
}

impl ProcessCost {
    pub(crate) fn now() -> Result<Self> {
        let process = Process::myself().context(|| "cannot read /proc/self")?;
        let status = process.status().context(|| "cannot read /proc/self/status")?;
        let stat = process.stat().context(|| "cannot read /proc/self/stat")?;
        let io = process.io().context(|| "cannot read /proc/self/io")?;
        let usage = getrusage(UsageWho::RUSAGE_SELF).context(|| "cannot ask for the usage")?;
        // The kernel counts up from zero.
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        Ok(Self {
            rss_anon_bytes: status.rssanon.unwrap_or(0) * 1024,
            rss_file_bytes: status.rssfile.unwrap_or(0) * 1024,
            read_bytes: io.read_bytes,
            written_bytes: io.write_bytes,
            cancelled_bytes: io.cancelled_write_bytes,
            cpu_seconds: (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64,
            voluntary_switches: count(usage.voluntary_context_switches()),
            involuntary_switches: count(usage.involuntary_context_switches()),
            minor_faults: count(usage.minor_page_faults()),
            major_faults: count(usage.major_page_faults()),
        })
    }

    /// From `start` until this moment.
    pub(crate) fn since(&self, start: &Self) -> KernelCost {
        KernelCost {
            read_bytes: self.read_bytes - start.read_bytes,
            voluntary_switches: self.voluntary_switches - start.voluntary_switches,
            involuntary_switches: self.involuntary_switches - start.involuntary_switches,
            minor_faults: self.minor_faults - start.minor_faults,
            major_faults: self.major_faults - start.major_faults,
        }
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
        assert!(after.since(&before).minor_faults > 0);
        drop(bytes);
    }

    #[test]
    fn a_thread_that_waits_gives_up_its_processor() {
        let before = ProcessCost::now().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(ProcessCost::now().unwrap().since(&before).voluntary_switches > 0);
    }
}
