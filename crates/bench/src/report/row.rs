//! A row: one repeat of one cell, as one line of a results file. `docs/bench/README.md` defines
//! every field and its unit; a change of meaning raises `SCHEMA`.

use serde::{Deserialize, Serialize};

use crate::measure::amplification::WriteAmplification;
use crate::measure::machine::Machine;
use crate::measure::processor::Quietness;
use crate::run::cell::Measurement;
use crate::run::{Folder, Opening, Oversize};
use crate::store::{Durability, Loses, Settings};
use crate::verify::Digest;
use crate::verify::history::Verification;
use crate::workload::{Distribution, InsertOrder, Workload};

pub(crate) const SCHEMA: u32 = 1;

/// Where this knowingly differs from YCSB.
pub(crate) const DEVIATIONS: [&str; 4] = [
    "a failed insert is not acknowledged",
    "expected inserts are estimated from the window and 20000 operations a second",
    "operations a second leave out the time in which keys and values are made",
    "stores keep one BSON document a record; updates replace a field of it",
];

/// Loading the records, or running a workload over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    Load,
    Run,
}

impl From<Option<Workload>> for Phase {
    fn from(workload: Option<Workload>) -> Self {
        workload.map_or(Self::Load, |_| Self::Run)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) schema: u32,
    pub(crate) run: String,
    pub(crate) bench: String,
    pub(crate) job: Option<String>,
    pub(crate) cell: String,
    pub(crate) repeat: u32,
    /// The arguments that the bench was started with.
    pub(crate) command: String,
    pub(crate) commit: String,
    pub(crate) machine: Machine,
    pub(crate) target_cpu: String,
    pub(crate) store: String,
    pub(crate) store_version: String,
    pub(crate) options: Settings,
    /// Rows of the first runs lack it.
    pub(crate) loses: Option<Loses>,
    pub(crate) workload: String,
    pub(crate) phase: Phase,
    pub(crate) folder: Folder,
    pub(crate) request_distribution: Option<Distribution>,
    pub(crate) insert_order: InsertOrder,
    pub(crate) threads: u32,
    pub(crate) durability: Durability,
    pub(crate) records: u64,
    pub(crate) fields: u32,
    pub(crate) field_bytes: u32,
    pub(crate) value_bytes: u64,
    pub(crate) document_bytes: u64,
    pub(crate) seed: u64,
    pub(crate) deviations: Vec<String>,
    pub(crate) digest: Option<Digest>,
    pub(crate) live_bytes: Option<u64>,
    #[serde(flatten)]
    pub(crate) measurement: Measurement,
    #[serde(flatten)]
    pub(crate) write_amplification: Option<WriteAmplification>,
    #[serde(flatten)]
    pub(crate) opening: Option<Opening>,
    #[serde(flatten)]
    pub(crate) oversize: Option<Oversize>,
    #[serde(flatten)]
    pub(crate) quietness: Option<Quietness>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) verify: Option<Verification>,
}

#[cfg(test)]
pub(crate) mod samples {
    use super::Row;

    const ROW: &str = r#"{
        "schema": 1, "run": "run", "bench": "table-bound", "cell": "cell", "repeat": 1,
        "command": "table-bound", "commit": "unknown", "target_cpu": "haswell", "store": "", "store_version": "1",
        "machine": {
            "cpu": "cpu", "cores": 2, "memory_bytes": 1, "kernel": "6", "file_system": "ext4",
            "mount_options": "rw", "read_ahead_kb": 128, "transparent_huge_pages": "never",
            "damon": { "reclaim": "N", "kdamonds": [] }
        },
        "options": {}, "workload": "c", "phase": "run", "folder": "main",
        "request_distribution": "scrambled", "insert_order": "hashed", "threads": 1,
        "durability": "durable", "records": 1, "fields": 1, "field_bytes": 1,
        "value_bytes": 1, "document_bytes": 1, "seed": 1, "deviations": [], "digest": null,
        "open_seconds": 0.1, "seconds": 1.0, "window_seconds": 1.0, "operations": 10,
        "ops_per_sec": 10.0, "scanned_rows": 0,
        "latency_ns": {
            "READ": {
                "count": 10, "mean": 1500.0, "p50": 1500, "p95": 2000, "p99": 2500, "p999": 3000,
                "p9999": 4000, "max": 250000
            }
        },
        "rss_anon_start_bytes": 1048576, "rss_anon_idle_bytes": 2097152,
        "rss_anon_end_bytes": 5242880, "rss_file_end_bytes": 0, "settle_seconds": 0.0,
        "settled": true, "disk_bytes": 7340032, "written_bytes": 0, "cpu_seconds": 1.0,
        "close_seconds": 0.0, "errors": 0, "first_error": null, "not_found": 0
    }"#;

    /// A row of workload C with the given figures.
    pub(crate) fn row(store: &str, repeat: u32, ops_per_sec: f64) -> Row {
        let mut row: Row = serde_json::from_str(ROW).expect("a whole row");
        row.store = store.to_owned();
        row.repeat = repeat;
        row.measurement.ops_per_sec = ops_per_sec;
        row
    }
}
