//! An open file of the faulty disk.

use std::io::{self, IoSlice};

use super::plan::{self, Call, End, Outcome, Plan, Syncs};
use crate::disk::{Access, DiskFile, Map};
use crate::sync::{Arc, Mutex};

#[derive(Debug)]
pub(super) struct FaultyFile {
    below: Arc<dyn DiskFile>,
    plan: Arc<Mutex<Plan>>,
    end: End,
}

impl FaultyFile {
    pub(super) fn new(below: Arc<dyn DiskFile>, plan: Arc<Mutex<Plan>>, end: End) -> Self {
        Self { below, plan, end }
    }

    fn run<T>(&self, call: Call, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        plan::run(&self.plan, call, act)
    }

    /// Writes the first `max` bytes as far as the space goes.
    fn write_part(
        &self,
        bufs: &[IoSlice<'_>],
        offset: u64,
        access: Access,
        max: usize,
    ) -> io::Result<usize> {
        let wanted = bufs.iter().map(|buf| buf.len()).sum::<usize>().min(max);
        if wanted == 0 {
            return self.below.write_at(&[], offset, access);
        }
        let end = self.plan.lock().take(&self.end, offset, offset + wanted as u64);
        let part = usize::try_from(end.saturating_sub(offset)).unwrap_or(wanted).min(wanted);
        if part == 0 {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        self.below.write_at(&first_bytes(bufs, part), offset, access)
    }
}

/// The first `len` bytes of the buffers.
fn first_bytes<'a>(bufs: &'a [IoSlice<'_>], mut len: usize) -> Vec<IoSlice<'a>> {
    let mut first = Vec::with_capacity(bufs.len());
    for buf in bufs {
        let part = buf.len().min(len);
        first.push(IoSlice::new(&buf[..part]));
        len -= part;
    }
    first
}

impl DiskFile for FaultyFile {
    fn read_at(&self, buf: &mut [u8], offset: u64, access: Access) -> io::Result<usize> {
        self.run(Call::Read, || self.below.read_at(buf, offset, access))
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64, access: Access) -> io::Result<usize> {
        let outcome = self.plan.lock().arrive(Call::Write);
        let (max, errno) = match outcome {
            None => (usize::MAX, None),
            Some(Outcome::Error(errno)) => return Err(io::Error::from_raw_os_error(errno)),
            Some(Outcome::ErrorAfter(errno)) => (usize::MAX, Some(errno)),
            Some(Outcome::Short(bytes)) => (bytes, None),
            Some(Outcome::ShortThenError(bytes, errno)) => (bytes, Some(errno)),
        };
        let written = self.write_part(bufs, offset, access, max)?;
        match errno {
            None => Ok(written),
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.run(Call::SyncData, || {
            let syncs = self.plan.lock().syncs();
            match syncs {
                Syncs::Honest => self.below.sync_data(),
                Syncs::Lying => Ok(()),
            }
        })
    }

    fn start_writeback(&self, offset: u64, len: u64) -> io::Result<()> {
        self.below.start_writeback(offset, len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.run(Call::Allocate, || {
            let end = offset.checked_add(len).ok_or(io::ErrorKind::InvalidInput)?;
            let mut plan = self.plan.lock();
            if !plan.has_space(&self.end, end) {
                return Err(io::Error::from_raw_os_error(libc::ENOSPC));
            }
            plan.take(&self.end, offset, end);
            drop(plan);
            self.below.allocate(offset, len)
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.run(Call::SetLen, || {
            self.below.set_len(len)?;
            self.plan.lock().cut(&self.end, len);
            Ok(())
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.below.len()
    }

    fn allocated(&self) -> io::Result<u64> {
        self.below.allocated()
    }

    fn next_data(&self, offset: u64) -> io::Result<u64> {
        self.below.next_data(offset)
    }

    fn map(&self, len: u64) -> io::Result<Map> {
        self.run(Call::Map, || self.below.map(len))
    }
}
