//! Raw: what a durable write costs at least. No store, since it recovers nothing; a floor.
//!
//! 1. An insert or update is one write, at the end of one file, of as many bytes as the engine's
//!    log record of it takes, then an fdatasync. No checksum, no index, no marks.
//! 2. The write goes to blocks that were filled with zeros and synced ahead, when the file was
//!    opened. So the window pays for no zeros, where the engine zeroes beside its writes: all else
//!    is free. They are written a page at a time, since a write to a larger folio of the page
//!    cache costs more. A cell that uses them up pauses for more, in the open.
//! 3. Everything else is answered from memory, out of an ordered map, because the verification
//!    also scans. Opening reads the whole file back.
//! 4. One client, because a second one asks for group commit, which is a store's work. The mutex
//!    is never contended: the command line allows one client.

mod log;

use std::fs;
use std::ops::Bound;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::json;

use self::log::{Log, ZEROS_AHEAD_BYTES, push_record};
use super::{Durability, Loses, Presence, Scope, Settings, Store, StoreConfig, Visitor};
use crate::error::{Context, Failure, Result};

pub(crate) struct Raw(Mutex<Log>);

impl Raw {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Raw {
    const VERSION: &'static str = "1";
    const SCOPE: Scope = Scope::DurableUpdates;

    fn settings(_: &StoreConfig) -> Settings {
        Settings::from([
            ("log".to_owned(), "one pwrite a record of the engine's size, in place".into()),
            ("sync".to_owned(), "fdatasync".into()),
            ("zeros_ahead_bytes".to_owned(), json!(ZEROS_AHEAD_BYTES)),
            ("recovery".to_owned(), "none".into()),
        ])
    }

    fn loses(_: Durability) -> Loses {
        Loses::nothing()
    }

    fn open(folder: &Path, config: &StoreConfig) -> Result<Self> {
        if config.durability != Durability::Durable {
            return Err(Failure::new("raw writes durably only"));
        }
        let what = || format!("raw cannot open {}", folder.display());
        fs::create_dir_all(folder).context(what)?;
        Log::open(&folder.join("log")).context(what).map(|log| Self(Mutex::new(log)))
    }

    fn load(&self, records: &[(String, Vec<u8>)]) -> Result<()> {
        let mut log = self.log();
        log.record.clear();
        for (key, document) in records {
            push_record(&mut log.record, key, document)?;
        }
        log.append()?;
        log.documents.extend(records.iter().cloned());
        Ok(())
    }

    fn read(&self, key: &str, visitor: &mut impl Visitor) -> Result<Presence> {
        let log = self.log();
        let Some(document) = log.documents.get(key) else { return Ok(Presence::Missing) };
        visitor.value(document);
        Ok(Presence::Found)
    }

    fn insert(&self, key: &str, document: &[u8]) -> Result<()> {
        self.log().put(key, document.to_vec())
    }

    fn update(&self, key: &str, fields: &[u8]) -> Result<Presence> {
        let mut log = self.log();
        let Some(existing) = log.documents.get(key) else { return Ok(Presence::Missing) };
        let merged = engine::merge_documents(existing, fields).map_err(Failure::new)?;
        log.put(key, merged)?;
        Ok(Presence::Found)
    }

    fn scan(&self, key: &str, limit: usize, visitor: &mut impl Visitor) -> Result<usize> {
        let log = self.log();
        let from = (Bound::Included(key), Bound::Unbounded);
        let mut rows = 0;
        for (id, document) in log.documents.range::<str, _>(from).take(limit) {
            visitor.row(
                |key| {
                    key.extend_from_slice(id.as_bytes());
                    Ok(())
                },
                document,
            )?;
            rows += 1;
        }
        Ok(rows)
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use engine::{Database, Options};

    use super::super::Statistics;
    use super::log::{PAGE_BYTES, record_bytes};
    use super::*;

    const CONFIG: StoreConfig = StoreConfig {
        durability: Durability::Durable,
        memtable_bytes: 4 << 20,
        cache_bytes: 8 << 20,
        cores: 1,
        statistics: Statistics::Off,
    };

    #[derive(Default)]
    struct Values(Vec<Vec<u8>>);

    impl Visitor for Values {
        fn value(&mut self, bytes: &[u8]) {
            self.0.push(bytes.to_vec());
        }
    }

    fn document(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(b"\x02f\0");
        bytes.extend_from_slice(&u32::try_from(text.len() + 1).unwrap().to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
        bytes.extend_from_slice(&[0, 0]);
        let length = u32::try_from(bytes.len()).unwrap();
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    /// Buffered for an hour, so that no sync and with it no mark comes between.
    #[test]
    fn a_record_takes_as_many_bytes_as_in_the_engines_log() {
        let folder = tempfile::tempdir().unwrap();
        let flush_interval = Duration::from_secs(3600);
        let options = Options::default()
            .durability(engine::Durability::Buffered { flush_interval })
            .create_if_missing(true);
        let database = Database::open(folder.path().join("db"), options).unwrap();
        let records = database.collection("usertable").unwrap();
        records.put_raw("first", &document("")).unwrap();
        for length in 0..40 {
            let (key, document) = ("k".repeat(1 + length % 11), document(&"d".repeat(length)));
            let before = database.stats().log_bytes;
            records.put_raw(key.as_str(), &document).unwrap();
            let bytes = database.stats().log_bytes - before;
            assert_eq!(bytes, record_bytes(&key, &document) as u64, "{key} {length}");
            let mut record = Vec::new();
            push_record(&mut record, &key, &document).unwrap();
            assert_eq!(record.len() as u64, bytes);
        }
    }

    #[test]
    fn what_was_written_is_there_after_another_open() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("raw");
        let raw = Raw::open(&folder, &CONFIG).unwrap();
        let loaded = ["a", "b", "c"].map(|key| (key.to_owned(), document("old")));
        raw.load(&loaded).unwrap();
        raw.close().unwrap();
        let raw = Raw::open(&folder, &CONFIG).unwrap();
        assert_eq!(raw.update("b", &document("new")).unwrap(), Presence::Found);
        assert_eq!(raw.update("x", &document("new")).unwrap(), Presence::Missing);
        raw.insert("d", &document("inserted")).unwrap();
        let ready = raw.log().ready;
        raw.close().unwrap();

        let raw = Raw::open(&folder, &CONFIG).unwrap();
        let mut values = Values::default();
        assert_eq!(raw.scan("b", 10, &mut values).unwrap(), 3);
        assert_eq!(values.0, [document("new"), document("old"), document("inserted")]);
        assert_eq!(raw.read("x", &mut values).unwrap(), Presence::Missing);
        assert!(raw.log().ready - ready < PAGE_BYTES * 2, "zeros are used before more are written");
    }

    #[test]
    fn an_update_is_written_over_synced_zeros() {
        let parent = tempfile::tempdir().unwrap();
        let raw = Raw::open(parent.path(), &CONFIG).unwrap();
        raw.load(&[("a".to_owned(), document("old"))]).unwrap();
        raw.update("a", &document("new")).unwrap();
        let log = raw.log();
        assert_eq!(log.file.metadata().unwrap().len(), log.ready);
        assert!(log.ready >= log.end + ZEROS_AHEAD_BYTES - PAGE_BYTES);
    }

    #[test]
    fn buffered_writes_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let config = StoreConfig { durability: Durability::Buffered, ..CONFIG };
        let failure = Raw::open(folder.path(), &config).err().unwrap();
        assert!(failure.to_string().contains("durably only"));
    }
}
