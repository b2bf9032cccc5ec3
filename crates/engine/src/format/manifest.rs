//! Manifest records: what the database's files are.
//!
//! Invariants:
//!
//! 1. A record is a list of edits that take effect together; it verifies only in its own manifest,
//!    at its own offset.
//! 2. Edit kinds are explicit and never reused; an unknown one needs a newer version.

use super::bytes::{Reader, put_bytes};
use super::full_key::{Bound, FullKey};
use super::record::mix;
use super::{CollectionId, SealedMeta, SegmentId, Sequence};

pub(crate) const MANIFEST_HEADER_BYTES: usize = 64;
/// Length, check.
const RECORD_PREFIX_BYTES: usize = 8;
/// The first bytes of a manifest.
pub(crate) const MANIFEST_MAGIC: &[u8; 8] = b"SEDMANIF";
const VERSION: u16 = 1;
const SALT: u64 = !2;

const CUT: ManifestFault = ManifestFault::Damaged("a field ends beyond its record");

/// What is the same in all manifests of a database, and what names this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ManifestHeader {
    pub(crate) database_id: [u8; 16],
    pub(crate) incarnation: u64,
}

/// Why a manifest's header is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ManifestFault {
    /// Not a manifest, or a damaged one.
    Damaged(&'static str),
    /// Written by a newer version.
    Newer(String),
}

impl ManifestHeader {
    pub(crate) fn encode(&self) -> [u8; MANIFEST_HEADER_BYTES] {
        let mut out = [0; MANIFEST_HEADER_BYTES];
        out[..8].copy_from_slice(MANIFEST_MAGIC);
        out[8..10].copy_from_slice(&VERSION.to_le_bytes());
        // 12..24: compatible, read-only and incompatible features; none yet.
        out[24..40].copy_from_slice(&self.database_id);
        out[40..48].copy_from_slice(&self.incarnation.to_le_bytes());
        let crc = crc32fast::hash(&out[..60]);
        out[60..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, ManifestFault> {
        let Some(header) = bytes.get(..MANIFEST_HEADER_BYTES) else {
            return Err(ManifestFault::Damaged("the manifest is shorter than its header"));
        };
        if &header[..8] != MANIFEST_MAGIC {
            return Err(ManifestFault::Damaged("the file is not a manifest"));
        }
        let mut fields = Reader::new(&header[8..]);
        let crc = Reader::new(&header[60..]).u32().ok_or(CUT)?;
        if crc != crc32fast::hash(&header[..60]) {
            return Err(ManifestFault::Damaged("the manifest's header does not verify"));
        }
        let version = fields.u16().ok_or(CUT)?;
        if version != VERSION {
            return Err(ManifestFault::Newer(format!("manifest version {version}")));
        }
        // Two bytes of zeros, and the compatible features, which a reader may ignore.
        fields.take(2 + 4).ok_or(CUT)?;
        let (read_only, incompatible) = fields.u32().zip(fields.u32()).ok_or(CUT)?;
        if read_only != 0 || incompatible != 0 {
            return Err(ManifestFault::Newer(format!(
                "manifest features {read_only:#x} (read-only) and {incompatible:#x} (incompatible)"
            )));
        }
        let database_id = fields.take(16).and_then(|id| id.try_into().ok()).ok_or(CUT)?;
        let incarnation = fields.u64().ok_or(CUT)?;
        Ok(Self { database_id, incarnation })
    }
}

/// A collection created or dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CatalogueChange {
    Create { collection: CollectionId, name: String },
    Drop { collection: CollectionId, at: Sequence },
}

/// The document of a catalogue record that creates a collection.
pub(crate) const CATALOGUE_CREATE: u8 = 1;
/// The document of a catalogue record that drops one.
pub(crate) const CATALOGUE_DROP: u8 = 2;

impl CatalogueChange {
    /// What a catalogue record says; `None` when its content makes no sense.
    pub(crate) fn from_record(
        collection: CollectionId,
        sequence: Sequence,
        name: &[u8],
        action: &[u8],
    ) -> Option<Self> {
        match action {
            [CATALOGUE_CREATE] => {
                Some(Self::Create { collection, name: std::str::from_utf8(name).ok()?.to_owned() })
            }
            [CATALOGUE_DROP] => Some(Self::Drop { collection, at: sequence }),
            _ => None,
        }
    }
}

/// The log segments whose records a run of level 0 has: all from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age {
    pub(crate) first: SegmentId,
    pub(crate) last: SegmentId,
}

