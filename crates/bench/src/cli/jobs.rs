//! The arguments of the jobs that measure something else than a rate: write amplification, and the
//! time of opening.

use clap::Args;

use super::common::{DEFAULT_BUDGET, FIELD_BYTES_MAX, KEYS, PlaceArguments, config, in_range};
use super::{Command, RECORDS_MAX, invalid, out_of_scope, unique};
use crate::measure::page_cache::PageCache;
use crate::run::{Amplification, OpenTime};
use crate::store::{Durability, Loses, Statistics, StoreKind};
use crate::workload::{Distribution, DocumentShape};

#[derive(Debug, Args)]
pub(super) struct AmplificationArguments {
    /// A size of the live set in GB (10^9 bytes); may be given several times.
    #[arg(long = "live-gb", default_values = ["0.5", "2", "8"], value_parser = gigabytes)]
    live_gb: Vec<f64>,
    /// How many times the live bytes are overwritten.
    #[arg(long, default_value = "2", value_parser = turnover)]
    turnover: f64,
    /// Which documents are overwritten.
    #[arg(long, value_delimiter = ',', value_enum, default_value = "uniform,zipfian")]
    distributions: Vec<Distribution>,
    /// Stores, in the order of the first repeat.
    #[arg(long, value_delimiter = ',', default_value = "sediment,rocksdb")]
    stores: Vec<StoreKind>,
    /// Bytes of a document's one field.
    #[arg(long, default_value = "1024", value_parser = clap::value_parser!(u32).range(1..=i64::from(FIELD_BYTES_MAX)))]
    field_bytes: u32,
    /// Repeats of every cell.
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    repeats: u32,
    /// Equal seeds give equal overwrites.
    #[arg(long, default_value = "42")]
    seed: u64,
    /// Most that a store's folder may take, in GB; a cell that passes it ends with an error.
    #[arg(long, default_value = "19", value_parser = gigabytes)]
    disk_limit_gb: f64,
    #[command(flatten)]
    place: PlaceArguments,
}

pub(super) fn amplification(arguments: AmplificationArguments) -> Result<Command, clap::Error> {
    let job = Amplification {
        stores: buffered(arguments.stores)?,
        distributions: unique(arguments.distributions, "distribution")?,
        live_bytes: unique(arguments.live_gb.into_iter().map(bytes).collect(), "live size")?,
        turnover: arguments.turnover,
        shape: DocumentShape { fields: 1, field_bytes: arguments.field_bytes },
        keys: KEYS,
        config: config(DEFAULT_BUDGET, Durability::Buffered, Statistics::On),
        repeats: arguments.repeats,
        seed: arguments.seed,
        disk_limit_bytes: bytes(arguments.disk_limit_gb),
    };
    Ok(Command::WriteAmplification { place: arguments.place.into(), job })
}

#[derive(Debug, Args)]
pub(super) struct OpenTimeArguments {
    /// Records in the store, a size each.
    #[arg(long, value_delimiter = ',', default_value = "1000000,4000000,10000000", value_parser = clap::value_parser!(u64).range(1..=RECORDS_MAX))]
    records: Vec<u64>,
    /// Records written after the last clean close, and not sealed when the process is killed.
    #[arg(long, value_delimiter = ',', default_value = "0,10000,50000", value_parser = clap::value_parser!(u64).range(0..=TAIL_MAX))]
    tails: Vec<u64>,
    /// State of the page cache before an opening: `warm` (every file read through), `cold` (every
    /// file synced and dropped) or `as-left`.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "warm,cold")]
    page_cache: Vec<PageCache>,
    /// Stores, in the order of the first repeat.
    #[arg(long, value_delimiter = ',', default_value = "sediment,rocksdb")]
    stores: Vec<StoreKind>,
    /// Bytes of a document's one field.
    #[arg(long, default_value = "100", value_parser = clap::value_parser!(u32).range(1..=i64::from(FIELD_BYTES_MAX)))]
    field_bytes: u32,
    /// Repeats of every opening.
    #[arg(long, default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    repeats: u32,
    /// Equal seeds give equal records.
    #[arg(long, default_value = "42")]
    seed: u64,
    #[command(flatten)]
    place: PlaceArguments,
}

/// Far below what a memtable of 16 MiB holds in either store, at 100 bytes a record.
const TAIL_MAX: u64 = 60_000;

