//! The handle of an open database.

use std::fmt;
use std::path::Path;

use crate::batch::Batch;
use crate::collection::Collection;
use crate::error::{Error, Result};
use crate::options::{Options, WriteDurability};
use crate::snapshot::Snapshot;
use crate::stats::Stats;
use crate::store::Store;
use crate::sync::Arc;

/// An open database. Cheap to clone; all clones are one database, which may be used from any number
/// of threads.
///
/// Dropping the last handle (collections and snapshots included; documents, scans and batches are
/// none) closes the database; [`Database::close`] does the same and reports what goes wrong.
///
/// ```
/// use engine::{Database, Options};
/// use serde_json::json;
///
/// # fn main() -> Result<(), engine::Error> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("db");
/// let database = Database::open(&path, Options::default())?;
/// let cities = database.collection("cities")?;
/// cities.put("oslo", &json!({ "people": 709_037 }))?;
/// let oslo = cities.get("oslo")?.expect("it was just put");
/// assert_eq!(oslo.get_i64("people")?, Some(709_037));
/// database.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Database {
    handle: Arc<Handle>,
}

/// What all handles of a database share. The last one to go closes it.
pub(crate) struct Handle {
    pub(crate) store: Arc<Store>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Nobody is left to hear of a failure; what was answered is in the log, and the next open
        // recovers it.
        drop(self.store.close());
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Database {
    /// Opens the database in a folder, or creates one in a folder that is missing or empty.
    ///
    /// The time it takes depends on the log that was not sealed (none after a clean close), not on
    /// the size of the database. What a crash left is recovered: [`Stats::recovery`] tells.
    ///
    /// # Errors
    ///
    /// `InvalidOptions` when an option is out of its range or the path is empty, `Locked` when the
    /// folder is open already, `NotADatabase` when it holds other files (none is touched),
    /// `NoDatabase` when there is none and [`Options::create_if_missing`] is off, `Corrupt` when
    /// the manifest or the log is damaged (see [`Recovery`](crate::Recovery)), `UnsupportedFormat`
    /// when a newer version wrote it, `Background` when its threads cannot be started, `Io`,
    /// `DiskFull`.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref();
        if path.as_os_str().is_empty() {
            // It would stand for the working folder, which nobody names by nothing.
            return Err(Error::InvalidOptions {
                what: "the path of the folder is empty".to_owned(),
            });
        }
        let store = Store::open(path, options)?;
        Ok(Self { handle: Arc::new(Handle { store }) })
    }

    /// The folder, as it was named when the database was opened.
    pub fn path(&self) -> &Path {
        self.store().path()
    }

    /// The collection of this name, which is created if there is none: 1 to 255 bytes of UTF-8
    /// without NUL.
    ///
    /// An existing one costs one look into a table under a lock: keep the handle where it is used
    /// often. A new one costs a write, with the database's durability.
    ///
    /// # Errors
    ///
    /// `InvalidCollectionName`, `Closed`, and when it is created those of [`Database::write`].
    pub fn collection(&self, name: &str) -> Result<Collection> {
        let state = self.store().collection(name)?;
        Ok(Collection::new(Arc::clone(&self.handle), state))
    }

    /// The names of all collections, sorted.
    ///
    /// # Errors
    ///
    /// `Closed`.
    pub fn collections(&self) -> Result<Vec<String>> {
        self.store().check_open()?;
        Ok(self.store().catalogue.names())
    }

    /// Drops a collection with all its documents; false when there is none of this name. Handles of
    /// it answer `CollectionDropped`; snapshots taken before still read it, by the same handles. A
    /// collection of the same name created later is another one, and empty.
    ///
    /// Costs one write, however many documents there are.
    ///
    /// # Errors
    ///
    /// `InvalidCollectionName`, and those of [`Database::write`].
    pub fn drop_collection(&self, name: &str) -> Result<bool> {
        self.store().drop_collection(name)
    }

