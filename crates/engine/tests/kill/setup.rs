//! How the database is opened: another way each time.

use std::path::Path;
use std::time::Duration;

use engine::{Compaction, Database, Durability, Options, Reads};

use crate::common::Random;

/// When writes are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Durable,
    Buffered,
    /// Buffered, with some durable writes.
    Mixed,
}

pub(crate) const MODES: [Mode; 3] = [Mode::Durable, Mode::Buffered, Mode::Mixed];

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::Buffered => "buffered",
            Self::Mixed => "mixed",
        }
    }

    pub(crate) fn named(name: &str) -> Self {
        MODES.into_iter().find(|mode| mode.name() == name).unwrap()
    }

    fn durability(self, random: &mut Random) -> Durability {
        match self {
            Self::Durable => Durability::Durable,
            // Short intervals, so that kills meet flushes.
            Self::Buffered | Self::Mixed => Durability::Buffered {
                flush_interval: Duration::from_millis(*random.pick(&[1, 5, 250])),
            },
        }
    }
}

/// Opens the database as the seed says: so small that segments are sealed and merged all the time,
/// and with recovery as strict as it is by default.
pub(crate) fn open(path: &Path, mode: Mode, seed: u64) -> engine::Result<Database> {
    let mut random = Random::new(seed);
    let options = Options::default()
        .durability(mode.durability(&mut random))
        .memory_budget(1 << 20)
        .memtable_bytes(*random.pick(&[4 << 10, 16 << 10, 64 << 10]))
        .segment_bytes(*random.pick(&[16 << 10, 64 << 10, 256 << 10]))
        .level0_runs(*random.pick(&[2, 3, 6]))
        .history(*random.pick(&[0, 0, 100, 1 << 40]))
        .reads(*random.pick(&[Reads::Automatic, Reads::Mapped, Reads::Pread]))
        .compaction(*random.pick(&[
            Compaction::Automatic,
            Compaction::Automatic,
            Compaction::Manual,
        ]));
    Database::open(path, options)
}
