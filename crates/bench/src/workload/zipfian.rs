//! The zipfian distribution after Gray et al., "Quickly generating billion-record synthetic
//! databases" (1994), with YCSB's constant θ = 0.99: item `min` is the most popular.

use super::random::{Random, floor};

/// YCSB's skew.
pub(crate) const THETA: f64 = 0.99;

/// Σ i^-θ for i in 1..=n, continued from `sum`, which covers 1..=`covered`.
pub(crate) fn zeta(covered: u64, n: u64, theta: f64, sum: f64) -> f64 {
    (covered + 1..=n).fold(sum, |sum, i| sum + (i as f64).powf(-theta))
}

/// Draws from `min..=min + items - 1`.
#[derive(Clone, Debug)]
pub(crate) struct Zipfian {
    min: u64,
    items: u64,
    alpha: f64,
    eta: f64,
    zeta_items: f64,
    zeta_two: f64,
}

impl Zipfian {
    /// Costs one power for each item.
    pub(crate) fn new(min: u64, max: u64) -> Self {
        let items = max - min + 1;
        Self::with_zeta(min, max, zeta(0, items, THETA, 0.0))
    }

    /// As `new`, with the sum over the items given.
    pub(crate) fn with_zeta(min: u64, max: u64, zeta_items: f64) -> Self {
        let mut zipfian = Self {
            min,
            items: max - min + 1,
            alpha: 1.0 / (1.0 - THETA),
            eta: 0.0,
            zeta_items,
            zeta_two: zeta(0, 2, THETA, 0.0),
        };
        zipfian.refresh_eta();
        zipfian
    }

    pub(crate) fn draw(&mut self, random: &mut Random) -> u64 {
        let u = random.fraction();
        let uz = u * self.zeta_items;
        if uz < 1.0 {
            return self.min;
        }
        if uz < 1.0 + 0.5_f64.powf(THETA) {
            return self.min + 1;
        }
        let rank = self.items as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        self.min + floor(rank)
    }

    /// Grows to `items` items, adding the new terms to zeta; never shrinks.
    pub(crate) fn grow(&mut self, items: u64) {
        if items > self.items {
            self.zeta_items = zeta(self.items, items, THETA, self.zeta_items);
            self.items = items;
            self.refresh_eta();
        }
    }

    fn refresh_eta(&mut self) {
        let items = self.items as f64;
        self.eta =
            (1.0 - (2.0 / items).powf(1.0 - THETA)) / (1.0 - self.zeta_two / self.zeta_items);
    }

    #[cfg(test)]
    pub(super) fn eta(&self) -> f64 {
        self.eta
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeta_of_two_has_its_golden_value() {
        assert!((zeta(0, 2, THETA, 0.0) - 1.503_477_77).abs() < 1e-8);
    }

    #[test]
    fn growing_gives_the_same_distribution_as_starting_grown() {
        let mut grown = Zipfian::new(0, 999);
        grown.grow(5_000);
        let fresh = Zipfian::new(0, 4_999);
        assert!((grown.zeta_items - fresh.zeta_items).abs() < 1e-9);
        assert!((grown.eta - fresh.eta).abs() < 1e-12);
        grown.grow(10);
        assert_eq!(grown.items, 5_000, "never shrinks");
    }

    #[test]
    fn the_first_items_get_their_share_and_no_draw_leaves_the_range() {
        let (mut zipfian, mut random) = (Zipfian::new(10, 1_009), Random::new(1));
        let draws = 1_000_000;
        let (mut first, mut second) = (0_u32, 0_u32);
        for _ in 0..draws {
            let item = zipfian.draw(&mut random);
            assert!((10..=1_009).contains(&item), "{item}");
            first += u32::from(item == 10);
            second += u32::from(item == 11);
        }
        let share = |count: u32| f64::from(count) / f64::from(draws);
        let zeta_items = zeta(0, 1_000, THETA, 0.0);
        assert!((share(first) - 1.0 / zeta_items).abs() < 0.002, "{}", share(first));
        assert!((share(second) - 0.5_f64.powf(THETA) / zeta_items).abs() < 0.002);
    }
}
