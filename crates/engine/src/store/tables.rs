//! The sealed segments as a read meets them: the runs of level 0, level 1, and what is looked at
//! last.
//!
//! Invariants:
//!
//! 1. They are made from what the manifest says, and from nothing else: a reopen gives the same.
//! 2. What a sweep has merged is ignored: below its cursor the runs up to its cut, which stay in
//!    place for the keys above.
//! 3. A segment that is in one version and the next is the same object in both, with its open files.

use std::collections::BTreeMap;

use super::Files;
use super::any_cursor::AnyCursor;
use super::quarantine::Quarantine;
use crate::compactor::Input;
use crate::compactor::accounting::{is_swept, members};
use crate::error::Result;
use crate::format::{
    Age, Bound, CollectionId, FullKey, Key, Kind, Placement, SealedMeta, SegmentId, Sequence,
    SweepState,
};
use crate::manifest::{ManifestState, SegmentState};
use crate::planted::{self, Bug};
use crate::scan::{Chain, ChainEntry, Clipped};
use crate::segment::{DataSegment, Record, Regime, SealedSegment};
use crate::sync::Arc;

/// The sealed segments of a version.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// Newest first.
    pub(crate) level0: Vec<Level0>,
    pub(crate) level1: Arc<Chain>,
    pub(crate) quarantined: Vec<Arc<Quarantine>>,
    /// Segments with damaged ids that the sweep under way has passed in part.
    passed: Vec<Arc<Quarantine>>,
    pub(crate) sweep: Option<SweepState>,
    /// The newest sequence in any of them, ever.
    pub(crate) sealed_up_to: Sequence,
    /// Every sealed file, also of segments that are no runs of their own.
    data: BTreeMap<SegmentId, Arc<DataSegment>>,
    segments: BTreeMap<SegmentId, Arc<SealedSegment>>,
}

/// A run of level 0.
#[derive(Clone, Debug)]
pub(crate) struct Level0 {
    pub(crate) age: Age,
    pub(crate) run: Level0Run,
    pub(crate) cover: Cover,
}

/// How a run of level 0 is laid out.
#[derive(Clone, Debug)]
pub(crate) enum Level0Run {
    /// A log segment, or an index over several.
    Segment(Arc<SealedSegment>),
    /// Sorted segments.
    Chain(Arc<Chain>),
}

/// What of a run counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cover {
    All,
    /// The sweep under way merges it: keys below the sweep's cursor are in level 1.
    FromCursor,
    /// The sweep under way makes it: keys below the cursor that are not in level 1.
    Carried,
}

impl Level0Run {
    /// Its segments, in no particular order.
    pub(crate) fn segments(&self) -> Vec<Arc<SealedSegment>> {
        match self {
            Self::Segment(segment) => vec![Arc::clone(segment)],
            Self::Chain(chain) => {
                chain.entries().iter().map(|entry| Arc::clone(entry.segment())).collect()
            }
        }
    }

    /// The run as a merge reads it.
    pub(crate) fn input(&self) -> Input {
        match self {
            Self::Segment(segment) => Input::Segment(Arc::clone(segment)),
            Self::Chain(chain) => Input::Chain(chain.entries().to_vec()),
        }
    }

    fn get(&self, key: Key<'_>, at: Sequence, regime: Regime) -> Result<Option<Record>> {
        match self {
            Self::Segment(segment) => segment.get(key, at, regime),
            Self::Chain(chain) => chain.get(key, at, regime),
        }
    }

    /// The newest version of a key, a tombstone included.
    pub(crate) fn find_newest(&self, key: Key<'_>, regime: Regime) -> Result<Option<Record>> {
        match self {
            Self::Segment(segment) => segment.find_newest(key, regime),
            Self::Chain(chain) => chain.find_newest(key, regime),
        }
    }
}

