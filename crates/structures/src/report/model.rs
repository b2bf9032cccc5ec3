//! The cost model: what an operation should take, as a sum of what the machine charges.
//!
//! A term is a price, measured in the same run, and how often it is paid. What no term stands for
//! (instructions that wait for nothing, parsing an id, the handle's checks) is the difference
//! between expected and measured; where that is large, `docs/performance.md` says why.

use super::estimates::{Estimates, Missing};
use super::markdown::{Table, figure};
use super::names::{ENGINE, MACHINE, Operation, Price, Store};

/// How often a price is paid.
type Term = (f64, Price);

/// The CRC-32 over an id and a 100-byte document.
const CHECKSUM: Term = (1.0, Price::Checksum { bytes: 143 });
/// Before anything else: the version is pinned, and the id hashed.
const BEGIN: [Term; 2] = [(1.0, Price::VersionLoad), (1.0, Price::Hash)];
/// A document pins its segment.
const PIN: Term = (1.0, Price::ArcClone);
/// Buckets that an absent id makes a search look at: see `segment/fingerprints.rs`.
const BUCKETS: f64 = 1.3;

/// A line of memory of so many MiB.
const fn lines(count: f64, mib: usize) -> Term {
    (count, Price::Line { kib: mib << 10 })
}

/// The terms of an operation on a database whose documents are in `segments` sealed segments of
/// level 0.
///
/// Sizes are those of the bench: 65 536 documents in a memtable (slots of 512 KiB, nodes of 3.3
/// MB, a log of 11.5 MB) or in each of the segments (a table of 350 KB). A line costs what one of
/// all the memory costs that is touched before it is touched again: slots and buckets are shared
/// by a dozen ids, and so they stay in the second cache where nodes and records do not.
fn terms(operation: Operation, segments: f64) -> Vec<Term> {
    let record = |mib| [lines(1.0, mib), CHECKSUM, PIN];
    let found = |found: &[Term], record: [Term; 3]| [&BEGIN[..], found, &record].concat();
    match operation {
        // The slot, the node, the record.
        Operation::Hit(Store::Memtable) => found(&[lines(1.0, 1), lines(1.0, 16)], record(16)),
        Operation::Miss(Store::Memtable) => [&BEGIN[..], &[lines(1.0, 1)]].concat(),
        // The next node, its record.
        Operation::Step(Store::Memtable) => [&[lines(1.0, 16)][..], &record(16)].concat(),
        // The memtable is empty, and its slot says so.
        Operation::Hit(Store::Segment) => found(&[lines(2.0, 1)], record(16)),
        Operation::Miss(Store::Segment) => [&BEGIN[..], &[lines(1.0 + BUCKETS, 1)]].concat(),
        // Sorted entries are read one behind the other: nothing but the record is waited for.
        Operation::Step(Store::Segment) => record(16).to_vec(),
        // Half of the other segments are passed on the way.
        Operation::Hit(Store::Segments) => {
            let passed = BUCKETS * (segments - 1.0) / 2.0;
            found(&[lines(1.0, 1), lines(1.0 + passed, 4)], record(64))
        }
        Operation::Miss(Store::Segments) => {
            [&BEGIN[..], &[lines(1.0, 1), lines(BUCKETS * segments, 4)]].concat()
        }
        Operation::Step(Store::Segments) => record(64).to_vec(),
        // One segment's table, whose place in the list is found by heads that are warm.
        Operation::Hit(Store::Level1) => found(&[lines(1.0, 1), lines(1.0, 4)], record(64)),
        Operation::Miss(Store::Level1) => {
            [&BEGIN[..], &[lines(1.0, 1), lines(BUCKETS, 4)]].concat()
        }
        // The next record is the next line: none is waited for.
        Operation::Step(Store::Level1) => vec![CHECKSUM, PIN],
        Operation::PutBuffered => put().to_vec(),
        Operation::PutDurable => [&put()[..], &[(1.0, Price::Fdatasync)]].concat(),
        Operation::Sync => vec![(1.0, Price::Fdatasync)],
    }
}

/// Encoding and checksum, the queue's lock and the log's, one write, and a new id in the memtable:
/// the lower levels of the search, the node, its slot.
fn put() -> [Term; 6] {
    [
        (1.0, Price::Hash),
        CHECKSUM,
        (1.0, Price::Copy { bytes: crate::records::RECORD_BYTES }),
        (2.0, Price::Lock),
        (1.0, Price::Pwrite),
        lines(9.0, 16),
    ]
}

fn price(estimates: &Estimates, price: Price) -> Result<f64, Missing> {
    estimates.ns(MACHINE, &price.name(), "")
}

fn sum(estimates: &Estimates, terms: &[Term]) -> Result<f64, Missing> {
    terms.iter().try_fold(0.0, |sum, (count, of)| Ok(sum + count * price(estimates, *of)?))
}

fn spelt(terms: &[Term]) -> String {
    let term = |(count, price): &Term| match *count {
        1.0 => price.name(),
        count if count.fract() == 0.0 => format!("{count:.0} × {}", price.name()),
        count => format!("{count:.1} × {}", price.name()),
    };
    terms.iter().map(term).collect::<Vec<_>>().join(" + ")
}

/// What the machine charges.
pub(super) fn machine(estimates: &Estimates) -> Result<String, Missing> {
    let mut table = Table::new(&["price", "ns"], 1);
    for of in Price::all() {
        table.row([of.name(), figure(price(estimates, of)?)]);
    }
    Ok(table.finish())
}

/// Expected and measured, operation by operation.
pub(super) fn cost(estimates: &Estimates) -> Result<String, Missing> {
    let heads = ["operation", "terms", "expected, ns", "measured, ns", "measured / expected"];
    let mut table = Table::new(&heads, 2);
    for operation in Operation::all() {
        let (segments, measured) = estimates.only(ENGINE, &operation.name())?;
        let name = match operation {
            Operation::Hit(Store::Segments)
            | Operation::Miss(Store::Segments)
            | Operation::Step(Store::Segments) => {
                operation.name().replace("segments", &format!("{segments} segments"))
            }
            _ => operation.name(),
        };
        let terms = terms(operation, segments.parse().unwrap_or(1.0));
        let expected = sum(estimates, &terms)?;
        let ratio = format!("{:.2}", measured / expected);
        table.row([name, spelt(&terms), figure(expected), figure(measured), ratio]);
    }
    Ok(table.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_the_sum_of_its_terms() {
        let mut estimates = Estimates::default();
        for price in Price::all() {
            estimates.set(MACHINE, &price.name(), "", 10.0);
        }
        for operation in Operation::all() {
            estimates.set(ENGINE, &operation.name(), "8", 100.0);
        }
        let table = cost(&estimates).unwrap();
        let row = |name: &str| table.lines().find(|line| line.contains(name)).unwrap();
        let miss = row("get, not found, 8 segments");
        assert!(
            miss.contains("| version + key hash + line of 1 MiB + 10.4 × line of 4 MiB |"),
            "{miss}"
        );
        assert!(miss.ends_with("| 134 | 100 | 0.75 |"), "{miss}");
        assert!(row("put, buffered").contains("9 × line of 16 MiB | 150 |"));
        assert_eq!(table.lines().count(), 2 + Operation::all().len());
    }
}
