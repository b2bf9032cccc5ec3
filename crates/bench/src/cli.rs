//! The command line. Bad input is one line on standard error and exit code 2.

mod common;
mod jobs;
mod micro;
mod sequence;
mod verification;
mod ycsb;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use self::common::{PlaceArguments, WindowArguments, config};
use self::jobs::{AmplificationArguments, OpenTimeArguments};
use self::micro::MicroArguments;
use self::sequence::SequenceArguments;
use self::verification::VerifyArguments;
use self::ycsb::YcsbArguments;
use crate::measure::page_cache::PageCache;
use crate::report::{CompareRequest, Format, PageRequest};
use crate::run::{Amplification, Bench, Grid, Micro, OpenTime, Place, VerifyJob};
use crate::store::{Durability, Statistics, StoreKind};
use crate::workload::{Distribution, DocumentShape, InsertOrder, KeyFormat, Workload};

/// The hidden subcommand of a cell's process.
pub(crate) const CHILD: &str = "cell";

const RECORDS_MAX: u64 = 1_000_000_000;
const MEMORY_MAX: u64 = 1 << 40;
const MEMORY_MIN: u64 = 64 << 10;
/// The engine's limit.
const DOCUMENT_BYTES_MAX: u64 = 16 << 20;

/// What the program is asked to do.
#[derive(Debug)]
pub(crate) enum Command {
    Bench { place: Place, grids: Vec<Grid> },
    WriteAmplification { place: Place, job: Amplification },
    OpenTime { place: Place, job: OpenTime },
    Micro { place: Place, job: Micro },
    History { file: PathBuf },
    Verify { place: Place, job: VerifyJob },
    Table { files: Vec<PathBuf>, format: Format, superseded: bool },
    Report(PageRequest),
    Compare(CompareRequest),
    Child,
}

/// YCSB A-F against Sediment and a RocksDB oracle, in processes that differ in nothing else.
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Many times more records than the memtable holds: reads go to the tables.
    TableBound(GridArguments),
    /// Every record within the memtable's reach.
    MemtableBound(GridArguments),
    /// Sizes and durabilities in one run: A, B, C, F, D, scans after them, and scans afresh.
    Sequence(SequenceArguments),
    /// The whole grid: A, B, C, F, D and a fresh E by store, clients, durability and size.
    Ycsb(YcsbArguments),
    /// Overwrite a live set, and count what is written for it.
    WriteAmplification(AmplificationArguments),
    /// Time the opening of a store that was killed with an unsealed tail.
    OpenTime(OpenTimeArguments),
    /// What one kind of call costs, and what becomes of deleted space.
    Micro(MicroArguments),
    /// Print the history of the micro suite over commits.
    History {
        /// The file to which each run of `micro` adds a line.
        #[arg(default_value = "bench-results/history.jsonl")]
        file: PathBuf,
    },
    /// Check every answer of concurrent runs against the writes that could explain it.
    Verify(VerifyArguments),
    /// Print results files: as a table, as CSV, or as YCSB or go-ycsb would.
    Table {
        /// Files of JSON lines that a bench has written.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// How the rows are printed.
        #[arg(long, value_enum, default_value = "text", conflicts_with = "markdown")]
        format: Format,
        /// The same as `--format markdown`.
        #[arg(long)]
        markdown: bool,
        /// Also of files that the list of superseded results names.
        #[arg(long)]
        superseded: bool,
    },
    /// Write the page of results files, with tables and charts, or check the one there is.
    Report(PageRequest),
    /// Compare two results files cell by cell; fails when the second one is slower.
    Compare(CompareRequest),
    #[command(name = CHILD, hide = true)]
    Child,
}

