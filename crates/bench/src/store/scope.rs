//! Where a store takes part: not every kind is a whole store.

use super::Durability;
use crate::workload::Workload;

/// Where a kind takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// In everything.
    Everything,
    /// In buffered cells: a variant that differs from its store in nothing else.
    #[cfg_attr(not(any(feature = "peer", test)), expect(dead_code, reason = "of peers alone"))]
    Buffered,
    /// In all benches, but with no answers to compare: it keeps nothing.
    NothingKept,
    /// In loads, C and E: it has no updates.
    Reads,
    /// In loads, A and F, where durable writes decide. Nothing else about it is a store's, so it
    /// has one client.
    DurableUpdates,
}

/// How much of the verification a kind can pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verified {
    All,
    /// The records as they were loaded, and workloads that only read them.
    UntilWrites,
    Nothing,
}

impl Scope {
    /// Whether timed cells of this workload are made of it.
    pub(crate) fn runs(self, workload: Workload, durability: Durability) -> bool {
        match self {
            Self::Everything | Self::NothingKept => true,
            Self::Buffered => durability == Durability::Buffered,
            Self::Reads => matches!(workload, Workload::C | Workload::E),
            Self::DurableUpdates => {
                durability == Durability::Durable && matches!(workload, Workload::A | Workload::F)
            }
        }
    }

    pub(crate) fn verified(self) -> Verified {
        match self {
            Self::Everything | Self::Buffered | Self::DurableUpdates => Verified::All,
            Self::Reads => Verified::UntilWrites,
            Self::NothingKept => Verified::Nothing,
        }
    }

    /// Whether it keeps, updates and recovers records as a store does.
    pub(crate) fn is_a_store(self) -> bool {
        matches!(self, Self::Everything | Self::Buffered)
    }

    pub(crate) fn has_several_clients(self) -> bool {
        self != Self::DurableUpdates
    }

    /// What it takes part in, for messages.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Buffered => "buffered cells alone",
            Self::NothingKept => "A to F alone",
            Self::Reads => "C and E alone",
            Self::DurableUpdates => "durable A and F alone",
        }
    }
}
