//! What was done to a disk, to compare two runs and to repeat a run up to any point.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::path::PathBuf;

use super::MemoryDisk;
use crate::disk::{Access, Disk, DiskFile, OpenMode};
use crate::sync::Arc;

/// A call that succeeded. Reads, hints and locks are left out.
///
/// Files are numbered by their creation, so two equal runs have equal traces, and a write is told
/// from one to another file that had the same name before.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// A file that existed was opened.
    Open {
        /// The file's number.
        file: u64,
        /// The name it was opened by.
        path: PathBuf,
    },
    /// A file was created.
    Create {
        /// The file's number.
        file: u64,
        /// The name it was created under.
        path: PathBuf,
    },
    /// Bytes were written in one call.
    Write {
        /// The file's number.
        file: u64,
        /// Where, in bytes.
        offset: u64,
        /// What; as many bytes as the call said it wrote.
        bytes: Vec<u8>,
    },
    /// A file's content was made durable.
    SyncData {
        /// The file's number.
        file: u64,
    },
    /// A file was cut or grown.
    SetLen {
        /// The file's number.
        file: u64,
        /// The new length in bytes.
        len: u64,
    },
    /// Space was reserved.
    Allocate {
        /// The file's number.
        file: u64,
        /// The range's start in bytes.
        offset: u64,
        /// The range's length in bytes.
        len: u64,
    },
    /// A file was renamed.
    Rename {
        /// Its name before.
        from: PathBuf,
        /// Its name after.
        to: PathBuf,
    },
    /// A file's name was removed.
    Remove {
        /// The name.
        path: PathBuf,
    },
    /// A folder's names were made durable.
    SyncDir {
        /// The folder.
        dir: PathBuf,
    },
    /// A folder was created, durably.
    CreateDir {
        /// The folder.
        dir: PathBuf,
    },
}

impl MemoryDisk {
    /// A new disk on which these operations were done: the state of the traced disk at the time of
    /// the last one, including what is durable. The trace must begin where its disk was empty; `k`
    /// first operations and [`MemoryDisk::power_cut`] give every state that a crash could leave.
    ///
    /// Fails where an operation does not fit the disk that the ones before it made.
    pub fn replay(operations: &[Operation]) -> io::Result<Self> {
        let disk = Self::new();
        let mut files: HashMap<u64, Arc<dyn DiskFile>> = HashMap::new();
        let known = |files: &HashMap<u64, Arc<dyn DiskFile>>, file: u64| {
            files.get(&file).cloned().ok_or_else(|| {
                let what = format!("the trace uses file {file} before it opens it");
                io::Error::new(io::ErrorKind::InvalidInput, what)
            })
        };
        for operation in operations {
            match operation {
                Operation::Open { file, path } => {
                    files.insert(*file, disk.open(path, OpenMode::ReadWrite)?);
                }
                Operation::Create { file, path } => {
                    files.insert(*file, disk.open(path, OpenMode::CreateNew)?);
                }
                Operation::Write { file, offset, bytes } => {
                    let file = known(&files, *file)?;
                    file.write_at(&[IoSlice::new(bytes)], *offset, Access::Keep)?;
                }
                Operation::SyncData { file } => known(&files, *file)?.sync_data()?,
                Operation::SetLen { file, len } => known(&files, *file)?.set_len(*len)?,
                Operation::Allocate { file, offset, len } => {
                    known(&files, *file)?.allocate(*offset, *len)?;
                }
                Operation::Rename { from, to } => disk.rename(from, to)?,
                Operation::Remove { path } => disk.remove(path)?,
                Operation::SyncDir { dir } => disk.sync_dir(dir)?,
                Operation::CreateDir { dir } => disk.create_dir_all(dir)?,
            }
        }
        Ok(disk)
    }
}
