//! What the rounds did, together.

use std::path::PathBuf;

use serde_json::{Value, json};

#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) rounds: u64,
    pub(crate) kills: u64,
    /// Kills of victims that had begun to open the database and not done so.
    pub(crate) kills_in_recovery: u64,
    pub(crate) answered_writes: u64,
    /// Operations that were not answered, and came through all the same.
    pub(crate) unanswered_writes: u64,
    pub(crate) recovered_records: u64,
    /// Openings by the parent and by victims.
    pub(crate) reopenings: u64,
    /// Rows that were compared with the oracle, in scans of one direction.
    pub(crate) verified_rows: u64,
    /// Sweeps and merges that victims saw.
    pub(crate) compactions: u64,
    /// Segments that victims sealed.
    pub(crate) seals: u64,
}

impl Counts {
    /// Rounds that hardly meet recovery, compaction or seals prove little.
    pub(crate) fn check(&self) {
        assert!(self.kills >= self.rounds, "{self:?}");
        assert!(self.kills_in_recovery > self.rounds / 10, "{self:?}");
        assert!(self.answered_writes > 50 * self.rounds, "{self:?}");
        assert!(self.recovered_records > self.rounds, "{self:?}");
        assert!(self.verified_rows > 100 * self.rounds, "{self:?}");
        assert!(self.compactions > self.rounds / 2, "{self:?}");
        assert!(self.seals > self.rounds, "{self:?}");
    }

    pub(crate) fn json(&self, seed: u64) -> Value {
        json!({
            "rounds": self.rounds,
            "kills": self.kills,
            "kills_in_recovery": self.kills_in_recovery,
            "answered_writes": self.answered_writes,
            "unanswered_writes": self.unanswered_writes,
            "recovered_records": self.recovered_records,
            "reopenings": self.reopenings,
            "verified_rows": self.verified_rows,
            "compactions": self.compactions,
            "seals": self.seals,
            "seed": seed,
        })
    }

    /// Writes the counts to `NAME.json` in the folder that `SEDIMENT_REPORT` names, if it does.
    pub(crate) fn report(&self, name: &str, seed: u64) {
        let Some(folder) = std::env::var_os("SEDIMENT_REPORT") else { return };
        let file = PathBuf::from(folder).join(format!("{name}.json"));
        std::fs::write(file, format!("{}\n", self.json(seed))).unwrap();
    }
}
