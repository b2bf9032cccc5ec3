//! Whether rows are a measurement at all.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::row::Row;

/// What is wrong with the rows of a section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Soundness {
    pub(super) errors: u64,
    pub(super) first_error: Option<String>,
    pub(super) not_found: u64,
    /// Cells whose background work did not end in time, with the repeat.
    pub(super) unsettled: Vec<String>,
    /// Workloads whose rows do not all have the same digest.
    pub(super) digests: Vec<String>,
}

impl Soundness {
    pub(super) fn of(rows: &[Row]) -> Self {
        let mut found = Self::default();
        let mut digests: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for row in rows {
            let place = || format!("{} repeat {}", row.cell, row.repeat);
            found.errors += row.measurement.errors;
            found.not_found += row.measurement.not_found;
            if let (None, Some(error)) = (&found.first_error, &row.measurement.first_error) {
                found.first_error = Some(format!("{}: {error}", place()));
            }
            if !row.measurement.settled {
                found.unsettled.push(place());
            }
            if let Some(digest) = &row.digest {
                digests.entry(&row.workload).or_default().insert(format!("{digest:?}"));
            }
        }
        let differing = digests.into_iter().filter(|(_, digests)| digests.len() > 1);
        found.digests = differing.map(|(workload, _)| workload.to_uppercase()).collect();
        found
    }

    pub(super) fn sentence(&self) -> String {
        if *self == Self::default() {
            return "No errors, no missing records, every cell settled, equal digests.".to_owned();
        }
        let mut parts = Vec::new();
        if self.errors > 0 || self.first_error.is_some() {
            let first = self.first_error.as_deref().unwrap_or("without a message");
            parts.push(format!("{} errors (first: {})", self.errors, first.replace('\n', " ")));
        }
        if self.not_found > 0 {
            parts.push(format!("{} records not found", self.not_found));
        }
        if !self.unsettled.is_empty() {
            parts.push(format!("not settled: {}", self.unsettled.join(", ")));
        }
        if !self.digests.is_empty() {
            parts.push(format!("digests differ in {}", self.digests.join(", ")));
        }
        format!("**Not sound**: {}.", parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::small_run;
    use super::*;
    use crate::verify::Digest;

    #[test]
    fn sound_rows_say_so() {
        let soundness = Soundness::of(&small_run());
        assert_eq!(soundness, Soundness::default());
        assert!(soundness.sentence().starts_with("No errors"));
    }

    #[test]
    fn every_defect_is_counted_and_named() {
        let mut rows = small_run();
        let digest =
            |values: &str| Some(Digest { operations: 1, rows: 1, bytes: 1, values: values.into() });
        for row in &mut rows {
            row.digest = digest("00");
        }
        rows[2].digest = digest("01");
        rows[4].measurement.settled = false;
        rows[5].measurement.errors = 3;
        rows[5].measurement.first_error = Some("disk full".to_owned());
        rows[1].measurement.not_found = 2;
        let sentence = Soundness::of(&rows).sentence();
        assert_eq!(
            sentence,
            "**Not sound**: 3 errors (first: rocksdb/c/1/durable/300000x1x100 repeat 1: disk \
             full); 2 records not found; not settled: sediment/c/1/durable/300000x1x100 repeat 1; \
             digests differ in A."
        );
    }
}