pub(super) fn open_time(arguments: OpenTimeArguments) -> Result<Command, clap::Error> {
    let (records, tails) = (unique(arguments.records, "size")?, unique(arguments.tails, "tail")?);
    if let (Some(tail), Some(records)) = (tails.iter().max(), records.iter().min())
        && tail > records
    {
        return Err(invalid(format!(
            "a tail of {tail} records is longer than a store of {records}"
        )));
    }
    let job = OpenTime {
        stores: recovered(arguments.stores)?,
        records,
        tails,
        page_caches: unique(arguments.page_cache, "state of the page cache")?,
        shape: DocumentShape { fields: 1, field_bytes: arguments.field_bytes },
        keys: KEYS,
        config: config(DEFAULT_BUDGET, Durability::Buffered, Statistics::Off),
        repeats: arguments.repeats,
        seed: arguments.seed,
    };
    Ok(Command::OpenTime { place: arguments.place.into(), job })
}

/// Some kinds are no stores: they neither compact nor recover.
fn buffered(stores: Vec<StoreKind>) -> Result<Vec<StoreKind>, clap::Error> {
    match stores.iter().find(|store| !store.scope().is_a_store()) {
        Some(store) => Err(out_of_scope(*store)),
        None => unique(stores, "store"),
    }
}

/// Where a killed process loses its buffered writes, there is no tail to recover.
fn recovered(stores: Vec<StoreKind>) -> Result<Vec<StoreKind>, clap::Error> {
    let stores = buffered(stores)?;
    let kill = |store: &StoreKind| store.loses(Durability::Buffered).kill;
    match stores.iter().find(|store| kill(store) != Loses::NOTHING) {
        Some(store) => {
            let (name, lost) = (store.name(), kill(store));
            Err(invalid(format!("{name} has no tail to recover: a killed process loses {lost}")))
        }
        None => Ok(stores),
    }
}

fn gigabytes(text: &str) -> Result<f64, String> {
    in_range(text, "GB", 1_000.0)
}

fn turnover(text: &str) -> Result<f64, String> {
    in_range(text, "times", 1_000.0)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and gigabytes are bounded"
)]
fn bytes(gigabytes: f64) -> u64 {
    (gigabytes * 1e9) as u64
}

#[cfg(test)]
mod tests {
    use super::super::tests::parsed;
    use super::*;

    #[test]
    fn amplification_has_the_documented_defaults() {
        let Ok(Command::WriteAmplification { job, .. }) = parsed("write-amplification") else {
            panic!("no job");
        };
        assert_eq!(job.live_bytes, [500_000_000, 2_000_000_000, 8_000_000_000]);
        assert_eq!(job.distributions, [Distribution::Uniform, Distribution::Zipfian]);
        assert_eq!((job.disk_limit_bytes, job.repeats), (19_000_000_000, 1));
        assert_eq!(job.config.statistics, Statistics::On);
    }

    #[test]
    fn opening_has_the_documented_defaults() {
        let Ok(Command::OpenTime { job, .. }) = parsed("open-time") else { panic!("no job") };
        assert_eq!(job.records, [1_000_000, 4_000_000, 10_000_000]);
        assert_eq!((job.tails, job.repeats), (vec![0, 10_000, 50_000], 3));
        assert_eq!(job.page_caches, [PageCache::Warm, PageCache::Cold]);
    }

    #[test]
    fn every_mistake_is_one_line_that_names_it() {
        let mistakes = [
            ("write-amplification --stores raw", "durable A and F"),
            ("write-amplification --live-gb 0", "above 0"),
            ("write-amplification --live-gb nan", "above 0"),
            ("write-amplification --turnover inf", "above 0"),
            ("write-amplification --live-gb 1 --live-gb 1", "twice"),
            ("open-time --tails 60001", "--tails"),
            ("open-time --page-cache cold,cold", "twice"),
            ("open-time --page-cache lukewarm", "lukewarm"),
            ("open-time --records 10 --tails 11", "longer than"),
            ("open-time --stores raw", "durable A and F"),
            ("open-time --stores null", "A to F alone"),
            ("write-amplification --stores floor", "C and E alone"),
            #[cfg(feature = "redb")]
            ("open-time --stores redb-250ms", "no tail to recover"),
        ];
        for (mistake, expected) in mistakes {
            let text = parsed(mistake).unwrap_err();
            assert!(text.starts_with("error: ") && !text.contains('\n'), "{mistake}: {text}");
            assert!(text.contains(expected), "{mistake}: {text}");
        }
    }
}
