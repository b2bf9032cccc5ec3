//! Axes: from a figure to a place on the page, and the ticks between.
//!
//! 1. A logarithmic axis spans a decade or more, so that a small difference looks small.
//! 2. A linear axis begins at zero, because its marks are bars.

/// Where an axis lies, in the picture's units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) from: f64,
    pub(super) to: f64,
    /// Room inside the ends that stays free of marks, for the figures beside them.
    pub(super) free_left: f64,
    pub(super) free_right: f64,
}

/// An axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    kind: Kind,
    span: Span,
    /// The figures at the ends, free room included; logarithms on a logarithmic axis.
    low: f64,
    high: f64,
}

/// How an axis grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Log,
    Linear,
}

impl Scale {
    /// An axis on which every figure has its place. Only positive figures count.
    pub(super) fn new(kind: Kind, figures: impl Iterator<Item = f64>, span: Span) -> Self {
        let positive = figures.filter(|figure| *figure > 0.0 && figure.is_finite());
        let ends = positive.fold(None, |ends: Option<(f64, f64)>, figure| {
            Some(ends.map_or((figure, figure), |(low, high)| (low.min(figure), high.max(figure))))
        });
        let (low, high) = ends.unwrap_or((1.0, 1.0));
        let (low, high) = match kind {
            Kind::Linear => (0.0, high),
            Kind::Log => {
                let (low, high) = (low.log10(), high.log10());
                let missing = (1.0 - (high - low)).max(0.0) / 2.0;
                (low - missing, high + missing)
            }
        };
        let width = span.to - span.from - span.free_left - span.free_right;
        let unit = (high - low) / width;
        Self { kind, span, low: low - unit * span.free_left, high: high + unit * span.free_right }
    }

    /// The place of a figure; none for what a logarithmic axis cannot show.
    pub(super) fn place(&self, figure: f64) -> Option<f64> {
        let position = match self.kind {
            Kind::Linear => figure,
            Kind::Log if figure > 0.0 => figure.log10(),
            Kind::Log => return None,
        };
        let share = (position - self.low) / (self.high - self.low);
        Some(self.span.from + share * (self.span.to - self.span.from))
    }

    pub(super) fn span(&self) -> Span {
        self.span
    }

    /// Round figures along the axis, from low to high.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match self.kind {
            Kind::Linear => self.linear_ticks(),
            Kind::Log => {
                let decades = self.log_ticks(&[1.0]);
                if decades.len() >= 3 { decades } else { self.log_ticks(&[1.0, 2.0, 5.0]) }
            }
        }
    }

    fn log_ticks(&self, steps: &[f64]) -> Vec<f64> {
        // Nothing that is measured lies outside: a nanosecond, an exbibyte.
        let decades = (-3_i32..=18).map(|power| 10_f64.powi(power));
        let all = decades.flat_map(|decade| steps.iter().map(move |step| step * decade));
        all.filter(|tick| (self.low..=self.high).contains(&tick.log10())).collect()
    }

    fn linear_ticks(&self) -> Vec<f64> {
        const TICKS_MAX: f64 = 6.0;
        let decades = (-3_i32..=18).map(|power| 10_f64.powi(power));
        let mut steps = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|step| step * decade));
        let Some(step) = steps.find(|step| self.high / step <= TICKS_MAX) else { return vec![0.0] };
        (0_u32..).map(|n| f64::from(n) * step).take_while(|tick| *tick <= self.high).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span { from: 100.0, to: 700.0, free_left: 50.0, free_right: 100.0 };

    fn scale(kind: Kind, figures: &[f64]) -> Scale {
        Scale::new(kind, figures.iter().copied(), SPAN)
    }

    fn assert_near(left: Option<f64>, right: f64) {
        assert!(left.is_some_and(|left| (left - right).abs() < 1e-6), "{left:?} is not {right}");
    }

    #[test]
    fn the_lowest_and_the_highest_figure_leave_the_free_room() {
        let scale = scale(Kind::Log, &[10.0, 1_000.0, 100_000.0]);
        assert_near(scale.place(10.0), 150.0);
        assert_near(scale.place(1_000.0), 375.0);
        assert_near(scale.place(100_000.0), 600.0);
    }

    #[test]
    fn a_small_difference_looks_small_on_a_logarithmic_axis() {
        let scale = scale(Kind::Log, &[100.0, 110.0]);
        let width = scale.place(110.0).unwrap() - scale.place(100.0).unwrap();
        assert!(width < 450.0 * 0.05, "{width}");
        assert!(scale.ticks().len() >= 3, "{:?}", scale.ticks());
    }

    #[test]
    fn many_decades_have_a_tick_each_and_few_have_more() {
        let ticks = scale(Kind::Log, &[100.0, 1e6]).ticks();
        assert_eq!(ticks.iter().filter(|tick| **tick >= 100.0).count(), 5, "{ticks:?}");
        let ticks = scale(Kind::Log, &[40.0, 300.0]).ticks();
        assert!(ticks.contains(&50.0) && ticks.contains(&200.0), "{ticks:?}");
    }

    #[test]
    fn a_linear_axis_begins_at_zero() {
        let scale = Scale::new(
            Kind::Linear,
            [30.0, 92.0].into_iter(),
            Span { from: 100.0, to: 700.0, free_left: 0.0, free_right: 100.0 },
        );
        assert_near(scale.place(0.0), 100.0);
        assert_near(scale.place(92.0), 600.0);
        assert_eq!(scale.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
    }

    #[test]
    fn nothing_and_zero_do_no_harm() {
        for kind in [Kind::Log, Kind::Linear] {
            for figures in [&[][..], &[0.0], &[7.0], &[f64::NAN, f64::INFINITY]] {
                let scale = scale(kind, figures);
                assert!(scale.place(7.0).unwrap().is_finite() && !scale.ticks().is_empty());
            }
        }
        assert_eq!(scale(Kind::Log, &[5.0]).place(0.0), None);
    }
}
