//! Is every answer of a concurrent run right? Each client logs its operations with their answers
//! and their times; afterwards every read, and every row of every scan, is held to the writes that
//! could explain it.
//!
//! 1. No false alarm: what is counted as a mismatch is explained by no order in which every
//!    operation took effect at one moment between its beginning and its end.
//! 2. Memory is bounded, however long the run: logs and buckets lie on disk. Kept are 16 bytes for
//!    each key, and the writes of one bucket of keys.
//! 3. What is not detected is in `docs/bench/README.md`.

mod check;
mod document;
mod entry;
mod keys;
mod mismatch;
mod recorder;
mod registers;
mod scans;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use self::check::Logs;
use self::keys::key_of;
use self::recorder::Recorded;
use crate::error::{Context, Result};
use crate::workload::{DocumentShape, KeyFormat};

pub(crate) use self::entry::Actor;
pub(crate) use self::mismatch::Kind;
pub(crate) use self::recorder::{Clock, Counts, Recorder, Sight};

/// What the check of a run found; `docs/bench/README.md` defines each field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Verification {
    pub(crate) reads: u64,
    pub(crate) scans: u64,
    pub(crate) rows: u64,
    pub(crate) writes: u64,
    pub(crate) unanswered: u64,
    pub(crate) log_bytes: u64,
    pub(crate) check_seconds: f64,
    pub(crate) mismatches: BTreeMap<Kind, u64>,
    pub(crate) first_mismatch: Option<String>,
}

/// A history in the making.
pub(crate) struct History {
    /// For logs and buckets.
    folder: PathBuf,
    clock: Clock,
    keys: KeyFormat,
    shape: DocumentShape,
    logs: Vec<PathBuf>,
}

impl History {
    /// Creates the folder, which must not exist.
    pub(crate) fn begin(folder: PathBuf, keys: KeyFormat, shape: DocumentShape) -> Result<Self> {
        fs::create_dir(&folder).context(|| format!("cannot create {}", folder.display()))?;
        Ok(Self { folder, clock: Clock::start(), keys, shape, logs: Vec::new() })
    }

    /// The log of one more client.
    pub(crate) fn recorder(&mut self, actor: Actor) -> Result<Recorder> {
        let path = self.folder.join(format!("log-{}", actor.0));
        self.logs.push(path.clone());
        Recorder::create(&path, actor, self.clock, self.keys, self.shape)
    }

    /// The first key of all.
    pub(crate) fn first_key(&self) -> String {
        key_of(self.keys, 0)
    }

    /// Checks what was recorded.
    pub(crate) fn check(self, recorders: Vec<Recorder>) -> Result<Verification> {
        let mut counts = Counts::default();
        let (mut inserted, mut log_bytes) = (Vec::new(), 0);
        for recorder in recorders {
            let Recorded { counts: more, inserted: keys, bytes } = recorder.finish()?;
            counts.add(&more);
            inserted.extend(keys);
            log_bytes += bytes;
        }
        let checking = Clock::start();
        let field_writes = counts.field_writes;
        let logs = Logs { paths: self.logs, keys: self.keys, inserted, field_writes };
        let tally = check::check(logs, &self.folder)?;
        let Counts { reads, scans, rows, writes, unanswered, .. } = counts;
        Ok(Verification {
            reads,
            scans,
            rows,
            writes,
            unanswered,
            log_bytes,
            check_seconds: checking.now() as f64 / 1e9,
            mismatches: tally.kinds.clone(),
            first_mismatch: tally.first(),
        })
    }
}
