//! Which versions of an id are kept: by the horizon, and by what may lie below.
//!
//! A reader sees, of each id, the newest version at or below its sequence, and no reader is below
//! the horizon H. So a version is seen by somebody, or may be, exactly if it is the newest, or if
//! the next newer one is above H. A tombstone at or below H that nothing older can follow says what
//! its absence says.
//!
//! A damaged version whose sequence is not known has the least that it may have had. What follows it
//! and is not below that is dropped: whoever would see it cannot know whether it is the newest.

use crate::format::{CollectionId, Kind, Sequence};

/// What becomes of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is the newest version of its id that the merge has.
    Newest,
    /// It is not, and a reader at or above the horizon may see it.
    Pinned,
    /// Nobody sees it.
    Dropped,
}

/// Whether an older version of an id may lie where the merge does not look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Older {
    Possible,
    Impossible,
}

/// Judges versions that come in the order of the merge: by key, the newest of an id first.
#[derive(Debug)]
pub(crate) struct Keeper {
    horizon: Sequence,
    collection: CollectionId,
    id: Vec<u8>,
    /// The sequence of the version before, of the same id, and what it is.
    newer: Option<(Sequence, Kind)>,
}

impl Keeper {
    pub(crate) fn new(horizon: Sequence) -> Self {
        Self { horizon, collection: CollectionId(0), id: Vec::new(), newer: None }
    }

    /// Whether this is the id of the version that was judged last.
    pub(crate) fn is_same_id(&self, collection: CollectionId, id: &[u8]) -> bool {
        self.newer.is_some() && self.collection == collection && self.id == id
    }

    /// Judges a version. What is older matters for tombstones only.
    pub(crate) fn judge(
        &mut self,
        (collection, id): (CollectionId, &[u8]),
        sequence: Sequence,
        kind: Kind,
        older: Older,
    ) -> Fate {
        let newer = self.newer.filter(|_| self.collection == collection && self.id == id);
        if newer.is_none() {
            self.collection = collection;
            self.id.clear();
            self.id.extend_from_slice(id);
        }
        match newer {
            Some((newer, Kind::Damaged)) if newer <= sequence => return Fate::Dropped,
            Some((newer, _)) => debug_assert!(newer >= sequence, "the newest version comes first"),
            None => {}
        }
        self.newer = Some((sequence, kind));
        let newer = newer.map(|(newer, _)| newer);
        if newer.is_some_and(|newer| newer <= self.horizon) {
            return Fate::Dropped;
        }
        // What is older in the merge itself is dropped after this one.
        if kind == Kind::Delete && sequence <= self.horizon && older == Older::Impossible {
            return Fate::Dropped;
        }
        if newer.is_none() { Fate::Newest } else { Fate::Pinned }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: CollectionId = CollectionId(1);

    fn judge(horizon: u64, older: Older, versions: &[(&str, u64, Kind)]) -> Vec<Fate> {
        let mut keeper = Keeper::new(Sequence(horizon));
        versions
            .iter()
            .map(|&(id, sequence, kind)| {
                let key = (ONE, id.as_bytes());
                keeper.judge(key, Sequence(sequence), kind, older)
            })
            .collect()
    }

    #[test]
    fn versions_go_when_the_next_newer_one_is_at_or_below_the_horizon() {
        use Fate::{Dropped, Newest, Pinned};
        let versions = [
            ("a", 9, Kind::Put),
            ("a", 7, Kind::Put),
            ("a", 4, Kind::Put),
            ("a", 2, Kind::Put),
            ("b", 3, Kind::Put),
        ];
        let table = [
            (9, [Newest, Dropped, Dropped, Dropped, Newest]),
            (8, [Newest, Pinned, Dropped, Dropped, Newest]),
            (7, [Newest, Pinned, Dropped, Dropped, Newest]),
            (6, [Newest, Pinned, Pinned, Dropped, Newest]),
            (0, [Newest, Pinned, Pinned, Pinned, Newest]),
        ];
        for (horizon, expected) in table {
            for older in [Older::Possible, Older::Impossible] {
                assert_eq!(judge(horizon, older, &versions), expected, "{horizon}");
            }
        }
    }

    #[test]
    fn a_tombstone_goes_with_what_it_deletes_once_nothing_older_can_be_left() {
        use Fate::{Dropped, Newest, Pinned};
        let versions = [
            ("a", 9, Kind::Put),
            ("a", 7, Kind::Delete),
            ("a", 4, Kind::Put),
            ("b", 5, Kind::Delete),
            ("b", 0, Kind::Put),
        ];
        use Older::{Impossible, Possible};
        let table = [
            (9, Impossible, [Newest, Dropped, Dropped, Dropped, Dropped]),
            (9, Possible, [Newest, Dropped, Dropped, Newest, Dropped]),
            (8, Impossible, [Newest, Dropped, Dropped, Dropped, Dropped]),
            (8, Possible, [Newest, Pinned, Dropped, Newest, Dropped]),
            (6, Impossible, [Newest, Pinned, Pinned, Dropped, Dropped]),
            (4, Impossible, [Newest, Pinned, Pinned, Newest, Pinned]),
        ];
        for (horizon, older, expected) in table {
            assert_eq!(judge(horizon, older, &versions), expected, "{horizon} {older:?}");
        }
    }

    #[test]
    fn what_a_damaged_version_of_unknown_age_may_hide_is_dropped() {
        use Fate::{Dropped, Newest, Pinned};
        let versions = [
            ("a", 9, Kind::Put),
            ("a", 3, Kind::Damaged),
            ("a", 3, Kind::Damaged),
            ("a", 5, Kind::Put),
            ("a", 2, Kind::Put),
            ("b", 3, Kind::Damaged),
            ("b", 4, Kind::Put),
        ];
        for (horizon, last) in [(1, Pinned), (3, Dropped)] {
            let expected = [Newest, Pinned, Dropped, Dropped, last, Newest, Dropped];
            assert_eq!(judge(horizon, Older::Possible, &versions), expected, "{horizon}");
        }
    }

    #[test]
    fn the_same_id_in_another_collection_is_another_id() {
        let mut keeper = Keeper::new(Sequence(9));
        let mut judge = |collection| {
            let key = (CollectionId(collection), b"a".as_slice());
            keeper.judge(key, Sequence(3), Kind::Put, Older::Possible)
        };
        assert_eq!(judge(1), Fate::Newest);
        assert_eq!(judge(1), Fate::Dropped);
        assert_eq!(judge(2), Fate::Newest);
    }
}
