//! One client's stream of operations, made outside the timed span into reused buffers.

use std::sync::Arc;

use super::chooser::KeyChooser;
use super::counter::AcknowledgedCounter;
use super::random::Random;
use super::{Distribution, DocumentShape, KeyFormat, OperationKind, Workload};

/// YCSB's E: scan lengths are uniform in 1..=100.
const SCAN_LENGTH_MAX: u64 = 100;

/// An operation and its arguments.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) kind: OperationKind,
    pub(crate) key: String,
    /// The record of an insert, the fields of an update.
    pub(crate) payload: Vec<u8>,
    pub(crate) scan_length: usize,
    /// The key number of an insert, to acknowledge.
    pub(crate) inserted: Option<u64>,
}

impl Operation {
    /// An empty operation with buffers for records of `shape`.
    pub(crate) fn with_buffers(shape: DocumentShape) -> Self {
        let bytes = usize::try_from(shape.document_bytes()).expect("a record fits memory");
        Self {
            kind: OperationKind::Read,
            key: String::with_capacity(280),
            payload: Vec::with_capacity(bytes),
            scan_length: 0,
            inserted: None,
        }
    }
}

/// What tells one stream from another; equal seeds give equal streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientSeed {
    pub(crate) seed: u64,
    pub(crate) repeat: u32,
    pub(crate) client: u32,
}

impl ClientSeed {
    /// The seed of the stream with this letter.
    pub(super) fn mixed(self, letter: char) -> u64 {
        let parts = [u64::from(self.repeat), u64::from(self.client), u64::from(u32::from(letter))];
        // Weyl steps keep neighbouring seeds, repeats and clients apart; the generator's own
        // seeding scrambles the result.
        parts.into_iter().fold(self.seed, |mixed, part| {
            (mixed ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
        })
    }
}

/// A client's operations.
#[derive(Debug)]
pub(crate) struct Generator {
    workload: Workload,
    chooser: KeyChooser,
    counter: Arc<AcknowledgedCounter>,
    random: Random,
    shape: DocumentShape,
    keys: KeyFormat,
}

/// What the generators of a cell have in common.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) workload: Workload,
    pub(crate) distribution: Distribution,
    pub(crate) records: u64,
    pub(crate) expected_inserts: u64,
    pub(crate) shape: DocumentShape,
    pub(crate) keys: KeyFormat,
}

impl Generator {
    pub(crate) fn new(
        stream: &Stream,
        seed: ClientSeed,
        counter: Arc<AcknowledgedCounter>,
    ) -> Self {
        let Stream { workload, distribution, records, expected_inserts, shape, keys } = *stream;
        Self {
            workload,
            chooser: KeyChooser::new(distribution, records, expected_inserts),
            counter,
            random: Random::new(seed.mixed(workload.letter())),
            shape,
            keys,
        }
    }

    /// Replaces `operation` with the next one.
    pub(crate) fn next(&mut self, operation: &mut Operation) {
        operation.kind = self.workload.choose(&mut self.random);
        operation.inserted = None;
        match operation.kind {
            OperationKind::Insert => {
                let number = self.counter.take();
                operation.inserted = Some(number);
                self.keys.write(number, &mut operation.key);
                self.shape.write_record(&mut self.random, &mut operation.payload);
            }
            kind => {
                let number = self.chooser.draw(&mut self.random, &self.counter);
                self.keys.write(number, &mut operation.key);
                self.fill_arguments(kind, operation);
            }
        }
    }

    fn fill_arguments(&mut self, kind: OperationKind, operation: &mut Operation) {
        match kind {
            OperationKind::Scan => {
                let length = 1 + self.random.below(SCAN_LENGTH_MAX);
                operation.scan_length = usize::try_from(length).expect("at most 100");
            }
            OperationKind::Update | OperationKind::ReadModifyWrite => {
                self.shape.write_update(&mut self.random, &mut operation.payload);
            }
            OperationKind::Read | OperationKind::Insert => {}
        }
    }

