//! Answers that no order of the operations explains, counted by kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What is wrong with an answer. `docs/bench/README.md` defines each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// A value that had been overwritten before the read began.
    Stale,
    /// As stale, and nobody ever saw a value that overwrote it.
    LostUpdate,
    /// A record that had been written was not found.
    LostRecord,
    /// The value of a write that began after the read had ended.
    Future,
    /// A value that no write of the field has.
    Unwritten,
    /// Not of a document's shape, or fields that were never there together.
    Torn,
    /// Each answer is explained, but no order of the writes explains them all.
    Order,
    /// A scan passed over a key that was there.
    Skipped,
    /// A scan gave a row twice.
    Repeated,
    /// A row before its predecessor.
    Unordered,
    /// A row before the scan's first key.
    Outside,
    /// More rows than asked for.
    Excess,
    /// Another number of rows than the store said.
    Count,
    /// A row with a key that nobody wrote.
    UnknownKey,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::LostUpdate => "lost-update",
            Self::LostRecord => "lost-record",
            Self::Future => "future",
            Self::Unwritten => "unwritten",
            Self::Torn => "torn",
            Self::Order => "order",
            Self::Skipped => "skipped",
            Self::Repeated => "repeated",
            Self::Unordered => "unordered",
            Self::Outside => "outside",
            Self::Excess => "excess",
            Self::Count => "count",
            Self::UnknownKey => "unknown-key",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The mismatches that were found.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) kinds: BTreeMap<Kind, u64>,
    /// The beginning of the operation with the earliest one, and the sentence about it.
    first: Option<(u64, String)>,
}

impl Tally {
    /// `text` is made only for the earliest operation so far.
    pub(super) fn add(&mut self, kind: Kind, start: u64, text: impl FnOnce() -> String) {
        *self.kinds.entry(kind).or_default() += 1;
        if self.first.as_ref().is_none_or(|(earliest, _)| start < *earliest) {
            self.first = Some((start, format!("{kind}: {}", text())));
        }
    }

    pub(super) fn first(self) -> Option<String> {
        self.first.map(|(_, text)| text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_counted_and_the_earliest_is_told() {
        let mut tally = Tally::default();
        tally.add(Kind::Stale, 20, || "second".to_owned());
        tally.add(Kind::Torn, 10, || "first".to_owned());
        tally.add(Kind::Stale, 30, || panic!("nobody reads this"));
        assert_eq!(tally.kinds, BTreeMap::from([(Kind::Stale, 2), (Kind::Torn, 1)]));
        assert_eq!(tally.first(), Some("torn: first".to_owned()));
    }

    #[test]
    fn a_kinds_name_is_its_word_in_rows() {
        for kind in [Kind::LostUpdate, Kind::UnknownKey, Kind::Stale] {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{}\"", kind.name()));
        }
    }
}
