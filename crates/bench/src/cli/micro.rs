//! The arguments of the micro suite.

use clap::Args;

use super::common::{DEFAULT_BUDGET, FIELD_BYTES_MAX, KEYS, PlaceArguments, config};
use super::{Command, RECORDS_MAX, invalid, unique};
use crate::run::Micro;
use crate::store::{Durability, Statistics, StoreKind};
use crate::workload::DocumentShape;

/// Far below what the memtable of a rebuild holds in either store.
const REBUILD_MAX: u64 = 200_000;
const SMALL_BYTES: u32 = 100;

#[derive(Debug, Args)]
pub(super) struct MicroArguments {
    /// Small documents, of 100 bytes.
    #[arg(long, default_value = "200000", value_parser = clap::value_parser!(u64).range(2..=RECORDS_MAX))]
    records: u64,
    /// Large documents.
    #[arg(long, default_value = "2000", value_parser = clap::value_parser!(u64).range(1..=RECORDS_MAX))]
    large_records: u64,
    /// Bytes of a large document's one field.
    #[arg(long, default_value = "65536", value_parser = clap::value_parser!(u32).range(1..=i64::from(FIELD_BYTES_MAX)))]
    large_bytes: u32,
    /// Small documents that are in the log alone when a store is opened after a kill.
    #[arg(long, default_value = "100000", value_parser = clap::value_parser!(u64).range(1..=REBUILD_MAX))]
    rebuild_records: u64,
    /// Stores, in the order of the first repeat.
    #[arg(long, value_delimiter = ',', default_value = "sediment,rocksdb")]
    stores: Vec<StoreKind>,
    /// Repeats of every part.
    #[arg(long, default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    repeats: u32,
    /// Equal seeds give equal documents.
    #[arg(long, default_value = "42")]
    seed: u64,
    #[command(flatten)]
    place: PlaceArguments,
}

pub(super) fn micro(arguments: MicroArguments) -> Result<Command, clap::Error> {
    let takes_part = |store: &StoreKind| match store {
        StoreKind::Sediment | StoreKind::RocksDb => true,
        #[cfg(feature = "sqlite")]
        StoreKind::Sqlite => true,
        _ => false,
    };
    if let Some(store) = arguments.stores.iter().find(|store| !takes_part(store)) {
        return Err(invalid(format!("{} takes no part in the micro suite", store.name())));
    }
    let job = Micro {
        stores: unique(arguments.stores, "store")?,
        records: arguments.records,
        small: DocumentShape { fields: 1, field_bytes: SMALL_BYTES },
        large_records: arguments.large_records,
        large: DocumentShape { fields: 1, field_bytes: arguments.large_bytes },
        rebuild_records: arguments.rebuild_records,
        keys: KEYS,
        config: config(DEFAULT_BUDGET, Durability::Buffered, Statistics::Off),
        repeats: arguments.repeats,
        seed: arguments.seed,
    };
    Ok(Command::Micro { place: arguments.place.into(), job })
}

#[cfg(test)]
mod tests {
    use super::super::tests::parsed;
    use super::*;

    #[test]
    fn the_suite_has_the_documented_defaults() {
        let Ok(Command::Micro { job, .. }) = parsed("micro") else { panic!("no suite") };
        assert_eq!(
            (job.records, job.large_records, job.rebuild_records),
            (200_000, 2_000, 100_000)
        );
        assert_eq!((job.small.field_bytes, job.large.field_bytes), (100, 65_536));
        assert_eq!((job.stores.len(), job.repeats), (2, 3));
    }

    #[test]
    fn every_mistake_is_one_line_that_names_it() {
        let mistakes = [
            ("micro --stores raw", "raw takes no part"),
            ("micro --stores rocksdb,rocksdb", "twice"),
            ("micro --records 1", "--records"),
            ("micro --rebuild-records 200001", "--rebuild-records"),
        ];
        for (mistake, expected) in mistakes {
            let text = parsed(mistake).unwrap_err();
            assert!(text.starts_with("error: ") && !text.contains('\n'), "{mistake}: {text}");
            assert!(text.contains(expected), "{mistake}: {text}");
        }
    }
}
