//! Sentences that are computed from the rows: what the numbers say, and what they do not.

use std::collections::BTreeSet;

use super::figures::{LatencyFigures, Spread, StoreFigures, WorkloadFigures};
use super::sections::{Section, Sections};
use super::soundness::Soundness;
use super::tables::{mebibytes, times};
use crate::report::chart::duration;
use crate::report::row::Row;
use crate::report::table::thousands;
use crate::store::{Durability, StoreKind};
use crate::workload::Workload;

const ENGINE: StoreKind = StoreKind::Sediment;
const ORACLE: StoreKind = StoreKind::ORACLE;

/// A ratio of the engine to the oracle, and where it was measured.
type Ratio = (String, Spread);

/// What the numbers of all sections say, a list for each.
pub(super) fn numbers(sections: &Sections) -> String {
    let lists = sections.sections.iter().map(|section| {
        let heading = section.key.heading(sections.sources.len());
        format!("**{heading}**\n\n{}", list(&section_sentences(section)))
    });
    lists.collect::<Vec<_>>().join("\n")
}

fn list(sentences: &[String]) -> String {
    sentences.iter().map(|sentence| format!("- {sentence}\n")).collect()
}

fn section_sentences(section: &Section) -> Vec<String> {
    let figures = section.figures();
    let ratios = |figure: fn(&StoreFigures) -> Option<Spread>| -> Vec<Ratio> {
        let ratio = |workload: &WorkloadFigures| {
            Some((workload.name.clone(), figure(workload.store(ENGINE.name())?)?))
        };
        figures.iter().filter_map(ratio).collect()
    };
    let rates = ratios(|store| store.rate.ratio);
    let mut sentences = Vec::new();
    if rates.is_empty() {
        sentences.push(format!(
            "There are no cells of both {} and {}.",
            ENGINE.name(),
            ORACLE.name()
        ));
    } else {
        sentences.push(verdict("Throughput", ["higher than", "lower than"], &rates));
        sentences.extend(tail(&figures));
        sentences.extend(longest(&figures));
        sentences.extend(extremes("Own memory", &ratios(|store| store.own.ratio)));
        sentences.extend(extremes("Mapped files", &ratios(|store| store.mapped.ratio)));
        sentences.extend(extremes("Disk", &ratios(|store| store.disk.ratio)));
    }
    sentences.extend(fastest(&figures));
    if section.repeats() == 1 {
        sentences.push("There is one repeat, so that nothing is known of the spread.".to_owned());
    }
    sentences.extend(disturbed(&section.rows));
    sentences.push(Soundness::of(&section.rows).sentence());
    sentences
}

/// Cells before which the machine was somebody else's.
fn disturbed(rows: &[Row]) -> Option<String> {
    let probed = rows.iter().filter_map(|row| Some((row, row.quietness?)));
    let noisy: Vec<_> = probed.filter(|(_, quietness)| !quietness.processor_quiet).collect();
    let slowest = noisy.iter().map(|(_, quietness)| quietness.processor_probe);
    let slowest = slowest.reduce(f64::max)?;
    let cells = noisy.iter().map(|(row, _)| format!("{} repeat {}", row.cell, row.repeat));
    Some(format!(
        "Before {} of {} cells the processor was not idle in three tries (a fixed amount of work took \
         up to {slowest:.2} times its shortest time): {}.",
        noisy.len(),
        rows.len(),
        cells.collect::<Vec<_>>().join(", ")
    ))
}

fn tail(figures: &[WorkloadFigures]) -> Option<String> {
    let mut ratios = Vec::new();
    for workload in figures {
        let Some(engine) = workload.store(ENGINE.name()) else { continue };
        for (operation, latency) in &engine.latencies {
            ratios.extend(
                latency.p99.ratio.map(|ratio| (format!("{} {operation}", workload.name), ratio)),
            );
        }
    }
    (!ratios.is_empty()).then(|| verdict("p99 latency", ["longer than", "shorter than"], &ratios))
}

/// Whose longest operation of all repeats was longer.
fn longest(figures: &[WorkloadFigures]) -> Option<String> {
    let (mut longer, mut shorter) = (Vec::new(), Vec::new());
    for workload in figures {
        let (engine, oracle) = (workload.store(ENGINE.name()), workload.store(ORACLE.name()));
        let (Some(engine), Some(oracle)) = (engine, oracle) else { continue };
        for (operation, LatencyFigures { max, .. }) in &engine.latencies {
            let Some(LatencyFigures { max: other, .. }) = oracle.latencies.get(operation) else {
                continue;
            };
            let place = &workload.name;
            let text = format!("{place} {operation} ({} to {})", duration(*max), duration(*other));
            if max > other { longer.push(text) } else { shorter.push(text) }
        }
    }
    let parts = [("longer than", longer), ("at most", shorter)];
    let parts = parts.into_iter().filter(|(_, places)| !places.is_empty());
    let oracle = ORACLE.name();
    let parts = parts.map(|(word, places)| format!("{word} {oracle}'s in {}", places.join(", ")));
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty())
        .then(|| format!("Longest operation of {}: {}.", ENGINE.name(), parts.join("; ")))
}

