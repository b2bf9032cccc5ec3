//! The disk that a folder takes.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::{Context, Result};

/// Allocated bytes of all files below `folder`, so holes are free and preallocation is not. What is
/// missing or disappears meanwhile counts nothing.
pub(crate) fn allocated_bytes(folder: &Path) -> Result<u64> {
    walk(folder).context(|| format!("cannot measure {}", folder.display()))
}

fn walk(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes += walk(&entry.path())?,
            Ok(metadata) => bytes += metadata.blocks() * 512,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_all_levels_count_with_what_they_allocate() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("inner")).unwrap();
        fs::write(folder.path().join("inner/file"), vec![1; 100_000]).unwrap();
        let hole = fs::File::create(folder.path().join("hole")).unwrap();
        hole.set_len(1 << 30).unwrap();
        let file = fs::File::open(folder.path().join("inner/file")).unwrap();
        file.sync_all().unwrap();
        let bytes = allocated_bytes(folder.path()).unwrap();
        assert!((100_000..1 << 20).contains(&bytes), "{bytes}");
    }
}
