//! What the cases did, together.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use engine::{CompactionReason, Stats};

#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) operations: u64,
    pub(crate) seals: u64,
    pub(crate) closes: u64,
    pub(crate) drops: u64,
    pub(crate) kills: u64,
    pub(crate) power_cuts: u64,
    pub(crate) snapshots_read: u64,
    pub(crate) rows: u64,
    pub(crate) records_recovered: u64,
    pub(crate) collections_dropped: u64,
    /// Calls of `compact()`.
    pub(crate) compacted: u64,
    /// After how many of those every figure had to be the model's.
    pub(crate) figures_compared: u64,
    /// After how many of those superseded versions were pinned.
    pub(crate) pinned_seen: u64,
    /// Snapshots of sequences of the past.
    pub(crate) past_read: u64,
    /// Sequences that could not be read.
    pub(crate) history_gone: u64,
    /// Sweeps that carried records forward.
    pub(crate) carried: u64,
    /// What compaction did: how often, and in how many steps.
    pub(crate) compactions: BTreeMap<CompactionReason, (u64, u64)>,
}

impl Totals {
    fn reopenings(&self) -> u64 {
        self.closes + self.drops + self.kills + self.power_cuts
    }

    /// What a database did while it was open.
    pub(crate) fn count(&mut self, stats: &Stats) {
        self.seals += stats.seals;
        for did in &stats.compactions {
            let entry = self.compactions.entry(did.reason).or_default();
            *entry = (entry.0 + did.count, entry.1 + did.steps);
        }
    }

    /// A model test that hardly seals or reopens proves little.
    pub(crate) fn check(&self) {
        assert!(self.operations > 1000, "{self}");
        assert!(self.seals > 1000, "{self}");
        assert!(self.reopenings() > 1000, "{self}");
        assert!(self.snapshots_read > 1000, "{self}");
        assert!(self.records_recovered > 1000, "{self}");
        assert!(
            self.figures_compared > 100 && self.pinned_seen > 100 && self.compacted > 500,
            "{self}"
        );
        assert!(self.past_read > 500 && self.history_gone > 100, "{self}");
        assert!(self.carried > 0, "{self}");
        for reason in [
            CompactionReason::Level0,
            CompactionReason::Garbage,
            CompactionReason::Idle,
            CompactionReason::Forced,
            CompactionReason::Indexes,
            CompactionReason::Documents,
        ] {
            let did = self.compactions.get(&reason);
            assert!(did.is_some_and(|(count, _)| *count > 0), "no {reason:?}: {self}");
        }
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.operations += other.operations;
        self.seals += other.seals;
        self.closes += other.closes;
        self.drops += other.drops;
        self.kills += other.kills;
        self.power_cuts += other.power_cuts;
        self.snapshots_read += other.snapshots_read;
        self.rows += other.rows;
        self.records_recovered += other.records_recovered;
        self.collections_dropped += other.collections_dropped;
        self.compacted += other.compacted;
        self.figures_compared += other.figures_compared;
        self.pinned_seen += other.pinned_seen;
        self.past_read += other.past_read;
        self.history_gone += other.history_gone;
        self.carried += other.carried;
        for (reason, (count, steps)) in other.compactions {
            let entry = self.compactions.entry(reason).or_default();
            *entry = (entry.0 + count, entry.1 + steps);
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} operations, {} seals, {} reopenings (after {} closes, {} drops, {} kills, {} power \
             cuts), {} snapshots re-read, {} rows \
             compared, {} records recovered, {} collections dropped, {} calls of compact (after {} all \
             figures compared, after {} versions pinned), {} reads of the past and {} refused, {} \
             carried runs, compactions {:?}",
            self.operations,
            self.seals,
            self.reopenings(),
            self.closes,
            self.drops,
            self.kills,
            self.power_cuts,
            self.snapshots_read,
            self.rows,
            self.records_recovered,
            self.collections_dropped,
            self.compacted,
            self.figures_compared,
            self.pinned_seen,
            self.past_read,
            self.history_gone,
            self.carried,
            self.compactions,
        )
    }
}
