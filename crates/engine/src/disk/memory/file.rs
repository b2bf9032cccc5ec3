//! An open file of the disk in memory.

use std::fmt;
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt, MetadataExt};

use super::image::Change;
use super::{Node, Operation, Shared, State};
use crate::disk::sys::{self, Cache};
use crate::disk::{Access, DiskFile, Map, OpenMode};
use crate::sync::Arc;

/// A handle; it keeps the file's content after the name is gone.
pub(super) struct MemoryFile {
    shared: Arc<Shared>,
    node: Arc<Node>,
    mode: OpenMode,
}

impl MemoryFile {
    pub(super) fn new(shared: Arc<Shared>, node: Arc<Node>, mode: OpenMode) -> Self {
        Self { shared, node, mode }
    }

    fn check_writable(&self) -> io::Result<()> {
        match self.mode {
            OpenMode::Read => Err(io::Error::from_raw_os_error(libc::EBADF)),
            OpenMode::ReadWrite | OpenMode::CreateNew => Ok(()),
        }
    }

    fn changed(&self, state: &mut State, change: Change) {
        let order = state.order();
        self.node.content.lock().unsynced.push((order, change));
    }
}

impl fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryFile").field("file", &self.node.number).finish_non_exhaustive()
    }
}

impl DiskFile for MemoryFile {
    fn read_at(&self, buf: &mut [u8], offset: u64, _: Access) -> io::Result<usize> {
        self.node.memory.read_at(buf, offset)
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64, _: Access) -> io::Result<usize> {
        self.check_writable()?;
        let mut state = self.shared.state.lock();
        let written = sys::write_at(&self.node.memory, bufs, offset, Cache::Keep)?;
        let mut bytes = bufs.iter().map(|buf| &**buf).collect::<Vec<&[u8]>>().concat();
        bytes.truncate(written);
        let file = self.node.number;
        state.record(|| Operation::Write { file, offset, bytes: bytes.clone() });
        self.changed(&mut state, Change::Write { offset, bytes });
        Ok(written)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.shared.state.lock();
        let mut content = self.node.content.lock();
        for (_, change) in std::mem::take(&mut content.unsynced) {
            Arc::make_mut(&mut content.durable).apply(&change);
        }
        state.record(|| Operation::SyncData { file: self.node.number });
        Ok(())
    }

    fn start_writeback(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    /// Grows the file but takes no memory for it.
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.check_writable()?;
        let end = offset.checked_add(len).ok_or(io::ErrorKind::InvalidInput)?;
        let mut state = self.shared.state.lock();
        if end > self.len()? {
            self.node.memory.set_len(end)?;
            self.changed(&mut state, Change::GrowTo(end));
        }
        state.record(|| Operation::Allocate { file: self.node.number, offset, len });
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut state = self.shared.state.lock();
        self.node.memory.set_len(len)?;
        self.changed(&mut state, Change::SetLen(len));
        state.record(|| Operation::SetLen { file: self.node.number, len });
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.node.memory.metadata()?.len())
    }

    fn allocated(&self) -> io::Result<u64> {
        Ok(self.node.memory.metadata()?.blocks() * 512)
    }

    fn next_data(&self, offset: u64) -> io::Result<u64> {
        sys::next_data(&self.node.memory, offset, self.len()?)
    }

    fn map(&self, len: u64) -> io::Result<Map> {
        Map::new(&self.node.memory, len)
    }
}
