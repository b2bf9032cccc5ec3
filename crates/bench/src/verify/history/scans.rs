//! Holds the rows of each scan to the keys that were certainly there when it began: in order, each
//! once, none left out, and as many as asked for if there are as many.

use super::entry::{Actor, Interval};
use super::keys::{KeySet, key_of, rank};
use super::mismatch::{Kind, Tally};
use crate::workload::KeyFormat;

/// A scan whose rows are coming.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scan {
    pub(super) actor: Actor,
    /// The first key that was asked for.
    pub(super) key: u64,
    pub(super) limit: u64,
    pub(super) start: u64,
    /// In the key set: where the next row is looked for.
    place: usize,
    last: Option<u64>,
    rows: u64,
}

/// Checks scans one after the other.
pub(super) struct Scans<'a> {
    format: KeyFormat,
    keys: &'a KeySet,
}

impl<'a> Scans<'a> {
    pub(super) fn new(format: KeyFormat, keys: &'a KeySet) -> Self {
        Self { format, keys }
    }

    pub(super) fn begin(&self, actor: Actor, key: u64, limit: u64, start: u64) -> Scan {
        Scan { actor, key, limit, start, place: self.keys.place(key), last: None, rows: 0 }
    }

    pub(super) fn row(&self, scan: &mut Scan, key: u64, tally: &mut Tally) {
        scan.rows += 1;
        let place = rank(self.format, key);
        let tell = |kind, tally: &mut Tally, what: &str| {
            let text = || format!("{}: {what} {}", self.named(scan), key_of(self.format, key));
            tally.add(kind, scan.start, text);
        };
        if place < rank(self.format, scan.key) {
            return tell(Kind::Outside, tally, "a row before its first key,");
        }
        match scan.last.map(|last| rank(self.format, last)) {
            Some(last) if place == last => return tell(Kind::Repeated, tally, "twice the row"),
            Some(last) if place < last => {
                return tell(Kind::Unordered, tally, "a row before its predecessor,");
            }
            _ => {}
        }
        let is_known = self.pass(scan, Some(place), tally);
        if !is_known {
            let text = || {
                format!("{}: nobody wrote the key {}", self.named(scan), key_of(self.format, key))
            };
            tally.add(Kind::UnknownKey, scan.start, text);
        }
        scan.last = Some(key);
    }

    /// A row whose key no client writes.
    pub(super) fn foreign(&self, scan: &mut Scan, tally: &mut Tally) {
        scan.rows += 1;
        let text = || format!("{}: a row's key is none of the workloads'", self.named(scan));
        tally.add(Kind::UnknownKey, scan.start, text);
    }

    /// `returned` is the number that the store answered; `None` if the scan failed.
    pub(super) fn end(&self, mut scan: Scan, returned: Option<u64>, tally: &mut Tally) {
        let named = |what: String| format!("{}: {what}", self.named(&scan));
        let Scan { rows, limit, start, .. } = scan;
        if rows > limit {
            tally.add(Kind::Excess, start, || named(format!("{rows} rows")));
        }
        let Some(returned) = returned else { return };
        if returned != rows {
            tally.add(Kind::Count, start, || named(format!("{rows} rows, {returned} answered")));
        }
        if rows < limit {
            self.pass(&mut scan, None, tally);
        }
    }

    /// Moves over the keys up to `rank`, or all that are left, which must not have been there; says
    /// whether there is a key of that rank.
    fn pass(&self, scan: &mut Scan, to: Option<u128>, tally: &mut Tally) -> bool {
        while let Some(inserted) = self.keys.get(scan.place) {
            if let Some(to) = to {
                match rank(self.format, inserted.key).cmp(&to) {
                    std::cmp::Ordering::Less => {}
                    std::cmp::Ordering::Equal => {
                        scan.place += 1;
                        return true;
                    }
                    std::cmp::Ordering::Greater => return false,
                }
            }
            if inserted.answered < scan.start {
                let text = || {
                    let key = key_of(self.format, inserted.key);
                    let named = self.named(scan);
                    format!("{named}: no row {key}, written until {} ns", inserted.answered)
                };
                tally.add(Kind::Skipped, scan.start, text);
            }
            scan.place += 1;
        }
        false
    }

