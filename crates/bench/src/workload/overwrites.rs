//! Whole new documents for records that exist: what is written when nothing is read.

use super::chooser::KeyChooser;
use super::counter::AcknowledgedCounter;
use super::random::Random;
use super::{ClientSeed, Distribution, DocumentShape, KeyFormat};

/// Tells this stream from those of the workloads, which have other letters.
const LETTER: char = 'o';

/// An endless stream of ids and documents.
#[derive(Debug)]
pub(crate) struct Overwrites {
    chooser: KeyChooser,
    counter: AcknowledgedCounter,
    random: Random,
    shape: DocumentShape,
    keys: KeyFormat,
}

impl Overwrites {
    /// Over the ids of `records` records.
    pub(crate) fn new(
        distribution: Distribution,
        records: u64,
        shape: DocumentShape,
        keys: KeyFormat,
        seed: ClientSeed,
    ) -> Self {
        Self {
            chooser: KeyChooser::new(distribution, records, 0),
            counter: AcknowledgedCounter::new(records),
            random: Random::new(seed.mixed(LETTER)),
            shape,
            keys,
        }
    }

    /// Replaces `key` and `document` with the next ones.
    pub(crate) fn next(&mut self, key: &mut String, document: &mut Vec<u8>) {
        let number = self.chooser.draw(&mut self.random, &self.counter);
        self.keys.write(number, key);
        self.shape.write_record(&mut self.random, document);
    }
}

#[cfg(test)]
mod tests {
    use super::super::InsertOrder;
    use super::*;

    const SHAPE: DocumentShape = DocumentShape { fields: 1, field_bytes: 10 };
    const KEYS: KeyFormat = KeyFormat { order: InsertOrder::Ordered, zero_padding: 1 };

    fn drawn(distribution: Distribution, repeat: u32) -> Vec<(String, Vec<u8>)> {
        let seed = ClientSeed { seed: 42, repeat, client: 0 };
        let mut overwrites = Overwrites::new(distribution, 50, SHAPE, KEYS, seed);
        let next = |_| {
            let (mut key, mut document) = (String::new(), Vec::new());
            overwrites.next(&mut key, &mut document);
            (key, document)
        };
        (0..50).map(next).collect()
    }

    #[test]
    fn equal_seeds_overwrite_the_same_and_other_repeats_do_not() {
        let first = drawn(Distribution::Uniform, 1);
        assert_eq!(first, drawn(Distribution::Uniform, 1));
        assert_ne!(first, drawn(Distribution::Uniform, 2));
    }

    #[test]
    fn as_many_sequential_overwrites_as_records_meet_each_once() {
        let keys: Vec<_> = drawn(Distribution::Sequential, 1).into_iter().map(|(k, _)| k).collect();
        let expected: Vec<_> = (0..50).map(|number| format!("user{number}")).collect();
        assert_eq!(keys, expected);
    }
}
