//! The pictures of a section, each with its message in words.

use super::figures::{Against, LatencyFigures, Spread, StoreFigures, WorkloadFigures};
use super::tables::{mebibytes, times};
use crate::report::chart::{Axis, Chart, Group, Legend, Line, Marks, Room, duration};
use crate::report::table::thousands;
use crate::store::StoreKind;

const MEBIBYTE: f64 = 1_048_576.0;

/// Throughput of every workload and store.
pub(super) fn throughput(workloads: &[WorkloadFigures], heading: &str) -> Chart {
    let line = |store: &StoreFigures| {
        let Against { figure: Spread { low, median, high }, ratio } = store.rate;
        let ratio = ratio.map_or_else(String::new, |ratio| format!(" · {}×", times(ratio.median)));
        Some(Line {
            store: store.store.clone(),
            marks: Marks::Range { low, median, high },
            before: String::new(),
            after: thousands(median) + &ratio,
        })
    };
    let message = |workload: &WorkloadFigures| {
        let figure = |store: &StoreFigures| thousands(store.rate.figure.median);
        let ends = ends(workload, &|store| store.rate.figure.median, &figure, "ops/s");
        ends + &against(workload, &|store| store.rate.ratio)
    };
    Chart {
        title: "Throughput".to_owned(),
        subtitle: heading.to_owned(),
        message: messages("Throughput", workloads, message),
        axis: Axis::Rate,
        legend: Legend::Words(format!(
            "Mark: median of the repeats; line: lowest to highest; ×: ratio to {}, median",
            StoreKind::ORACLE.name()
        )),
        room: Room::default(),
        groups: workloads.iter().map(|workload| group(workload, line)).collect(),
    }
}

/// Latencies of one workload; `all` are the section's, whose pictures share their axis.
pub(super) fn latency(workload: &WorkloadFigures, all: &[WorkloadFigures], heading: &str) -> Chart {
    let groups = workload.operations().into_iter().map(|operation| {
        let line = |store: &StoreFigures| {
            let figures = store.latencies.get(operation)?;
            let LatencyFigures { p50, p95, p99, p999, max } = figures;
            Some(Line {
                store: store.store.clone(),
                marks: Marks::Percentiles([*p50, *p95, p99.figure.median, *p999, *max]),
                before: duration(*p50),
                after: duration(*max),
            })
        };
        Group { label: operation.to_lowercase(), lines: lines(workload, line) }
    });
    let messages = workload.operations().into_iter().map(|operation| tail(workload, operation));
    Chart {
        title: format!("Latency, {}", workload.title()),
        subtitle: heading.to_owned(),
        message: format!(
            "Latency in {}. {}",
            workload.title(),
            messages.collect::<Vec<_>>().join(" ")
        ),
        axis: Axis::Duration,
        legend: Legend::Percentiles,
        room: room(all),
        groups: groups.collect(),
    }
}

/// Room for the latencies of all workloads.
fn room(all: &[WorkloadFigures]) -> Room {
    let latencies = all.iter().flat_map(|workload| &workload.stores);
    let latencies = latencies.flat_map(|store| store.latencies.values());
    let labels = all.iter().flat_map(WorkloadFigures::operations);
    Room {
        figures: latencies.flat_map(|latency| [latency.p50, latency.max]).collect(),
        labels: labels.map(str::to_lowercase).collect(),
    }
}

