//! SQLite through rusqlite, in WAL mode with a mapped file: <https://sqlite.org/wal.html>
//!
//! Durable is `synchronous=FULL`: the log is synced at each commit. Buffered is
//! `synchronous=NORMAL`, its advice for WAL mode, where only a checkpoint syncs. There is one
//! connection that writes, since SQLite has one writer at a time and those that wait would sleep
//! and try again, and as many that read as there are clients.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, Row, ffi};
use serde_json::json;

use super::flusher::{Flusher, Interval};
use super::{
    Deletes, Durability, Loses, Presence, Scope, Settings, Store, StoreConfig, Visitor, copied,
};
use crate::error::{Context, Failure, Result};

/// The most that SQLite maps as it is compiled by default; what is beyond is read.
const MMAP_BYTES: i64 = 0x7fff_0000;
const PAGE_BYTES: i64 = 4096;
/// SQLite's default: pages in the log after which a commit checkpoints.
const AUTOCHECKPOINT_PAGES: i64 = 1000;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS usertable (id BLOB PRIMARY KEY, document BLOB NOT NULL) WITHOUT ROWID";
const GET: &str = "SELECT document FROM usertable WHERE id = ?1";
const PUT: &str = "INSERT INTO usertable (id, document) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET document = excluded.document";
const REPLACE: &str = "UPDATE usertable SET document = ?2 WHERE id = ?1";
const SCAN: &str = "SELECT document FROM usertable WHERE id >= ?1 ORDER BY id LIMIT ?2";
const SCAN_WITH_IDS: &str =
    "SELECT document, id FROM usertable WHERE id >= ?1 ORDER BY id LIMIT ?2";
const DELETE: &str = "DELETE FROM usertable WHERE id = ?1";

/// As it is, without a variant's flusher.
pub(crate) type PlainSqlite = Sqlite<super::flusher::Never>;

pub(crate) struct Sqlite<I> {
    file: PathBuf,
    settings: Connected,
    writer: Mutex<Connection>,
    /// Those that no client uses now.
    readers: Mutex<Vec<Connection>>,
    flusher: Flusher<I>,
}

/// What a connection is set to.
#[derive(Clone, Copy)]
struct Connected {
    durability: Durability,
    cache_kib: u64,
}

impl Connected {
    fn new(config: &StoreConfig) -> Self {
        Self { durability: config.durability, cache_kib: config.memory_budget() >> 10 }
    }

    fn synchronous(self) -> &'static str {
        match self.durability {
            Durability::Durable => "FULL",
            Durability::Buffered => "NORMAL",
        }
    }

    fn connect(self, file: &Path) -> rusqlite::Result<Connection> {
        let connection = Connection::open(file)?;
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", self.synchronous())?;
        connection.pragma_update(None, "mmap_size", MMAP_BYTES)?;
        // Negative: KiB, not pages.
        let cache = i64::try_from(self.cache_kib).unwrap_or(i64::MAX);
        connection.pragma_update(None, "cache_size", -cache)?;
        connection.pragma_update(None, "wal_autocheckpoint", AUTOCHECKPOINT_PAGES)?;
        Ok(connection)
    }
}

fn run(connection: &Connection, statement: &str) -> Result<()> {
    let prepared = connection.prepare_cached(statement);
    prepared.and_then(|mut statement| statement.execute([])).map(drop).map_err(Failure::new)
}

/// A writing transaction, whose statements are prepared too.
fn transaction<R>(connection: &Connection, body: impl FnOnce() -> Result<R>) -> Result<R> {
    run(connection, "BEGIN IMMEDIATE")?;
    match body() {
        Ok(answer) => run(connection, "COMMIT").map(|()| answer),
        Err(failure) => {
            // What went wrong first is what to tell.
            drop(run(connection, "ROLLBACK"));
            Err(failure)
        }
    }
}

/// As much of the log as no reader needs goes into the file, and both are synced.
fn checkpoint(connection: &Connection) -> Result<()> {
    let passive = "PRAGMA wal_checkpoint(PASSIVE)";
    connection.query_row(passive, [], |_| Ok(())).map_err(Failure::new)
}

impl<I> Sqlite<I> {
    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn readers(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads through a connection that no one else uses meanwhile.
    fn reading<R>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<R>) -> Result<R> {
        let idle = self.readers().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.settings.connect(&self.file).map_err(Failure::new)?,
        };
        let answer = read(&connection).map_err(Failure::new);
        self.readers().push(connection);
        answer
    }
}

/// The document is visited where SQLite has it.
fn visit(row: &Row<'_>, visitor: &mut impl Visitor) -> rusqlite::Result<()> {
    visitor.value(row.get_ref(0)?.as_blob()?);
    Ok(())
}

/// Ids are columns of their own, which only a visitor that looks at them pays for.
fn scan<V: Visitor>(
    connection: &Connection,
    key: &str,
    limit: i64,
    visitor: &mut V,
) -> Result<usize> {
    let statement = if V::KEYS { SCAN_WITH_IDS } else { SCAN };
    let mut scan = connection.prepare_cached(statement).map_err(Failure::new)?;
    let mut rows = scan.query((key.as_bytes(), limit)).map_err(Failure::new)?;
    let mut visited = 0;
    while let Some(row) = rows.next().map_err(Failure::new)? {
        let blob = |column| row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from);
        let document = blob(0).map_err(Failure::new)?;
        visitor.row(|key| copied(blob(1).map_err(Failure::new)?, key), document)?;
        visited += 1;
    }
    Ok(visited)
}

