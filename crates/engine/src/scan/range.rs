//! The ids that a scan covers.

use std::cmp::Ordering;

use crate::format::{CollectionId, ID_BYTES_MAX, Position, Side};

/// The last place of a collection: no id is longer or greater.
static LAST_ID: [u8; ID_BYTES_MAX] = [0xFF; ID_BYTES_MAX];

/// A part of one collection's ids, between two places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    collection: CollectionId,
    lower: Edge,
    /// `None`: the collection's end.
    upper: Option<Edge>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    id: Vec<u8>,
    side: Side,
}

impl Edge {
    fn before(id: &[u8]) -> Self {
        Self { id: id.to_vec(), side: Side::Before }
    }

    /// Where an id lies from here.
    fn compare(&self, id: &[u8]) -> Ordering {
        id.cmp(&self.id).then(match self.side {
            Side::Before => Ordering::Greater,
            Side::After => Ordering::Less,
        })
    }

    fn position(&self, collection: CollectionId) -> Position<'_> {
        Position { collection, id: &self.id, side: self.side }
    }
}

impl Range {
    /// Every id of a collection.
    #[cfg(test)]
    pub(crate) fn all(collection: CollectionId) -> Self {
        Self { collection, lower: Edge::before(b""), upper: None }
    }

    /// The ids that begin with `prefix`.
    #[cfg(test)]
    pub(crate) fn prefix(collection: CollectionId, prefix: &[u8]) -> Self {
        // The first id behind them: 0xFF has no successor, so that the byte before it is raised.
        let upper = prefix.iter().rposition(|&byte| byte != 0xFF).map(|last| {
            let mut id = prefix[..=last].to_vec();
            id[last] += 1;
            Edge { id, side: Side::Before }
        });
        Self { collection, lower: Edge::before(prefix), upper }
    }

    /// The ids of the lower position's collection that lie between the two.
    pub(crate) fn between(lower: Position<'_>, upper: Position<'_>) -> Self {
        let edge = |position: Position<'_>| Edge { id: position.id.to_vec(), side: position.side };
        let collection = lower.collection;
        let lower = edge(lower);
        let upper = match upper.collection.cmp(&collection) {
            Ordering::Less => Some(Edge::before(b"")),
            Ordering::Equal => Some(edge(upper)),
            Ordering::Greater => None,
        };
        Self { collection, lower, upper }
    }

    pub(crate) fn collection(&self) -> CollectionId {
        self.collection
    }

    /// Whether no id can lie in it: its ends are the same place, or crossed.
    pub(crate) fn is_empty(&self) -> bool {
        self.upper.as_ref().is_some_and(|upper| self.lower >= *upper)
    }

    /// Whether an id of the collection lies before the upper end.
    pub(super) fn is_before_end(&self, id: &[u8]) -> bool {
        self.upper.as_ref().is_none_or(|upper| upper.compare(id) == Ordering::Less)
    }

    /// Whether an id of the collection lies behind the lower end.
    pub(super) fn is_after_start(&self, id: &[u8]) -> bool {
        self.lower.compare(id) == Ordering::Greater
    }

    pub(super) fn lower(&self) -> Position<'_> {
        self.lower.position(self.collection)
    }

    /// The id at the upper end, unless that is the collection's.
    pub(super) fn upper_id(&self) -> Option<&[u8]> {
        self.upper.as_ref().map(|upper| upper.id.as_slice())
    }

    pub(super) fn upper(&self) -> Position<'_> {
        match (&self.upper, self.collection.0.checked_add(1)) {
            (Some(upper), _) => upper.position(self.collection),
            (None, Some(next)) => {
                Position { collection: CollectionId(next), id: b"", side: Side::Before }
            }
            (None, None) => {
                Position { collection: self.collection, id: &LAST_ID, side: Side::After }
            }
        }
    }
}
