//! The ratio of two sets of repeats with its confidence interval: Welch's t interval of the
//! difference of the means of the logarithms.
//!
//! It assumes that repeats are independent and that their logarithms are about normal, with a
//! variance of its own on each side. A bootstrap assumes less, but of three repeats it has ten
//! different samples, and its intervals are far too narrow.

/// Two-sided 95 % points of Student's t for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// A ratio of geometric means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    pub(super) ratio: f64,
    /// Of 95 % confidence; none where a side has a single repeat.
    pub(super) interval: Option<(f64, f64)>,
}

/// `after` to `before`; none unless both have values, all above zero.
pub(super) fn ratio(before: &[f64], after: &[f64]) -> Option<Ratio> {
    let (before, after) = (Sample::of(before)?, Sample::of(after)?);
    let difference = after.mean - before.mean;
    let interval = before.spread.zip(after.spread).map(|(before, after)| {
        let half = before.half_width(after);
        ((difference - half).exp(), (difference + half).exp())
    });
    Some(Ratio { ratio: difference.exp(), interval })
}

pub(super) fn geometric_mean(values: &[f64]) -> Option<f64> {
    Sample::of(values).map(|sample| sample.mean.exp())
}

/// The logarithms of some repeats.
struct Sample {
    mean: f64,
    spread: Option<Spread>,
}

#[derive(Clone, Copy)]
struct Spread {
    /// Variance of the mean.
    variance: f64,
    freedom: f64,
}

impl Sample {
    fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() || !values.iter().all(|value| *value > 0.0 && value.is_finite()) {
            return None;
        }
        let count = values.len() as f64;
        let logarithms = values.iter().map(|value| value.ln());
        let mean = logarithms.clone().sum::<f64>() / count;
        let squares: f64 = logarithms.map(|logarithm| (logarithm - mean).powi(2)).sum();
        let freedom = count - 1.0;
        let spread =
            (freedom > 0.0).then(|| Spread { variance: squares / freedom / count, freedom });
        Some(Self { mean, spread })
    }
}

impl Spread {
    /// Of the interval around the difference, with the degrees of freedom of Welch and
    /// Satterthwaite.
    fn half_width(self, other: Self) -> f64 {
        let variance = self.variance + other.variance;
        let own = |spread: Self| spread.variance.powi(2) / spread.freedom;
        let freedom = variance.powi(2) / (own(self) + own(other));
        // Equal values have no variance, and an interval of no width.
        if variance > 0.0 { student(freedom) * variance.sqrt() } else { 0.0 }
    }
}

/// For the whole number of degrees below, which is the wider interval.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and the place is held within the table"
)]
fn student(freedom: f64) -> f64 {
    let place = (freedom as usize).clamp(1, T.len());
    T[place - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(before: &[f64], after: &[f64]) -> (f64, f64) {
        ratio(before, after).unwrap().interval.unwrap()
    }

    #[test]
    fn equal_repeats_have_a_ratio_of_one_within_their_interval() {
        let values = [90.0, 100.0, 110.0];
        let found = ratio(&values, &values).unwrap();
        assert!((found.ratio - 1.0).abs() < 1e-12);
        let (low, high) = found.interval.unwrap();
        assert!(low < 1.0 && high > 1.0 && (low * high - 1.0).abs() < 1e-12);
        assert_eq!(interval(&[5.0, 5.0], &[5.0, 5.0]), (1.0, 1.0));
    }

    /// Logarithms 0, 1, 2 and 3, 5, 7: means 1 and 5, variances of the means 1/3 and 4/3, so
    /// (5/3)² / (1/18 + 16/18) = 2.94 degrees of freedom, of which 2 count.
    #[test]
    fn the_interval_is_welchs() {
        let e = |powers: [i32; 3]| powers.map(|power| std::f64::consts::E.powi(power));
        let (low, high) = interval(&e([0, 1, 2]), &e([3, 5, 7]));
        let half = 4.303 * (5.0_f64 / 3.0).sqrt();
        assert!((low.ln() - (4.0 - half)).abs() < 1e-9, "{low}");
        assert!((high.ln() - (4.0 + half)).abs() < 1e-9, "{high}");
    }

    #[test]
    fn a_single_repeat_has_a_ratio_but_no_interval() {
        let found = ratio(&[100.0], &[80.0, 80.0]).unwrap();
        assert!((found.ratio - 0.8).abs() < 1e-12);
        assert_eq!(found.interval, None);
    }

    #[test]
    fn what_has_no_logarithm_has_no_ratio() {
        assert_eq!(ratio(&[], &[1.0]), None);
        assert_eq!(ratio(&[1.0, 0.0], &[1.0]), None);
        assert_eq!(ratio(&[1.0], &[f64::NAN]), None);
    }

    #[test]
    fn many_degrees_of_freedom_count_as_thirty() {
        assert_eq!((student(1.0), student(2.94), student(1e9)), (12.706, 4.303, 2.042));
        assert!(T.is_sorted_by(|a, b| a > b));
    }
}
