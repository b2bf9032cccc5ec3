//! The arguments of the verification of concurrent runs.

use clap::Args;

use super::common::{FIELD_BYTES_MAX, KEYS, PlaceArguments, config};
use super::{Command, DOCUMENT_BYTES_MAX, RECORDS_MAX, invalid, unique};
use crate::run::VerifyJob;
use crate::store::{Durability, Fault, Statistics, StoreKind};
use crate::workload::{DocumentShape, Workload};

/// As `table-bound`, so that flushes and compactions run beside the clients.
const BUDGET: (u64, u64) = (4 << 20, 8 << 20);
/// Values are told apart by their bytes: 5.3 random bits each, 85 together.
const FIELD_BYTES_MIN: i64 = 16;
const OPERATIONS_MAX: u64 = 1_000_000_000;

#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// Stores, in their order.
    #[arg(long, value_delimiter = ',', default_value = "sediment,rocksdb")]
    stores: Vec<StoreKind>,
    /// YCSB's workloads, each over a fresh load.
    #[arg(long, value_delimiter = ',', default_value = "a,b,c,f,d,e")]
    workloads: Vec<Workload>,
    /// Numbers of clients, each a run of its own.
    #[arg(long, value_delimiter = ',', default_value = "16", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Vec<u32>,
    /// Operations of a workload, all clients together.
    #[arg(long, default_value = "1000000", value_parser = clap::value_parser!(u64).range(1..=OPERATIONS_MAX))]
    operations: u64,
    /// Records that are loaded.
    #[arg(long, default_value = "100000", value_parser = clap::value_parser!(u64).range(1..=RECORDS_MAX))]
    records: u64,
    /// Fields of a record.
    #[arg(long, default_value = "4", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    fields: u32,
    /// Bytes of a field; at least 16, so that no two values are equal.
    #[arg(long, default_value = "25", value_parser = clap::value_parser!(u32).range(FIELD_BYTES_MIN..=i64::from(FIELD_BYTES_MAX)))]
    field_bytes: u32,
    /// When a write is answered.
    #[arg(long, value_enum, default_value = "buffered")]
    durability: Durability,
    /// Equal seeds give equal operations.
    #[arg(long, default_value = "42")]
    seed: u64,
    #[command(flatten)]
    place: PlaceArguments,
    /// Falsify an answer of every store, to show that it is found.
    #[arg(long, value_enum, hide = true)]
    plant_fault: Option<Fault>,
}

pub(super) fn verify(arguments: VerifyArguments) -> Result<Command, clap::Error> {
    if let Some(store) = arguments.stores.iter().find(|store| !store.scope().is_a_store()) {
        let name = store.name();
        return Err(invalid(format!("{name} is no store: it does not keep all that is written")));
    }
    let shape = DocumentShape { fields: arguments.fields, field_bytes: arguments.field_bytes };
    if shape.document_bytes() > DOCUMENT_BYTES_MAX {
        return Err(invalid("a record is larger than a document may be (16 MiB)".to_owned()));
    }
    let job = VerifyJob {
        stores: unique(arguments.stores, "store")?,
        workloads: unique(arguments.workloads, "workload")?,
        threads: unique(arguments.threads, "number of threads")?,
        config: config(BUDGET, arguments.durability, Statistics::Off),
        records: arguments.records,
        shape,
        keys: KEYS,
        operations: arguments.operations,
        seed: arguments.seed,
        fault: arguments.plant_fault,
    };
    Ok(Command::Verify { place: arguments.place.into(), job })
}

#[cfg(test)]
mod tests {
    use super::super::tests::parsed;
    use super::*;

    #[test]
    fn verification_has_the_documented_defaults() {
        let Ok(Command::Verify { job, .. }) = parsed("verify") else { panic!("no job") };
        assert_eq!((job.operations, job.records, job.threads), (1_000_000, 100_000, vec![16]));
        assert_eq!(job.shape, DocumentShape { fields: 4, field_bytes: 25 });
        assert_eq!((job.stores.len(), job.workloads.len(), job.fault), (2, 6, None));
        assert_eq!(job.config.durability, Durability::Buffered);
    }

    #[test]
    fn every_mistake_is_one_line_that_names_it() {
        for (mistake, expected) in [
            ("verify --stores raw", "raw is no store"),
            ("verify --stores sediment,null", "null is no store"),
            ("verify --field-bytes 15", "--field-bytes"),
            ("verify --fields 10000 --field-bytes 10000", "16 MiB"),
            ("verify --threads 0", "--threads"),
            ("verify --workloads a,a", "twice"),
            ("verify --plant-fault none", "none"),
        ] {
            let text = parsed(mistake).unwrap_err();
            assert!(text.starts_with("error: ") && !text.contains('\n'), "{mistake}: {text}");
            assert!(text.contains(expected), "{mistake}: {text}");
        }
    }
}
