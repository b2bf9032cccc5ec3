//! What an operation, a process and a machine cost and are.

pub(crate) mod folder;
pub(crate) mod latency;
pub(crate) mod machine;
pub(crate) mod process;
