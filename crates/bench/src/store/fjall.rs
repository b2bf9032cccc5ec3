//! fjall, as its documentation has it: <https://docs.rs/fjall>
//!
//! Durable is `persist(PersistMode::SyncData)` before the answer. Buffered is its default, where
//! the journal is with the operating system before the answer.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use serde_json::json;

use super::flusher::{Flusher, Interval};
use super::stripes::Stripes;
use super::{
    Durability, Loses, Presence, Scope, Settings, Settled, Store, StoreConfig, Visitor, copied,
};
use crate::error::{Context, Failure, Result};

/// How often the end of flushes and compactions is looked for.
const SETTLE_POLL: Duration = Duration::from_millis(10);

pub(crate) struct Fjall<I> {
    database: Database,
    records: Keyspace,
    durability: Durability,
    guards: Stripes,
    flusher: Flusher<I>,
}

impl<I> Fjall<I> {
    fn put(&self, key: &str, document: &[u8]) -> Result<()> {
        self.records.insert(key, document).map_err(Failure::new)?;
        match self.durability {
            Durability::Durable => {
                self.database.persist(PersistMode::SyncData).map_err(Failure::new)
            }
            Durability::Buffered => Ok(()),
        }
    }

    fn is_idle(&self) -> bool {
        self.database.outstanding_flushes() == 0 && self.database.active_compactions() == 0
    }
}

impl<I: Interval> Store for Fjall<I> {
    const VERSION: &'static str = env!("BENCH_FJALL_VERSION");
    const SCOPE: Scope = I::SCOPE;

    fn settings(config: &StoreConfig) -> Settings {
        Settings::from([
            ("cache_size".to_owned(), config.cache_bytes.into()),
            ("max_memtable_size".to_owned(), config.memtable_bytes.into()),
            ("expect_point_read_hits".to_owned(), json!(true)),
            ("compression".to_owned(), "none".into()),
            ("worker_threads".to_owned(), config.cores.max(1).into()),
            ("manual_journal_persist".to_owned(), json!(false)),
            ("others".to_owned(), "fjall's defaults".into()),
            ("sync".to_owned(), I::describe(config.durability)),
            ("update".to_owned(), "read-modify-write under a guard of the id".into()),
        ])
    }

    fn loses(durability: Durability) -> Loses {
        match (durability, I::INTERVAL) {
            (Durability::Durable, _) => Loses::nothing(),
            (Durability::Buffered, None) => Loses::new(
                Loses::NOTHING,
                "the writes of the journal that the kernel has not written back; no interval \
                 bounds them",
            ),
            (Durability::Buffered, Some(_)) => Loses::new(
                Loses::NOTHING,
                "the writes answered since the last sync of the journal began, 250 ms apart",
            ),
        }
    }

    fn open(folder: &Path, config: &StoreConfig) -> Result<Self> {
        let what = || format!("fjall cannot open {}", folder.display());
        let database = Database::builder(folder)
            .cache_size(config.cache_bytes)
            .worker_threads(config.cores.max(1))
            .manual_journal_persist(false)
            .open()
            .context(what)?;
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(config.memtable_bytes)
                .expect_point_read_hits(true)
        };
        let records = database.keyspace("usertable", options).context(what)?;
        let flushed = database.clone();
        let flusher = Flusher::start(config.durability, move || {
            flushed.persist(PersistMode::SyncData).map_err(Failure::new)
        });
        let durability = config.durability;
        Ok(Self { database, records, durability, guards: Stripes::new(), flusher })
    }

    fn load(&self, records: &[(String, Vec<u8>)]) -> Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for (key, document) in records {
            batch.insert(&self.records, key.as_str(), document.as_slice());
        }
        batch.commit().map_err(Failure::new)
    }

    fn read(&self, key: &str, visitor: &mut impl Visitor) -> Result<Presence> {
        match self.records.get(key).map_err(Failure::new)? {
            Some(document) => {
                visitor.value(&document);
                Ok(Presence::Found)
            }
            None => Ok(Presence::Missing),
        }
    }

    fn insert(&self, key: &str, document: &[u8]) -> Result<()> {
        self.put(key, document)
    }

    fn update(&self, key: &str, fields: &[u8]) -> Result<Presence> {
        let _guard = self.guards.lock(key.as_bytes());
        let Some(existing) = self.records.get(key).map_err(Failure::new)? else {
            return Ok(Presence::Missing);
        };
        let merged = engine::merge_documents(&existing, fields).map_err(Failure::new)?;
        self.put(key, &merged)?;
        Ok(Presence::Found)
    }

    fn scan(&self, key: &str, limit: usize, visitor: &mut impl Visitor) -> Result<usize> {
        let mut visited = 0;
        for row in self.records.range(key..).take(limit) {
            let (id, document) = row.into_inner().map_err(Failure::new)?;
            visitor.row(|key| copied(&id, key), &document)?;
            visited += 1;
        }
        Ok(visited)
    }

    /// A flush can lead to a compaction, so that it is idle only when it stays so for a while.
    fn settle(&self, patience: Duration) -> Result<Settled> {
        let start = Instant::now();
        let mut quiet = 0;
        while quiet < 5 {
            if start.elapsed() > patience {
                return Ok(Settled::TimedOut);
            }
            quiet = if self.is_idle() { quiet + 1 } else { 0 };
            thread::sleep(SETTLE_POLL);
        }
        Ok(Settled::Idle)
    }

    /// Dropping the last handle stops the workers.
    fn close(self) -> Result<()> {
        self.flusher.stop()?;
        self.database.persist(PersistMode::SyncAll).map_err(Failure::new)
    }
}
