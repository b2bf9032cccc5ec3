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

/// Does the operations of a trace again, one by one, on a disk that is as the traced one was when
/// the trace began.
#[derive(Debug)]
pub struct Replay {
    disk: MemoryDisk,
    files: HashMap<u64, Arc<dyn DiskFile>>,
}

impl Replay {
    /// On this disk, which changes.
    pub fn new(disk: MemoryDisk) -> Self {
        Self { disk, files: HashMap::new() }
    }

    /// The disk, as the operations so far have left it, including what is durable.
    pub fn disk(&self) -> &MemoryDisk {
        &self.disk
    }

    /// Does the next operation.
    ///
    /// # Errors
    ///
    /// Where it does not fit the disk that the ones before it made.
    pub fn apply(&mut self, operation: &Operation) -> io::Result<()> {
        match operation {
            Operation::Open { file, path } => {
                self.files.insert(*file, self.disk.open(path, OpenMode::ReadWrite)?);
            }
            Operation::Create { file, path } => {
                self.files.insert(*file, self.disk.open(path, OpenMode::CreateNew)?);
            }
            Operation::Write { file, offset, bytes } => {
                self.file(*file)?.write_at(&[IoSlice::new(bytes)], *offset, Access::Keep)?;
            }
            Operation::SyncData { file } => self.file(*file)?.sync_data()?,
            Operation::SetLen { file, len } => self.file(*file)?.set_len(*len)?,
            Operation::Allocate { file, offset, len } => {
                self.file(*file)?.allocate(*offset, *len)?;
            }
            Operation::Rename { from, to } => self.disk.rename(from, to)?,
            Operation::Remove { path } => self.disk.remove(path)?,
            Operation::SyncDir { dir } => self.disk.sync_dir(dir)?,
            Operation::CreateDir { dir } => self.disk.create_dir_all(dir)?,
        }
        Ok(())
    }

    fn file(&self, number: u64) -> io::Result<&Arc<dyn DiskFile>> {
        self.files.get(&number).ok_or_else(|| {
            let what = format!("the trace uses file {number} before it opens it");
            io::Error::new(io::ErrorKind::InvalidInput, what)
        })
    }
}

impl MemoryDisk {
    /// A new disk on which these operations were done: the state of the traced disk at the time of
    /// the last one, including what is durable. The trace must begin where its disk was empty; `k`
    /// first operations and [`MemoryDisk::power_cut`] give every state that a crash could leave.
    ///
    /// Fails where an operation does not fit the disk that the ones before it made.
    pub fn replay(operations: &[Operation]) -> io::Result<Self> {
        let mut replay = Replay::new(Self::new());
        for operation in operations {
            replay.apply(operation)?;
        }
        Ok(replay.disk)
    }
}
