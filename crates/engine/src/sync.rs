//! The locks and atomics that the engine uses, in one place.
//!
//! Every other module takes them from here, so that a checker of interleavings can be put in their
//! place by changing this file alone.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, OnceLock, Weak};

pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
