//! What the disk itself takes for a small synced write, beside a cell: without it nobody can tell
//! a store's stall from the disk's.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Context, Result};

const SYNCS: u32 = 200;
const BLOCK: [u8; 4096] = [0x5A; 4096];

/// The longest of 200 times "overwrite 4 KiB in place, then fdatasync", in a file without a name
/// on the disk of `folder`. In place, because that is the least that a sync can cost: no
/// allocation, no inode. Takes 200 syncs: 25 ms on a fast disk.
pub(crate) fn longest_sync(folder: &Path) -> Result<Duration> {
    let what = || format!("cannot probe the disk of {}", folder.display());
    let file = tempfile::tempfile_in(folder).context(what)?;
    file.write_all_at(&BLOCK, 0).context(what)?;
    file.sync_all().context(what)?;
    let mut longest = Duration::ZERO;
    for _ in 0..SYNCS {
        let start = Instant::now();
        file.write_all_at(&BLOCK, 0).context(what)?;
        file.sync_data().context(what)?;
        longest = longest.max(start.elapsed());
    }
    Ok(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_takes_time_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        assert!(longest_sync(folder.path()).unwrap() > Duration::ZERO);
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
    }

    #[test]
    fn a_folder_that_is_missing_is_named() {
        let failure = longest_sync(Path::new("/nonexistent/folder")).unwrap_err();
        assert!(failure.to_string().contains("/nonexistent/folder"), "{failure}");
    }
}
