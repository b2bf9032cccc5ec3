//! One end of a merge: its runs' cursors, and the id that they have come to.
//!
//! Invariants:
//!
//! 1. `tied` are the runs that held the last id when it was found; only they have moved since.
//! 2. While one run alone is tied, the fence is the head nearest to it among the others' and that of
//!    the range's end. Ids of that run whose heads are before the fence come next, in no other run,
//!    and are in the range.
//!
//! So a run that holds most of the ids is stepped at the price of one comparison of integers an id.
//! Where runs take turns all are compared, by a linear search over their 16-byte heads, some three
//! nanoseconds a run: a heap would win from about 32 runs on and pay for each id that lies in
//! several; a store whose level-0 indexes are merged has a handful.

use std::cmp::Ordering;

use super::cursor::Cursor;
use super::merge::Runs;
use super::met_id::MetId;
use super::range::Range;
use super::run::{Head, Run};
use crate::error::Result;
use crate::format::{Direction, Kind, Sequence};
use crate::segment::Record;

/// One end's cursors.
pub(super) struct End<C> {
    direction: Direction,
    runs: Vec<Run<C>>,
    /// The runs that held the last id when it was found.
    tied: Tied,
    /// Where a run that is tied alone meets the first of the others or the range's end; `None`:
    /// nowhere.
    fence: Option<Head>,
    /// The head of the range's end, where it has one.
    limit: Option<Head>,
    /// The last id that this end met.
    id: MetId,
    /// In reverse, the version of that id that the snapshot sees: its cursor has moved on.
    passed: Option<Record>,
}

/// The numbers of the runs that hold one id. Mostly there is one: nothing is allocated for it.
#[derive(Default)]
struct Tied {
    first: Option<usize>,
    others: Vec<usize>,
}

impl Tied {
    fn clear(&mut self) {
        self.first = None;
        self.others.clear();
    }

    fn push(&mut self, run: usize) {
        match self.first {
            None => self.first = Some(run),
            Some(_) => self.others.push(run),
        }
    }

    #[inline]
    fn only(&self) -> Option<usize> {
        self.first.filter(|_| self.others.is_empty())
    }

    #[inline]
    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.first.into_iter().chain(self.others.iter().copied())
    }
}

impl<C: Cursor> End<C> {
    pub(super) fn open(
        runs: &impl Runs<Cursor = C>,
        range: &Range,
        direction: Direction,
    ) -> Result<Self> {
        let (position, limit) = match direction {
            Direction::Forward => (range.lower(), range.upper_id()),
            Direction::Reverse => (range.upper(), Some(range.lower().id)),
        };
        let (sources, mut runs) = (runs, Vec::new());
        sources.cursors(&mut |cursor| runs.push(Run::new(cursor, range.collection())))?;
        // The cache misses of all runs overlap: none is waited for before the last has begun.
        for run in &mut runs {
            run.approach(position, direction)?;
        }
        for run in &mut runs {
            run.seek(position, direction)?;
        }
        let limit = limit.map(Head::of);
        let (tied, id) = (Tied::default(), MetId::default());
        Ok(Self { direction, runs, tied, fence: None, limit, id, passed: None })
    }

    /// The last id that this end met.
    #[inline]
    pub(super) fn id(&self) -> &[u8] {
        self.id.as_bytes()
    }

    /// Forward: moves the run that alone held the last id to its next record, and returns its number
    /// if that is the next row. After `None` it may have moved or not: [`Self::leave`] and
    /// [`Self::find`] go on from either.
    ///
    /// Costs the step and one comparison of integers: this is how most rows are found, where a run
    /// holds most ids.
    #[inline]
    pub(super) fn run_on(&mut self, at: Sequence) -> Result<Option<usize>> {
        let Some(only) = self.tied.only() else { return Ok(None) };
        let is_row = self.runs[only].run_on(&mut self.id, at, self.fence)?;
        Ok(is_row.then_some(only))
    }