impl<I: Interval> Store for Sqlite<I> {
    const VERSION: &'static str = match ffi::SQLITE_VERSION.to_str() {
        Ok(version) => version,
        Err(_) => "unknown",
    };
    const SCOPE: Scope = I::SCOPE;

    fn settings(config: &StoreConfig) -> Settings {
        let connected = Connected::new(config);
        Settings::from([
            ("journal_mode".to_owned(), "WAL".into()),
            ("synchronous".to_owned(), connected.synchronous().into()),
            ("page_size".to_owned(), PAGE_BYTES.into()),
            ("mmap_size".to_owned(), MMAP_BYTES.into()),
            ("cache_size_kib".to_owned(), connected.cache_kib.into()),
            ("wal_autocheckpoint".to_owned(), AUTOCHECKPOINT_PAGES.into()),
            ("locking_mode".to_owned(), "NORMAL".into()),
            ("table".to_owned(), "WITHOUT ROWID".into()),
            ("statements".to_owned(), "prepared once a connection".into()),
            ("connections".to_owned(), "one that writes, and one a reading client".into()),
            ("mutex".to_owned(), json!("none inside SQLite: a connection has one user at a time")),
            ("sync".to_owned(), I::describe(config.durability)),
            ("update".to_owned(), "read and write in one immediate transaction".into()),
        ])
    }

    fn loses(durability: Durability) -> Loses {
        match (durability, I::INTERVAL) {
            (Durability::Durable, _) => Loses::nothing(),
            (Durability::Buffered, None) => Loses::new(
                Loses::NOTHING,
                "the writes since the last checkpoint, 1000 pages of log apart, that the kernel has \
                 not written back",
            ),
            (Durability::Buffered, Some(_)) => Loses::new(
                Loses::NOTHING,
                "the writes answered since the last checkpoint began, 250 ms apart",
            ),
        }
    }

    fn open(folder: &Path, config: &StoreConfig) -> Result<Self> {
        let what = || format!("sqlite cannot open {}", folder.display());
        fs::create_dir_all(folder).context(what)?;
        let (file, settings) = (folder.join("sqlite"), Connected::new(config));
        let writer = settings.connect(&file).context(what)?;
        writer.execute(CREATE, []).context(what)?;
        let flushing = settings.connect(&file).context(what)?;
        let flusher = Flusher::start(config.durability, move || checkpoint(&flushing));
        let (writer, readers) = (Mutex::new(writer), Mutex::default());
        Ok(Self { file, settings, writer, readers, flusher })
    }

    fn load(&self, records: &[(String, Vec<u8>)]) -> Result<()> {
        let writer = self.writer();
        let synced = |synchronous: &str| {
            writer.pragma_update(None, "synchronous", synchronous).map_err(Failure::new)
        };
        synced("FULL")?;
        transaction(&writer, || {
            let mut put = writer.prepare_cached(PUT).map_err(Failure::new)?;
            for (key, document) in records {
                put.execute((key.as_bytes(), document)).map_err(Failure::new)?;
            }
            Ok(())
        })?;
        synced(self.settings.synchronous())
    }

    fn read(&self, key: &str, visitor: &mut impl Visitor) -> Result<Presence> {
        let found = self.reading(|connection| {
            let mut get = connection.prepare_cached(GET)?;
            get.query_row([key.as_bytes()], |row| visit(row, visitor)).optional()
        })?;
        Ok(found.map_or(Presence::Missing, |()| Presence::Found))
    }

    fn insert(&self, key: &str, document: &[u8]) -> Result<()> {
        let writer = self.writer();
        let mut put = writer.prepare_cached(PUT).map_err(Failure::new)?;
        put.execute((key.as_bytes(), document)).map(drop).map_err(Failure::new)
    }

    fn update(&self, key: &str, fields: &[u8]) -> Result<Presence> {
        let writer = self.writer();
        transaction(&writer, || {
            let mut get = writer.prepare_cached(GET).map_err(Failure::new)?;
            let merge = |row: &Row<'_>| {
                let existing = row.get_ref(0)?.as_blob()?;
                Ok(engine::merge_documents(existing, fields))
            };
            let merged = get.query_row([key.as_bytes()], merge).optional().map_err(Failure::new)?;
            let Some(merged) = merged else { return Ok(Presence::Missing) };
            let merged = merged.map_err(Failure::new)?;
            let mut replace = writer.prepare_cached(REPLACE).map_err(Failure::new)?;
            replace.execute((key.as_bytes(), merged)).map_err(Failure::new)?;
            Ok(Presence::Found)
        })
    }

    fn scan(&self, key: &str, limit: usize, visitor: &mut impl Visitor) -> Result<usize> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.reading(|connection| Ok(scan(connection, key, limit, visitor)))?
    }

    /// The last connection that is closed checkpoints what is left.
    fn close(self) -> Result<()> {
        self.flusher.stop()?;
        drop(self.readers);
        let writer = self.writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        writer.close().map_err(|(_, error)| Failure::new(error))
    }
}

impl<I: Interval> Deletes for Sqlite<I> {
    fn delete(&self, key: &str) -> Result<()> {
        let writer = self.writer();
        let mut delete = writer.prepare_cached(DELETE).map_err(Failure::new)?;
        delete.execute([key.as_bytes()]).map(drop).map_err(Failure::new)
    }
}
