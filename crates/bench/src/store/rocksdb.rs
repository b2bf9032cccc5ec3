//! RocksDB, the oracle, set up as its tuning guide advises for point reads and small values:
//! <https://github.com/facebook/rocksdb/wiki/Setup-Options-and-Basic-Tuning>

use std::path::Path;
use std::time::Duration;

use rocksdb::{
    BlockBasedOptions, Cache, ChecksumType, CompactionPri, DB, DBCompactionStyle,
    DBCompressionType, DBRecoveryMode, DataBlockIndexType, Options, ReadOptions,
    WaitForCompactOptions, WriteBatch, WriteOptions,
    statistics::{StatsLevel, Ticker},
};
use serde_json::json;

use super::stripes::Stripes;
use super::{
    Deletes, Durability, Figures, Loses, Presence, Settings, Settled, Statistics, Store,
    StoreConfig, Visitor,
};
use crate::error::{Context, Failure, Result};

/// Level 0 is compacted at this many files (RocksDB's default).
const LEVEL0_COMPACTION: i32 = 4;
const LEVEL0_SLOWDOWN: i32 = 20;
const LEVEL0_STOP: i32 = 36;
/// RocksDB's default. The guide's 16 KiB reads a quarter slower here: its advice is for compressed
/// blocks on a device, and these are neither.
const BLOCK_BYTES: u16 = 4096;
const BLOOM_BITS: u8 = 10;
/// The newest that this RocksDB writes.
const FORMAT_VERSION: i32 = 7;
/// The guide's advice: write-back in steps instead of one burst at the end of a table.
const BYTES_PER_SYNC: u64 = 1 << 20;
/// Recycled logs are overwritten in place, so fdatasync need not write the inode each time: the
/// counterpart of the engine's zero-filled log.
const RECYCLED_LOGS: usize = 4;

pub(crate) struct RocksDb {
    db: DB,
    read: ReadOptions,
    write: WriteOptions,
    guards: Stripes,
    /// They hold the statistics, where those are on.
    counted: Option<Options>,
}

/// Sizes that follow from the memtable's, as the guide has it: level 1 as large as level 0, and
/// ten files in it.
struct Sizes {
    write_buffer: usize,
    level_base: u64,
    file_base: u64,
    cache: usize,
}

impl Sizes {
    fn new(config: &StoreConfig) -> Self {
        let level_base = config.memtable_bytes.saturating_mul(4);
        Self {
            write_buffer: usize::try_from(config.memtable_bytes).unwrap_or(usize::MAX),
            level_base,
            file_base: (level_base / 10).max(1 << 20),
            cache: usize::try_from(config.cache_bytes).unwrap_or(usize::MAX),
        }
    }
}

/// Of the row that an iterator stands on.
fn append_key(of_row: Option<&[u8]>, key: &mut Vec<u8>) -> Result<()> {
    let of_row = of_row.ok_or_else(|| Failure::new("a row has no key"))?;
    key.extend_from_slice(of_row);
    Ok(())
}

fn background_jobs(config: &StoreConfig) -> i32 {
    i32::try_from(config.cores.max(2)).unwrap_or(i32::MAX)
}

fn options(config: &StoreConfig) -> Options {
    let sizes = Sizes::new(config);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(DBCompressionType::None);
    options.set_bottommost_compression_type(DBCompressionType::None);
    options.set_wal_compression_type(DBCompressionType::None);
    options.set_write_buffer_size(sizes.write_buffer);
    options.set_max_write_buffer_number(2);
    options.set_min_write_buffer_number_to_merge(1);
    options.set_compaction_style(DBCompactionStyle::Level);
    options.set_compaction_pri(CompactionPri::MinOverlappingRatio);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_max_bytes_for_level_base(sizes.level_base);
    options.set_target_file_size_base(sizes.file_base);
    options.set_level_zero_file_num_compaction_trigger(LEVEL0_COMPACTION);
    options.set_level_zero_slowdown_writes_trigger(LEVEL0_SLOWDOWN);
    options.set_level_zero_stop_writes_trigger(LEVEL0_STOP);
    options.set_max_background_jobs(background_jobs(config));
    options.set_max_subcompactions(1);
    options.set_bytes_per_sync(BYTES_PER_SYNC);
    options.set_use_fsync(false);
    options.set_manual_wal_flush(false);
    options.set_recycle_log_file_num(RECYCLED_LOGS);
    options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    options.set_max_open_files(-1);
    options.set_allow_concurrent_memtable_write(true);
    options.set_enable_write_thread_adaptive_yield(true);
    options.set_block_based_table_factory(&table_options(&sizes));
    if config.statistics == Statistics::On {
        options.enable_statistics();
        options.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
    }
    options
}

