//! Do the stores answer the same? With one client and the same seed, the first operations of each
//! workload give a digest of every answer; the digests of all stores must be equal.
//!
//! The pass is untimed and runs before the measurement, over a folder of its own that is loaded
//! once for each store with all records and the cell's options; the workloads follow one another
//! as in a run. A scan of all records gives one more digest after the load, and another at the end.
//! A store that cannot write takes part until the others do, and one that keeps nothing not at all.
//!
//! What many clients at once were answered is another question: `history`.

pub(crate) mod history;

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Failure, Result};
use crate::run::cell::{self, CellSpec};
use crate::store::{Presence, Store, StoreKind, Verified, Visitor};
use crate::workload::{
    AcknowledgedCounter, ClientSeed, Generator, Operation, OperationKind, Workload,
};

const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01B3;

/// What a store answered to a stream of operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Digest {
    pub(crate) operations: u64,
    /// Records that were read, by reads and scans.
    pub(crate) rows: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// A hash of all values in their order, with their boundaries, in hexadecimal.
    pub(crate) values: String,
}

/// A part of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    /// A scan of all records after the load.
    Loaded,
    Workload(Workload),
    /// A scan of all records at the end.
    End,
}

/// The digest of one part of the pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stage {
    pub(crate) part: Part,
    pub(crate) digest: Digest,
}

/// What a child process verifies.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct VerifySpec {
    pub(crate) parts: Vec<Part>,
    pub(crate) operations: u64,
    /// Whether to flip a bit of one value, to show that a difference is found.
    pub(crate) plant: Plant,
}

/// A deliberate fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Plant {
    Nothing,
    WrongByte,
}

struct Digester {
    rows: u64,
    bytes: u64,
    hash: u64,
    plant: Plant,
}

impl Digester {
    fn new(plant: Plant) -> Self {
        Self { rows: 0, bytes: 0, hash: FNV_OFFSET, plant }
    }

    fn absorb(&mut self, byte: u8) {
        self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
    }

    fn finish(&self, operations: u64) -> Digest {
        let values = format!("{:016x}", self.hash);
        Digest { operations, rows: self.rows, bytes: self.bytes, values }
    }
}

impl Visitor for Digester {
    fn value(&mut self, bytes: &[u8]) {
        self.rows += 1;
        self.bytes += bytes.len() as u64;
        (bytes.len() as u64).to_le_bytes().into_iter().for_each(|byte| self.absorb(byte));
        let mut flip = match std::mem::replace(&mut self.plant, Plant::Nothing) {
            Plant::Nothing => 0,
            Plant::WrongByte => 1,
        };
        for &byte in bytes {
            self.absorb(byte ^ std::mem::take(&mut flip));
        }
    }
}

/// What a store can be asked of a pass over these workloads.
pub(crate) fn parts(workloads: &[Workload], verified: Verified) -> Vec<Part> {
    let writes = workloads.iter().position(|workload| workload.writes());
    let (verified, last) = match (verified, writes) {
        (Verified::Nothing, _) => return Vec::new(),
        (Verified::UntilWrites, Some(position)) => (&workloads[..position], None),
        (Verified::UntilWrites | Verified::All, _) => (workloads, Some(Part::End)),
    };
    let workloads = verified.iter().copied().map(Part::Workload);
    std::iter::once(Part::Loaded).chain(workloads).chain(last).collect()
}

/// The whole pass over one store, in a child process.
pub(crate) fn pass<S: Store>(spec: &CellSpec, verify: &VerifySpec) -> Result<Vec<Stage>> {
    let store = S::open(&spec.folder, &spec.config)?;
    cell::load_records(&store, spec, |_, _| {})?;
    let counter = Arc::new(AcknowledgedCounter::new(spec.records));
    let mut plant = verify.plant;
    let mut stages = Vec::new();
    for &part in &verify.parts {
        // In a workload, if there is one.
        let planted = if part == Part::Loaded { Plant::Nothing } else { plant };
        let mut digester = Digester::new(planted);
        let operations = match part {
            Part::Workload(workload) => {
                operate(&store, spec, workload, verify.operations, &counter, &mut digester)?;
                verify.operations
            }
            Part::Loaded | Part::End => {
                store.scan("", usize::MAX, &mut digester)?;
                1
            }
        };
        plant = if part == Part::Loaded { plant } else { Plant::Nothing };
        stages.push(Stage { part, digest: digester.finish(operations) });
    }
    store.close()?;
    Ok(stages)
}

fn operate<S: Store>(
    store: &S,
    spec: &CellSpec,
    workload: Workload,
    operations: u64,
    counter: &Arc<AcknowledgedCounter>,
    digester: &mut Digester,
) -> Result<()> {
    let stream = spec.stream(workload, counter.last() + 1);
    let seed = ClientSeed { seed: spec.seed, repeat: 1, client: 0 };
    let mut generator = Generator::new(&stream, seed, Arc::clone(counter));
    let mut operation = Operation::with_buffers(spec.shape);
    for number in 0..operations {
        generator.next(&mut operation);
        perform(store, &operation, digester).map_err(|failure| {
            Failure::new(format_args!(
                "operation {number} of workload {workload} ({} {}) failed: {failure}",
                operation.kind.name(),
                operation.key
            ))
        })?;
        generator.acknowledge(&operation);
    }
    Ok(())
}

