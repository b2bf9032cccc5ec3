//! What the page cache holds of a store's files when a cell begins.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use serde::{Deserialize, Serialize};

use crate::error::{Context, Result};

const CHUNK: usize = 1 << 20;

/// The state of the page cache.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PageCache {
    /// As the cell before left it.
    #[default]
    AsLeft,
    /// Every file was read through once.
    Warm,
    /// Every file was synced and dropped from the page cache.
    Cold,
}

impl PageCache {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AsLeft => "as left",
            Self::Warm => "warm",
            Self::Cold => "cold",
        }
    }

    /// Brings about this state for the files below `folder`, before a store opens them.
    pub(crate) fn prepare(self, folder: &Path) -> Result<()> {
        let done = match self {
            Self::AsLeft => Ok(()),
            Self::Warm => each_file(folder, &mut read_through),
            Self::Cold => each_file(folder, &mut |file| {
                file.sync_all()?;
                posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
                Ok(())
            }),
        };
        done.context(|| format!("cannot prepare the page cache for {}", folder.display()))
    }
}

fn read_through(file: &File) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut file = file;
    while file.read(&mut chunk)? > 0 {}
    Ok(())
}

fn each_file(folder: &Path, work: &mut impl FnMut(&File) -> io::Result<()>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            each_file(&entry.path(), work)?;
        } else if kind.is_file() {
            work(&File::open(entry.path())?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::device::Device;
    use crate::measure::process::ProcessCost;

    #[test]
    fn a_cold_file_is_read_from_the_disk_and_a_warm_one_is_not() {
        // In memory, as `/tmp` may be, a file is never cold.
        let program = std::env::current_exe().unwrap();
        let folder = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
        if Device::of(folder.path()).is_none() {
            return;
        }
        fs::create_dir(folder.path().join("inner")).unwrap();
        let path = folder.path().join("inner/file");
        fs::write(&path, vec![1; 8 << 20]).unwrap();
        let read = |state: PageCache| {
            state.prepare(folder.path()).unwrap();
            let before = ProcessCost::now().unwrap();
            read_through(&File::open(&path).unwrap()).unwrap();
            ProcessCost::now().unwrap().since(&before).read_bytes
        };
        // Other tests of this process read as well.
        assert!(read(PageCache::Cold) >= 8 << 20);
        assert!(read(PageCache::Warm) < 8 << 20);
    }

    #[test]
    fn a_folder_that_is_missing_is_named() {
        let failure = PageCache::Warm.prepare(Path::new("/nonexistent/folder")).unwrap_err();
        assert!(failure.to_string().contains("/nonexistent/folder"), "{failure}");
    }
}
