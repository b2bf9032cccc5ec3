//! Manifest records: what the database's files are.
//!
//! Invariants:
//!
//! 1. A record is a list of edits that take effect together; it verifies only in its own manifest,
//!    at its own offset.
//! 2. Edit kinds are explicit and never reused; an unknown one needs a newer version.

use super::bytes::{Reader, put_bytes};
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
