//! What an axis counts, and how its figures are written.

use super::scale::Kind;
use crate::report::table::thousands;

/// What an axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Operations a second.
    Rate,
    /// Nanoseconds.
    Duration,
    /// MiB.
    Size,
}

impl Axis {
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Rate | Self::Duration => Kind::Log,
            Self::Size => Kind::Linear,
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Rate => "operations a second, logarithmic",
            Self::Duration => "latency, logarithmic",
            Self::Size => "MiB",
        }
    }

    /// Room for figures at the left and the right of a line's marks, in the picture's units.
    pub(super) fn free(self) -> (f64, f64) {
        match self {
            Self::Rate => (12.0, 140.0),
            Self::Duration => (66.0, 66.0),
            Self::Size => (0.0, 130.0),
        }
    }

    pub(super) fn tick(self, figure: f64) -> String {
        match self {
            Self::Rate => {
                let units = [(1e6, "M"), (1e3, "k")];
                let unit = units.into_iter().find(|(size, _)| figure >= *size);
                unit.map_or_else(|| format!("{figure}"), |(size, name)| spaced(figure / size, name))
            }
            Self::Duration => {
                let (size, name) = time_unit(figure);
                spaced(figure / size, name)
            }
            Self::Size if figure >= 1.0 => thousands(figure),
            Self::Size => format!("{}", (figure * 1e3).round() / 1e3),
        }
    }
}

/// Rounds away what division left behind the point.
fn spaced(figure: f64, unit: &str) -> String {
    format!("{} {unit}", (figure * 1e3).round() / 1e3)
}

fn time_unit(nanoseconds: f64) -> (f64, &'static str) {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    units.into_iter().find(|(size, _)| nanoseconds >= *size).unwrap_or((1.0, "ns"))
}

/// A duration with three digits and its unit.
pub(crate) fn duration(nanoseconds: f64) -> String {
    // Halfway rounding may reach the next unit: 999 950 ns is 1 ms rather than 1000 µs.
    let (size, unit) = time_unit(nanoseconds * 1.0005);
    let figure = nanoseconds / size;
    let digits = match figure {
        figure if unit == "ns" || figure >= 99.95 => 0,
        figure if figure >= 9.995 => 1,
        _ => 2,
    };
    format!("{figure:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short() {
        let ticks = |axis: Axis, figures: &[f64]| {
            figures.iter().map(|figure| axis.tick(*figure)).collect::<Vec<_>>()
        };
        assert_eq!(ticks(Axis::Rate, &[50.0, 1e3, 2e5, 1e6]), ["50", "1 k", "200 k", "1 M"]);
        let times = ticks(Axis::Duration, &[500.0, 1e3, 1e5, 2e6, 1e9]);
        assert_eq!(times, ["500 ns", "1 µs", "100 µs", "2 ms", "1 s"]);
        assert_eq!(ticks(Axis::Size, &[0.0, 0.5, 20.0, 2_000.0]), ["0", "0.5", "20", "2 000"]);
    }

    #[test]
    fn durations_have_three_digits() {
        let cases = [
            (0.0, "0 ns"),
            (583.0, "583 ns"),
            (1_540.0, "1.54 µs"),
            (68_060.0, "68.1 µs"),
            (140_100.0, "140 µs"),
            (999_960.0, "1.00 ms"),
            (2_500_000_000.0, "2.50 s"),
        ];
        for (nanoseconds, text) in cases {
            assert_eq!(duration(nanoseconds), text);
        }
    }
}
