//! What the fault tests share: databases on a disk in memory whose background work is stepped by
//! hand, and the tools to break them.

#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "test support, of which each file uses a part"
)]

#[path = "../common/hook.rs"]
pub mod hook;
pub mod life;
pub mod sorted;

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::clock::ManualClock;
use engine::disk::faulty::Call;
use engine::disk::{Access, Disk, MemoryDisk, OpenMode};
use engine::executor::Stepped;
use engine::{Collection, Compaction, Database, Durability, Error, Options, Reads, Recovery};
use serde_json::json;

pub const DIR: &str = "/db";
pub const LOG_START: usize = 4096;

/// Every call that changes something.
pub const CHANGES: &[Call] = &[
    Call::Write,
    Call::SyncData,
    Call::SyncDir,
    Call::SetLen,
    Call::Allocate,
    Call::Rename,
    Call::Remove,
];

/// Every row of the collection that the tests use: the id and its field `v`.
pub type Rows = BTreeMap<i64, i64>;

/// How a database of these tests is opened. Small enough to seal after 1024 records.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub durability: Durability,
    pub recovery: Recovery,
    pub memtable_bytes: u64,
    pub segment_bytes: u64,
    pub compaction: Compaction,
    pub level0_runs: usize,
    pub history: u64,
    pub reads: Reads,
}

pub const DURABLE: Setup = Setup {
    durability: Durability::Durable,
    recovery: Recovery::Strict,
    memtable_bytes: 64 << 10,
    segment_bytes: 64 << 10,
    compaction: Compaction::Automatic,
    level0_runs: 6,
    history: 0,
    reads: Reads::Automatic,
};

pub const BUFFERED: Setup = Setup { durability: Durability::BUFFERED, ..DURABLE };

impl Setup {
    pub fn cut_at_damage(self) -> Self {
        Self { recovery: Recovery::CutAtDamage, ..self }
    }

    /// Without compaction, for tests of the log and of its sealed segments.
    pub fn manual(self) -> Self {
        Self { compaction: Compaction::Manual, ..self }
    }

    /// The smallest limits: a memtable of 64 records, segments of 16 KiB, of 8 KiB in level 1. All
    /// of level 0 in as few runs as can be.
    pub fn tiny(self) -> Self {
        Self { memtable_bytes: 4 << 10, segment_bytes: 16 << 10, level0_runs: 2, ..self }
    }

    pub fn open(self, disk: &Arc<dyn Disk>) -> Result<Opened, Error> {
        self.open_at(Path::new(DIR), disk)
    }

    /// A fresh executor and clock with each call: a close shuts the executor down.
    pub fn open_at(self, folder: &Path, disk: &Arc<dyn Disk>) -> Result<Opened, Error> {
        let clock = Arc::new(ManualClock::default());
        let executor = Arc::new(Stepped::new(Arc::clone(&clock)));
        let options = Options::default()
            .durability(self.durability)
            .recovery(self.recovery)
            .memtable_bytes(self.memtable_bytes)
            .segment_bytes(self.segment_bytes)
            .memory_budget(2 * self.memtable_bytes)
            .compaction(self.compaction)
            .level0_runs(self.level0_runs)
            .history(self.history)
            .reads(self.reads)
            .disk(Arc::clone(disk))
            .clock(Arc::clone(&clock) as _)
            .executor(Arc::clone(&executor) as _);
        let database = Database::open(folder, options)?;
        Ok(Opened { database, clock, executor })
    }

    pub fn open_memory(self, disk: &MemoryDisk) -> Result<Opened, Error> {
        self.open(&shared(disk))
    }
}

pub fn shared(disk: &MemoryDisk) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}

/// An open database, its clock and its background work.
#[derive(Debug)]
pub struct Opened {
    pub database: Database,
    pub clock: Arc<ManualClock>,
    pub executor: Arc<Stepped>,
}

impl Opened {
    pub fn collection(&self) -> Collection {
        self.database.collection("c").unwrap()
    }

    /// Runs what is due.
    pub fn step(&self) {
        self.executor.run_until_idle();
    }

    /// Lets time pass, and runs what is then due.
    pub fn pass(&self, time: Duration) {
        self.clock.advance(time);
        self.step();
    }

    pub fn rows(&self) -> Rows {
        self.try_rows().unwrap()
    }

    pub fn try_rows(&self) -> Result<Rows, Error> {
        rows(&self.database)
    }
}

pub fn rows(database: &Database) -> Result<Rows, Error> {
    if !database.collections()?.iter().any(|name| name == "c") {
        return Ok(Rows::new());
    }
    let mut rows = Rows::new();
    for row in database.collection("c")?.scan(..)? {
        let (id, document) = row?;
        let engine::Id::Integer(id) = id else { panic!("an id that nobody wrote: {id}") };
        let value = document.get_i64("v")?.expect("every document has a `v`");
        rows.insert(id, value);
    }
    Ok(rows)
}

/// All of one size.
pub fn document(value: i64) -> serde_json::Value {
    json!({ "v": value, "pad": "0123456789abcdef" })
}

pub fn put(collection: &Collection, id: i64, value: i64) -> Result<(), Error> {
    collection.put(id, &document(value))
}

