//! The one error type of the engine.

use std::error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a call to the engine returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed, and what to do about it.
///
/// A message says what failed and what to do; why it failed, where the operating system knows, is
/// the error's [`source`](error::Error::source), which the message does not repeat.
///
/// Errors can be cloned, because one failed write or sync answers every member of its group.
///
/// ```
/// use std::error::Error as _;
/// use std::io;
///
/// use engine::{Database, Error, Options};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("file");
/// # std::fs::write(&path, "").unwrap();
/// match Database::open(&path, Options::default()) {
///     Ok(_) => println!("open"),
///     Err(Error::Locked { path }) => println!("{} is in use: try again later", path.display()),
///     Err(error) => {
///         let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
///         assert_eq!(cause.map(io::Error::kind), Some(io::ErrorKind::NotADirectory));
///     }
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an operation. Of a read nothing was changed, of a write nothing
    /// is visible (the segment before it could not be sealed); the call can be repeated.
    Io {
        /// What was tried, as a verb: `read`, `open`, `rename`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's answer.
        source: Arc<io::Error>,
    },
    /// Bytes on disk do not verify. Other records stay readable; restore this one from a copy.
    Corrupt {
        /// The damaged file.
        file: PathBuf,
        /// Where in the file, in bytes.
        offset: u64,
        /// What does not verify.
        what: String,
    },
    /// The disk is full. Nothing that was acknowledged is lost; free some space, or delete some
    /// documents and compact, and write again, without reopening.
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
        /// The operating system's answer.
        source: Arc<io::Error>,
    },
    /// A write or sync of this write's group failed. The write is not acknowledged, and whether it
    /// survives a crash is unknown until the next write succeeds; from then on it is absent.
    WriteFailed {
        /// The failure of the write or sync.
        source: Arc<Error>,
    },
    /// An earlier write or sync failed, and the disk does not yet allow writes to resume; or it is
    /// full, and takes deletes only. Reads go on; each write tries again.
    ReadOnly {
        /// Why the last attempt to resume failed.
        source: Arc<Error>,
    },
    /// Another process, or another `Database` of this process, has the folder open. Close it first.
    Locked {
        /// The database's folder.
        path: PathBuf,
    },
    /// The folder holds other files and no database. Choose an empty or new folder; nothing in this
    /// one was changed.
    NotADatabase {
        /// The refused folder.
        path: PathBuf,
    },
    /// The folder holds no database, and the options do not allow one to be created.
    NoDatabase {
        /// The folder.
        path: PathBuf,
    },
    /// A file needs a newer version of this library.
    UnsupportedFormat {
        /// The file.
        file: PathBuf,
        /// The version or feature that is not known.
        what: String,
    },
    /// The database was closed. Open it again.
    Closed,
    /// The collection was dropped. Ask the database for it anew.
    CollectionDropped {
        /// The collection's name.
        name: String,
    },
    /// A handle of one database was given to another one.
    ForeignHandle,
    /// A document with this id exists already. Use `put` to replace it.
    AlreadyExists {
        /// The collection's name.
        collection: String,
        /// The id, for reading.
        id: String,
    },
    /// No document has this id. Use `put` to create it.
    NotFound {
        /// The collection's name.
        collection: String,
        /// The id, for reading.
        id: String,
    },
    /// The id cannot be stored.
    InvalidId {
        /// What is wrong, and the limit.
        what: String,
    },
    /// The document cannot be stored or decoded.
    InvalidDocument {
        /// What is wrong, and the limit.
        what: String,
    },
    /// The collection's name cannot be stored.
    InvalidCollectionName {
        /// What is wrong, and the limit.
        what: String,
    },
    /// The options contradict each other or are out of range.
    InvalidOptions {
        /// Which option, and its range.
        what: String,
    },
    /// The batch is larger than a batch can be. Split it.
    BatchTooLarge {
        /// The batch's size in the log, in bytes.
        bytes: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The sequence is not one that can be read: below the horizon, or not yet written. Keep a
    /// longer [`history`](crate::Options::history), or take a snapshot in time.
    HistoryGone {
        /// The sequence asked for.
        sequence: u64,
        /// The oldest that can be read.
        oldest: u64,
        /// The newest.
        newest: u64,
    },
    /// A background job failed or panicked. Reads go on; close the database and open it again to
    /// write.
    Background {
        /// What happened.
        what: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { action, path, .. } => write!(f, "cannot {action} {}", path.display()),
            Self::Corrupt { file, offset, what } => {
                write!(f, "{} is corrupt at byte {offset}: {what}", file.display())
            }
            Self::DiskFull { path, .. } => {
                write!(f, "no space left for {}: free some space, then write again", path.display())
            }
            Self::WriteFailed { .. } => f.write_str(
                "the write failed and is not acknowledged; \
                 its outcome is unknown until the next write succeeds",
            ),
            Self::ReadOnly { .. } => {
                f.write_str("the database is read-only until the disk allows writes again")
            }
            Self::Locked { path } => write!(
                f,
                "{} is in use by another process or handle; close that one first",
                path.display()
            ),
            Self::NotADatabase { path } => write!(
                f,
                "{} holds files but no database; choose an empty or new folder",
                path.display()
            ),
            Self::NoDatabase { path } => write!(
                f,
                "there is no database at {}, and `create_if_missing` is off",
                path.display()
            ),
            Self::UnsupportedFormat { file, what } => {
                write!(f, "{} needs a newer version of this library: {what}", file.display())
            }
            Self::Closed => f.write_str("the database is closed; open it again"),
            Self::CollectionDropped { name } => write!(
                f,
                "the collection `{}` was dropped; ask the database for a new one",
                name.escape_debug()
            ),
            Self::ForeignHandle => {
                f.write_str("the collection, snapshot or batch belongs to another database")
            }
            Self::AlreadyExists { collection, id } => write!(
                f,
                "the collection `{}` has a document with the id {id} already; `put` replaces it",
                collection.escape_debug()
            ),
            Self::NotFound { collection, id } => write!(
                f,
                "the collection `{}` has no document with the id {id}; `put` creates it",
                collection.escape_debug()
            ),
            Self::InvalidId { what } => write!(f, "invalid id: {what}"),
            Self::InvalidDocument { what } => write!(f, "invalid document: {what}"),
            Self::InvalidCollectionName { what } => {
                write!(f, "invalid collection name: {what}")
            }
            Self::InvalidOptions { what } => write!(f, "invalid options: {what}"),
            Self::BatchTooLarge { bytes, limit } => write!(
                f,
                "the batch takes {bytes} bytes in the log and {limit} are allowed; split it"
            ),
            Self::HistoryGone { sequence, oldest, newest } => write!(
                f,
                "sequence {sequence} cannot be read: {oldest} to {newest} can; a longer history \
                 keeps more, and a snapshot keeps what it sees"
            ),
            Self::Background { what } => {
                write!(f, "background work failed ({what}); close the database and open it again")
            }
        }
    }
}

// By hand, so that the sources are the errors themselves: what is derived would give out `Arc`s,
// which do not downcast to them.
impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io { source, .. } | Self::DiskFull { source, .. } => Some(&**source),
            Self::WriteFailed { source } | Self::ReadOnly { source } => Some(&**source),
            _ => None,
        }
    }
}

impl Error {
    /// An I/O error with its context; a full disk becomes [`Error::DiskFull`].
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        let full = is_full(&source);
        let source = Arc::new(source);
        if full { Self::DiskFull { path, source } } else { Self::Io { action, path, source } }
    }

    /// Whether the cause is a full disk: also where it shows as a write that was cut short.
    pub(crate) fn is_of_full_disk(&self) -> bool {
        match self {
            Self::DiskFull { .. } => true,
            Self::Io { source, .. } => source.kind() == io::ErrorKind::WriteZero,
            Self::WriteFailed { source } | Self::ReadOnly { source } => source.is_of_full_disk(),
            _ => false,
        }
    }

    /// Damage at a place of a file.
    pub(crate) fn corrupt(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Corrupt { file: file.to_owned(), offset, what: what.into() }
    }
}

/// Whether the operating system has no space left to give.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