impl Age {
    /// Of a log segment.
    pub(crate) fn of(segment: SegmentId) -> Self {
        Self { first: segment, last: segment }
    }

    /// From the older run's first segment to the newer run's last.
    pub(crate) fn span(older: Self, newer: Self) -> Self {
        Self { first: older.first.min(newer.first), last: older.last.max(newer.last) }
    }
}

/// The keys that a sorted segment shows, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) first: FullKey,
    pub(crate) last: FullKey,
}

/// Where a sealed segment belongs. One without a placement is a log segment: a run of level 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// A run of level 0 whose records lie in other segments, which are no runs of their own.
    Index { age: Age, members: Vec<SegmentId> },
    /// A piece of a run of level 0 in key order: the pieces of one age and sweep are one run.
    /// `sweep` is the number of the sweep that carried the records forward, 0 without one.
    Sorted { age: Age, sweep: u64, keys: KeyRange },
    /// A piece of level 1. `lower` says whether the segment has superseded records below the keys.
    Level1 { keys: KeyRange, lower: Bound },
    /// Its records were merged, but for those whose ids are damaged: looked at last.
    Quarantined,
}

/// A sweep under way: level 0 up to `cut` is merged into level 1 for the keys below `cursor`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SweepState {
    /// Above those of all earlier sweeps.
    pub(crate) number: u64,
    /// The last log segment that it covers.
    pub(crate) cut: SegmentId,
    /// The first key that is still to be merged; `None` before the first step.
    pub(crate) cursor: Option<FullKey>,
    /// Ids and documents of level 0 that it has merged, in bytes.
    pub(crate) merged_bytes: u64,
    /// Collections that were dropped up to here are left out, in all of it.
    pub(crate) horizon: Sequence,
}

/// One change to the set of files, or to what the manifest knows of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// The file exists, durably, and may hold log records.
    Created { segment: SegmentId, incarnation: u64 },
    /// The segment is complete: its index and trailer are synced.
    Sealed(SealedMeta),
    /// A write or sync failed: the segment's log ends here, and another segment follows it.
    Ended { segment: SegmentId, end: u64 },
    /// The segment is no part of the database any more.
    Removed { segment: SegmentId },
    /// What the catalogue records of sealed segments say.
    Catalogue(CatalogueChange),
    /// Lower bounds for what is handed out next.
    Next { segment: SegmentId, collection: CollectionId, sequence: Sequence },
    /// The database was closed cleanly: every earlier record of this manifest must verify.
    Closed,
    /// Where a sealed segment belongs, until the next such edit or its removal.
    Placed { segment: SegmentId, placement: Placement },
    /// A sweep begins, or has come this far.
    Sweep(SweepState),
    /// The sweep has come to the end of all keys.
    SweepEnded,
    /// Versions that no reader at or above this sequence sees may be gone.
    Horizon(Sequence),
    /// No record of a dropped collection is left.
    Forgotten { collection: CollectionId },
    /// A segment has a record whose id is damaged: no index can name it.
    Damaged { segment: SegmentId },
    /// An estimate: the ids and documents of older runs that this one's records supersede, in bytes.
    Shadowed { segment: SegmentId, bytes: u64 },
}

impl Age {
    fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.first.0.to_le_bytes());
        out.extend_from_slice(&self.last.0.to_le_bytes());
    }

    fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let (first, last) = (SegmentId(from.u64()?), SegmentId(from.u64()?));
        (first <= last).then_some(Self { first, last })
    }
}

impl KeyRange {
    fn encode(&self, out: &mut Vec<u8>) {
        put_key(out, &self.first);
        put_key(out, &self.last);
    }

    fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let (first, last) = (key(from)?, key(from)?);
        (first <= last).then_some(Self { first, last })
    }
}

fn put_key(out: &mut Vec<u8>, key: &FullKey) {
    let bytes = key.as_bytes();
    let len = u32::try_from(bytes.len()).expect("a key has at most 65 539 bytes");
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
}

fn key(from: &mut Reader<'_>) -> Option<FullKey> {
    let len = from.u32()? as usize;
    FullKey::parse(from.take(len)?)
}