/// Where the engine's figure is above the oracle's in every repeat, below it in every one, or
/// neither.
fn verdict(what: &str, [above, below]: [&str; 2], ratios: &[Ratio]) -> String {
    let oracle = ORACLE.name();
    let pick = |test: fn(&Spread) -> bool| -> Vec<String> {
        ratios.iter().filter(|(_, ratio)| test(ratio)).map(with_range).collect()
    };
    let parts = [
        (format!("{above} {oracle}'s in every repeat of"), pick(|ratio| ratio.low > 1.0)),
        (format!("{below} {oracle}'s in every repeat of"), pick(|ratio| ratio.high < 1.0)),
        ("the repeats disagree in".to_owned(), pick(|ratio| ratio.low <= 1.0 && ratio.high >= 1.0)),
    ];
    let parts = parts.into_iter().filter(|(_, places)| !places.is_empty());
    let parts = parts.map(|(verdict, places)| format!("{verdict} {}", places.join(", ")));
    format!("{what} of {}: {}.", ENGINE.name(), parts.collect::<Vec<_>>().join("; "))
}

fn with_range((place, ratio): &Ratio) -> String {
    let Spread { median, low, high } = *ratio;
    if times(low) == times(high) {
        format!("{place} ({} times)", times(median))
    } else {
        format!("{place} ({} times, {} to {})", times(median), times(low), times(high))
    }
}

fn extremes(what: &str, ratios: &[Ratio]) -> Option<String> {
    let by_median = |left: &&Ratio, right: &&Ratio| left.1.median.total_cmp(&right.1.median);
    let low = ratios.iter().min_by(by_median)?;
    let high = ratios.iter().max_by(by_median)?;
    let one = |(place, ratio): &Ratio| format!("{} ({place})", times(ratio.median));
    let range = if times(low.1.median) == times(high.1.median) {
        times(low.1.median)
    } else {
        format!("{} to {}", one(low), one(high))
    };
    Some(format!("{what} of {}: {range} times {}'s.", ENGINE.name(), ORACLE.name()))
}

/// With more than two stores: which one is ahead where.
fn fastest(figures: &[WorkloadFigures]) -> Option<String> {
    let stores: BTreeSet<&str> = figures.iter().flat_map(WorkloadFigures::store_names).collect();
    if stores.len() < 3 {
        return None;
    }
    let winner = |workload: &WorkloadFigures| {
        let rate = |store: &&StoreFigures| store.rate.figure.median;
        let fastest =
            workload.stores.iter().max_by(|left, right| rate(left).total_cmp(&rate(right)));
        fastest.map(|store| (store.store.clone(), workload.name.clone()))
    };
    let winners: Vec<(String, String)> = figures.iter().filter_map(winner).collect();
    let parts = stores.iter().filter_map(|store| {
        let places: Vec<&str> =
            winners.iter().filter(|(name, _)| name == store).map(|(_, place)| &**place).collect();
        (!places.is_empty()).then(|| format!("{store} in {}", places.join(", ")))
    });
    Some(format!("The highest median of all stores: {}.", parts.collect::<Vec<_>>().join("; ")))
}

/// What a reader might look for and the rows do not have.
pub(super) fn not_measured(sections: &Sections) -> String {
    let rows: Vec<&Row> = sections.rows().collect();
    let runs = || sections.sections.iter().map(|section| &section.key);
    let mut sentences = Vec::new();
    let durabilities =
        [(Durability::Durable, "Durable writes."), (Durability::Buffered, "Buffered writes.")];
    for (durability, sentence) in durabilities {
        if runs().all(|key| key.durability != durability.name()) {
            sentences.push(sentence.to_owned());
        }
    }
    let clients: BTreeSet<String> = runs().map(|key| key.clients.to_string()).collect();
    sentences.push(format!("Numbers of clients other than {}.", joined(&clients)));
    let sizes = runs().map(|key| {
        format!(
            "{} of {} bytes",
            thousands(key.records as f64),
            thousands(key.document_bytes as f64)
        )
    });
    sentences.push(format!("Records other than {}.", joined(&sizes.collect())));
    let missing = Workload::IN_RUN_ORDER.map(|workload| workload.to_string());
    let missing = missing.into_iter().filter(|name| rows.iter().all(|row| row.workload != *name));
    let missing: BTreeSet<String> = missing.map(|name| name.to_uppercase()).collect();
    if !missing.is_empty() {
        sentences.push(format!("Workloads {}.", joined(&missing)));
    }
    let stores: BTreeSet<String> = rows.iter().map(|row| row.store.clone()).collect();
    sentences.push(format!("Stores other than {}.", joined(&stores)));
    sentences.extend(memory_sentence(&rows));
    list(&sentences)
}

