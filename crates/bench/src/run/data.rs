//! The folder that holds the stores of a run: a new one below the chosen place, which goes away
//! with this value, however the run ends.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::{Context, Result};

pub(super) struct DataFolder(TempDir);

impl DataFolder {
    /// Below `parent`, or else below cargo's target folder, which lies on a disk rather than in
    /// memory as `/tmp` may.
    pub(super) fn create(parent: Option<&Path>) -> Result<Self> {
        let parent = parent.map_or_else(target_folder, Path::to_path_buf);
        let what = || format!("cannot create a data folder below {}", parent.display());
        fs::create_dir_all(&parent).context(what)?;
        let folder = tempfile::Builder::new().prefix("bench-data-").tempdir_in(&parent);
        folder.context(what).map(Self)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Removes a store's folder, which need not exist.
    pub(super) fn clear(folder: &Path) -> Result<()> {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).context(|| format!("cannot remove {}", folder.display()))
            }
            _ => Ok(()),
        }
    }
}

fn target_folder() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_goes_away_with_all_it_holds() {
        let parent = tempfile::tempdir().unwrap();
        let data = DataFolder::create(Some(&parent.path().join("a/b"))).unwrap();
        fs::create_dir(data.path().join("store")).unwrap();
        let path = data.path().to_path_buf();
        drop(data);
        assert!(!path.exists());
    }

    #[test]
    fn clearing_what_does_not_exist_is_no_error() {
        DataFolder::clear(Path::new("/nonexistent/folder")).unwrap();
    }
}