impl Placement {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Index { age, members } => {
                out.push(1);
                age.encode(out);
                let count = u32::try_from(members.len()).expect("members are few");
                out.extend_from_slice(&count.to_le_bytes());
                for member in members {
                    out.extend_from_slice(&member.0.to_le_bytes());
                }
            }
            Self::Sorted { age, sweep, keys } => {
                out.push(2);
                age.encode(out);
                out.extend_from_slice(&sweep.to_le_bytes());
                keys.encode(out);
            }
            Self::Level1 { keys, lower } => {
                out.push(3);
                out.push(*lower as u8);
                keys.encode(out);
            }
            Self::Quarantined => out.push(4),
        }
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, ManifestFault> {
        let placement = match from.u8().ok_or(CUT)? {
            1 => Age::decode(from).zip(from.u32()).and_then(|(age, count)| {
                let members = (0..count).map(|_| from.u64().map(SegmentId)).collect::<Option<_>>();
                Some(Self::Index { age, members: members? })
            }),
            2 => Age::decode(from)
                .zip(from.u64())
                .zip(KeyRange::decode(from))
                .map(|((age, sweep), keys)| Self::Sorted { age, sweep, keys }),
            3 => from
                .u8()
                .and_then(Bound::from_byte)
                .zip(KeyRange::decode(from))
                .map(|(lower, keys)| Self::Level1 { keys, lower }),
            4 => Some(Self::Quarantined),
            kind => return Err(ManifestFault::Newer(format!("placement {kind}"))),
        };
        placement.ok_or(CUT)
    }
}

impl SweepState {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.cut.0.to_le_bytes());
        out.extend_from_slice(&self.merged_bytes.to_le_bytes());
        out.extend_from_slice(&self.horizon.0.to_le_bytes());
        match &self.cursor {
            Some(cursor) => put_key(out, cursor),
            // No key is empty: each has a collection.
            None => out.extend_from_slice(&0u32.to_le_bytes()),
        }
    }

    fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let (number, cut, merged_bytes) = (from.u64()?, SegmentId(from.u64()?), from.u64()?);
        let horizon = Sequence(from.u64()?);
        let cursor = match from.u32()? as usize {
            0 => None,
            len => Some(FullKey::parse(from.take(len)?)?),
        };
        Some(Self { number, cut, cursor, merged_bytes, horizon })
    }
}

