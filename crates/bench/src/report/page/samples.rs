//! Rows for tests.

use super::sections::{Section, Sections};
use crate::report::row::{Phase, Row, samples};
use crate::store::Durability;

/// What tests vary of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) run: &'static str,
    pub(super) store: &'static str,
    pub(super) workload: &'static str,
    pub(super) repeat: u32,
    pub(super) durability: &'static str,
    pub(super) clients: u32,
    pub(super) records: u64,
    pub(super) rate: f64,
}

impl Default for Cell {
    fn default() -> Self {
        Self {
            run: "20261130T155931Z-host-table-bound",
            store: "sediment",
            workload: "c",
            repeat: 1,
            durability: "durable",
            clients: 1,
            records: 300_000,
            rate: 1_000.0,
        }
    }
}

pub(super) fn row(cell: Cell) -> Row {
    let Cell { run, store, workload, repeat, durability, clients, records, rate } = cell;
    let mut row = samples::row(store, repeat, rate);
    let load = workload == "load";
    row.run = run.to_owned();
    row.workload = workload.to_owned();
    row.phase = if load { Phase::Load } else { Phase::Run };
    row.durability =
        if load || durability == "durable" { Durability::Durable } else { Durability::Buffered };
    row.threads = if load { 1 } else { clients };
    row.records = records;
    (row.fields, row.field_bytes, row.document_bytes) = (1, 100, 118);
    let (durability, clients) = (row.durability.name(), row.threads);
    row.cell = format!("{store}/{workload}/{clients}/{durability}/{records}x1x100");
    row
}

/// The only section of the rows.
pub(super) fn section(rows: Vec<Row>) -> Section {
    let mut sections = Sections::of(rows).expect("rows of one day").sections;
    assert_eq!(sections.len(), 1);
    sections.remove(0)
}

/// Two stores, two repeats, a load and two workloads: the engine is ahead in C, behind in A.
pub(super) fn small_run() -> Vec<Row> {
    let rates = |workload: &str, store: &str| match (workload, store) {
        ("c", "sediment") => [4_000.0, 6_000.0],
        ("a", "sediment") => [400.0, 900.0],
        _ => [1_000.0, 1_000.0],
    };
    let mut rows = Vec::new();
    for (place, repeat) in [1, 2].into_iter().enumerate() {
        for workload in ["load", "a", "c"] {
            for store in ["sediment", "rocksdb"] {
                let rate = rates(workload, store)[place];
                rows.push(row(Cell { store, workload, repeat, rate, ..Cell::default() }));
            }
        }
    }
    rows
}
