//! The arguments of the whole grid, and how a stopped run of it goes on.

use std::path::{Path, PathBuf};

use clap::Args;

use super::common::{KEYS, PlaceArguments, TARGET_MAX, WindowArguments, config, in_range};
use super::sequence::Size;
use super::{Command, invalid, parse_from, unique};
use crate::measure::page_cache::PageCache;
use crate::report;
use crate::run::{Bench, Grid, Window};
use crate::store::{Durability, Statistics, StoreKind};
use crate::workload::Workload;

/// Of `--quick`: with two stores, one durability and one size it takes two minutes.
const QUICK: Window = Window { warmup_seconds: 0.3, seconds: 1.0, operations: 1_000 };
const QUICK_SIZE: Size = Size { records: 50_000, field_bytes: 100 };
const QUICK_DIGESTS: u64 = 2_000;

#[derive(Debug, Args)]
pub(super) struct YcsbArguments {
    /// Stores, in the order of the first repeat.
    #[arg(long, value_delimiter = ',', default_value = "sediment,rocksdb")]
    stores: Vec<StoreKind>,
    /// YCSB's workloads.
    #[arg(long, value_delimiter = ',', default_value = "a,b,c,f,d,e")]
    workloads: Vec<Workload>,
    /// Numbers of clients, each with loads of its own [default: 1,4,16,64; with --quick 1,16].
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Vec<u32>,
    /// When a write of a timed cell is answered [default: durable,buffered; with --quick buffered].
    #[arg(long, value_enum, value_delimiter = ',')]
    durability: Vec<Durability>,
    /// Sizes, as RECORDSxBYTES, with budgets as in `sequence` [default: 300000x100,1000000x1024;
    /// with --quick 50000x100].
    #[arg(long = "size", value_delimiter = ',')]
    sizes: Vec<Size>,
    /// State of the page cache when a cell opens its store: `warm` (every file read through),
    /// `cold` (every file synced and dropped) or `as-left` (by the cell before).
    #[arg(long, value_enum, default_value = "warm")]
    page_cache: PageCache,
    /// Operations a second of all clients together, instead of as many as there can be. Latencies
    /// are then also taken from the moment at which an operation was to begin.
    #[arg(long, value_parser = target)]
    target: Option<f64>,
    /// One repeat of a second a cell over fewer records: shows that everything works, in minutes.
    #[arg(long, conflicts_with_all = ["seconds", "warmup_seconds", "operations", "repeats", "digest_operations"])]
    quick: bool,
    #[command(flatten)]
    window: WindowArguments,
    #[command(flatten)]
    place: PlaceArguments,
    /// Go on with the stopped run of this results file: its command counts, and cells whose rows
    /// are there are left out. Machine and commit must be the same.
    #[arg(long, value_name = "FILE", exclusive = true)]
    resume: Option<PathBuf>,
}

fn target(text: &str) -> Result<f64, String> {
    in_range(text, "operations a second", TARGET_MAX)
}

pub(super) fn ycsb(arguments: YcsbArguments) -> Result<Command, clap::Error> {
    match &arguments.resume {
        Some(file) => resume(file),
        None => fresh(arguments),
    }
}

fn fresh(arguments: YcsbArguments) -> Result<Command, clap::Error> {
    let quick = arguments.quick;
    let either = |normal: &[u32], short: &[u32]| if quick { short } else { normal }.to_vec();
    let threads = given(arguments.threads, either(&[1, 4, 16, 64], &[1, 16]));
    let (durable, buffered) = (Durability::Durable, Durability::Buffered);
    let durabilities = if quick { vec![buffered] } else { vec![durable, buffered] };
    let durabilities = unique(given(arguments.durability, durabilities), "durability")?;
    let sizes = if quick { vec![QUICK_SIZE] } else { Size::USUAL.to_vec() };
    let sizes = unique(given(arguments.sizes, sizes), "size")?;
    let (threads, stores) =
        (unique(threads, "number of threads")?, unique(arguments.stores, "store")?);
    let workloads = unique(arguments.workloads, "workload")?;
    let mut grids = Vec::new();
    for &size in &sizes {
        for &durability in &durabilities {
            let runs = |store: &StoreKind| workloads.iter().any(|&w| store.runs(w, durability));
            let grid = Grid {
                bench: Bench::Ycsb,
                stores: stores.iter().copied().filter(runs).collect(),
                workloads: workloads.clone(),
                threads: threads.clone(),
                config: config(size.budget(), durability, Statistics::Off),
                records: size.records,
                shape: size.shape(),
                keys: KEYS,
                distribution: None,
                repeats: if quick { 1 } else { arguments.window.repeats },
                window: if quick { QUICK } else { arguments.window.window() },
                page_cache: arguments.page_cache,
                target: arguments.target,
                digest_operations: if quick {
                    QUICK_DIGESTS
                } else {
                    arguments.window.digest_operations
                },
                seed: arguments.window.seed,
                plant: None,
            };
            grids.push(grid);
        }
    }
    let is_unused = |store: &StoreKind| {
        let takes_part = |grid: &Grid| grid.steps_of(*store) > 0;
        !grids.iter().any(takes_part)
    };
    if let Some(store) = stores.iter().find(|store| is_unused(store)) {
        return Err(invalid(format!("none of these cells is made of {}", store.name())));
    }
    Ok(Command::Bench { place: arguments.place.into(), grids })
}

