//! The distribution of YCSB's D: the newest key is the most popular. Key 0 is never drawn.

use super::counter::AcknowledgedCounter;
use super::random::Random;
use super::zipfian::Zipfian;

/// Draws `last - zipfian(last)`, where `last` is the newest acknowledged key.
#[derive(Clone, Debug)]
pub(crate) struct Latest {
    recency: Zipfian,
}

impl Latest {
    /// `last` is the newest key at the start.
    pub(crate) fn new(last: u64) -> Self {
        Self { recency: Zipfian::new(0, last.max(1) - 1) }
    }

    pub(crate) fn draw(&mut self, random: &mut Random, counter: &AcknowledgedCounter) -> u64 {
        let last = counter.last();
        self.recency.grow(last);
        last.saturating_sub(self.recency.draw(random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_key_is_the_most_popular_and_key_zero_is_never_drawn() {
        let counter = AcknowledgedCounter::new(100);
        let (mut latest, mut random) = (Latest::new(counter.last()), Random::new(9));
        let mut counts = [0_u32; 101];
        for _ in 0..200_000 {
            counts[usize::try_from(latest.draw(&mut random, &counter)).unwrap()] += 1;
        }
        assert_eq!(counts[0], 0);
        assert_eq!(counts[100], 0, "key 100 does not exist");
        assert_eq!(counts.iter().max(), Some(&counts[99]));
    }

    #[test]
    fn the_distribution_follows_acknowledged_inserts() {
        let counter = AcknowledgedCounter::new(100);
        let (mut latest, mut random) = (Latest::new(counter.last()), Random::new(9));
        let inserted = counter.take();
        let before = (0..1_000).map(|_| latest.draw(&mut random, &counter)).max();
        assert_eq!(before, Some(99), "not yet acknowledged");
        counter.acknowledge(inserted);
        let after = (0..1_000).map(|_| latest.draw(&mut random, &counter)).max();
        assert_eq!(after, Some(100));
    }
}
