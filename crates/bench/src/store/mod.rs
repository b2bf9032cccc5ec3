//! The stores under test behind one small trait.
//!
//! 1. Every store keeps the same bytes under the same keys, and none decodes a field in a read.
//! 2. Calls are static: the client loop is compiled for each store, so the trait costs nothing.
//! 3. Everything that was set is in `settings`, which goes into every row.

mod deletes;
mod faulty;
mod raw;
mod rocksdb;
mod sediment;
mod stripes;

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Result;
use crate::workload::Workload;

pub(crate) use self::deletes::Deletes;
pub(crate) use self::faulty::{Fault, Faulty};
pub(crate) use self::raw::Raw;
pub(crate) use self::rocksdb::RocksDb;
pub(crate) use self::sediment::Sediment;

/// The stores that are built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StoreKind {
    Sediment,
    RocksDb,
    /// The floor under durable writes.
    Raw,
}

impl StoreKind {
    /// The store that the others are compared with.
    pub(crate) const ORACLE: Self = Self::RocksDb;
    pub(crate) const ALL: [Self; 3] = [Self::Sediment, Self::RocksDb, Self::Raw];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sediment => Sediment::NAME,
            Self::RocksDb => RocksDb::NAME,
            Self::Raw => Raw::NAME,
        }
    }

    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Sediment => Sediment::VERSION,
            Self::RocksDb => RocksDb::VERSION,
            Self::Raw => Raw::VERSION,
        }
    }

    pub(crate) fn settings(self, config: &StoreConfig) -> Settings {
        match self {
            Self::Sediment => Sediment::settings(config),
            Self::RocksDb => RocksDb::settings(config),
            Self::Raw => Raw::settings(config),
        }
    }

    /// Raw has no group commit, which would decide.
    pub(crate) fn has_several_clients(self) -> bool {
        self != Self::Raw
    }

    /// Whether timed cells of this workload are made of this store: of raw only where durable
    /// writes decide.
    pub(crate) fn runs(self, workload: Workload, durability: Durability) -> bool {
        match self {
            Self::Sediment | Self::RocksDb => true,
            Self::Raw => {
                durability == Durability::Durable && matches!(workload, Workload::A | Workload::F)
            }
        }
    }
}

impl FromStr for StoreKind {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let found = Self::ALL.into_iter().find(|store| store.name() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("no such store is built in; there are {names}")
        })
    }
}

/// When a write of a timed cell is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Durability {
    /// After fdatasync of the log.
    Durable,
    /// When the operating system has the record.
    Buffered,
}

impl Durability {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::Buffered => "buffered",
        }
    }
}

/// Whether a store counts what it does, where that costs something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Statistics {
    Off,
    /// Only for cells that no rate is taken from.
    On,
}

/// What a store is opened with.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct StoreConfig {
    pub(crate) durability: Durability,
    pub(crate) memtable_bytes: u64,
    pub(crate) cache_bytes: u64,
    pub(crate) cores: usize,
    pub(crate) statistics: Statistics,
}

/// What a store says of itself since it was opened; nothing where it has no such figure.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// Bytes that it wrote to files.
    pub(crate) written_bytes: Option<u64>,
    /// Records that opening found in the log.
    pub(crate) recovered_records: Option<u64>,
}

/// Every option that was set, by the store's own name for it.
pub(crate) type Settings = BTreeMap<String, Value>;

/// Whether an id had a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Found,
    Missing,
}

/// Whether background work ended in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Idle,
    TimedOut,
}

/// Takes the values that a read or a scan returns, while the store still holds them.
pub(crate) trait Visitor {
    /// The value of a record that a read found.
    fn value(&mut self, bytes: &[u8]);

    /// A record that a scan met. `key` appends its key to a buffer: only a visitor that needs the
    /// keys pays for them.
    fn row(&mut self, _key: impl FnOnce(&mut Vec<u8>) -> Result<()>, bytes: &[u8]) -> Result<()> {
        self.value(bytes);
        Ok(())
    }
}

/// A store under test. Errors are the store's own, as text; they are counted, and the first one
/// goes into the row.
pub(crate) trait Store: Send + Sync + Sized {
    const NAME: &'static str;
    const VERSION: &'static str;

    fn settings(config: &StoreConfig) -> Settings;
    fn open(folder: &Path, config: &StoreConfig) -> Result<Self>;

    /// Writes the records atomically and syncs them.
    fn load(&self, records: &[(String, Vec<u8>)]) -> Result<()>;
    fn read(&self, key: &str, visitor: &mut impl Visitor) -> Result<Presence>;
    /// Writes a record, which may exist: YCSB's insert.
    fn insert(&self, key: &str, document: &[u8]) -> Result<()>;
    /// Replaces the fields that `fields` names, atomically for each id.
    fn update(&self, key: &str, fields: &[u8]) -> Result<Presence>;
    /// Visits up to `limit` records from `key` on, and says how many there were.
    fn scan(&self, key: &str, limit: usize, visitor: &mut impl Visitor) -> Result<usize>;

    fn figures(&self) -> Figures;
    /// Waits until background work is done, at most `patience`.
    fn settle(&self, patience: Duration) -> Result<Settled>;
    fn close(self) -> Result<()>;
}
