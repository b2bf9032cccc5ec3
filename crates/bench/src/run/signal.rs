//! Ctrl-C (and a request to terminate): a flag that the parent looks at, so that every ending goes
//! through the same clean-up.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Context, Failure, Result};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on a signal sets the flag instead of ending the process.
pub(super) fn catch() -> Result<()> {
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::SeqCst))
        .context(|| "cannot catch Ctrl-C")
}

pub(super) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// An error after a signal.
pub(super) fn check() -> Result<()> {
    if interrupted() { Err(Failure::Interrupted) } else { Ok(()) }
}
