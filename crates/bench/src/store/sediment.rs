//! Sediment, this project's engine.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use engine::{Batch, Collection, Database, Error, Id, Options, WriteDurability};

use super::{
    Deletes, Durability, FLUSH_INTERVAL, Figures, Loses, Presence, Settings, Settled, Store,
    StoreConfig, Visitor,
};
use crate::error::{Context, Failure, Result};

/// How often the end of compaction is looked for.
const SETTLE_POLL: Duration = Duration::from_millis(10);

/// One collection holds the records.
pub(crate) struct Sediment {
    database: Database,
    records: Collection,
}

impl Store for Sediment {
    /// The engine is of the same workspace; a row's `commit` says more.
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    fn settings(config: &StoreConfig) -> Settings {
        let mut settings = Settings::from([
            ("memtable_bytes".to_owned(), config.memtable_bytes.into()),
            ("memory_budget".to_owned(), config.memory_budget().into()),
            ("durability".to_owned(), config.durability.name().into()),
            ("compression".to_owned(), "none".into()),
        ]);
        if config.durability == Durability::Buffered {
            let milliseconds = u64::try_from(FLUSH_INTERVAL.as_millis()).unwrap_or(u64::MAX);
            settings.insert("flush_interval_ms".to_owned(), milliseconds.into());
        }
        settings
    }

    fn loses(durability: Durability) -> Loses {
        match durability {
            Durability::Durable => Loses::nothing(),
            Durability::Buffered => Loses::new(
                Loses::NOTHING,
                "the writes answered since the last flush began; flushes are 250 ms or 8 MiB apart",
            ),
        }
    }

    fn open(folder: &Path, config: &StoreConfig) -> Result<Self> {
        let durability = match config.durability {
            Durability::Durable => engine::Durability::Durable,
            Durability::Buffered => engine::Durability::Buffered { flush_interval: FLUSH_INTERVAL },
        };
        let options = Options::default()
            .memtable_bytes(config.memtable_bytes)
            .memory_budget(config.memory_budget())
            .durability(durability)
            .create_if_missing(true);
        let database = Database::open(folder, options)
            .context(|| format!("sediment cannot open {}", folder.display()))?;
        let records = database.collection("usertable").map_err(Failure::new)?;
        Ok(Self { database, records })
    }

    fn load(&self, records: &[(String, Vec<u8>)]) -> Result<()> {
        let mut batch = Batch::new();
        for (key, document) in records {
            batch.put_raw(&self.records, key.as_str(), document).map_err(Failure::new)?;
        }
        self.database.write_with(batch, WriteDurability::Durable).map_err(Failure::new)
    }

    fn read(&self, key: &str, visitor: &mut impl Visitor) -> Result<Presence> {
        match self.records.get(key).map_err(Failure::new)? {
            Some(document) => {
                visitor.value(document.as_bytes());
                Ok(Presence::Found)
            }
            None => Ok(Presence::Missing),
        }
    }

    fn insert(&self, key: &str, document: &[u8]) -> Result<()> {
        self.records.put_raw(key, document).map_err(Failure::new)
    }

    fn update(&self, key: &str, fields: &[u8]) -> Result<Presence> {
        match self.records.update_raw(key, fields) {
            Ok(()) => Ok(Presence::Found),
            Err(Error::NotFound { .. }) => Ok(Presence::Missing),
            Err(error) => Err(Failure::new(error)),
        }
    }

    fn scan(&self, key: &str, limit: usize, visitor: &mut impl Visitor) -> Result<usize> {
        let mut scan = self.records.scan(key..).map_err(Failure::new)?;
        let mut rows = 0;
        while rows < limit
            && let Some(row) = scan.next_row()
        {
            let row = row.map_err(Failure::new)?;
            visitor.row(|key| append_id(row.id(), key), row.document().as_bytes())?;
            rows += 1;
        }
        Ok(rows)
    }

    fn figures(&self) -> Figures {
        let stats = self.database.stats();
        Figures {
            written_bytes: Some(stats.written_bytes),
            recovered_records: Some(stats.recovery.records),
        }
    }

    /// `wait_idle` has no time limit of its own, so it waits on a thread that is left behind when
    /// it takes too long; the process ends soon after.
    fn settle(&self, patience: Duration) -> Result<Settled> {
        let (done, idle) = channel();
        let database = self.database.clone();
        thread::spawn(move || {
            let settled = loop {
                match database.wait_idle() {
                    // What is left begins by itself, once nothing was written for a while.
                    Ok(()) if database.stats().compaction_due => thread::sleep(SETTLE_POLL),
                    outcome => break outcome,
                }
            };
            // The receiver is gone when the patience ran out.
            drop(done.send(settled));
        });
        match idle.recv_timeout(patience) {
            Ok(waited) => waited.map(|()| Settled::Idle).map_err(Failure::new),
            Err(RecvTimeoutError::Timeout) => Ok(Settled::TimedOut),
            Err(RecvTimeoutError::Disconnected) => Err(Failure::new("sediment's wait_idle failed")),
        }
    }

    fn close(self) -> Result<()> {
        self.database.close().map_err(Failure::new)
    }
}

impl Deletes for Sediment {
    fn delete(&self, key: &str) -> Result<()> {
        self.records.delete(key).map_err(Failure::new)
    }
}

/// Ids of records are strings.
fn append_id(id: engine::Result<Id<'_>>, key: &mut Vec<u8>) -> Result<()> {
    match id.map_err(Failure::new)? {
        Id::String(id) => key.extend_from_slice(id.as_bytes()),
        id => return Err(Failure::new(format_args!("a row's id is not a string: {id}"))),
    }
    Ok(())
}