/// A document so large that a segment takes 15 of them.
pub fn large_document(value: i64) -> serde_json::Value {
    json!({ "v": value, "pad": "0".repeat(4000) })
}

pub fn put_large(collection: &Collection, id: i64, value: i64) -> Result<(), Error> {
    collection.put(id, &large_document(value))
}

/// The same value for each id, as [`put`] of `id` and `10 * id` writes it.
pub fn expected(ids: impl IntoIterator<Item = i64>) -> Rows {
    ids.into_iter().map(|id| (id, 10 * id)).collect()
}

/// The disk as a killed process leaves it: everything written is there, locks are free.
pub fn kill(disk: &MemoryDisk) -> MemoryDisk {
    disk.power_cut(|_| true).unwrap()
}

/// The disk as a power cut leaves it that takes all that was not synced.
pub fn power_cut(disk: &MemoryDisk) -> MemoryDisk {
    disk.power_cut(|_| false).unwrap()
}

pub fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

pub fn names(disk: &dyn Disk) -> Vec<String> {
    disk.list(Path::new(DIR)).unwrap().into_iter().map(|n| n.into_string().unwrap()).collect()
}

/// The segment files, oldest first.
pub fn segments(disk: &dyn Disk) -> Vec<PathBuf> {
    names(disk).iter().filter(|name| name.ends_with(".seg")).map(|name| path(name)).collect()
}

pub fn read(disk: &dyn Disk, path: &Path) -> Vec<u8> {
    let file = disk.open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(&mut bytes, 0, Access::Keep).unwrap();
    bytes
}

/// Writes into a file and syncs it, so that what a test does to a file is there after a power cut.
pub fn overwrite(disk: &dyn Disk, path: &Path, offset: usize, bytes: &[u8]) {
    let file = disk.open(path, OpenMode::ReadWrite).unwrap();
    let written = file.write_at(&[IoSlice::new(bytes)], offset as u64, Access::Keep).unwrap();
    assert_eq!(written, bytes.len());
    file.sync_data().unwrap();
}

pub fn create(disk: &dyn Disk, path: &Path, bytes: &[u8]) {
    disk.open(path, OpenMode::CreateNew).unwrap();
    overwrite(disk, path, 0, bytes);
}

pub fn flip(disk: &dyn Disk, path: &Path, offset: usize, bit: u32) {
    let byte = read(disk, path)[offset] ^ (1 << bit);
    overwrite(disk, path, offset, &[byte]);
}

pub fn truncate(disk: &dyn Disk, path: &Path, len: usize) {
    let file = disk.open(path, OpenMode::ReadWrite).unwrap();
    file.set_len(len as u64).unwrap();
    file.sync_data().unwrap();
}

/// A record of a log, as docs/format.md draws it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub offset: usize,
    /// Header, id and document.
    pub used: usize,
    /// With the padding.
    pub len: usize,
    pub kind: u8,
}

pub const PUT: u8 = 1;
pub const MARK: u8 = 7;

impl Record {
    pub fn end(&self) -> usize {
        self.offset + self.len
    }
}

/// The records from the log's beginning to the first place that holds none.
pub fn records(bytes: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    let mut offset = LOG_START;
    while let Some(header) = bytes.get(offset..offset + 28) {
        let kind = header[4];
        if !(1..=9).contains(&kind) {
            break;
        }
        let id = usize::from(u16::from_le_bytes([header[6], header[7]]));
        let document = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        let used = 28 + id + usize::try_from(document).unwrap();
        let len = used.next_multiple_of(8);
        records.push(Record { offset, used, len, kind });
        offset += len;
    }
    records
}

/// The segment with the most log records that are not marks: the one that the test wrote to, when
/// it wrote to one.
pub fn log_segment(disk: &dyn Disk) -> PathBuf {
    let puts = |path: &PathBuf| {
        records(&read(disk, path)).iter().filter(|record| record.kind != MARK).count()
    };
    segments(disk).into_iter().max_by_key(puts).unwrap()
}

/// Small, seeded, and the same on every machine.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// From SEDIMENT_SEED, else as given. Printed, which a failing test shows.
    pub fn new(seed: u64) -> Self {
        let given = std::env::var("SEDIMENT_SEED").ok();
        let parse = |text: &str| match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        };
        let seed = given.as_deref().and_then(parse).unwrap_or(seed);
        println!("SEDIMENT_SEED={seed:#x}");
        Self(seed)
    }

    /// From a number that another one chose.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut h = self.0;
        h = (h ^ (h >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        h = (h ^ (h >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        h ^ (h >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn bit(&mut self) -> u32 {
        u32::try_from(self.below(8)).unwrap()
    }
}

/// Whether an error, or what caused it, is a full disk.
pub fn is_disk_full(error: &Error) -> bool {
    match error {
        Error::DiskFull { .. } => true,
        Error::WriteFailed { source } | Error::ReadOnly { source } => is_disk_full(source),
        _ => false,
    }
}

/// The file that a `Corrupt` names; panics on any other error.
pub fn corrupt_file(error: &Error) -> PathBuf {
    match error {
        Error::Corrupt { file, .. } => file.clone(),
        other => panic!("expected Corrupt, got {other:?}"),
    }
}
