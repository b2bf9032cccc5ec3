//! Every key equally often.

use super::random::Random;

/// Draws from `min..=max`.
#[derive(Clone, Debug)]
pub(crate) struct Uniform {
    min: u64,
    span: u64,
}

impl Uniform {
    pub(crate) fn new(min: u64, max: u64) -> Self {
        Self { min, span: max - min + 1 }
    }

    pub(crate) fn draw(&mut self, random: &mut Random) -> u64 {
        self.min + random.below(self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_drawn_about_equally_often() {
        let (mut uniform, mut random) = (Uniform::new(100, 199), Random::new(5));
        let mut counts = [0_u32; 100];
        for _ in 0..100_000 {
            counts[usize::try_from(uniform.draw(&mut random) - 100).unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