impl Edit {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Created { segment, incarnation } => {
                out.push(1);
                out.extend_from_slice(&segment.0.to_le_bytes());
                out.extend_from_slice(&incarnation.to_le_bytes());
            }
            Self::Sealed(meta) => {
                out.push(2);
                meta.encode(out);
            }
            Self::Ended { segment, end } => {
                out.push(3);
                out.extend_from_slice(&segment.0.to_le_bytes());
                out.extend_from_slice(&end.to_le_bytes());
            }
            Self::Removed { segment } => {
                out.push(4);
                out.extend_from_slice(&segment.0.to_le_bytes());
            }
            Self::Catalogue(CatalogueChange::Create { collection, name }) => {
                out.push(5);
                out.extend_from_slice(&collection.0.to_le_bytes());
                put_bytes(out, name.as_bytes());
            }
            Self::Catalogue(CatalogueChange::Drop { collection, at }) => {
                out.push(6);
                out.extend_from_slice(&collection.0.to_le_bytes());
                out.extend_from_slice(&at.0.to_le_bytes());
            }
            Self::Next { segment, collection, sequence } => {
                out.push(7);
                out.extend_from_slice(&segment.0.to_le_bytes());
                out.extend_from_slice(&collection.0.to_le_bytes());
                out.extend_from_slice(&sequence.0.to_le_bytes());
            }
            Self::Closed => out.push(8),
            Self::Placed { segment, placement } => {
                out.push(9);
                out.extend_from_slice(&segment.0.to_le_bytes());
                placement.encode(out);
            }
            Self::Sweep(sweep) => {
                out.push(10);
                sweep.encode(out);
            }
            Self::SweepEnded => out.push(11),
            Self::Horizon(sequence) => {
                out.push(12);
                out.extend_from_slice(&sequence.0.to_le_bytes());
            }
            Self::Forgotten { collection } => {
                out.push(13);
                out.extend_from_slice(&collection.0.to_le_bytes());
            }
            Self::Shadowed { segment, bytes } => {
                out.push(14);
                out.extend_from_slice(&segment.0.to_le_bytes());
                out.extend_from_slice(&bytes.to_le_bytes());
            }
            Self::Damaged { segment } => {
                out.push(15);
                out.extend_from_slice(&segment.0.to_le_bytes());
            }
        }
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, ManifestFault> {
        let kind = from.u8().ok_or(CUT)?;
        let edit = match kind {
            1 => from.u64().zip(from.u64()).map(|(segment, incarnation)| Self::Created {
                segment: SegmentId(segment),
                incarnation,
            }),
            2 => SealedMeta::decode(from).map(Self::Sealed),
            3 => from
                .u64()
                .zip(from.u64())
                .map(|(segment, end)| Self::Ended { segment: SegmentId(segment), end }),
            4 => from.u64().map(|segment| Self::Removed { segment: SegmentId(segment) }),
            5 => from.u32().zip(from.string()).map(|(collection, name)| {
                Self::Catalogue(CatalogueChange::Create {
                    collection: CollectionId(collection),
                    name,
                })
            }),
            6 => from.u32().zip(from.u64()).map(|(collection, at)| {
                Self::Catalogue(CatalogueChange::Drop {
                    collection: CollectionId(collection),
                    at: Sequence(at),
                })
            }),
            7 => from.u64().zip(from.u32()).zip(from.u64()).map(
                |((segment, collection), sequence)| Self::Next {
                    segment: SegmentId(segment),
                    collection: CollectionId(collection),
                    sequence: Sequence(sequence),
                },
            ),
            8 => Some(Self::Closed),
            9 => {
                let segment = SegmentId(from.u64().ok_or(CUT)?);
                Some(Self::Placed { segment, placement: Placement::decode(from)? })
            }
            10 => SweepState::decode(from).map(Self::Sweep),
            11 => Some(Self::SweepEnded),
            12 => from.u64().map(|sequence| Self::Horizon(Sequence(sequence))),
            13 => from.u32().map(|id| Self::Forgotten { collection: CollectionId(id) }),
            14 => from
                .u64()
                .zip(from.u64())
                .map(|(segment, bytes)| Self::Shadowed { segment: SegmentId(segment), bytes }),
            15 => from.u64().map(|segment| Self::Damaged { segment: SegmentId(segment) }),
            _ => return Err(ManifestFault::Newer(format!("manifest edit {kind}"))),
        };
        edit.ok_or(CUT)
    }
}

/// Encodes edits as one record for `offset`, a multiple of 8; padded to 8.
pub(crate) fn encode_edits(edits: &[Edit], incarnation: u64, offset: u64) -> Vec<u8> {
    let mut out = vec![0; RECORD_PREFIX_BYTES];
    for edit in edits {
        edit.encode(&mut out);
    }
    let len = u32::try_from(out.len() - RECORD_PREFIX_BYTES).expect("edits are small");
    out[..4].copy_from_slice(&len.to_le_bytes());
    let check = check(len, &out[RECORD_PREFIX_BYTES..], incarnation, offset);
    out[4..8].copy_from_slice(&check.to_le_bytes());
    out.resize(out.len().next_multiple_of(8), 0);
    out
}

/// Decodes the record at the beginning of `bytes`, which stands at `offset`: its edits and its
/// length with padding. `None` when the bytes are not a record.
pub(crate) fn decode_edits(
    bytes: &[u8],
    incarnation: u64,
    offset: u64,
) -> Option<Result<(Vec<Edit>, usize), ManifestFault>> {
    let mut prefix = Reader::new(bytes.get(..RECORD_PREFIX_BYTES)?);
    let (len, stored) = (prefix.u32()?, prefix.u32()?);
    let end = RECORD_PREFIX_BYTES.checked_add(len as usize)?;
    let payload = bytes.get(RECORD_PREFIX_BYTES..end)?;
    if len == 0 || stored != check(len, payload, incarnation, offset) {
        return None;
    }
    let mut from = Reader::new(payload);
    let mut edits = Vec::new();
    while !from.is_empty() {
        match Edit::decode(&mut from) {
            Ok(edit) => edits.push(edit),
            Err(fault) => return Some(Err(fault)),
        }
    }
    Some(Ok((edits, end.next_multiple_of(8))))
}

fn check(len: u32, payload: &[u8], incarnation: u64, offset: u64) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(len);
    hasher.update(payload);
    hasher.finalize() ^ mix(incarnation, offset, SALT)
}
