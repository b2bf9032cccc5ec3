//! The most disk that a folder took while a cell ran.
//!
//! 1. The folder is walked every 50 ms by a thread of its own, never by a client. A walk is one
//!    `stat` a file, about a microsecond each: with a hundred files 0.2 % of one processor.
//! 2. What comes and goes between two samples is not seen, so the figure is a lower bound.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::folder::allocated_bytes;
use crate::error::{Failure, Result};

const INTERVAL: Duration = Duration::from_millis(50);

/// The largest sample so far.
#[derive(Debug)]
struct Peak {
    folder: PathBuf,
    bytes: AtomicU64,
}

impl Peak {
    fn sample(&self) -> Result<()> {
        self.bytes.fetch_max(allocated_bytes(&self.folder)?, Ordering::Relaxed);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Samples a folder until it is finished or dropped.
#[derive(Debug)]
pub(crate) struct PeakSampler {
    peak: Arc<Peak>,
    /// The thread ends when this goes.
    running: Sender<()>,
    thread: JoinHandle<Result<()>>,
}

impl PeakSampler {
    /// Begins with `folder`, which need not exist yet. When this returns, the thread has taken its
    /// first sample, so that the memory it needs is the harness's and not the store's.
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        let peak = Arc::new(Peak { folder: folder.to_owned(), bytes: AtomicU64::new(0) });
        let (running, ended) = channel::<()>();
        let (sampled, first) = channel();
        let sampling = Arc::clone(&peak);
        let thread = thread::spawn(move || {
            sampling.sample()?;
            // Nobody waits any more when the start failed otherwise.
            let _ = sampled.send(());
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                sampling.sample()?;
            }
            Ok(())
        });
        // Without a first sample the thread has failed; `finish` says how.
        let _ = first.recv();
        Ok(Self { peak, running, thread })
    }

    /// Bytes, so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.peak.bytes()
    }

    /// Takes one more sample and ends the thread: the peak in bytes.
    pub(crate) fn finish(self) -> Result<u64> {
        drop(self.running);
        self.thread.join().map_err(|_| Failure::new("the sampler of the disk panicked"))??;
        self.peak.sample()?;
        Ok(self.peak.bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    fn write_synced(file: &Path, bytes: usize) {
        fs::write(file, vec![1; bytes]).unwrap();
        File::open(file).unwrap().sync_all().unwrap();
    }

    #[test]
    fn a_peak_stays_when_its_file_has_gone() {
        let folder = tempfile::tempdir().unwrap();
        let peak = Peak { folder: folder.path().to_owned(), bytes: AtomicU64::new(0) };
        let file = folder.path().join("file");
        write_synced(&file, 1 << 20);
        peak.sample().unwrap();
        fs::remove_file(file).unwrap();
        peak.sample().unwrap();
        assert!((1 << 20..2 << 20).contains(&peak.bytes()), "{}", peak.bytes());
    }

    #[test]
    fn a_sampler_begins_before_its_folder_and_ends_with_a_sample() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("store");
        let sampler = PeakSampler::start(&folder).unwrap();
        assert_eq!(sampler.bytes(), 0);
        fs::create_dir(&folder).unwrap();
        write_synced(&folder.join("file"), 1 << 20);
        assert!(sampler.finish().unwrap() >= 1 << 20);
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_an_error() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("file");
        write_synced(&file, 1);
        assert!(PeakSampler::start(&file).unwrap().finish().is_err());
    }
}