    fn named(&self, scan: &Scan) -> String {
        let from = key_of(self.format, scan.key);
        let Scan { actor, limit, start, .. } = scan;
        format!("scan from {from}, limit {limit}, by {actor}, begun at {start} ns")
    }
}

/// A row was read between the scan's beginning and the moment at which it was handed over.
pub(super) fn row_interval(scan: &Scan, end: u64) -> Interval {
    Interval { start: scan.start, end }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::entry::UNANSWERED;
    use super::super::keys::Inserted;
    use super::*;
    use crate::workload::InsertOrder;

    const FORMAT: KeyFormat = KeyFormat { order: InsertOrder::Ordered, zero_padding: 2 };

    /// Keys 10, 20, 30, 40 are there from the beginning; 25 since 100; the insert of 35 failed.
    fn kinds(from: u64, limit: u64, start: u64, rows: &[u64], returned: u64) -> Vec<(Kind, u64)> {
        let mut inserted: Vec<_> =
            [10, 20, 30, 40].map(|key| Inserted { key, answered: 1 }).to_vec();
        inserted.push(Inserted { key: 25, answered: 100 });
        inserted.push(Inserted { key: 35, answered: UNANSWERED });
        let keys = KeySet::new(FORMAT, inserted);
        let scans = Scans::new(FORMAT, &keys);
        let mut tally = Tally::default();
        let mut scan = scans.begin(Actor(0), from, limit, start);
        rows.iter().for_each(|&key| scans.row(&mut scan, key, &mut tally));
        scans.end(scan, Some(returned), &mut tally);
        BTreeMap::into_iter(tally.kinds).collect()
    }

    #[test]
    fn complete_scans_are_explained() {
        for (from, limit, start, rows) in [
            (0, 9, 50, &[10, 20, 30, 40][..]),
            (10, 2, 50, &[10, 20]),
            (11, 1, 50, &[20]),
            (41, 5, 50, &[]),
            // An insert that was answered later, or in this very moment, or never, may be seen or not.
            (0, 9, 50, &[10, 20, 25, 30, 40]),
            (0, 9, 100, &[10, 20, 30, 40]),
            (0, 9, 101, &[10, 20, 25, 30, 35, 40]),
            (20, 2, 50, &[20, 25]),
        ] {
            assert_eq!(kinds(from, limit, start, rows, rows.len() as u64), [], "{rows:?}");
        }
    }

    #[test]
    fn every_wrong_scan_has_its_kind() {
        use Kind::{Count, Excess, Outside, Repeated, Skipped, UnknownKey, Unordered};
        for (from, limit, start, rows, expected) in [
            (0, 9, 50, &[10, 30, 40][..], vec![(Skipped, 1)]),
            (0, 9, 101, &[10, 20, 30, 40], vec![(Skipped, 1)]),
            (0, 9, 50, &[20, 30, 40], vec![(Skipped, 1)]),
            (0, 9, 50, &[10, 20], vec![(Skipped, 2)]),
            (0, 2, 50, &[20, 30], vec![(Skipped, 1)]),
            (0, 9, 50, &[], vec![(Skipped, 4)]),
            (0, 9, 50, &[10, 20, 20, 30, 40], vec![(Repeated, 1)]),
            (0, 4, 50, &[10, 30, 20, 40], vec![(Skipped, 1), (Unordered, 1)]),
            (20, 9, 50, &[10, 20, 30, 40], vec![(Outside, 1)]),
            (0, 1, 50, &[10, 20], vec![(Excess, 1)]),
            (0, 9, 50, &[10, 20, 22, 30, 40], vec![(UnknownKey, 1)]),
        ] {
            let found = kinds(from, limit, start, rows, rows.len() as u64);
            assert_eq!(found, expected, "{rows:?}");
        }
        assert_eq!(kinds(0, 1, 50, &[10], 2), [(Count, 1)]);
    }
}
