//! Ranges of ids, for scans.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use self::sealed::Bounds;
use super::{EncodedId, Id};
use crate::error::Result;

/// Where a scan begins and ends.
type EncodedBounds = (Bound<EncodedId>, Bound<EncodedId>);

mod sealed {
    use super::EncodedBounds;
    use crate::error::Result;

    /// What the engine asks of a range. Cannot be implemented outside.
    pub trait Bounds<'a> {
        /// The range's ends, encoded. A start beyond the end is an empty range, not an error.
        fn bounds(self) -> Result<EncodedBounds>;
    }
}

/// A range of ids: `..`, `"a".."b"`, `5_i64..`, `..=id`, a pair of [`Bound`]s, or [`prefix`].
///
/// The ends are anything that converts into an [`Id`]. A range whose start lies beyond its end is
/// empty. Ends that are too long for an id are an error of the scan
/// ([`Error::InvalidId`](crate::Error::InvalidId)).
///
/// The lifetime is that of what the ends borrow; a function takes `impl IdRange<'_>`.
///
/// ```
/// use std::ops::Bound;
///
/// use engine::{Id, prefix};
///
/// # fn main() -> Result<(), engine::Error> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let database = engine::Database::open(dir.path().join("db"), engine::Options::default())?;
/// # let things = database.collection("things")?;
/// things.scan(..)?;
/// things.scan(1_i64..100)?;
/// things.scan("user:".."user;")?;
/// things.scan(prefix("user:"))?; // the same
/// things.scan((Bound::Excluded("m"), Bound::Unbounded))?; // strings after "m", and all bytes
/// things.scan(Id::from("")..Id::from(b""))?; // all strings
/// # Ok(())
/// # }
/// ```
pub trait IdRange<'a>: Bounds<'a> {}

impl<'a, R: Bounds<'a>> IdRange<'a> for R {}

/// All string ids that begin with a text; the empty text stands for all string ids. For
/// [`Collection::scan`] and its like.
///
/// [`Collection::scan`]: crate::Collection::scan
pub fn prefix(text: &str) -> impl IdRange<'_> {
    Prefix(text)
}

struct Prefix<'a>(&'a str);

impl<'a> Bounds<'a> for Prefix<'a> {
    fn bounds(self) -> Result<EncodedBounds> {
        let start = Id::from(self.0).encode()?;
        let end = start.prefix_end().map_or(Bound::Unbounded, Bound::Excluded);
        Ok((Bound::Included(start), end))
    }
}

fn encode<'a>(id: impl Into<Id<'a>>) -> Result<EncodedId> {
    id.into().encode()
}

fn encode_bound<'a>(bound: Bound<impl Into<Id<'a>>>) -> Result<Bound<EncodedId>> {
    Ok(match bound {
        Bound::Included(id) => Bound::Included(encode(id)?),
        Bound::Excluded(id) => Bound::Excluded(encode(id)?),
        Bound::Unbounded => Bound::Unbounded,
    })
}

impl<'a> Bounds<'a> for RangeFull {
    fn bounds(self) -> Result<EncodedBounds> {
        Ok((Bound::Unbounded, Bound::Unbounded))
    }
}

impl<'a, T: Into<Id<'a>>> Bounds<'a> for Range<T> {
    fn bounds(self) -> Result<EncodedBounds> {
        Ok((Bound::Included(encode(self.start)?), Bound::Excluded(encode(self.end)?)))
    }
}

impl<'a, T: Into<Id<'a>>> Bounds<'a> for RangeInclusive<T> {
    fn bounds(self) -> Result<EncodedBounds> {
        let (start, end) = self.into_inner();
        Ok((Bound::Included(encode(start)?), Bound::Included(encode(end)?)))
    }
}

impl<'a, T: Into<Id<'a>>> Bounds<'a> for RangeFrom<T> {
    fn bounds(self) -> Result<EncodedBounds> {
        Ok((Bound::Included(encode(self.start)?), Bound::Unbounded))
    }
}

impl<'a, T: Into<Id<'a>>> Bounds<'a> for RangeTo<T> {
    fn bounds(self) -> Result<EncodedBounds> {
        Ok((Bound::Unbounded, Bound::Excluded(encode(self.end)?)))
    }
}

impl<'a, T: Into<Id<'a>>> Bounds<'a> for RangeToInclusive<T> {
    fn bounds(self) -> Result<EncodedBounds> {
        Ok((Bound::Unbounded, Bound::Included(encode(self.end)?)))
    }
}

impl<'a, T: Into<Id<'a>>> Bounds<'a> for (Bound<T>, Bound<T>) {
    fn bounds(self) -> Result<EncodedBounds> {
        Ok((encode_bound(self.0)?, encode_bound(self.1)?))
    }
}
