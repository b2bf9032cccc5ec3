//! What a client does: YCSB's keys, values, request distributions and mixes.
//!
//! 1. Equal seeds give equal operations, whatever the store, so every store answers the same
//!    questions and the digests in `verify` can be compared.
//! 2. Nothing here runs inside a timed span: a client makes an operation, then starts its timer.
//! 3. A read never asks for a key whose insert has not been acknowledged (`counter`).

mod chooser;
mod counter;
mod document;
mod exponential;
mod generator;
mod hotspot;
mod keys;
mod latest;
mod mix;
mod overwrites;
mod random;
mod scrambled;
mod sequential;
mod uniform;
mod zipfian;

pub(crate) use chooser::Distribution;
pub(crate) use counter::AcknowledgedCounter;
pub(crate) use document::DocumentShape;
pub(crate) use generator::{ClientSeed, Generator, Operation, Records, Stream};
pub(crate) use keys::{InsertOrder, KeyFormat};
pub(crate) use mix::{OperationKind, Workload};
pub(crate) use overwrites::Overwrites;
#[cfg(test)]
pub(crate) use random::Random;