fn perform<S: Store>(store: &S, operation: &Operation, digester: &mut Digester) -> Result<()> {
    let Operation { key, payload, .. } = operation;
    let presence = match operation.kind {
        OperationKind::Read => store.read(key, digester)?,
        OperationKind::Update => store.update(key, payload)?,
        OperationKind::Insert => store.insert(key, payload).map(|()| Presence::Found)?,
        OperationKind::Scan => {
            store.scan(key, operation.scan_length, digester).map(|_| Presence::Found)?
        }
        OperationKind::ReadModifyWrite => match store.read(key, digester)? {
            Presence::Found => store.update(key, payload)?,
            Presence::Missing => Presence::Missing,
        },
    };
    match presence {
        Presence::Found => Ok(()),
        Presence::Missing => Err(Failure::new("no such record")),
    }
}

/// Fails with the first stage on which two stores differ, of those that both have.
pub(crate) fn compare(passes: &[(StoreKind, Vec<Stage>)]) -> Result<()> {
    for (number, (store, stages)) in passes.iter().enumerate() {
        for stage in stages {
            let earlier = passes[..number].iter().find_map(|(store, stages)| {
                stages.iter().find(|other| other.part == stage.part).map(|other| (*store, other))
            });
            if let Some((first, expected)) = earlier
                && expected != stage
            {
                return Err(difference(first, expected, *store, stage));
            }
        }
    }
    Ok(())
}

fn difference(first: StoreKind, a: &Stage, second: StoreKind, b: &Stage) -> Failure {
    let stage = match a.part {
        Part::Loaded => "the scan of all records after the load".to_owned(),
        Part::Workload(workload) => format!("workload {workload}"),
        Part::End => "the scan of all records".to_owned(),
    };
    let describe = |store: StoreKind, digest: &Digest| {
        let Digest { rows, bytes, values, .. } = digest;
        format!("{} has rows {rows}, bytes {bytes}, values {values}", store.name())
    };
    let (a, b) = (describe(first, &a.digest), describe(second, &b.digest));
    Failure::new(format_args!("the stores answer differently in {stage}: {a}; {b}"))
}

/// A store's digest of a workload, if it was verified.
pub(crate) fn digest_of(
    passes: &[(StoreKind, Vec<Stage>)],
    store: StoreKind,
    workload: Workload,
) -> Option<Digest> {
    let (_, stages) = passes.iter().find(|(verified, _)| *verified == store)?;
    let stage = stages.iter().find(|stage| stage.part == Part::Workload(workload));
    stage.map(|stage| stage.digest.clone())
}

/// The folder of a store's pass below the run's data folder.
pub(crate) fn folder(data: &Path, store: StoreKind) -> std::path::PathBuf {
    data.join(format!("{}-verify", store.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(values: &[&[u8]], plant: Plant) -> Digest {
        let mut digester = Digester::new(plant);
        values.iter().for_each(|value| digester.value(value));
        digester.finish(1)
    }

    #[test]
    fn a_digest_sees_every_byte_boundary_and_order() {
        let base = digest(&[b"ab", b"c"], Plant::Nothing);
        assert_eq!(base, digest(&[b"ab", b"c"], Plant::Nothing));
        for other in [vec![&b"a"[..], b"bc"], vec![b"c", b"ab"], vec![b"ab", b"d"], vec![b"ab"]] {
            assert_ne!(base, digest(&other, Plant::Nothing));
        }
        assert_ne!(base, digest(&[b"ab", b"c"], Plant::WrongByte));
    }

    #[test]
    fn a_store_without_writes_is_verified_until_the_others_write() {
        let [a, c, e] = [Workload::A, Workload::C, Workload::E].map(Part::Workload);
        let (loaded, end) = (Part::Loaded, Part::End);
        let workloads = [Workload::C, Workload::A, Workload::E];
        assert_eq!(parts(&workloads, Verified::All), [loaded, c, a, e, end]);
        assert_eq!(parts(&workloads, Verified::UntilWrites), [loaded, c]);
        assert_eq!(parts(&workloads[..1], Verified::UntilWrites), [loaded, c, end]);
        assert!(parts(&workloads, Verified::Nothing).is_empty());
    }

    #[test]
    fn stores_are_compared_in_the_stages_that_both_have() {
        let stage = |part, bytes: &[u8]| Stage { part, digest: digest(&[bytes], Plant::Nothing) };
        let whole = vec![stage(Part::Loaded, b"x"), stage(Part::End, b"y")];
        let passes = |floor| {
            [
                (StoreKind::Null, Vec::new()),
                (StoreKind::Floor, vec![floor]),
                (StoreKind::Sediment, whole.clone()),
            ]
        };
        assert!(compare(&passes(stage(Part::Loaded, b"x"))).is_ok());
        let text = compare(&passes(stage(Part::Loaded, b"z"))).unwrap_err().to_string();
        assert!(text.contains("after the load") && text.contains("floor has"), "{text}");
    }

    #[test]
    fn a_difference_names_the_stage_and_both_digests() {
        let stage = |bytes: &[u8]| Stage {
            part: Part::Workload(Workload::F),
            digest: digest(&[bytes], Plant::Nothing),
        };
        let same =
            [(StoreKind::Sediment, vec![stage(b"x")]), (StoreKind::RocksDb, vec![stage(b"x")])];
        assert!(compare(&same).is_ok());
        let other =
            [(StoreKind::Sediment, vec![stage(b"x")]), (StoreKind::RocksDb, vec![stage(b"y")])];
        let text = compare(&other).unwrap_err().to_string();
        for part in ["workload f", "sediment has rows 1", "rocksdb has rows 1"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
