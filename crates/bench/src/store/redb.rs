//! redb, as its documentation has it: <https://docs.rs/redb>
//!
//! A commit is `Durability::Immediate` in durable cells, its default, and `Durability::None` in
//! buffered ones, its only other mode. Nothing of the latter survives a kill until a durable commit
//! follows, which is laxer than what the other stores call buffered. A write is a transaction of
//! its own, and there is one at a time.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use serde_json::json;

use super::flusher::{Flusher, Interval};
use super::{
    Durability, Loses, Presence, Scope, Settings, Settled, Store, StoreConfig, Visitor, copied,
};
use crate::error::{Context, Failure, Result};

const RECORDS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("usertable");

pub(crate) struct Redb<I> {
    database: Arc<Database>,
    commit: redb::Durability,
    flusher: Flusher<I>,
}

fn begin(database: &Database, durability: redb::Durability) -> Result<WriteTransaction> {
    let mut transaction = database.begin_write().map_err(Failure::new)?;
    transaction.set_durability(durability).map_err(Failure::new)?;
    Ok(transaction)
}

/// An empty durable commit makes the earlier ones durable.
fn flush(database: &Database) -> Result<()> {
    begin(database, redb::Durability::Immediate)?.commit().map_err(Failure::new)
}

impl<I: Interval> Store for Redb<I> {
    const VERSION: &'static str = env!("BENCH_REDB_VERSION");
    const SCOPE: Scope = I::SCOPE;

    fn settings(config: &StoreConfig) -> Settings {
        let durability = match config.durability {
            Durability::Durable => "Immediate",
            Durability::Buffered => "None",
        };
        Settings::from([
            ("cache_size".to_owned(), config.memory_budget().into()),
            ("concurrency_mode".to_owned(), "ExclusiveWriter".into()),
            ("durability".to_owned(), durability.into()),
            ("two_phase_commit".to_owned(), json!(false)),
            ("quick_repair".to_owned(), json!(false)),
            ("sync".to_owned(), I::describe(config.durability)),
            ("update".to_owned(), "read and write in one transaction".into()),
        ])
    }

    fn loses(durability: Durability) -> Loses {
        match (durability, I::INTERVAL) {
            (Durability::Durable, _) => Loses::nothing(),
            (Durability::Buffered, None) => {
                let all = "every write since the store was opened";
                Loses::new(all, all)
            }
            (Durability::Buffered, Some(_)) => {
                let some = "the writes answered since the last durable commit, 250 ms apart";
                Loses::new(some, some)
            }
        }
    }

    fn open(folder: &Path, config: &StoreConfig) -> Result<Self> {
        let what = || format!("redb cannot open {}", folder.display());
        fs::create_dir_all(folder).context(what)?;
        let budget = usize::try_from(config.memory_budget()).unwrap_or(usize::MAX);
        let mut builder = Database::builder();
        builder.set_cache_size(budget);
        let database = Arc::new(builder.create(folder.join("redb")).context(what)?);
        // The table exists from here on, for readers too.
        let transaction = begin(&database, redb::Durability::Immediate)?;
        transaction.open_table(RECORDS).map(drop).context(what)?;
        transaction.commit().context(what)?;
        let commit = match config.durability {
            Durability::Durable => redb::Durability::Immediate,
            Durability::Buffered => redb::Durability::None,
        };
        let flushed = Arc::clone(&database);
        let flusher = Flusher::start(config.durability, move || flush(&flushed));
        Ok(Self { database, commit, flusher })
    }

    fn load(&self, records: &[(String, Vec<u8>)]) -> Result<()> {
        let transaction = begin(&self.database, redb::Durability::Immediate)?;
        {
            let mut table = transaction.open_table(RECORDS).map_err(Failure::new)?;
            for (key, document) in records {
                table.insert(key.as_bytes(), document.as_slice()).map_err(Failure::new)?;
            }
        }
        transaction.commit().map_err(Failure::new)
    }

    /// The value is visited in the page that the cache holds.
    fn read(&self, key: &str, visitor: &mut impl Visitor) -> Result<Presence> {
        let transaction = self.database.begin_read().map_err(Failure::new)?;
        let table = transaction.open_table(RECORDS).map_err(Failure::new)?;
        match table.get(key.as_bytes()).map_err(Failure::new)? {
            Some(document) => {
                visitor.value(document.value());
                Ok(Presence::Found)
            }
            None => Ok(Presence::Missing),
        }
    }

    fn insert(&self, key: &str, document: &[u8]) -> Result<()> {
        let transaction = begin(&self.database, self.commit)?;
        {
            let mut table = transaction.open_table(RECORDS).map_err(Failure::new)?;
            table.insert(key.as_bytes(), document).map_err(Failure::new)?;
        }
        transaction.commit().map_err(Failure::new)
    }

    fn update(&self, key: &str, fields: &[u8]) -> Result<Presence> {
        let transaction = begin(&self.database, self.commit)?;
        {
            let mut table = transaction.open_table(RECORDS).map_err(Failure::new)?;
            let merged = match table.get(key.as_bytes()).map_err(Failure::new)? {
                Some(existing) => engine::merge_documents(existing.value(), fields),
                None => return Ok(Presence::Missing),
            };
            let merged = merged.map_err(Failure::new)?;
            table.insert(key.as_bytes(), merged.as_slice()).map_err(Failure::new)?;
        }
        transaction.commit().map_err(Failure::new)?;
        Ok(Presence::Found)
    }

    fn scan(&self, key: &str, limit: usize, visitor: &mut impl Visitor) -> Result<usize> {
        let transaction = self.database.begin_read().map_err(Failure::new)?;
        let table = transaction.open_table(RECORDS).map_err(Failure::new)?;
        let rows = table.range(key.as_bytes()..).map_err(Failure::new)?;
        let mut visited = 0;
        for row in rows.take(limit) {
            let (id, document) = row.map_err(Failure::new)?;
            visitor.row(|key| copied(id.value(), key), document.value())?;
            visited += 1;
        }
        Ok(visited)
    }

    /// What was not committed durably is not on the disk yet.
    fn settle(&self, _: Duration) -> Result<Settled> {
        flush(&self.database)?;
        Ok(Settled::Idle)
    }

    fn close(self) -> Result<()> {
        self.flusher.stop()?;
        flush(&self.database)?;
        let database = Arc::into_inner(self.database);
        let database = database.ok_or_else(|| Failure::new("redb is still in use"))?;
        database.close().map_err(Failure::new)
    }
}
