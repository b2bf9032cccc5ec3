//! Finding documents: points and scans.
//!
//! Expected cost of a get: pin the version (about 10 ns), one probe of the active memtable, one
//! cache line of each run of level 0 that does not hold the id (newest first), one of level 1, then
//! the record and its checksum. No lock, and no cache line that another thread writes.

use std::ops::Bound;
use std::path::{Path, PathBuf};

use super::any_cursor::AnyCursor;
use super::{CollectionState, Store, Version};
use crate::error::Result;
use crate::format::{CollectionId, Key, Kind, Position, Sequence, Side};
use crate::id::EncodedId;
use crate::log::Condition;
use crate::scan::{Merge, Range, Runs};
use crate::segment::{Record, Regime, segment_path};
use crate::sync::Arc;

/// What a writer needs to know of an id before it writes.
pub(crate) struct Seen {
    /// The newest document, if there is one.
    pub(crate) record: Option<Record>,
    /// Holds while no record of the id is newer.
    pub(crate) condition: Condition,
}

impl Store {
    /// The document of an id, now or at a snapshot.
    pub(crate) fn get(
        &self,
        collection: &CollectionState,
        id: &[u8],
        snapshot: Option<Sequence>,
    ) -> Result<Option<Record>> {
        self.check_open()?;
        let version = self.version.load();
        let at = snapshot.unwrap_or_else(|| self.visible());
        collection.check(at)?;
        self.get_at(&version, Key::new(collection.id, id), at)
    }

    fn get_at(&self, version: &Version, key: Key<'_>, at: Sequence) -> Result<Option<Record>> {
        let regime = self.governor.regime();
        let found = |record: Record| Ok((record.kind() != Kind::Delete).then_some(record));
        if let Some(record) = version.active.get(key, at, regime)? {
            return found(record);
        }
        for run in &version.frozen {
            if let Some(record) = run.get(key, at, regime)? {
                return found(record);
            }
        }
        match version.tables.get(key, at, regime)? {
            Some(record) => found(record),
            None => Ok(None),
        }
    }

    /// The newest document of an id, and the condition under which a write that builds on it is
    /// valid.
    pub(crate) fn see(&self, collection: &CollectionState, id: &[u8]) -> Result<Seen> {
        self.check_open()?;
        let (version, seen) = together(|| self.version.load_full(), || self.visible());
        collection.check(seen)?;
        let record = self.get_at(&version, Key::new(collection.id, id), seen)?;
        let condition = Condition { collection: collection.id, id: id.to_vec(), seen };
        Ok(Seen { record, condition })
    }

    /// A lazy scan over a range of ids, now or at a snapshot. It pins the runs it reads from.
    pub(crate) fn scan(
        self: &Arc<Self>,
        collection: &CollectionState,
        range: &(Bound<EncodedId>, Bound<EncodedId>),
        snapshot: Option<Sequence>,
    ) -> Result<Merge<ScanRuns>> {
        self.check_open()?;
        let version = self.version.load_full();
        let at = snapshot.unwrap_or_else(|| self.visible());
        collection.check(at)?;
        let runs = ScanRuns { version, regime: self.governor.regime() };
        let place = |id, side| Position { collection: collection.id, id, side };
        let lower = match &range.0 {
            Bound::Unbounded => place(&[], Side::Before),
            Bound::Included(from) => place(from.as_bytes(), Side::Before),
            Bound::Excluded(from) => place(from.as_bytes(), Side::After),
        };
        // No id of the collection reaches into the next one.
        let next = CollectionId(collection.id.0 + 1);
        let upper = match &range.1 {
            Bound::Unbounded => Position { collection: next, id: &[], side: Side::Before },
            Bound::Included(to) => place(to.as_bytes(), Side::After),
            Bound::Excluded(to) => place(to.as_bytes(), Side::Before),
        };
        Ok(Merge::new(runs, Range::between(lower, upper), at))
    }
}

/// Loads both at one moment: again, until the first is still the same after the second was loaded.
///
/// Of a version and the visible sequence: if the log rolled in between, an id's newest record may
/// lie in a segment that the version lacks, and yet below the sequence. A read may miss what is
/// written while it runs; a condition that is built on it may not.
fn together<A, B>(first: impl Fn() -> Arc<A>, second: impl Fn() -> B) -> (Arc<A>, B) {
    let mut a = first();
    loop {
        let b = second();
        let again = first();
        if Arc::ptr_eq(&a, &again) {
            return (a, b);
        }
        a = again;
    }
}

/// The runs of a pinned version.
#[derive(Debug)]
pub(crate) struct ScanRuns {
    version: Arc<Version>,
    regime: Regime,
}

impl Runs for ScanRuns {
    type Cursor = AnyCursor;

    fn cursors(&self, take: &mut impl FnMut(AnyCursor)) -> Result<()> {
        let version = &self.version;
        for run in std::iter::once(&version.active).chain(&version.frozen) {
            take(AnyCursor::Unsealed(Box::new(run.cursor(self.regime))));
        }
        version.tables.cursors(self.regime, take);
        Ok(())
    }

    fn file(&self, run: usize) -> PathBuf {
        let version = &self.version;
        let dir = version.active.path().parent().unwrap_or(Path::new(""));
        let unsealed = std::iter::once(&version.active).chain(&version.frozen).map(|run| run.id());
        let id = unsealed.chain(version.tables.cursor_segments()).nth(run).unwrap_or_default();
        segment_path(dir, id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Mutex;

    #[test]
    fn a_roll_between_two_loads_makes_both_be_loaded_again() {
        let version = Mutex::new(Arc::new("before the roll"));
        let rolls = Mutex::new(0);
        let (loaded, visible) = together(
            || Arc::clone(&version.lock()),
            || {
                let mut rolls = rolls.lock();
                if *rolls < 2 {
                    *rolls += 1;
                    *version.lock() = Arc::new("after a roll");
                }
                *rolls
            },
        );
        assert_eq!((*loaded, visible), ("after a roll", 2));
        assert!(Arc::ptr_eq(&loaded, &version.lock()), "the version of the sequence");
    }
}