#[derive(Debug, Args)]
struct GridArguments {
    /// When a write of a timed cell is answered; loads always sync each batch.
    #[arg(long, value_enum, default_value = "durable")]
    durability: Durability,
    /// Numbers of clients, each a cell of its own.
    #[arg(long, value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Vec<u32>,
    /// Stores, in the order of the first repeat.
    #[arg(long, value_delimiter = ',', default_value = "sediment,rocksdb")]
    stores: Vec<StoreKind>,
    /// YCSB's workloads.
    #[arg(long, value_delimiter = ',', default_value = "a,b,c,f,d,e")]
    workloads: Vec<Workload>,
    /// Records that are loaded [default: 300000, memtable-bound 20000].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=RECORDS_MAX))]
    records: Option<u64>,
    /// Fields of a record.
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    fields: u32,
    /// Bytes of a field.
    #[arg(long, default_value = "100", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    field_bytes: u32,
    #[command(flatten)]
    window: WindowArguments,
    /// Use this request distribution in every workload instead of YCSB's.
    #[arg(long, value_enum)]
    distribution: Option<Distribution>,
    /// Whether keys are hashed, so that a load is random inserts, or ordered.
    #[arg(long, value_enum, default_value = "hashed")]
    insert_order: InsertOrder,
    /// Digits to which the numbers in keys are left-filled with zeros.
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u8).range(1..=250))]
    zero_padding: u8,
    /// Memtable of every store, in bytes [default: 4194304, memtable-bound 67108864].
    #[arg(long, value_parser = clap::value_parser!(u64).range(MEMORY_MIN..=MEMORY_MAX))]
    memtable_bytes: Option<u64>,
    /// Block cache, in bytes; Sediment's memory budget is this and the memtable.
    #[arg(long, default_value = "8388608", value_parser = clap::value_parser!(u64).range(MEMORY_MIN..=MEMORY_MAX))]
    cache_bytes: u64,
    #[command(flatten)]
    place: PlaceArguments,
    /// Falsify one byte that this store answers, to show that the run fails.
    #[arg(long, hide = true)]
    plant_wrong_byte: Option<StoreKind>,
}

/// Reads the arguments; what is printed for `--help` or a mistake is printed here.
pub(crate) fn parse() -> Result<Command, ExitCode> {
    parse_from(std::env::args_os()).map_err(|error| {
        if error.use_stderr() {
            eprintln!("{}", one_line(&error.to_string()));
            return ExitCode::from(2);
        }
        // Help that cannot be printed has nowhere to say so.
        drop(error.print());
        ExitCode::SUCCESS
    })
}

fn parse_from<I>(arguments: I) -> Result<Command, clap::Error>
where
    I: IntoIterator,
    I::Item: Into<std::ffi::OsString> + Clone,
{
    match Cli::try_parse_from(arguments)?.command {
        CliCommand::TableBound(arguments) => grid(Bench::TableBound, (300_000, 4 << 20), arguments),
        CliCommand::MemtableBound(arguments) => {
            grid(Bench::MemtableBound, (20_000, 64 << 20), arguments)
        }
        CliCommand::Sequence(arguments) => sequence::sequence(arguments),
        CliCommand::Ycsb(arguments) => ycsb::ycsb(arguments),
        CliCommand::WriteAmplification(arguments) => jobs::amplification(arguments),
        CliCommand::OpenTime(arguments) => jobs::open_time(arguments),
        CliCommand::Micro(arguments) => micro::micro(arguments),
        CliCommand::History { file } => Ok(Command::History { file }),
        CliCommand::Verify(arguments) => verification::verify(arguments),
        CliCommand::Table { files, format, markdown, superseded } => {
            let format = if markdown { Format::Markdown } else { format };
            Ok(Command::Table { files, format, superseded })
        }
        CliCommand::Report(request) => Ok(Command::Report(request)),
        CliCommand::Compare(request) => Ok(Command::Compare(request)),
        CliCommand::Child => Ok(Command::Child),
    }
}

/// clap's message without the usage and the hints that follow it.
fn one_line(message: &str) -> String {
    let end = message.find("\n\n").unwrap_or(message.len());
    let text = message[..end].split_whitespace().collect::<Vec<_>>().join(" ");
    if text.starts_with("error: ") { text } else { format!("error: {text}; try --help") }
}

