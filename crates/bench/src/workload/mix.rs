//! YCSB's six workloads: which operations, in which proportions, over which distribution.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Distribution;
use super::random::Random;

/// What a client asks of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OperationKind {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

impl OperationKind {
    /// Whether the time of a kind is a write's alone: a read-modify-write is recorded as its read
    /// and its update as well.
    pub(crate) fn is_write(self) -> bool {
        matches!(self, Self::Update | Self::Insert)
    }

    /// YCSB's name, which is the key in a row's `latency_ns`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "READ",
            Self::Update => "UPDATE",
            Self::Insert => "INSERT",
            Self::Scan => "SCAN",
            Self::ReadModifyWrite => "READ-MODIFY-WRITE",
        }
    }
}

/// One of YCSB's core workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Workload {
    A,
    B,
    C,
    D,
    E,
    F,
}

impl Workload {
    /// In the order in which they run: A to D over one load, then E over a fresh one.
    pub(crate) const IN_RUN_ORDER: [Self; 6] =
        [Self::A, Self::B, Self::C, Self::F, Self::D, Self::E];

    /// The operations of the mix with their shares, which add up to one.
    pub(crate) fn mix(self) -> [(OperationKind, f64); 2] {
        use OperationKind::{Insert, Read, ReadModifyWrite, Scan, Update};
        match self {
            Self::A => [(Read, 0.5), (Update, 0.5)],
            Self::B => [(Read, 0.95), (Update, 0.05)],
            Self::C => [(Read, 1.0), (Update, 0.0)],
            Self::D => [(Read, 0.95), (Insert, 0.05)],
            Self::E => [(Scan, 0.95), (Insert, 0.05)],
            Self::F => [(Read, 0.5), (ReadModifyWrite, 0.5)],
        }
    }

    /// The kinds of its operations.
    pub(crate) fn kinds(self) -> Vec<OperationKind> {
        let mix = self.mix().into_iter().filter(|&(_, share)| share > 0.0);
        mix.map(|(kind, _)| kind).collect()
    }

    /// The kinds that are recorded: a read-modify-write is also its read and its update.
    pub(crate) fn recorded(self) -> Vec<OperationKind> {
        let mut kinds = self.kinds();
        if kinds.contains(&OperationKind::ReadModifyWrite) {
            kinds.extend([OperationKind::Read, OperationKind::Update]);
        }
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Whether records change or are added.
    pub(crate) fn writes(self) -> bool {
        let reads = |kind| matches!(kind, OperationKind::Read | OperationKind::Scan);
        self.mix().into_iter().any(|(kind, share)| share > 0.0 && !reads(kind))
    }

    /// The share of inserts.
    pub(crate) fn inserts(self) -> f64 {
        let insert = self.mix().into_iter().find(|&(kind, _)| kind == OperationKind::Insert);
        insert.map_or(0.0, |(_, share)| share)
    }

    pub(crate) fn distribution(self) -> Distribution {
        match self {
            Self::D => Distribution::Latest,
            _ => Distribution::Scrambled,
        }
    }

    pub(crate) fn choose(self, random: &mut Random) -> OperationKind {
        let [(first, share), (second, _)] = self.mix();
        if random.fraction() < share { first } else { second }
    }

    pub(crate) fn letter(self) -> char {
        match self {
            Self::A => 'a',
            Self::B => 'b',
            Self::C => 'c',
            Self::D => 'd',
            Self::E => 'e',
            Self::F => 'f',
        }
    }
}

impl Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = text.to_ascii_lowercase();
        let found = Self::IN_RUN_ORDER.into_iter().find(|workload| workload.to_string() == wanted);
        found.ok_or_else(|| "unknown workload; there are a, b, c, d, e and f".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_the_choices_follow_them() {
        for workload in Workload::IN_RUN_ORDER {
            let [(first, share), (_, rest)] = workload.mix();
            assert!((share + rest - 1.0).abs() < 1e-12, "{workload}");
            let mut random = Random::new(11);
            let draws = 100_000_u32;
            let firsts = (0..draws).filter(|_| workload.choose(&mut random) == first).count();
            assert!((firsts as f64 / f64::from(draws) - share).abs() < 0.01, "{workload}");
        }
    }

    #[test]
    fn a_read_modify_write_is_recorded_three_times() {
        use OperationKind::{Read, ReadModifyWrite, Update};
        assert_eq!(Workload::F.recorded(), [Read, Update, ReadModifyWrite]);
        assert_eq!(Workload::C.recorded(), [Read]);
    }

    #[test]
    fn names_parse_in_either_case() {
        assert_eq!("E".parse(), Ok(Workload::E));
        assert!("g".parse::<Workload>().is_err());
        assert!("ab".parse::<Workload>().is_err());
    }
}