/// Resident memory: the store's own, and mapped files.
pub(super) fn memory(workloads: &[WorkloadFigures], heading: &str) -> Chart {
    let line = |store: &StoreFigures| {
        let (own, mapped) = (store.own.figure.median, store.mapped.figure.median);
        Some(Line {
            store: store.store.clone(),
            marks: Marks::Bar([own / MEBIBYTE, mapped / MEBIBYTE]),
            before: String::new(),
            after: format!("{} + {}", mebibytes(own), mebibytes(mapped)),
        })
    };
    let message = |workload: &WorkloadFigures| {
        let figure = |store: &StoreFigures| mebibytes(store.own.figure.median);
        let own = ends(workload, &|store| store.own.figure.median, &figure, "MiB");
        let figure = |store: &StoreFigures| mebibytes(store.mapped.figure.median);
        let mapped = ends(workload, &|store| store.mapped.figure.median, &figure, "MiB");
        format!(
            "own {own}{}; mapped {mapped}{}",
            against(workload, &|store| store.own.ratio),
            against(workload, &|store| store.mapped.ratio)
        )
    };
    Chart {
        title: "Memory at the end of the window".to_owned(),
        subtitle: heading.to_owned(),
        message: messages("Memory, own (anonymous) and mapped files", workloads, message),
        axis: Axis::Size,
        legend: Legend::Parts(["own (anonymous)", "mapped files, the program's included"]),
        room: Room::default(),
        groups: workloads.iter().map(|workload| group(workload, line)).collect(),
    }
}

/// The stores' folders.
pub(super) fn disk(workloads: &[WorkloadFigures], heading: &str) -> Chart {
    let line = |store: &StoreFigures| {
        let Against { figure: Spread { median, .. }, ratio } = store.disk;
        let ratio = ratio.map_or_else(String::new, |ratio| format!(" · {}×", times(ratio.median)));
        Some(Line {
            store: store.store.clone(),
            marks: Marks::Bar([median / MEBIBYTE, 0.0]),
            before: String::new(),
            after: mebibytes(median) + &ratio,
        })
    };
    let message = |workload: &WorkloadFigures| {
        let figure = |store: &StoreFigures| mebibytes(store.disk.figure.median);
        let ends = ends(workload, &|store| store.disk.figure.median, &figure, "MiB");
        ends + &against(workload, &|store| store.disk.ratio)
    };
    Chart {
        title: "Disk, when background work is done".to_owned(),
        subtitle: heading.to_owned(),
        message: messages("Disk", workloads, message),
        axis: Axis::Size,
        legend: Legend::Words(format!(
            "Bar: median of the repeats; ×: ratio to {}, median",
            StoreKind::ORACLE.name()
        )),
        room: Room::default(),
        groups: workloads.iter().map(|workload| group(workload, line)).collect(),
    }
}

fn group(workload: &WorkloadFigures, line: impl Fn(&StoreFigures) -> Option<Line>) -> Group {
    Group { label: workload.name.clone(), lines: lines(workload, line) }
}

fn lines(workload: &WorkloadFigures, line: impl Fn(&StoreFigures) -> Option<Line>) -> Vec<Line> {
    workload.stores.iter().filter_map(line).collect()
}

fn messages(
    what: &str,
    workloads: &[WorkloadFigures],
    message: impl Fn(&WorkloadFigures) -> String,
) -> String {
    let parts =
        workloads.iter().map(|workload| format!("{}: {}.", workload.name, message(workload)));
    format!("{what}. {}", parts.collect::<Vec<_>>().join(" "))
}

/// The stores with the highest and the lowest figure.
fn ends(
    workload: &WorkloadFigures,
    order: &dyn Fn(&StoreFigures) -> f64,
    figure: &dyn Fn(&StoreFigures) -> String,
    unit: &str,
) -> String {
    let mut stores: Vec<&StoreFigures> = workload.stores.iter().collect();
    stores.sort_by(|left, right| order(left).total_cmp(&order(right)));
    match stores.as_slice() {
        [low, .., high] => format!(
            "{} highest with {} {unit}, {} lowest with {}",
            high.store,
            figure(high),
            low.store,
            figure(low)
        ),
        [only] => format!("{} {} {unit}", only.store, figure(only)),
        [] => String::new(),
    }
}

/// The engine's ratio to the oracle.
fn against(workload: &WorkloadFigures, ratio: &dyn Fn(&StoreFigures) -> Option<Spread>) -> String {
    let engine = StoreKind::Sediment.name();
    let ratio = workload.store(engine).and_then(ratio);
    let oracle = StoreKind::ORACLE.name();
    ratio.map_or_else(String::new, |ratio| {
        format!("; {engine} has {} times {oracle}'s", times(ratio.median))
    })
}

