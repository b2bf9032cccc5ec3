//! Sediment's storage engine: an embedded, append-log document store.
//!
//! Documents by id, in collections; ordered scans; atomic batches; snapshots; durability chosen per
//! database and per write. The log is the table: a write appends one record to the active segment,
//! the memtable finds it, and sealing the segment adds an index without copying a document.
//!
//! ```
//! use engine::{Database, Options};
//! use serde_json::json;
//!
//! # fn main() -> Result<(), engine::Error> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("cities.db");
//! let database = Database::open(&path, Options::default())?;
//! let cities = database.collection("cities")?;
//! cities.put("oslo", &json!({ "country": "NO", "people": 709_037 }))?;
//! cities.put("bergen", &json!({ "country": "NO", "people": 291_940 }))?;
//! cities.update("oslo", &json!({ "people": 717_710 }))?;
//! for row in cities.scan("a".."p")? {
//!     let (id, city) = row?;
//!     println!("{id}: {:?}", city.get_i64("people")?);
//! }
//! database.close()?;
//! # Ok(())
//! # }
//! ```

mod batch;
pub mod clock;
mod collection;
mod compactor;
mod database;
pub mod disk;
mod document;
mod error;
pub mod executor;
mod format;
mod governor;
mod id;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
mod log;
mod manifest;
mod memtable;
mod options;
#[cfg(not(sediment_planted_bugs))]
mod planted;
#[cfg(sediment_planted_bugs)]
#[doc(hidden)]
pub mod planted;
mod random;
mod recovery;
mod rows;
mod scan;
mod segment;
mod snapshot;
mod stats;
mod store;
mod sync;

pub use bson;

pub use batch::Batch;
pub use collection::Collection;
pub use compactor::CompactionReason;
pub use database::Database;
pub use document::Document;
#[doc(hidden)]
pub use document::merge_documents;
pub use error::{Error, Result};
pub use id::{Id, IdRange, prefix};
pub use options::{Compaction, Durability, Options, Reads, Recovery, WriteDurability};
pub use rows::{Ids, Row, Scan};
pub use snapshot::Snapshot;
pub use stats::{CompactionStats, RecoveryReport, Stats};

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
