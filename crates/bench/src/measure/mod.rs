//! What an operation, a process and a machine cost and are.

pub(crate) mod amplification;
pub(crate) mod folder;
pub(crate) mod latency;
pub(crate) mod machine;
pub(crate) mod peak;
pub(crate) mod probe;
pub(crate) mod process;
