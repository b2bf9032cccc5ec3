//! Charts as SVG: groups of lines, a line for each store, marks along one axis.
//!
//! 1. The same figures give the same bytes, on every machine.
//! 2. A picture is 800 units wide, with text of 12 and more, and says in `<title>` and `<desc>`
//!    what it shows.
//! 3. Each line has the name of its store at its left and its figures beside its marks: nobody has
//!    to tell colours apart or to read a figure off the axis.

mod frame;
mod palette;
mod scale;
mod units;

pub(crate) use frame::{Chart, Group, Legend, Line, Marks, Room};
pub(crate) use palette::Palette;
pub(crate) use units::{Axis, duration};