impl Tables {
    /// What the manifest says, with the segments of the tables before, and a file that is open.
    pub(crate) fn build(
        state: &ManifestState,
        files: &Files,
        before: &Self,
        handed: Option<Arc<DataSegment>>,
    ) -> Self {
        let mut tables = Self {
            sweep: state.sweep.clone(),
            sealed_up_to: Sequence(state.next_sequence.0.saturating_sub(1)),
            ..Self::default()
        };
        for segment in state.segments.values() {
            if let SegmentState::Sealed(meta) = segment {
                let handed = handed.as_ref().filter(|data| data.meta().id == meta.id);
                let data = before.data.get(&meta.id).or(handed).cloned();
                let data = data.unwrap_or_else(|| files.data(meta.clone()));
                tables.data.insert(meta.id, data);
            }
        }
        let members = members(state);
        let mut level1 = Vec::new();
        let mut chains: BTreeMap<(Age, u64), Vec<ChainEntry>> = BTreeMap::new();
        let ids: Vec<SegmentId> = tables.data.keys().copied().collect();
        for id in ids.into_iter().filter(|id| !members.contains(id)) {
            let segment = tables.segment(id, state.placements.get(&id), before);
            let cover = if is_swept(state, id) { Cover::FromCursor } else { Cover::All };
            let mut push = |age, run| tables.level0.push(Level0 { age, run, cover });
            match state.placements.get(&id) {
                None => push(Age::of(id), Level0Run::Segment(segment)),
                Some(Placement::Index { age, .. }) => push(*age, Level0Run::Segment(segment)),
                Some(Placement::Sorted { age, sweep, keys }) => {
                    let (first, last) = (keys.first.clone(), keys.last.clone());
                    let entry = ChainEntry::new(first, Bound::Own, last, Bound::Own, segment);
                    chains.entry((*age, *sweep)).or_default().push(entry);
                }
                Some(Placement::Level1 { keys, lower }) => {
                    let (first, last) = (keys.first.clone(), keys.last.clone());
                    level1.push(ChainEntry::new(first, *lower, last, Bound::Own, segment));
                }
                Some(Placement::Quarantined) => {
                    tables.quarantined.push(before.quarantine(segment));
                }
            }
        }
        if state.sweep.is_some() {
            for &id in &state.damaged {
                let placement = state.placements.get(&id);
                if tables.data.contains_key(&id) && placement != Some(&Placement::Quarantined) {
                    let segment = tables.segment(id, placement, before);
                    tables.passed.push(before.quarantine(segment));
                }
            }
        }
        for ((age, sweep), mut entries) in chains {
            entries.sort_unstable_by(|a, b| a.first().cmp(b.first()));
            let cover = match &state.sweep {
                Some(now) if sweep == now.number => Cover::Carried,
                Some(now) if age.last <= now.cut => Cover::FromCursor,
                _ => Cover::All,
            };
            let run = Level0Run::Chain(Arc::new(Chain::new(entries)));
            tables.level0.push(Level0 { age, run, cover });
        }
        tables.level0.sort_by_key(|run| std::cmp::Reverse(run.age.last));
        level1.sort_unstable_by(|a, b| a.first().cmp(b.first()));
        tables.level1 = Arc::new(Chain::new(level1));
        tables
    }

    /// The segment of a file; its members, if it is an index, are in `data` already.
    fn segment(
        &mut self,
        id: SegmentId,
        placement: Option<&Placement>,
        before: &Self,
    ) -> Arc<SealedSegment> {
        let segment = before.segments.get(&id).cloned().unwrap_or_else(|| {
            let data = Arc::clone(&self.data[&id]);
            match placement {
                Some(Placement::Index { members, .. }) => {
                    let members = members.iter().filter_map(|id| self.data.get(id).cloned());
                    SealedSegment::over(data, members.collect())
                }
                _ => SealedSegment::of(data),
            }
        });
        self.segments.insert(id, Arc::clone(&segment));
        segment
    }

    /// A segment as it is in quarantine; what is known of it is kept.
    fn quarantine(&self, segment: Arc<SealedSegment>) -> Arc<Quarantine> {
        let known = self.quarantines().find(|known| known.id() == segment.meta().id).cloned();
        known.unwrap_or_else(|| Quarantine::new(segment))
    }

    fn quarantines(&self) -> impl Iterator<Item = &Arc<Quarantine>> {
        self.quarantined.iter().chain(&self.passed)
    }

    /// The sealed file of an id.
    pub(crate) fn file(&self, id: SegmentId) -> Option<&Arc<DataSegment>> {
        self.data.get(&id)
    }

    /// Descriptions of all sealed files.
    pub(crate) fn metas(&self) -> impl Iterator<Item = &SealedMeta> {
        self.data.values().map(|data| data.meta())
    }

    /// Opens every file, so that reads go on when the names are gone. One that cannot be opened is
    /// for the read to tell that comes to it.
    pub(crate) fn open_files(&self) {
        for data in self.data.values() {
            drop(data.keep_open());
        }
    }