fn memory_sentence(rows: &[&Row]) -> Option<String> {
    let disk = rows.iter().map(|row| row.measurement.disk_bytes).max()?;
    let memory = rows.iter().map(|row| row.machine.memory_bytes).min()?;
    (disk < memory).then(|| {
        format!(
            "Data beyond memory: the largest folder has {} MiB, the machine {} MiB of memory.",
            mebibytes(disk as f64),
            mebibytes(memory as f64)
        )
    })
}

fn joined(words: &BTreeSet<String>) -> String {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => String::new(),
        [word] => (*word).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{Cell, row, small_run};
    use super::*;
    use crate::measure::processor::Quietness;

    fn said(rows: Vec<Row>) -> String {
        numbers(&Sections::of(rows).unwrap())
    }

    #[test]
    fn a_disturbed_cell_is_named() {
        let mut rows = small_run();
        assert_eq!(disturbed(&rows), None);
        let quietness =
            |processor_probe, processor_quiet| Some(Quietness { processor_probe, processor_quiet });
        rows[0].quietness = quietness(1.0, true);
        assert_eq!(disturbed(&rows), None);
        rows[1].quietness = quietness(1.25, false);
        let sentence = disturbed(&rows).unwrap();
        let count = format!("Before 1 of {} cells", rows.len());
        assert!(sentence.starts_with(&count) && sentence.contains("1.25 times"), "{sentence}");
        assert!(sentence.contains(&rows[1].cell), "{sentence}");
    }

    #[test]
    fn ahead_behind_and_undecided_are_told_apart() {
        let text = said(small_run());
        let expected = "- Throughput of sediment: higher than rocksdb's in every repeat of C (5.00 \
            times, 4.00 to 6.00); lower than rocksdb's in every repeat of A (0.65 times, 0.40 to \
            0.90); the repeats disagree in load (1.00 times).";
        assert!(text.lines().any(|line| line == expected), "{text}");
        assert!(text.contains("**Table-bound, durable, 1 client, 300 000 records of 118 bytes**"));
        assert!(text.contains("- Disk of sediment: 1.00 times rocksdb's."), "{text}");
        assert!(!text.contains("highest median of all stores"), "there are two: {text}");
    }

    #[test]
    fn a_shorter_tail_and_a_single_repeat_are_said() {
        let mut rows = small_run();
        rows.retain(|row| row.repeat == 1);
        for row in rows.iter_mut().filter(|row| row.store == "sediment") {
            row.measurement.latency_ns.get_mut("READ").unwrap().p99 = 1_000;
        }
        let text = said(rows);
        assert!(
            text.contains("p99 latency of sediment: shorter than rocksdb's in every repeat of"),
            "{text}"
        );
        assert!(text.contains("C READ (0.40 times)") && text.contains("one repeat"), "{text}");
    }

    #[test]
    fn a_stall_of_the_engine_is_said() {
        let mut rows = small_run();
        for row in rows.iter_mut().filter(|row| row.store == "sediment" && row.workload == "a") {
            let read = row.measurement.latency_ns.get_mut("READ").unwrap();
            read.max = u64::from(row.repeat) * 1_000_000;
        }
        let expected = "- Longest operation of sediment: longer than rocksdb's in A READ (2.00 ms \
            to 250 µs); at most rocksdb's in load READ (250 µs to 250 µs), C READ (250 µs to 250 \
            µs).";
        let text = said(rows);
        assert!(text.lines().any(|line| line == expected), "{text}");
    }

    #[test]
    fn among_many_stores_the_fastest_is_named() {
        let mut rows = small_run();
        rows.push(row(Cell { store: "lmdb", rate: 9_000.0, ..Cell::default() }));
        let text = said(rows);
        assert!(text.contains("The highest median of all stores: lmdb in C; "), "{text}");
    }

    #[test]
    fn without_the_oracle_there_is_no_comparison() {
        let text = said(vec![row(Cell::default())]);
        assert!(text.contains("no cells of both sediment and rocksdb"), "{text}");
    }

    #[test]
    fn what_is_not_measured_follows_from_the_rows() {
        let mut rows = small_run();
        for row in &mut rows {
            row.machine.memory_bytes = 16 << 30;
        }
        let text = not_measured(&Sections::of(rows).unwrap());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "- Buffered writes.",
                "- Numbers of clients other than 1.",
                "- Records other than 300 000 of 118 bytes.",
                "- Workloads B, D, E and F.",
                "- Stores other than rocksdb and sediment.",
                "- Data beyond memory: the largest folder has 7.0 MiB, the machine 16 384 MiB of \
                 memory.",
            ]
        );
    }
}