/// The shortest and the longest p99 of an operation, and its longest latency.
fn tail(workload: &WorkloadFigures, operation: &str) -> String {
    let with = |store: &StoreFigures| -> Option<(f64, f64)> {
        let latency = store.latencies.get(operation)?;
        Some((latency.p99.figure.median, latency.max))
    };
    let having = WorkloadFigures {
        name: workload.name.clone(),
        stores: workload.stores.iter().filter(|store| with(store).is_some()).cloned().collect(),
    };
    let p99 = |store: &StoreFigures| with(store).map_or(0.0, |(p99, _)| p99);
    let ends = ends(&having, &p99, &|store| duration(p99(store)), "p99");
    let ratio = |store: &StoreFigures| store.latencies.get(operation)?.p99.ratio;
    let max = |store: &&StoreFigures| with(store).map_or(0.0, |(_, max)| max);
    let longest = having.stores.iter().max_by(|left, right| max(left).total_cmp(&max(right)));
    let longest = longest.map_or_else(String::new, |store| {
        format!("; longest of all {} ({})", duration(max(&store)), store.store)
    });
    format!("{}: {ends}{}{longest}.", operation.to_lowercase(), against(&having, &ratio))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{Cell, row, section, small_run};
    use super::*;
    use crate::report::chart::Palette;

    #[test]
    fn the_message_has_the_highest_the_lowest_and_the_ratio() {
        let figures = section(small_run()).figures();
        let chart = throughput(&figures, "heading");
        assert_eq!(
            chart.message,
            "Throughput. load: rocksdb highest with 1 000 ops/s, sediment lowest with 1 000; \
             sediment has 1.00 times rocksdb's. A: rocksdb highest with 1 000 ops/s, sediment \
             lowest with 650; sediment has 0.65 times rocksdb's. C: sediment highest with 5 000 \
             ops/s, rocksdb lowest with 1 000; sediment has 5.00 times rocksdb's."
        );
        let latency = latency(&figures[2], &figures, "heading").message;
        assert_eq!(
            latency,
            "Latency in workload C. read: rocksdb highest with 2.50 µs p99, sediment lowest with \
             2.50 µs; sediment has 1.00 times rocksdb's; longest of all 250 µs (rocksdb)."
        );
    }

    #[test]
    fn a_picture_says_what_it_shows_and_repeats_its_bytes() {
        let figures = section(small_run()).figures();
        let palette = Palette::new(["sediment", "rocksdb"].into_iter());
        let charts = [
            throughput(&figures, "heading"),
            latency(&figures[0], &figures, "heading"),
            memory(&figures, "heading"),
            disk(&figures, "heading"),
        ];
        for chart in charts {
            let picture = chart.draw(&palette);
            assert_eq!(picture, chart.draw(&palette));
            assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
            for part in ["role=\"img\"", "<title id=\"title\">", "<desc id=\"desc\">", "heading"] {
                assert!(picture.contains(part), "no {part} in {picture}");
            }
            assert!(picture.contains("prefers-color-scheme:dark"), "{picture}");
            assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
            let lines: usize = chart.groups.iter().map(|group| group.lines.len()).sum();
            let names = picture.matches(">\nsediment\n<").count()
                + picture.matches(">\nrocksdb\n<").count()
                + picture.matches(">sediment<").count()
                + picture.matches(">rocksdb<").count();
            assert_eq!(names, lines, "each line has its store's name: {picture}");
        }
    }

    #[test]
    fn a_cell_without_operations_is_drawn() {
        let figures = section(vec![row(Cell { rate: 0.0, ..Cell::default() })]).figures();
        let palette = Palette::new(std::iter::empty());
        let picture = throughput(&figures, "heading").draw(&palette);
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    }
}