fn table_options(sizes: &Sizes) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_block_size(usize::from(BLOCK_BYTES));
    table.set_block_cache(&Cache::new_lru_cache(sizes.cache));
    table.set_bloom_filter(f64::from(BLOOM_BITS), false);
    table.set_whole_key_filtering(true);
    table.set_cache_index_and_filter_blocks(true);
    table.set_cache_index_and_filter_blocks_with_high_priority(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    table.set_format_version(FORMAT_VERSION);
    table.set_checksum_type(ChecksumType::XXH3);
    table.set_data_block_index_type(DataBlockIndexType::BinarySearch);
    table
}

impl Store for RocksDb {
    const VERSION: &'static str = env!("BENCH_ROCKSDB_VERSION");

    fn settings(config: &StoreConfig) -> Settings {
        let sizes = Sizes::new(config);
        let settings = json!({
            "compression": "none",
            "bottommost_compression": "none",
            "wal_compression": "none",
            "write_buffer_size": sizes.write_buffer,
            "max_write_buffer_number": 2,
            "min_write_buffer_number_to_merge": 1,
            "compaction_style": "level",
            "compaction_pri": "min_overlapping_ratio",
            "level_compaction_dynamic_level_bytes": true,
            "max_bytes_for_level_base": sizes.level_base,
            "target_file_size_base": sizes.file_base,
            "level0_file_num_compaction_trigger": LEVEL0_COMPACTION,
            "level0_slowdown_writes_trigger": LEVEL0_SLOWDOWN,
            "level0_stop_writes_trigger": LEVEL0_STOP,
            "max_background_jobs": background_jobs(config),
            "max_subcompactions": 1,
            "bytes_per_sync": BYTES_PER_SYNC,
            "use_fsync": false,
            "manual_wal_flush": false,
            "recycle_log_file_num": RECYCLED_LOGS,
            "wal_recovery_mode": "point_in_time",
            "max_open_files": -1,
            "allow_concurrent_memtable_write": true,
            "enable_write_thread_adaptive_yield": true,
            "block_size": BLOCK_BYTES,
            "block_cache": "lru",
            "block_cache_bytes": sizes.cache,
            "bloom_bits_per_key": BLOOM_BITS,
            "whole_key_filtering": true,
            "cache_index_and_filter_blocks": true,
            "cache_index_and_filter_blocks_with_high_priority": true,
            "pin_l0_filter_and_index_blocks_in_cache": true,
            "format_version": FORMAT_VERSION,
            "checksum": "xxh3",
            "data_block_index_type": "binary_search",
            "write_sync": config.durability == Durability::Durable,
            "write_disable_wal": false,
            "background_wal_sync": "none",
            "read_verify_checksums": true,
            "read_readahead": "automatic",
            "update": "read-modify-write under a guard of the id",
        });
        let statistics = match config.statistics {
            Statistics::Off => "off",
            Statistics::On => "except_histogram_or_timers",
        };
        let settings = settings.as_object().into_iter().flatten();
        let settings = settings.map(|(name, value)| (name.clone(), value.clone()));
        settings.chain([("statistics".to_owned(), statistics.into())]).collect()
    }

