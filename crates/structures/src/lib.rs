//! Sediment's data structures beside other people's.
//!
//! Benches only: what is measured here fixes the format, and `docs/performance.md` has the figures
//! and the choices. Nothing depends on this crate, and the engine none of its dependencies.
//!
//! 1. Every candidate answers the same questions about the same seeded data, and the tests hold it
//!    against a `BTreeMap`.
//! 2. Lookups wait for each other, by a fence on x86-64. What is measured is how long a lookup
//!    takes, not how many a processor overlaps.
//! 3. A figure on the page is the median of criterion's samples divided by the operations in one
//!    iteration, and no page is filled by hand.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a bench's numbers are far below the widths, and `usize` has 64 bits (asserted)"
)]

pub mod allocation;
pub mod chase;
pub mod drive;
pub mod ids;
pub mod memtable;
pub mod placement;
pub mod records;
pub mod report;
pub mod segment;

const _: () = assert!(usize::BITS == 64, "offsets are cast to usize");
