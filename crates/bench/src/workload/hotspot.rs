//! A part of the keys gets a part of the draws: by default 20 % of the keys get 80 %.

use super::random::{Random, floor};
use super::uniform::Uniform;

/// YCSB's `hotspotdatafraction`.
pub(crate) const HOT_KEYS: f64 = 0.2;
/// YCSB's `hotspotopnfraction`.
pub(crate) const HOT_DRAWS: f64 = 0.8;

/// The hot keys are the first of the range; both parts are uniform within.
#[derive(Clone, Debug)]
pub(crate) struct Hotspot {
    hot: Uniform,
    cold: Uniform,
    hot_draws: f64,
}

impl Hotspot {
    pub(crate) fn new(min: u64, max: u64, hot_keys: f64, hot_draws: f64) -> Self {
        let items = max - min + 1;
        let hot = floor(items as f64 * hot_keys).clamp(1, items);
        // With every key hot there is no cold part, and all draws are uniform.
        let cold_min = if hot == items { min } else { min + hot };
        Self { hot: Uniform::new(min, min + hot - 1), cold: Uniform::new(cold_min, max), hot_draws }
    }

    pub(crate) fn draw(&mut self, random: &mut Random) -> u64 {
        if random.fraction() < self.hot_draws {
            self.hot.draw(random)
        } else {
            self.cold.draw(random)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hot_keys_get_their_share_of_the_draws() {
        let (mut hotspot, mut random) = (Hotspot::new(0, 999, HOT_KEYS, HOT_DRAWS), Random::new(2));
        let draws = 100_000_u32;
        let hot = (0..draws).filter(|_| hotspot.draw(&mut random) < 200).count();
        let share = hot as f64 / f64::from(draws);
        assert!((share - 0.8).abs() < 0.01, "{share}");
    }

    #[test]
    fn a_range_of_one_key_works() {
        let (mut hotspot, mut random) = (Hotspot::new(7, 7, 0.2, 0.5), Random::new(2));
        assert!((0..100).all(|_| hotspot.draw(&mut random) == 7));
    }
}