/// A bench of one grid; `records` and `memtable_bytes` are its defaults.
fn grid(
    bench: Bench,
    (records, memtable_bytes): (u64, u64),
    arguments: GridArguments,
) -> Result<Command, clap::Error> {
    let shape = DocumentShape { fields: arguments.fields, field_bytes: arguments.field_bytes };
    if shape.document_bytes() > DOCUMENT_BYTES_MAX {
        return Err(invalid(format!(
            "a record of {} fields of {} bytes is larger than a document may be (16 MiB)",
            shape.fields, shape.field_bytes
        )));
    }
    let memtable_bytes = arguments.memtable_bytes.unwrap_or(memtable_bytes);
    let budget = (memtable_bytes, arguments.cache_bytes);
    let grid = Grid {
        bench,
        stores: unique(arguments.stores, "store")?,
        workloads: unique(arguments.workloads, "workload")?,
        threads: unique(arguments.threads, "number of threads")?,
        config: config(budget, arguments.durability, Statistics::Off),
        records: arguments.records.unwrap_or(records),
        shape,
        keys: KeyFormat { order: arguments.insert_order, zero_padding: arguments.zero_padding },
        distribution: arguments.distribution,
        repeats: arguments.window.repeats,
        window: arguments.window.window(),
        page_cache: PageCache::AsLeft,
        target: None,
        digest_operations: arguments.window.digest_operations,
        seed: arguments.window.seed,
        plant: arguments.plant_wrong_byte,
    };
    check_scopes(&grid)?;
    Ok(Command::Bench { place: arguments.place.into(), grids: vec![grid] })
}

/// A store that takes part in nothing of the grid is a mistake.
fn check_scopes(grid: &Grid) -> Result<(), clap::Error> {
    for store in &grid.stores {
        if !store.scope().has_several_clients() && grid.threads != [1] {
            return Err(invalid(format!("{} has one client: --threads 1", store.name())));
        }
        let runs = |workload: &Workload| store.runs(*workload, grid.config.durability);
        if !grid.workloads.iter().any(runs) {
            return Err(out_of_scope(*store));
        }
    }
    Ok(())
}

fn out_of_scope(store: StoreKind) -> clap::Error {
    invalid(format!("{} takes part in {}", store.name(), store.scope().describe()))
}

/// A cell that is named twice would be measured twice under one name.
fn unique<T: PartialEq>(values: Vec<T>, what: &str) -> Result<Vec<T>, clap::Error> {
    let repeated = |(position, value)| values[..position].contains(value);
    if values.iter().enumerate().any(repeated) {
        return Err(invalid(format!("the same {what} is given twice")));
    }
    Ok(values)
}

fn invalid(message: String) -> clap::Error {
    clap::Error::raw(clap::error::ErrorKind::ValueValidation, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn parsed(arguments: &str) -> Result<Command, String> {
        let arguments = ["bench"].into_iter().chain(arguments.split_whitespace());
        parse_from(arguments).map_err(|error| one_line(&error.to_string()))
    }

    fn grid(arguments: &str) -> Result<Grid, String> {
        match parsed(arguments)? {
            Command::Bench { grids, .. } => Ok(grids.into_iter().next().expect("a grid")),
            command => panic!("{command:?}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn table_bound_has_the_documented_defaults() {
        let grid = grid("table-bound").unwrap();
        assert_eq!((grid.records, grid.repeats, grid.window.operations), (300_000, 3, 20_000));
        assert_eq!((grid.config.memtable_bytes, grid.config.cache_bytes), (4 << 20, 8 << 20));
        assert_eq!(grid.shape, DocumentShape { fields: 1, field_bytes: 100 });
        assert_eq!(grid.config.durability, Durability::Durable);
        assert_eq!((grid.threads, grid.stores.len(), grid.workloads.len()), (vec![1], 2, 6));
    }

    #[test]
    fn lists_are_parsed_and_repetitions_refused() {
        let grid = grid("memtable-bound --threads 1,16 --workloads c,E --stores rocksdb").unwrap();
        assert_eq!((grid.threads, grid.stores), (vec![1, 16], vec![StoreKind::RocksDb]));
        assert_eq!(grid.workloads, [Workload::C, Workload::E]);
        assert!(parsed("table-bound --workloads a,a").unwrap_err().contains("twice"));
    }

    #[test]
    fn every_mistake_is_one_line() {
        let mistakes = [
            "",
            "nonsense",
            "table-bound --records -1",
            "table-bound --seconds nan",
            "table-bound --seconds inf",
            "table-bound --seconds 0",
            "table-bound --fields 10000 --field-bytes 16777216",
            "table-bound --durability sometimes",
            "table-bound --cache-bytes 1",
            "table",
            "table-bound --stores raw --threads 1,2",
            "table-bound --stores raw --durability buffered",
            "table-bound --stores raw --workloads b,c",
            "table-bound --stores floor --workloads a,f",
        ];
        for mistake in mistakes {
            let text = parsed(mistake).unwrap_err();
            assert!(text.starts_with("error: ") && !text.contains('\n'), "{mistake}: {text}");
        }
    }
}