    fn loses(durability: Durability) -> Loses {
        match durability {
            Durability::Durable => Loses::nothing(),
            Durability::Buffered => Loses::new(
                Loses::NOTHING,
                "the writes of the log that the kernel has not written back; no interval bounds them",
            ),
        }
    }

    fn open(folder: &Path, config: &StoreConfig) -> Result<Self> {
        let options = options(config);
        let db = DB::open(&options, folder)
            .context(|| format!("rocksdb cannot open {}", folder.display()))?;
        let mut write = WriteOptions::default();
        write.set_sync(config.durability == Durability::Durable);
        write.disable_wal(false);
        let mut read = ReadOptions::default();
        read.set_verify_checksums(true);
        let counted = (config.statistics == Statistics::On).then_some(options);
        Ok(Self { db, read, write, guards: Stripes::new(), counted })
    }

    fn load(&self, records: &[(String, Vec<u8>)]) -> Result<()> {
        let mut batch = WriteBatch::default();
        for (key, document) in records {
            batch.put(key, document);
        }
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        self.db.write_opt(batch, &synced).map_err(Failure::new)
    }

    fn read(&self, key: &str, visitor: &mut impl Visitor) -> Result<Presence> {
        match self.db.get_pinned_opt(key, &self.read).map_err(Failure::new)? {
            Some(value) => {
                visitor.value(&value);
                Ok(Presence::Found)
            }
            None => Ok(Presence::Missing),
        }
    }

    fn insert(&self, key: &str, document: &[u8]) -> Result<()> {
        self.db.put_opt(key, document, &self.write).map_err(Failure::new)
    }

    fn update(&self, key: &str, fields: &[u8]) -> Result<Presence> {
        let _guard = self.guards.lock(key.as_bytes());
        let Some(existing) = self.db.get_pinned_opt(key, &self.read).map_err(Failure::new)? else {
            return Ok(Presence::Missing);
        };
        let merged = engine::merge_documents(&existing, fields).map_err(Failure::new)?;
        // Unpinned before the write, as a caller would.
        drop(existing);
        self.db.put_opt(key, merged, &self.write).map_err(Failure::new)?;
        Ok(Presence::Found)
    }

    fn scan(&self, key: &str, limit: usize, visitor: &mut impl Visitor) -> Result<usize> {
        let mut rows = self.db.raw_iterator();
        rows.seek(key);
        let mut visited = 0;
        while visited < limit {
            let Some(value) = rows.value() else { break };
            visitor.row(|key| append_key(rows.key(), key), value)?;
            visited += 1;
            if visited < limit {
                rows.next();
            }
        }
        rows.status().map_err(Failure::new)?;
        Ok(visited)
    }

    /// Log, flushes and compactions; the manifest is not counted.
    fn figures(&self) -> Figures {
        let written = [Ticker::WalFileBytes, Ticker::FlushWriteBytes, Ticker::CompactWriteBytes];
        let sum =
            |options: &Options| written.into_iter().map(|t| options.get_ticker_count(t)).sum();
        Figures { written_bytes: self.counted.as_ref().map(sum), recovered_records: None }
    }

    fn settle(&self, patience: Duration) -> Result<Settled> {
        let mut wait = WaitForCompactOptions::default();
        wait.set_flush(true);
        wait.set_timeout(u64::try_from(patience.as_micros()).unwrap_or(u64::MAX));
        match self.db.wait_for_compact(&wait) {
            Ok(()) => Ok(Settled::Idle),
            Err(error) if error.kind() == rocksdb::ErrorKind::TimedOut => Ok(Settled::TimedOut),
            Err(error) => Err(Failure::new(error)),
        }
    }

    /// Dropping the handle closes the database and waits for its background work.
    fn close(self) -> Result<()> {
        self.db.cancel_all_background_work(true);
        Ok(())
    }
}

impl Deletes for RocksDb {
    fn delete(&self, key: &str) -> Result<()> {
        self.db.delete_opt(key, &self.write).map_err(Failure::new)
    }
}
