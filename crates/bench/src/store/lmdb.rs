//! LMDB through heed. Its documentation: <http://www.lmdb.tech/doc/group__mdb.html>
//!
//! Durable is its default: a commit writes the pages, syncs them, and writes the meta page through
//! a synchronous descriptor. Buffered is `MDB_NOSYNC` without `MDB_WRITEMAP`: of its lax modes the
//! only one that stays whole where the file system keeps the order of writes, and its
//! documentation's advice for it is to call `mdb_env_sync` now and then. A write is a transaction
//! of its own, and there is one at a time.

use std::fs;
use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions};
use serde_json::json;

use super::flusher::{Flusher, Interval};
use super::{Durability, Loses, Presence, Scope, Settings, Store, StoreConfig, Visitor, copied};
use crate::error::{Context, Failure, Result};

/// The most that the file can grow to; the map is address space, and costs nothing until it is used.
const MAP_BYTES: usize = 256 << 30;
/// Clients that the command line allows, and those that open and close.
const READERS: u32 = 1024 + 16;

pub(crate) struct Lmdb<I> {
    env: Env,
    records: Database<'static, Bytes, Bytes>,
    durability: Durability,
    flusher: Flusher<I>,
}

impl<I: Interval> Store for Lmdb<I> {
    /// The binding's; LMDB's own is in `settings`.
    const VERSION: &'static str = concat!("heed ", env!("BENCH_HEED_VERSION"));
    const SCOPE: Scope = I::SCOPE;

    fn settings(config: &StoreConfig) -> Settings {
        let flags = match config.durability {
            Durability::Durable => "none",
            Durability::Buffered => "MDB_NOSYNC",
        };
        Settings::from([
            ("lmdb".to_owned(), heed::lmdb_version().string.into()),
            ("flags".to_owned(), flags.into()),
            ("map_size".to_owned(), json!(MAP_BYTES)),
            ("max_readers".to_owned(), READERS.into()),
            ("reader_slots".to_owned(), "of threads".into()),
            ("cache".to_owned(), "the page cache".into()),
            ("sync".to_owned(), I::describe(config.durability)),
            ("update".to_owned(), "read and write in one transaction".into()),
        ])
    }

    fn loses(durability: Durability) -> Loses {
        let power_cut = match (durability, I::INTERVAL) {
            (Durability::Durable, _) => return Loses::nothing(),
            (Durability::Buffered, None) => {
                "everything: pages reach the disk in any order, which can corrupt the file"
            }
            (Durability::Buffered, Some(_)) => {
                "everything: between syncs, 250 ms apart, pages reach the disk in any order, which \
                 can corrupt the file"
            }
        };
        Loses::new(Loses::NOTHING, power_cut)
    }

    fn open(folder: &Path, config: &StoreConfig) -> Result<Self> {
        let what = || format!("lmdb cannot open {}", folder.display());
        fs::create_dir_all(folder).context(what)?;
        let env = environment(folder, config.durability).context(what)?;
        let transaction = env.write_txn().context(what)?;
        let created = env.create_databases_and_commit(transaction, |databases, transaction| {
            let records = databases.create_database(transaction, None)?;
            heed::Result::Ok(CommitOrAbort::<_, ()>::Commit(records))
        });
        let records = created.context(what)?.unwrap_commit();
        let flushed = env.clone();
        let flusher =
            Flusher::start(config.durability, move || flushed.force_sync().map_err(Failure::new));
        Ok(Self { env, records, durability: config.durability, flusher })
    }

    fn load(&self, records: &[(String, Vec<u8>)]) -> Result<()> {
        let mut transaction = self.env.write_txn().map_err(Failure::new)?;
        for (key, document) in records {
            self.records.put(&mut transaction, key.as_bytes(), document).map_err(Failure::new)?;
        }
        transaction.commit().map_err(Failure::new)?;
        match self.durability {
            Durability::Durable => Ok(()),
            Durability::Buffered => self.env.force_sync().map_err(Failure::new),
        }
    }

    /// The value is visited in the map.
    fn read(&self, key: &str, visitor: &mut impl Visitor) -> Result<Presence> {
        let transaction = self.env.read_txn().map_err(Failure::new)?;
        match self.records.get(&transaction, key.as_bytes()).map_err(Failure::new)? {
            Some(document) => {
                visitor.value(document);
                Ok(Presence::Found)
            }
            None => Ok(Presence::Missing),
        }
    }

    fn insert(&self, key: &str, document: &[u8]) -> Result<()> {
        let mut transaction = self.env.write_txn().map_err(Failure::new)?;
        self.records.put(&mut transaction, key.as_bytes(), document).map_err(Failure::new)?;
        transaction.commit().map_err(Failure::new)
    }

    fn update(&self, key: &str, fields: &[u8]) -> Result<Presence> {
        let mut transaction = self.env.write_txn().map_err(Failure::new)?;
        let existing = self.records.get(&transaction, key.as_bytes()).map_err(Failure::new)?;
        let Some(existing) = existing else { return Ok(Presence::Missing) };
        let merged = engine::merge_documents(existing, fields).map_err(Failure::new)?;
        self.records.put(&mut transaction, key.as_bytes(), &merged).map_err(Failure::new)?;
        transaction.commit().map_err(Failure::new)?;
        Ok(Presence::Found)
    }

    fn scan(&self, key: &str, limit: usize, visitor: &mut impl Visitor) -> Result<usize> {
        let transaction = self.env.read_txn().map_err(Failure::new)?;
        // A key has at least a byte, in LMDB.
        let from = if key.is_empty() { Bound::Unbounded } else { Bound::Included(key.as_bytes()) };
        let range = (from, Bound::Unbounded);
        let rows = self.records.range(&transaction, &range).map_err(Failure::new)?;
        let mut visited = 0;
        for row in rows.take(limit) {
            let (id, document) = row.map_err(Failure::new)?;
            visitor.row(|key| copied(id, key), document)?;
            visited += 1;
        }
        Ok(visited)
    }

    fn close(self) -> Result<()> {
        self.flusher.stop()?;
        self.env.force_sync().map_err(Failure::new)?;
        self.env.prepare_for_closing().wait();
        Ok(())
    }
}

#[expect(unsafe_code, reason = "LMDB maps its file, and a lax mode can corrupt it")]
fn environment(folder: &Path, durability: Durability) -> heed::Result<Env> {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_BYTES).max_readers(READERS);
    if durability == Durability::Buffered {
        // SAFETY: a power cut can corrupt the file, but no file outlives the run that made it, and
        // `loses` says so.
        unsafe { options.flags(EnvFlags::NO_SYNC) };
    }
    // SAFETY: the folder is the run's own, its cells follow one another, and nothing but LMDB
    // writes to its file.
    unsafe { options.open(folder) }
}