    /// Segments whose index is looked into.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &Arc<SealedSegment>> {
        self.segments.values()
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.metas().map(SealedMeta::file_bytes).sum()
    }

    fn cursor(&self) -> Option<&FullKey> {
        self.sweep.as_ref()?.cursor.as_ref()
    }

    /// Whether a sweep has merged this key.
    fn is_swept(&self, collection: CollectionId, id: &[u8]) -> bool {
        self.cursor()
            .is_some_and(|cursor| cursor.compare(collection, id) == std::cmp::Ordering::Greater)
    }

    /// The newest version of a key that a reader at `at` sees; a tombstone is one.
    pub(crate) fn get(&self, key: Key<'_>, at: Sequence, regime: Regime) -> Result<Option<Record>> {
        let found = self.find(key, at, regime)?;
        for quarantine in self.quarantines() {
            quarantine.check(key, at, found.as_ref().map(Record::sequence), regime)?;
        }
        Ok(found)
    }

    fn find(&self, key: Key<'_>, at: Sequence, regime: Regime) -> Result<Option<Record>> {
        let is_swept = self.sweep.is_some() && self.is_swept(key.collection, key.id);
        for run in &self.level0 {
            if is_swept && run.cover == Cover::FromCursor && !planted::is(Bug::CutIgnoredByRead) {
                continue;
            }
            if let Some(record) = run.run.get(key, at, regime)? {
                return Ok(Some(record));
            }
        }
        self.level1.get(key, at, regime)
    }

    /// The ids' and documents' bytes that a newer record of the key supersedes in runs older than
    /// an age, or in level 1.
    pub(crate) fn superseded_by(&self, age: Age, key: Key<'_>, regime: Regime) -> Result<u64> {
        let is_swept = self.is_swept(key.collection, key.id);
        let older = self.level0.iter().filter(|run| run.age.last < age.first);
        for run in older.filter(|run| !(is_swept && run.cover == Cover::FromCursor)) {
            if let Some(record) = run.run.find_newest(key, regime)? {
                return Ok(superseded(&record));
            }
        }
        Ok(self.level1.find_newest(key, regime)?.as_ref().map_or(0, superseded))
    }

    /// Hands over a cursor for each run.
    pub(crate) fn cursors(&self, regime: Regime, take: &mut impl FnMut(AnyCursor)) {
        for run in &self.level0 {
            let clip = self
                .cursor()
                .filter(|_| run.cover == Cover::FromCursor && !planted::is(Bug::CutIgnoredByRead));
            take(match (&run.run, clip) {
                (Level0Run::Segment(segment), None) => {
                    AnyCursor::Segment(Box::new(segment.cursor(regime)))
                }
                (Level0Run::Segment(segment), Some(lower)) => {
                    let cursor = Clipped::new(segment.cursor(regime), lower.clone());
                    AnyCursor::ClippedSegment(Box::new(cursor))
                }
                (Level0Run::Chain(chain), None) => AnyCursor::Chain(Box::new(chain.cursor(regime))),
                (Level0Run::Chain(chain), Some(lower)) => {
                    let cursor = Clipped::new(chain.cursor(regime), lower.clone());
                    AnyCursor::ClippedChain(Box::new(cursor))
                }
            });
        }
        if !self.level1.is_empty() {
            take(AnyCursor::Chain(Box::new(self.level1.cursor(regime))));
        }
        for quarantine in self.quarantines() {
            take(AnyCursor::Quarantine(Box::new(quarantine.cursor())));
        }
    }

    /// For each cursor of [`Tables::cursors`], a file to name when it meets damage.
    pub(crate) fn cursor_segments(&self) -> impl Iterator<Item = SegmentId> + '_ {
        let first = |chain: &Chain| {
            chain.entries().first().map_or(SegmentId(0), |entry| entry.segment().meta().id)
        };
        let level0 = self.level0.iter().map(move |run| match &run.run {
            Level0Run::Segment(segment) => segment.meta().id,
            Level0Run::Chain(chain) => first(chain),
        });
        let level1 = (!self.level1.is_empty()).then(|| first(&self.level1));
        level0.chain(level1).chain(self.quarantines().map(|quarantine| quarantine.id()))
    }
}

/// What a record's successor makes dead. Of a tombstone, which is dead already, nothing.
fn superseded(record: &Record) -> u64 {
    if record.kind() == Kind::Delete { 0 } else { record.content_len() }
}
