//! Checks the logs of a history within a bounded amount of memory.
//!
//! 1. One pass over the logs, client by client, checks what scans say about keys, and deals writes
//!    and observations out to buckets on disk by a hash of their key.
//! 2. Then bucket by bucket: its writes are held in memory, its observations are read one by one,
//!    and a second time if there is something to tell.

use std::fs;
use std::path::{Path, PathBuf};

use super::entry::{Entry, EntryReader, EntryWriter};
use super::keys::{Inserted, KeySet};
use super::mismatch::Tally;
use super::registers::{Observation, Registers, Write};
use super::scans::{Scan, Scans, row_interval};
use crate::error::{Context, Failure, Result};
use crate::workload::KeyFormat;

/// What the writes of a bucket may take on average. The writes of one record are never split, so
/// that the most popular one decides when it alone has more.
const BUCKET_BYTES: u64 = 16 << 20;
const BUCKETS_MAX: u64 = 512;
/// Of each of a bucket's two files while they are written: 16 MiB for as many buckets as may be.
const BUFFER_BYTES: usize = 16 << 10;

/// The logs, and what was noted beside them.
pub(super) struct Logs {
    pub(super) paths: Vec<PathBuf>,
    pub(super) keys: KeyFormat,
    pub(super) inserted: Vec<Inserted>,
    /// Values that were written to fields.
    pub(super) field_writes: u64,
}

/// A bucket's files.
struct Bucket {
    writes: PathBuf,
    observations: PathBuf,
}

struct OpenBucket {
    writes: EntryWriter,
    observations: EntryWriter,
}

/// Checks everything; the buckets lie in `folder` meanwhile.
pub(super) fn check(logs: Logs, folder: &Path) -> Result<Tally> {
    let buckets = bucket_count(logs.field_writes);
    checked(logs, folder, buckets)
}

fn bucket_count(field_writes: u64) -> u64 {
    let bytes = field_writes.saturating_mul(size_of::<Write>() as u64);
    bytes.div_ceil(BUCKET_BYTES).clamp(1, BUCKETS_MAX)
}

fn checked(logs: Logs, folder: &Path, buckets: u64) -> Result<Tally> {
    let mut tally = Tally::default();
    let Logs { paths, keys: format, inserted, .. } = logs;
    let keys = KeySet::new(format, inserted);
    let buckets: Vec<Bucket> = (0..buckets)
        .map(|number| Bucket {
            writes: folder.join(format!("writes-{number}")),
            observations: folder.join(format!("observations-{number}")),
        })
        .collect();
    deal(&paths, &buckets, &Scans::new(format, &keys), &mut tally)?;
    drop(keys);
    for bucket in &buckets {
        bucket.check(format, &mut tally)?;
        bucket.remove()?;
    }
    Ok(tally)
}

fn deal(logs: &[PathBuf], buckets: &[Bucket], scans: &Scans<'_>, tally: &mut Tally) -> Result<()> {
    let mut open: Vec<_> = buckets.iter().map(Bucket::create).collect::<Result<_>>()?;
    for path in logs {
        let mut log = EntryReader::open(path)?;
        let mut scan: Option<Scan> = None;
        while let Some((entry, content)) = log.next()? {
            match entry {
                Entry::Write { key, .. } => {
                    open[bucket_of(key, buckets.len())].writes.append(&entry, content)?;
                }
                Entry::Observation { key, .. } => {
                    open[bucket_of(key, buckets.len())].observations.append(&entry, content)?;
                }
                Entry::ScanBegin { actor, key, limit, start } => {
                    scan = Some(scans.begin(actor, key, limit, start));
                }
                Entry::ScanRow { key, met, end } => {
                    let scan = scan.as_mut().ok_or_else(outside_a_scan)?;
                    scans.row(scan, key, tally);
                    let (actor, interval) = (scan.actor, row_interval(scan, end));
                    let call = super::entry::Call::Scan;
                    let row = Entry::Observation { actor, key, interval, met, call };
                    open[bucket_of(key, buckets.len())].observations.append(&row, content)?;
                }
                Entry::ForeignRow => {
                    scans.foreign(scan.as_mut().ok_or_else(outside_a_scan)?, tally);
                }
                Entry::ScanEnd { returned, .. } => {
                    scans.end(scan.take().ok_or_else(outside_a_scan)?, returned, tally);
                }
            }
        }
    }
    for OpenBucket { writes, observations } in open {
        writes.finish()?;
        observations.finish()?;
    }
    Ok(())
}

fn outside_a_scan() -> Failure {
    Failure::new("a history on disk has a row outside a scan")
}

fn bucket_of(key: u64, buckets: usize) -> usize {
    let hash = xxhash_rust::xxh3::xxh3_64(&key.to_le_bytes());
    let place = (u128::from(hash) * buckets as u128) >> 64;
    usize::try_from(place).expect("below the number of buckets")
}

impl Bucket {
    fn create(&self) -> Result<OpenBucket> {
        let create = |path| EntryWriter::create(path, BUFFER_BYTES);
        Ok(OpenBucket { writes: create(&self.writes)?, observations: create(&self.observations)? })
    }

    fn check(&self, format: KeyFormat, tally: &mut Tally) -> Result<()> {
        let mut registers = Registers::new(format, self.writes()?);
        self.each_observation(|observation, hashes| registers.note(observation, hashes))?;
        if !registers.is_explained() {
            self.each_observation(|observation, hashes| {
                registers.tell(observation, hashes, tally);
            })?;
        }
        registers.orders(tally);
        Ok(())
    }

    fn writes(&self) -> Result<Vec<Write>> {
        let mut writes = Vec::new();
        let mut entries = EntryReader::open(&self.writes)?;
        while let Some((entry, content)) = entries.next()? {
            let Entry::Write { actor, key, interval } = entry else { continue };
            for &[field, hash] in content.as_chunks::<2>().0 {
                let field = u32::try_from(field).context(|| "a field's number")?;
                writes.push(Write::new(actor, key, field, hash, interval));
            }
        }
        Ok(writes)
    }

    fn each_observation(&self, mut visit: impl FnMut(&Observation, &[u64])) -> Result<()> {
        let mut entries = EntryReader::open(&self.observations)?;
        while let Some((entry, content)) = entries.next()? {
            let Entry::Observation { actor, key, interval, met, call } = entry else { continue };
            visit(&Observation { actor, key, interval, met, call }, content);
        }
        Ok(())
    }

    fn remove(&self) -> Result<()> {
        for path in [&self.writes, &self.observations] {
            fs::remove_file(path).context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
