//! The whole public face, called with arguments within, at and beyond their limits.
//!
//! One table test: its parts call every public method, its end compares the methods called with
//! those that the source has, so that a method added later fails it until it has its rows.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[macro_use]
mod calls;
mod databases;
mod documents;
mod errors;
mod getters;
mod ids;
mod options;
mod ranges;
mod surface;

use calls::Calls;

#[test]
fn every_public_method_answers_within_at_and_beyond_its_limits() {
    let calls = Calls::default();
    options::table(&calls);
    databases::table(&calls);
    ids::table(&calls);
    ranges::table(&calls);
    documents::table(&calls);
    getters::table(&calls);
    surface::assert_all_called(&calls);
}
