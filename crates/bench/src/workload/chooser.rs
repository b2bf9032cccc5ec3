//! Which key the next operation asks for.
//!
//! With inserts, the zipfian range covers the records and the inserts expected in the cell, as in
//! YCSB; a draw of a key that is not acknowledged yet is drawn again.

use serde::{Deserialize, Serialize};

use super::counter::AcknowledgedCounter;
use super::exponential::Exponential;
use super::hotspot::{HOT_DRAWS, HOT_KEYS, Hotspot};
use super::latest::Latest;
use super::random::Random;
use super::scrambled::ScrambledZipfian;
use super::sequential::Sequential;
use super::uniform::Uniform;
use super::zipfian::Zipfian;

/// The request distributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Distribution {
    /// Zipfian, its popular keys scattered: YCSB's A, B, C, E and F.
    Scrambled,
    /// The newest keys: YCSB's D.
    Latest,
    /// Zipfian, key number 0 the most popular.
    Zipfian,
    Uniform,
    Sequential,
    /// 20 % of the keys get 80 % of the draws.
    Hotspot,
    Exponential,
}

impl Distribution {
    /// As the command line and the rows have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Scrambled => "scrambled",
            Self::Latest => "latest",
            Self::Zipfian => "zipfian",
            Self::Uniform => "uniform",
            Self::Sequential => "sequential",
            Self::Hotspot => "hotspot",
            Self::Exponential => "exponential",
        }
    }
}

/// A client's key chooser.
#[derive(Clone, Debug)]
pub(crate) enum KeyChooser {
    Scrambled(ScrambledZipfian),
    Latest(Latest),
    Zipfian(Zipfian),
    Uniform(Uniform),
    Sequential(Sequential),
    Hotspot(Hotspot),
    Exponential(Exponential),
}

impl KeyChooser {
    /// Over keys `0..records`, and `expected_inserts` more as they are acknowledged.
    pub(crate) fn new(distribution: Distribution, records: u64, expected_inserts: u64) -> Self {
        let (last, last_expected) = (records - 1, records + expected_inserts - 1);
        match distribution {
            Distribution::Scrambled => Self::Scrambled(ScrambledZipfian::new(0, last_expected)),
            Distribution::Latest => Self::Latest(Latest::new(last)),
            Distribution::Zipfian => Self::Zipfian(Zipfian::new(0, last_expected)),
            Distribution::Uniform => Self::Uniform(Uniform::new(0, last)),
            Distribution::Sequential => Self::Sequential(Sequential::new(0, last)),
            Distribution::Hotspot => Self::Hotspot(Hotspot::new(0, last, HOT_KEYS, HOT_DRAWS)),
            Distribution::Exponential => Self::Exponential(Exponential::new(records)),
        }
    }

    /// The number of an acknowledged key.
    pub(crate) fn draw(&mut self, random: &mut Random, counter: &AcknowledgedCounter) -> u64 {
        loop {
            let last = counter.last();
            let key = match self {
                Self::Latest(latest) => return latest.draw(random, counter),
                Self::Exponential(exponential) => last.checked_sub(exponential.draw(random)),
                Self::Scrambled(scrambled) => Some(scrambled.draw(random)),
                Self::Zipfian(zipfian) => Some(zipfian.draw(random)),
                Self::Uniform(uniform) => Some(uniform.draw(random)),
                Self::Sequential(sequential) => Some(sequential.draw()),
                Self::Hotspot(hotspot) => Some(hotspot.draw(random)),
            };
            if let Some(key) = key.filter(|&key| key <= last) {
                return key;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distributions_name_is_its_word_in_rows() {
        use clap::ValueEnum;
        for distribution in Distribution::value_variants() {
            let word = serde_json::to_string(distribution).unwrap();
            assert_eq!(word, format!("\"{}\"", distribution.name()));
        }
    }

    #[test]
    fn no_distribution_draws_a_key_that_is_not_acknowledged() {
        use clap::ValueEnum;
        for &distribution in Distribution::value_variants() {
            let counter = AcknowledgedCounter::new(100);
            let mut chooser = KeyChooser::new(distribution, 100, 50);
            let mut random = Random::new(8);
            let first = counter.take();
            counter.acknowledge(counter.take());
            for _ in 0..5_000 {
                assert!(chooser.draw(&mut random, &counter) < first, "{distribution:?}");
            }
        }
    }

    #[test]
    fn inserted_keys_are_drawn_once_they_are_acknowledged() {
        for distribution in [Distribution::Scrambled, Distribution::Zipfian, Distribution::Latest] {
            let counter = AcknowledgedCounter::new(100);
            let mut chooser = KeyChooser::new(distribution, 100, 50);
            let mut random = Random::new(8);
            (0..50).for_each(|_| counter.acknowledge(counter.take()));
            let inserted = (0..20_000).filter(|_| chooser.draw(&mut random, &counter) >= 100);
            assert!(inserted.count() > 100, "{distribution:?}");
        }
    }

    #[test]
    fn one_record_is_enough_for_every_distribution() {
        use clap::ValueEnum;
        for &distribution in Distribution::value_variants() {
            let counter = AcknowledgedCounter::new(1);
            let mut chooser = KeyChooser::new(distribution, 1, 0);
            let mut random = Random::new(8);
            assert!((0..100).all(|_| chooser.draw(&mut random, &counter) == 0), "{distribution:?}");
        }
    }
}
