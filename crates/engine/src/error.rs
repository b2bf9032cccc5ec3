//! The one error type of the engine.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a call to the engine returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed, and what to do about it.
///
/// Errors can be cloned, because one failed write or sync answers every member of its group.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a read, or an operation that is not part of the write path. Nothing was changed; the call can
    /// be repeated.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried, as a verb: `read`, `open`, `rename`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's answer.
        source: Arc<io::Error>,
    },
    /// Bytes on disk do not verify. Other records stay readable; restore this one from a copy.
    #[error("{} is corrupt at byte {offset}: {what}", file.display())]
    Corrupt {
        /// The damaged file.
        file: PathBuf,
        /// Where in the file, in bytes.
        offset: u64,
        /// What does not verify.
        what: String,
    },
    /// The disk is full. Nothing that was acknowledged is lost; free some space and write again, without reopening.
    #[error("no space left for {}: free some space, then write again", path.display())]
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
        /// The operating system's answer.
        source: Arc<io::Error>,
    },
    /// A write or sync of this write's group failed. The write is not acknowledged, and whether it survives a crash is unknown until
    /// the next write succeeds; from then on it is absent.
    #[error(
        "the write failed and is not acknowledged; its outcome is unknown until the next write succeeds"
    )]
    WriteFailed {
        /// The failure of the write or sync.
        source: Arc<Error>,
    },
    /// An earlier write or sync failed, and the disk does not yet allow writes to resume. Reads go on; each write tries again.
    #[error("the database is read-only until the disk allows writes again")]
    ReadOnly {
        /// Why the last attempt to resume failed.
        source: Arc<Error>,
    },
    /// Another process, or another `Database` of this process, has the folder open. Close it first.
    #[error("{} is in use by another process or handle; close that one first", path.display())]
    Locked {
        /// The database's folder.
        path: PathBuf,
    },
    /// The folder holds other files and no database. Choose an empty or new folder; nothing in this one was changed.
    #[error("{} holds files but no database; choose an empty or new folder", path.display())]
    NotADatabase {
        /// The refused folder.
        path: PathBuf,
    },
    /// The folder holds no database, and the options do not allow one to be created.
    #[error("there is no database at {}, and `create_if_missing` is off", path.display())]
    NoDatabase {
        /// The folder.
        path: PathBuf,
    },
    /// A file needs a newer version of this library.
    #[error("{} needs a newer version of this library: {what}", file.display())]
    UnsupportedFormat {
        /// The file.
        file: PathBuf,
        /// The version or feature that is not known.
        what: String,
    },
    /// The database was closed. Open it again.
    #[error("the database is closed; open it again")]
    Closed,
    /// The collection was dropped. Ask the database for it anew.
    #[error("the collection `{name}` was dropped; ask the database for a new one")]
    CollectionDropped {
        /// The collection's name.
        name: String,
    },
    /// A handle of one database was given to another one.
    #[error("the collection or snapshot belongs to another database")]
    ForeignHandle,
    /// A document with this id exists already. Use `put` to replace it.
    #[error(
        "the collection `{collection}` has a document with the id {id} already; `put` replaces it"
    )]
    AlreadyExists {
        /// The collection's name.
        collection: String,
        /// The id, for reading.
        id: String,
    },
    /// No document has this id. Use `put` to create it.
    #[error("the collection `{collection}` has no document with the id {id}; `put` creates it")]
    NotFound {
        /// The collection's name.
        collection: String,
        /// The id, for reading.
        id: String,
    },
    /// The id cannot be stored.
    #[error("invalid id: {what}")]
    InvalidId {
        /// What is wrong, and the limit.
        what: String,
    },
    /// The document cannot be stored or decoded.
    #[error("invalid document: {what}")]
    InvalidDocument {
        /// What is wrong, and the limit.
        what: String,
    },
    /// The collection's name cannot be stored.
    #[error("invalid collection name: {what}")]
    InvalidCollectionName {
        /// What is wrong, and the limit.
        what: String,
    },
    /// The options contradict each other or are out of range.
    #[error("invalid options: {what}")]
    InvalidOptions {
        /// Which option, and its range.
        what: String,
    },
    /// The batch is larger than a batch can be. Split it.
    #[error("the batch takes {bytes} bytes in the log and {limit} are allowed; split it")]
    BatchTooLarge {
        /// The batch's size in the log, in bytes.
        bytes: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A background job failed or panicked. Reads go on; close the database and open it again to write.
    #[error("background work failed ({what}); close the database and open it again")]
    Background {
        /// What happened.
        what: String,
    },
}

impl Error {
    /// An I/O error with its context; a full disk becomes [`Error::DiskFull`].
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        let full =
            matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let source = Arc::new(source);
        if full { Self::DiskFull { path, source } } else { Self::Io { action, path, source } }
    }

    /// Damage at a place of a file.
    pub(crate) fn corrupt(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Corrupt { file: file.to_owned(), offset, what: what.into() }
    }
}
