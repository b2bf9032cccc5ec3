//! The stores under test behind one small trait.
//!
//! 1. Every store keeps the same bytes under the same keys, and none decodes a field in a read.
//! 2. Calls are static: the client loop is compiled for each store, so the trait costs nothing.
//! 3. Everything that was set is in `settings`, which goes into every row, as does what a kill and
//!    a power cut take.
//! 4. A store is a module here and a line in the table of `kind`; the other modules ask the kind.

#[cfg(test)]
mod agreement;
#[cfg(feature = "canopydb")]
mod canopydb;
mod deletes;
mod faulty;
#[cfg(feature = "fjall")]
mod fjall;
mod floor;
#[cfg(feature = "peer")]
mod flusher;
mod kind;
#[cfg(feature = "lmdb")]
mod lmdb;
mod null;
mod raw;
#[cfg(feature = "redb")]
mod redb;
mod rocksdb;
mod scope;
mod sediment;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stripes;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Result;

pub(crate) use self::deletes::Deletes;
pub(crate) use self::faulty::{Fault, Faulty};
pub(crate) use self::kind::{StoreKind, StoreTask};
pub(crate) use self::rocksdb::RocksDb;
pub(crate) use self::scope::{Scope, Verified};
pub(crate) use self::sediment::Sediment;
#[cfg(feature = "sqlite")]
pub(crate) use self::sqlite::PlainSqlite;

/// How long an answered write may stay unsynced in buffered cells, where a store has such a bound:
/// the engine's interval, and that of the peers' variants.
const FLUSH_INTERVAL: Duration = Duration::from_millis(250);

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

/// What a killed process and a power cut can take of the answered writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Loses {
    pub(crate) kill: String,
    pub(crate) power_cut: String,
}

impl Loses {
    pub(crate) const NOTHING: &str = "nothing";

    pub(crate) fn new(kill: &str, power_cut: &str) -> Self {
        Self { kill: kill.to_owned(), power_cut: power_cut.to_owned() }
    }

    /// What every durable write promises.
    pub(crate) fn nothing() -> Self {
        Self::new(Self::NOTHING, Self::NOTHING)
    }
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

impl StoreConfig {
    /// For stores with one bound for all their memory: what RocksDB has in its memtable and its
    /// block cache; at least two memtables, which RocksDB may fill too (`max_write_buffer_number`).
    fn memory_budget(&self) -> u64 {
        let memtable = self.memtable_bytes;
        memtable.saturating_add(self.cache_bytes).max(memtable.saturating_mul(2))
    }
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
    /// Whether `row` looks at keys.
    #[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "SQLite alone asks"))]
    const KEYS: bool = false;

    /// The value of a record that a read found.
    fn value(&mut self, bytes: &[u8]);

    /// A record that a scan met. `key` appends its key to a buffer: only a visitor that needs the
    /// keys pays for them.
    fn row(&mut self, _key: impl FnOnce(&mut Vec<u8>) -> Result<()>, bytes: &[u8]) -> Result<()> {
        self.value(bytes);
        Ok(())
    }
}

/// For `Visitor::row`, where a store has the key as bytes.
fn copied(id: &[u8], key: &mut Vec<u8>) -> Result<()> {
    key.extend_from_slice(id);
    Ok(())
}

/// A store under test. Errors are the store's own, as text; they are counted, and the first one
/// goes into the row.
pub(crate) trait Store: Send + Sync + Sized {
    const VERSION: &'static str;
    const SCOPE: Scope = Scope::Everything;

    fn settings(config: &StoreConfig) -> Settings;
    /// In cells of this durability.
    fn loses(durability: Durability) -> Loses;
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

    fn figures(&self) -> Figures {
        Figures::default()
    }

    /// Waits until background work is done, at most `patience`; a store may have none.
    fn settle(&self, _patience: Duration) -> Result<Settled> {
        Ok(Settled::Idle)
    }

    fn close(self) -> Result<()>;
}
