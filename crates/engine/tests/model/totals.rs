//! What the cases did, together.

use std::fmt;
use std::ops::AddAssign;

#[derive(Clone, Copy, Debug, Default)]
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
}

impl Totals {
    fn reopenings(&self) -> u64 {
        self.closes + self.drops + self.kills + self.power_cuts
    }

    /// A model test that hardly seals or reopens proves little.
    pub(crate) fn check(&self) {
        assert!(self.operations > 1000, "{self}");
        assert!(self.seals > 1000, "{self}");
        assert!(self.reopenings() > 1000, "{self}");
        assert!(self.snapshots_read > 1000, "{self}");
        assert!(self.records_recovered > 1000, "{self}");
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
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} operations, {} seals, {} reopenings (after {} closes, {} drops, {} kills, {} power \
             cuts), {} snapshots re-read, {} rows \
             compared, {} records recovered, {} collections dropped",
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
        )
    }
}
