//! What a writer hands to the leader of its group.

use crate::error::Result;
use crate::format::{
    CATALOGUE_DROP, CollectionId, Kind, RECORD_HEADER_BYTES, Sequence, append_record, key_hash,
};
use crate::log::records;

/// Records to be written together, and what must hold for them to be.
#[derive(Debug, Default)]
pub(crate) struct Request {
    /// Encoded, unplaced records, batch framing included.
    pub(crate) bytes: Vec<u8>,
    /// Records that take a sequence.
    pub(crate) count: u32,
    /// Answer after a sync, whatever the database's durability.
    pub(crate) durable: bool,
    pub(crate) condition: Option<Condition>,
}

/// The write is valid only while the newest record of an id is the one that the writer saw.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) collection: CollectionId,
    pub(crate) id: Vec<u8>,
    /// No record of the id may be newer.
    pub(crate) seen: Sequence,
}

impl Condition {
    pub(crate) fn hash(&self) -> u64 {
        key_hash(self.collection, &self.id)
    }
}

/// What became of a request that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Committed {
    /// Written; the sequence of its last record.
    At(Sequence),
    /// Its condition no longer holds: read again and retry.
    Conflict,
}

/// The answer to a request.
pub(crate) type Outcome = Result<Committed>;

impl Request {
    /// One record.
    pub(crate) fn single(kind: Kind, collection: CollectionId, id: &[u8], document: &[u8]) -> Self {
        let mut bytes = Vec::new();
        append_record(&mut bytes, kind, collection, id, document);
        Self { bytes, count: 1, ..Self::default() }
    }

    /// Whether it puts something; else it only deletes, documents or collections.
    pub(crate) fn puts(&self) -> bool {
        records(&self.bytes).any(|(at, header)| match header.kind {
            Kind::Delete | Kind::Batch | Kind::Mark => false,
            Kind::Catalogue => {
                let action = &self.bytes[at + header.document_start()..at + header.used_len()];
                action != [CATALOGUE_DROP]
            }
            _ => true,
        })
    }

    /// Only a mark of how far the log is synced.
    pub(crate) fn mark() -> Self {
        Self::default()
    }

    /// Records that become visible together, preceded by the batch record that says so.
    pub(crate) fn batch(records: &[u8], count: u32) -> Self {
        let mut bytes = Vec::with_capacity(records.len() + RECORD_HEADER_BYTES + 16);
        let mut framing = [0; 12];
        framing[..4].copy_from_slice(&count.to_le_bytes());
        framing[4..].copy_from_slice(&(records.len() as u64).to_le_bytes());
        append_record(&mut bytes, Kind::Batch, CollectionId(0), &[], &framing);
        bytes.extend_from_slice(records);
        Self { bytes, count, ..Self::default() }
    }
}
