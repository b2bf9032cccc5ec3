//! canopydb, as its documentation has it: <https://docs.rs/canopydb>
//!
//! Durable is a commit with `sync`. Buffered is its default, a commit whose log is with the
//! operating system; the interval is its own background sync. Writes are exclusive transactions,
//! since concurrent ones would have to be repeated after a conflict.

use std::fs;
use std::marker::PhantomData;
use std::path::Path;
use std::time::Duration;

use canopydb::{Database, DbOptions, EnvOptions, Error, Tree, TreeOptions, WriteTransaction};
use serde_json::json;

use super::flusher::Interval;
use super::{
    Durability, Loses, Presence, Scope, Settings, Settled, Store, StoreConfig, Visitor, copied,
};
use crate::error::{Context, Failure, Result};

const RECORDS: &[u8] = b"usertable";
/// Writers are held up at this many checkpoints' worth of changes: the defaults' ratio.
const STALL_FACTOR: u64 = 4;

pub(crate) struct Canopydb<I> {
    database: Database,
    sync: bool,
    interval: PhantomData<I>,
}

/// Changes in memory until a checkpoint, and until writers wait: the counterpart of a memtable.
struct Sizes {
    checkpoint: u64,
    stall: u64,
}

impl Sizes {
    fn new(config: &StoreConfig) -> Self {
        let checkpoint = config.memtable_bytes;
        Self { checkpoint, stall: checkpoint.saturating_mul(STALL_FACTOR) }
    }
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The table, which `open` has made.
fn records(tree: std::result::Result<Option<Tree<'_>>, Error>) -> Result<Tree<'_>> {
    tree.map_err(Failure::new)?.ok_or_else(|| Failure::new("canopydb lost its tree"))
}

impl<I> Canopydb<I> {
    fn commit(transaction: WriteTransaction, sync: bool) -> Result<()> {
        transaction.commit_with(sync).map(drop).map_err(Failure::new)
    }
}

impl<I: Interval> Store for Canopydb<I> {
    const VERSION: &'static str = env!("BENCH_CANOPYDB_VERSION");
    const SCOPE: Scope = I::SCOPE;

    fn settings(config: &StoreConfig) -> Settings {
        let sizes = Sizes::new(config);
        Settings::from([
            ("page_cache_size".to_owned(), config.cache_bytes.into()),
            ("checkpoint_target_size".to_owned(), sizes.checkpoint.into()),
            ("throttle_memory_limit".to_owned(), sizes.stall.into()),
            ("stall_memory_limit".to_owned(), sizes.stall.into()),
            ("compress_overflow_values".to_owned(), "none".into()),
            ("use_checksums".to_owned(), json!(false)),
            ("use_wal".to_owned(), json!(true)),
            ("others".to_owned(), "canopydb's defaults".into()),
            ("sync".to_owned(), I::describe(config.durability)),
            ("update".to_owned(), "read and write in one exclusive transaction".into()),
        ])
    }

    fn loses(durability: Durability) -> Loses {
        match (durability, I::INTERVAL) {
            (Durability::Durable, _) => Loses::nothing(),
            (Durability::Buffered, None) => Loses::new(
                Loses::NOTHING,
                "the writes since the last checkpoint, at most 30 s apart, that the kernel has not \
                 written back",
            ),
            (Durability::Buffered, Some(_)) => Loses::new(
                Loses::NOTHING,
                "the writes answered since the last sync of the log began, 250 ms apart",
            ),
        }
    }

    fn open(folder: &Path, config: &StoreConfig) -> Result<Self> {
        let what = || format!("canopydb cannot open {}", folder.display());
        fs::create_dir_all(folder).context(what)?;
        let sizes = Sizes::new(config);
        let sync = config.durability == Durability::Durable;
        let mut environment = EnvOptions::new(folder);
        environment.page_cache_size = to_usize(config.cache_bytes);
        environment.wal_background_sync_interval = I::INTERVAL.filter(|_| !sync);
        let mut options = DbOptions::default();
        options.checkpoint_target_size = to_usize(sizes.checkpoint);
        options.throttle_memory_limit = to_usize(sizes.stall);
        options.stall_memory_limit = to_usize(sizes.stall);
        let database = Database::with_options(environment, options).context(what)?;
        let transaction = database.begin_write().context(what)?;
        let mut tree = TreeOptions::default();
        tree.compress_overflow_values = None;
        transaction.get_or_create_tree_with(RECORDS, tree).map(drop).context(what)?;
        Self::commit(transaction, true).context(what)?;
        Ok(Self { database, sync, interval: PhantomData })
    }

    fn load(&self, batch: &[(String, Vec<u8>)]) -> Result<()> {
        let transaction = self.database.begin_write().map_err(Failure::new)?;
        {
            let mut tree = records(transaction.get_tree(RECORDS))?;
            for (key, document) in batch {
                tree.insert(key.as_bytes(), document).map_err(Failure::new)?;
            }
        }
        Self::commit(transaction, true)
    }

    fn read(&self, key: &str, visitor: &mut impl Visitor) -> Result<Presence> {
        let transaction = self.database.begin_read().map_err(Failure::new)?;
        let tree = records(transaction.get_tree(RECORDS))?;
        match tree.get(key.as_bytes()).map_err(Failure::new)? {
            Some(document) => {
                visitor.value(&document);
                Ok(Presence::Found)
            }
            None => Ok(Presence::Missing),
        }
    }

    fn insert(&self, key: &str, document: &[u8]) -> Result<()> {
        let transaction = self.database.begin_write().map_err(Failure::new)?;
        {
            let mut tree = records(transaction.get_tree(RECORDS))?;
            tree.insert(key.as_bytes(), document).map_err(Failure::new)?;
        }
        Self::commit(transaction, self.sync)
    }

    fn update(&self, key: &str, fields: &[u8]) -> Result<Presence> {
        let transaction = self.database.begin_write().map_err(Failure::new)?;
        {
            let mut tree = records(transaction.get_tree(RECORDS))?;
            let Some(existing) = tree.get(key.as_bytes()).map_err(Failure::new)? else {
                return Ok(Presence::Missing);
            };
            let merged = engine::merge_documents(&existing, fields).map_err(Failure::new)?;
            tree.insert(key.as_bytes(), &merged).map_err(Failure::new)?;
        }
        Self::commit(transaction, self.sync)?;
        Ok(Presence::Found)
    }

    fn scan(&self, key: &str, limit: usize, visitor: &mut impl Visitor) -> Result<usize> {
        let transaction = self.database.begin_read().map_err(Failure::new)?;
        let tree = records(transaction.get_tree(RECORDS))?;
        let mut visited = 0;
        for row in tree.range(key.as_bytes()..).map_err(Failure::new)?.take(limit) {
            let (id, document) = row.map_err(Failure::new)?;
            visitor.row(|key| copied(&id, key), &document)?;
            visited += 1;
        }
        Ok(visited)
    }

    /// A checkpoint moves the log's contents into the data file, as a flush does in a store of
    /// tables. It has no time limit of its own; one is seconds long.
    fn settle(&self, _: Duration) -> Result<Settled> {
        self.database.checkpoint().map_err(Failure::new)?;
        Ok(Settled::Idle)
    }

    /// Dropping the handle waits for the background threads.
    fn close(self) -> Result<()> {
        self.database.sync().map_err(Failure::new)
    }
}