    /// The insert of `operation`, if it was one, succeeded.
    pub(crate) fn acknowledge(&self, operation: &Operation) {
        if let Some(number) = operation.inserted {
            self.counter.acknowledge(number);
        }
    }

    /// `operation` failed; if it was an insert, its key stays unread.
    pub(crate) fn fail(&self, operation: &Operation) {
        if operation.inserted.is_some() {
            self.counter.fail();
        }
    }
}

/// The records of a load, in the order of their numbers.
#[derive(Debug)]
pub(crate) struct Records {
    random: Random,
    shape: DocumentShape,
    keys: KeyFormat,
    next: u64,
    end: u64,
}

impl Records {
    pub(crate) fn new(records: u64, shape: DocumentShape, keys: KeyFormat, seed: u64) -> Self {
        Self { random: Random::new(seed), shape, keys, next: 0, end: records }
    }

    /// Fills `batch` with up to `batch.len()` records and says how many there were.
    pub(crate) fn fill(&mut self, batch: &mut [(String, Vec<u8>)]) -> usize {
        let mut filled = 0;
        for (key, document) in batch {
            if self.next == self.end {
                break;
            }
            self.keys.write(self.next, key);
            self.shape.write_record(&mut self.random, document);
            self.next += 1;
            filled += 1;
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::super::InsertOrder;
    use super::*;

    fn stream(workload: Workload) -> Stream {
        Stream {
            workload,
            distribution: workload.distribution(),
            records: 1_000,
            expected_inserts: 100,
            shape: DocumentShape { fields: 2, field_bytes: 10 },
            keys: KeyFormat { order: InsertOrder::Hashed, zero_padding: 1 },
        }
    }

    fn operations(workload: Workload, seed: ClientSeed) -> Vec<(OperationKind, String, Vec<u8>)> {
        let stream = stream(workload);
        let counter = Arc::new(AcknowledgedCounter::new(stream.records));
        let mut generator = Generator::new(&stream, seed, counter);
        let mut operation = Operation::with_buffers(stream.shape);
        let next = |_| {
            generator.next(&mut operation);
            generator.acknowledge(&operation);
            (operation.kind, operation.key.clone(), operation.payload.clone())
        };
        (0..2_000).map(next).collect()
    }

    #[test]
    fn equal_seeds_give_equal_streams_and_others_do_not() {
        let seed = ClientSeed { seed: 42, repeat: 1, client: 0 };
        for workload in Workload::IN_RUN_ORDER {
            let first = operations(workload, seed);
            assert_eq!(first, operations(workload, seed), "{workload}");
            assert_ne!(first, operations(workload, ClientSeed { client: 1, ..seed }));
            assert_ne!(first, operations(workload, ClientSeed { repeat: 2, ..seed }));
        }
    }

    #[test]
    fn scan_lengths_are_one_to_a_hundred() {
        let stream = stream(Workload::E);
        let counter = Arc::new(AcknowledgedCounter::new(stream.records));
        let seed = ClientSeed { seed: 1, repeat: 1, client: 0 };
        let mut generator = Generator::new(&stream, seed, counter);
        let mut operation = Operation::with_buffers(stream.shape);
        let mut lengths = std::collections::BTreeSet::new();
        for _ in 0..5_000 {
            generator.next(&mut operation);
            generator.acknowledge(&operation);
            if operation.kind == OperationKind::Scan {
                lengths.insert(operation.scan_length);
            }
        }
        assert_eq!(lengths, (1..=100).collect());
    }

    #[test]
    fn a_load_makes_every_record_once() {
        let stream = stream(Workload::A);
        let mut records = Records::new(25, stream.shape, stream.keys, 1);
        let mut batch = vec![(String::new(), Vec::new()); 10];
        let filled: Vec<usize> = (0..4).map(|_| records.fill(&mut batch)).collect();
        assert_eq!(filled, [10, 10, 5, 0]);
    }
}