/// What was given, or else the default.
fn given<T>(values: Vec<T>, default: Vec<T>) -> Vec<T> {
    if values.is_empty() { default } else { values }
}

/// The command of the stopped run, which goes on into its file. Its arguments say all that there is
/// to know about its cells.
fn resume(file: &Path) -> Result<Command, clap::Error> {
    let rows = report::read_files(&[file.to_path_buf()]);
    let rows = rows.map_err(|failure| invalid(failure.to_string()))?;
    let refuse = || invalid(format!("{} is not a run of `ycsb`", file.display()));
    let command = rows.first().map(|row| row.command.as_str()).ok_or_else(refuse)?;
    let command = command.split_whitespace();
    if command.clone().next() != Some(Bench::Ycsb.name()) {
        return Err(refuse());
    }
    match parse_from(["bench"].into_iter().chain(command))? {
        Command::Bench { mut place, grids } => {
            place.resume = Some(file.to_path_buf());
            Ok(Command::Bench { place, grids })
        }
        _ => Err(refuse()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::parsed;
    use super::*;

    fn grids(arguments: &str) -> Vec<Grid> {
        match parsed(arguments).unwrap() {
            Command::Bench { grids, .. } => grids,
            command => panic!("{command:?}"),
        }
    }

    #[test]
    fn the_whole_grid_is_every_size_with_every_durability() {
        let grids = grids("ycsb");
        let sizes: Vec<_> = grids
            .iter()
            .map(|g| (g.records, g.shape.field_bytes, g.config.durability.name()))
            .collect();
        let expected = [
            (300_000, 100, "durable"),
            (300_000, 100, "buffered"),
            (1_000_000, 1_024, "durable"),
            (1_000_000, 1_024, "buffered"),
        ];
        assert_eq!(sizes, expected);
        let grid = &grids[0];
        assert_eq!((&grid.threads[..], grid.repeats), (&[1, 4, 16, 64][..], 3));
        assert_eq!((grid.page_cache, grid.target), (PageCache::Warm, None));
    }

    #[test]
    fn every_part_can_be_selected() {
        let grids = grids(
            "ycsb --stores rocksdb --workloads c,e --threads 2 --durability buffered \
             --size 10x20,30x40 --target 500 --page-cache cold",
        );
        assert_eq!(grids.len(), 2);
        let Grid { stores, workloads, threads, records, target, page_cache, .. } = &grids[1];
        assert_eq!((&stores[..], &threads[..]), (&[StoreKind::RocksDb][..], &[2][..]));
        assert_eq!(workloads, &[Workload::C, Workload::E]);
        assert_eq!((*records, *target, *page_cache), (30, Some(500.0), PageCache::Cold));
    }

    /// Planned: a load, warm-up, window and a second around a cell, for two folders.
    #[test]
    fn quick_is_planned_to_end_within_five_minutes() {
        let grids = grids("ycsb --quick");
        let [grid] = &grids[..] else { panic!("{} grids", grids.len()) };
        let cells = grid.repeats as usize * grid.threads.len() * grid.stores.len();
        let seconds = cells as f64 * (6.0 * (grid.window.seconds + 1.3) + 2.0 * 1.5);
        assert!(seconds < 240.0, "{seconds}");
        assert_eq!(grid.workloads.len(), 6);
    }

    #[test]
    fn every_mistake_is_one_line_that_names_it() {
        let mistakes = [
            ("ycsb --size 10x10,10x10", "twice"),
            ("ycsb --threads 0", "--threads"),
            ("ycsb --target 0", "above 0"),
            ("ycsb --quick --seconds 3", "--seconds"),
            ("ycsb --resume x --threads 1", "--resume"),
            ("ycsb --resume /nonexistent/file", "/nonexistent/file"),
            ("ycsb --stores raw --durability buffered", "none of these cells is made of raw"),
            ("ycsb --stores raw --threads 4", "none of these cells is made of raw"),
        ];
        for (mistake, expected) in mistakes {
            let text = parsed(mistake).unwrap_err();
            assert!(text.starts_with("error: ") && !text.contains('\n'), "{mistake}: {text}");
            assert!(text.contains(expected), "{mistake}: {text}");
        }
    }
}
