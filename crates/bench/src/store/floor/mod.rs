//! Floor: what the hardware allows for reads and scans. No store, since nothing can be updated.
//!
//! 1. The documents lie in one mapped file, in the order of their ids, each with a checksum of its
//!    id and itself that every read, and every row of a scan, verifies.
//! 2. A read is a look into a hash table of places and one record. A scan finds its first record so
//!    and walks the file; the sorted places are for ids that are not there.
//! 3. A load appends batches to a log, a sync each. The file is sorted once the load is over: when
//!    the first record is asked for, or at the end. Nothing is loaded after that.
//! 4. E's inserts, a twentieth of its operations, are answered and not kept: what keeps scans in
//!    order under inserts is a store's work.

mod sorted;

use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use self::sorted::Sorted;
use super::{Durability, Loses, Presence, Scope, Settings, Store, StoreConfig, Visitor, copied};
use crate::error::{Context, Failure, Result};

pub(crate) struct Floor {
    folder: PathBuf,
    log: Mutex<File>,
    sorted: OnceLock<Sorted>,
}

impl Floor {
    fn log(&self) -> MutexGuard<'_, File> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sorted_path(&self) -> PathBuf {
        self.folder.join("sorted")
    }

    fn sorted(&self) -> Result<&Sorted> {
        if let Some(sorted) = self.sorted.get() {
            return Ok(sorted);
        }
        let _log = self.log();
        if self.sorted.get().is_none() {
            let log =
                File::open(self.folder.join("log")).context(|| "floor cannot read its log")?;
            sorted::sort(BufReader::new(log), &self.sorted_path())?;
            // Whoever holds the log is the only one that fills the cell.
            drop(self.sorted.set(Sorted::open(&self.sorted_path())?));
        }
        self.sorted.get().ok_or_else(|| Failure::new("floor has no documents"))
    }
}

impl Store for Floor {
    const VERSION: &'static str = "1";
    const SCOPE: Scope = Scope::Reads;

    fn settings(_: &StoreConfig) -> Settings {
        Settings::from([
            ("documents".to_owned(), "a mapped file in the order of ids".into()),
            ("index".to_owned(), "hashbrown with foldhash, and sorted places".into()),
            ("checksum".to_owned(), "crc32 of id and document, verified at every read".into()),
            ("inserts".to_owned(), "answered and not kept".into()),
        ])
    }

    fn loses(_: Durability) -> Loses {
        Loses::new("every insert", "every insert")
    }

    fn open(folder: &Path, _: &StoreConfig) -> Result<Self> {
        let what = || format!("floor cannot open {}", folder.display());
        fs::create_dir_all(folder).context(what)?;
        let log = File::options().create(true).append(true).open(folder.join("log"));
        let floor = Self {
            folder: folder.to_owned(),
            log: Mutex::new(log.context(what)?),
            sorted: OnceLock::new(),
        };
        if floor.sorted_path().exists() {
            drop(floor.sorted.set(Sorted::open(&floor.sorted_path())?));
        }
        Ok(floor)
    }

    fn load(&self, records: &[(String, Vec<u8>)]) -> Result<()> {
        let mut log = self.log();
        if self.sorted.get().is_some() {
            return Err(Failure::new("floor takes no records after the load"));
        }
        let mut batch = Vec::new();
        for (key, document) in records {
            sorted::push_record(&mut batch, key.as_bytes(), document)?;
        }
        log.write_all(&batch).context(|| "floor cannot write its log")?;
        log.sync_data().context(|| "floor cannot sync its log")
    }

    fn read(&self, key: &str, visitor: &mut impl Visitor) -> Result<Presence> {
        let sorted = self.sorted()?;
        match sorted.find(key.as_bytes()) {
            Some(place) => {
                visitor.value(sorted.record(place)?.document);
                Ok(Presence::Found)
            }
            None => Ok(Presence::Missing),
        }
    }

    fn insert(&self, _: &str, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn update(&self, _: &str, _: &[u8]) -> Result<Presence> {
        Err(Failure::new("floor has no updates"))
    }

    fn scan(&self, key: &str, limit: usize, visitor: &mut impl Visitor) -> Result<usize> {
        let sorted = self.sorted()?;
        let mut place = sorted.first_from(key.as_bytes());
        let mut rows = 0;
        while rows < limit && !sorted.is_end(place) {
            let record = sorted.record(place)?;
            visitor.row(|key| copied(record.key, key), record.document)?;
            place = record.end;
            rows += 1;
        }
        Ok(rows)
    }

    fn close(self) -> Result<()> {
        self.sorted().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Statistics;
    use super::*;

    const CONFIG: StoreConfig = StoreConfig {
        durability: Durability::Buffered,
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

    fn scanned(floor: &Floor, from: &str, limit: usize) -> Vec<String> {
        let mut values = Values::default();
        let rows = floor.scan(from, limit, &mut values).unwrap();
        assert_eq!(rows, values.0.len());
        values.0.into_iter().map(|value| String::from_utf8(value).unwrap()).collect()
    }

    fn record(key: &str) -> (String, Vec<u8>) {
        (key.to_owned(), format!("document of {key}").into_bytes())
    }

    #[test]
    fn documents_are_found_and_scanned_in_the_order_of_ids() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("floor");
        let floor = Floor::open(&folder, &CONFIG).unwrap();
        floor.load(&["m", "c"].map(record)).unwrap();
        floor.load(&["x", "ca"].map(record)).unwrap();
        let check = |floor: &Floor| {
            assert_eq!(scanned(floor, "", 9).len(), 4);
            assert_eq!(scanned(floor, "c", 2), ["document of c", "document of ca"]);
            assert_eq!(scanned(floor, "d", 9), ["document of m", "document of x"]);
            assert!(scanned(floor, "xx", 9).is_empty() && scanned(floor, "c", 0).is_empty());
            let mut values = Values::default();
            assert_eq!(floor.read("m", &mut values).unwrap(), Presence::Found);
            assert_eq!(values.0, [b"document of m"]);
            assert_eq!(floor.read("n", &mut values).unwrap(), Presence::Missing);
        };
        check(&floor);
        assert!(floor.load(&["a"].map(record)).is_err(), "the file is sorted already");
        floor.close().unwrap();
        check(&Floor::open(&folder, &CONFIG).unwrap());
    }

    #[test]
    fn a_flipped_bit_is_an_error_in_reads_and_scans() {
        let folder = tempfile::tempdir().unwrap();
        let floor = Floor::open(folder.path(), &CONFIG).unwrap();
        floor.load(&["a", "b"].map(record)).unwrap();
        floor.close().unwrap();
        let file = folder.path().join("sorted");
        let mut bytes = fs::read(&file).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(&file, bytes).unwrap();
        let floor = Floor::open(folder.path(), &CONFIG).unwrap();
        let mut values = Values::default();
        assert_eq!(floor.read("a", &mut values).unwrap(), Presence::Found);
        let failure = floor.read("b", &mut values).unwrap_err().to_string();
        assert!(failure.contains("damaged"), "{failure}");
        assert!(floor.scan("a", 2, &mut values).is_err());
    }

    #[test]
    fn a_floor_without_records_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let floor = Floor::open(folder.path(), &CONFIG).unwrap();
        assert!(scanned(&floor, "", 9).is_empty());
        floor.close().unwrap();
    }
}
