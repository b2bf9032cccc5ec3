//! One end of a merge: its runs' cursors, and the id that they have come to.
//!
//! Invariants:
//!
//! 1. `tied` are the runs that held the last id when it was found; only they have moved since.
//! 2. While one run alone is tied, the fence is the head nearest to it among the others'. Ids of
//!    that run whose heads are before the fence come next, and in no other run.
//!
//! So a run that holds most of the ids is stepped at the price of one comparison of integers an id.
//! Where runs take turns all are compared, by a linear search over their 16-byte heads, some three
//! nanoseconds a run: a heap would win from about 32 runs on and pay for each id that lies in
//! several; a store whose level-0 indexes are merged has a handful.

use std::cmp::Ordering;

use super::cursor::Cursor;
use super::range::Range;
use super::run::{Head, Run};
use crate::error::Result;
use crate::format::{Direction, Kind, Sequence};
use crate::segment::Record;

/// One end's cursors.
pub(super) struct End {
    direction: Direction,
    runs: Vec<Run>,
    /// The runs that held the last id when it was found.
    tied: Vec<usize>,
    /// Where a run that is tied alone meets the first of the others; `None`: nowhere.
    fence: Option<Head>,
    /// The last id that this end met.
    id: Vec<u8>,
    /// In reverse, the version of that id that the snapshot sees: its cursor has moved on.
    passed: Option<Record>,
}

impl End {
    pub(super) fn open(
        cursors: Vec<Box<dyn Cursor>>,
        range: &Range,
        direction: Direction,
    ) -> Result<Self> {
        let position = match direction {
            Direction::Forward => range.lower(),
            Direction::Reverse => range.upper(),
        };
        let run = |cursor| Run::new(cursor, range.collection());
        let mut runs: Vec<_> = cursors.into_iter().map(run).collect();
        // The cache misses of all runs overlap: none is waited for before the last has begun.
        for run in &mut runs {
            run.approach(position, direction)?;
        }
        for run in &mut runs {
            run.seek(position, direction)?;
        }
        let tied = Vec::with_capacity(runs.len());
        Ok(Self { direction, runs, tied, fence: None, id: Vec::new(), passed: None })
    }

    /// The last id that this end met.
    #[inline]
    pub(super) fn id(&self) -> &[u8] {
        &self.id
    }

    /// Finds the next id and the runs that hold it. False at the end of all runs.
    #[inline]
    pub(super) fn find(&mut self) -> bool {
        if !self.is_alone() {
            self.compare_all();
        }
        let Some(record) = self.tied.first().and_then(|first| self.runs[*first].current()) else {
            return false;
        };
        self.id.clear();
        self.id.extend_from_slice(record.id());
        for &index in &self.tied {
            self.runs[index].meet();
        }
        true
    }

    /// Whether the one run that held the last id is the only one that holds the next.
    #[inline]
    fn is_alone(&self) -> bool {
        match self.tied[..] {
            [only] => self.runs[only].is_before(self.fence, self.direction),
            _ => false,
        }
    }

    /// Finds the runs that hold the next id by a look at all of them.
    fn compare_all(&mut self) {
        self.tied.clear();
        self.fence = None;
        let mut best: Option<&Run> = None;
        for (index, run) in self.runs.iter().enumerate() {
            let Some(head) = run.head() else { continue };
            let order = best.map_or(Ordering::Less, |best| match self.direction {
                Direction::Forward => run.compare(best),
                Direction::Reverse => best.compare(run),
            });
            match order {
                Ordering::Less => {
                    // The best one so far was nearer than those before it.
                    self.fence = best.and_then(Run::head);
                    best = Some(run);
                    self.tied.clear();
                    self.tied.push(index);
                }
                Ordering::Equal => self.tied.push(index),
                Ordering::Greater => {
                    self.fence = Some(match (self.fence, self.direction) {
                        (None, _) => head,
                        (Some(fence), Direction::Forward) => fence.min(head),
                        (Some(fence), Direction::Reverse) => fence.max(head),
                    });
                }
            }
        }
    }

    /// The run that holds the newest version of the id that the snapshot sees.
    #[inline]
    pub(super) fn newest(&mut self, at: Sequence) -> Result<Option<usize>> {
        match (self.direction, &self.tied[..]) {
            (Direction::Forward, &[only]) => {
                Ok(self.runs[only].first_visible(&self.id, at)?.map(|_| only))
            }
            (Direction::Forward, _) => self.newest_of_first(at),
            (Direction::Reverse, _) => self.newest_of_last(at),
        }
    }

    fn newest_of_first(&mut self, at: Sequence) -> Result<Option<usize>> {
        let mut newest: Option<(usize, Sequence)> = None;
        for &index in &self.tied {
            let visible = self.runs[index].first_visible(&self.id, at)?;
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
        for &index in &self.tied {
            let visible = self.runs[index].last_visible(&self.id, at)?;
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
        for &index in &self.tied {
            self.runs[index].leave(&self.id, self.direction)?;
        }
        Ok(())
    }
}