    /// Writes a batch: all of it or nothing, visible at one moment, across collections. One write
    /// and at most one sync, however many documents it has.
    ///
    /// # Errors
    ///
    /// `WriteFailed` when the write or sync failed (also for every other write of its group),
    /// `ReadOnly` while the disk does not allow writes, `DiskFull`, `BatchTooLarge`,
    /// `CollectionDropped`, `ForeignHandle`, `Closed`. After any error nothing of the batch is
    /// visible.
    pub fn write(&self, batch: Batch) -> Result<()> {
        self.write_with(batch, WriteDurability::AsOpened)
    }

    /// As [`Database::write`], answered as told: [`WriteDurability::Durable`] has this one write
    /// survive power loss, and with it every earlier one, also where the database is buffered. A
    /// batch may be empty.
    ///
    /// # Errors
    ///
    /// Those of [`Database::write`].
    pub fn write_with(&self, batch: Batch, durability: WriteDurability) -> Result<()> {
        batch.commit(&self.handle, durability)
    }

    /// A view of the database as it is now. Takes a lock for a moment and copies nothing;
    /// superseded documents that it still sees are kept until it is dropped.
    ///
    /// # Errors
    ///
    /// `Closed`.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::new(&self.handle)
    }

    /// A view of the database as it was at a sequence of the past, as told by
    /// [`Snapshot::sequence`] or [`Stats::visible_sequence`]: down to [`Stats::horizon`], which is
    /// the oldest live snapshot, else the newest sequence, less [`Options::history`], as of the last
    /// time that superseded documents were dropped. The horizon is kept when the database is closed.
    ///
    /// # Errors
    ///
    /// `HistoryGone` below the horizon or above the newest sequence, `Closed`.
    pub fn snapshot_at(&self, sequence: u64) -> Result<Snapshot> {
        Snapshot::at(&self.handle, sequence)
    }

    /// Merges everything that was written into level 1 and waits until it is done: what no reader
    /// sees gives its space back, but for files that are still being read and what live snapshots
    /// see. Reads and writes go on; what they write meanwhile is not waited for.
    ///
    /// Writes all of level 1 that has newer records or dead ones, once; not needed for correctness,
    /// since compaction runs by itself unless [`Compaction::Manual`](crate::Compaction::Manual) is
    /// set.
    ///
    /// # Errors
    ///
    /// What stopped it: `Io`, `DiskFull`, `Corrupt` (an index that cannot be read), `ReadOnly`,
    /// `Closed`. Nothing is lost; what was merged until then stays merged.
    pub fn compact(&self) -> Result<()> {
        self.store().compact()
    }

    /// Makes every answered write durable: one or two fdatasyncs, or none when all is synced.
    ///
    /// # Errors
    ///
    /// `ReadOnly` when the disk refuses and the answered writes could not be brought to safety
    /// elsewhere, `Closed`.
    pub fn sync(&self) -> Result<()> {
        self.store().sync()
    }

    /// Waits until background work that is due (sealing, preparing the next segment, compaction) is
    /// done; not for the compaction that begins once nothing was written for a while
    /// ([`Stats::compaction_due`] says whether there is something left). Not needed for correctness or durability; benchmarks and
    /// tests want it.
    ///
    /// # Errors
    ///
    /// `Closed`.
    pub fn wait_idle(&self) -> Result<()> {
        self.store().check_open()?;
        self.store().wait_idle();
        Ok(())
    }

    /// Figures about the open database; after a close, as it left them. Walks over the list of
    /// segments and takes two short locks: cheap enough to ask every second, too dear for every
    /// write.
    pub fn stats(&self) -> Stats {
        self.store().stats()
    }

    /// Syncs and seals what was written, ends background work and releases the folder. From then on
    /// every clone, collection and snapshot answers `Closed`; documents and scans that are still
    /// held stay valid. Closing twice is no error.
    ///
    /// # Errors
    ///
    /// `ReadOnly`, `DiskFull`, `Io`: the folder is released all the same, and the next open
    /// recovers what was answered.
    pub fn close(&self) -> Result<()> {
        self.store().close()
    }

    fn store(&self) -> &Arc<Store> {
        &self.handle.store
    }
}