    /// Finds the next id and the runs that hold it. False at the end of all runs.
    #[inline]
    pub(super) fn find(&mut self) -> bool {
        if !self.is_alone() {
            self.compare_all();
        }
        let Some(record) = self.tied.first.and_then(|first| self.runs[first].current()) else {
            return false;
        };
        self.id.set(record.id());
        for index in self.tied.iter() {
            self.runs[index].meet();
        }
        true
    }

    /// Whether the one run that held the last id is the only one that holds the next.
    #[inline]
    fn is_alone(&self) -> bool {
        let only = self.tied.only();
        only.is_some_and(|only| self.runs[only].is_before(self.fence, self.direction))
    }

    /// Finds the runs that hold the next id by a look at all of them.
    fn compare_all(&mut self) {
        self.tied.clear();
        self.fence = self.limit;
        let mut best: Option<&Run<C>> = None;
        for (index, run) in self.runs.iter().enumerate() {
            let Some(head) = run.head() else { continue };
            let order = best.map_or(Ordering::Less, |best| match self.direction {
                Direction::Forward => run.compare(best),
                Direction::Reverse => best.compare(run),
            });
            match order {
                Ordering::Less => {
                    // The best one so far was nearer than those before it.
                    self.fence = self.nearer(best.and_then(Run::head), self.limit);
                    best = Some(run);
                    self.tied.clear();
                    self.tied.push(index);
                }
                Ordering::Equal => self.tied.push(index),
                Ordering::Greater => self.fence = self.nearer(self.fence, Some(head)),
            }
        }
    }

    /// The one of two fences that a run meets first.
    fn nearer(&self, a: Option<Head>, b: Option<Head>) -> Option<Head> {
        match (a, b, self.direction) {
            (Some(a), Some(b), Direction::Forward) => Some(a.min(b)),
            (Some(a), Some(b), Direction::Reverse) => Some(a.max(b)),
            (one, other, _) => one.or(other),
        }
    }

    /// The run that holds the newest version of the id that the snapshot sees.
    #[inline]
    pub(super) fn newest(&mut self, at: Sequence) -> Result<Option<usize>> {
        match (self.direction, self.tied.only()) {
            (Direction::Forward, Some(only)) => {
                Ok(self.runs[only].first_visible(self.id.as_bytes(), at)?.map(|_| only))
            }
            (Direction::Forward, _) => self.newest_of_first(at),
            (Direction::Reverse, _) => self.newest_of_last(at),
        }
    }

    fn newest_of_first(&mut self, at: Sequence) -> Result<Option<usize>> {
        let mut newest: Option<(usize, Sequence)> = None;
        for index in self.tied.iter() {
            let visible = self.runs[index].first_visible(self.id.as_bytes(), at)?;
            if let Some(sequence) = visible
                && newest.is_none_or(|(_, newest)| newest < sequence)
            {
                newest = Some((index, sequence));
            }
        }
        Ok(newest.map(|(index, _)| index))
    }

    fn newest_of_last(&mut self, at: Sequence) -> Result<Option<usize>> {
        let mut newest: Option<(usize, Sequence)> = None;
        for index in self.tied.iter() {
            let visible = self.runs[index].last_visible(self.id.as_bytes(), at)?;
            if let Some(record) = visible
                && newest.is_none_or(|(_, newest)| newest < record.sequence())
            {
                newest = Some((index, record.sequence()));
                self.passed = Some(record);
            }
        }
        Ok(newest.map(|(index, _)| index))
    }

    /// The kind of the version that [`Self::newest`] found, in the run that it named.
    #[inline]
    pub(super) fn kind(&self, run: usize) -> Option<Kind> {
        match self.direction {
            Direction::Forward => self.runs[run].kind(),
            Direction::Reverse => self.passed.as_ref().map(Record::kind),
        }
    }

    /// That version.
    #[inline]
    pub(super) fn version(&self, run: usize) -> Option<&Record> {
        match self.direction {
            Direction::Forward => self.runs[run].current(),
            Direction::Reverse => self.passed.as_ref(),
        }
    }

    /// Moves past the id.
    #[inline]
    pub(super) fn leave(&mut self) -> Result<()> {
        for index in self.tied.iter() {
            self.runs[index].leave(self.id.as_bytes(), self.direction)?;
        }
        Ok(())
    }
}
