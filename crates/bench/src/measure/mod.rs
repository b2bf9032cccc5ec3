//! What an operation, a process and a machine cost and are.

pub(crate) mod amplification;
pub(crate) mod device;
pub(crate) mod folder;
pub(crate) mod latency;
pub(crate) mod machine;
pub(crate) mod page_cache;
pub(crate) mod peak;
pub(crate) mod probe;
pub(crate) mod process;
pub(crate) mod processor;
pub(crate) mod series;
