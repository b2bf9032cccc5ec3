//! What can still be known of an entry whose record does not verify.
//!
//! Compaction must neither stop at such a record nor forget it: it writes a marker under the
//! record's id, if that is known. Invariants:
//!
//! 1. An id is given only if the index bears it out: it hashes to the fingerprint slot of this very
//!    place, so that a lookup by the id leads here; or no slot names the place, which makes the
//!    record an older version, and the entry before it is a version of the same id.
//! 2. A sequence is that of the record if a check of its own covers it. Else it is the least that
//!    the record may have: whoever may see the record sees the marker, and whoever sees a newer
//!    version sees that.

use super::data::RecordPlace;
use super::file::{Regime, SegmentFile};
use super::index::BlockBuffer;
use super::reader::SealedSegment;
use super::record_format::{HEADER_BYTES_MAX, RecordFormat};
use crate::error::{Error, Result};
use crate::format::{CollectionId, Key, RecordHeader, Sequence};

/// Lookups for damaged records are rare, and must not touch a map.
const REGIME: Regime = Regime::Pread;

/// An entry whose record is damaged.
#[derive(Clone, Debug)]
pub(crate) struct DamagedEntry {
    /// Where the record stands.
    pub(crate) place: RecordPlace,
    /// The record's collection and id, if they are known in spite of the damage.
    pub(crate) key: Option<(CollectionId, Vec<u8>)>,
    /// The record's sequence, or the least that it may have.
    pub(crate) sequence: Sequence,
}

/// What a header and an id say that may be damaged.
#[derive(Default)]
struct Suspect {
    key: Option<(CollectionId, Vec<u8>)>,
    sequence: Option<Sequence>,
}

/// Finds out what is known of an entry whose record does not verify. Costs a few reads, and for an
/// older version a pass over the fingerprint table in memory.
///
/// # Errors
///
/// `Io`; damage that stands in the way leaves things unknown.
pub(super) fn examine(segment: &SealedSegment, entry: u64, place: u64) -> Result<DamagedEntry> {
    let records = segment.sorted(REGIME)?.records;
    let (file, offset, end) = records.at(place)?;
    let Suspect { key, sequence } = known(read_suspect(file, offset, end))?.unwrap_or_default();
    let key = match key {
        Some((collection, id)) => {
            let is_right = known(is_borne_out(segment, entry, place, Key::new(collection, &id)))?;
            is_right.unwrap_or(false).then_some((collection, id))
        }
        None => None,
    };
    let sequence = match (sequence, &key) {
        (Some(sequence), _) => sequence,
        (None, Some((collection, id))) => {
            least_sequence(segment, entry, &Key::new(*collection, id))?
        }
        (None, None) => segment.meta().sequence_min,
    };
    Ok(DamagedEntry { place: records.locate(place), key, sequence })
}

/// Above the next older version, if that can be read; else the least of the segment.
fn least_sequence(segment: &SealedSegment, entry: u64, key: &Key<'_>) -> Result<Sequence> {
    let meta = segment.meta();
    let older = entry + 1;
    if older == meta.records {
        return Ok(meta.sequence_min);
    }
    let sorted = segment.sorted(REGIME)?;
    let read = sorted
        .place(older, &mut BlockBuffer::default())
        .and_then(|place| sorted.records.read(place, REGIME));
    Ok(match known(read)? {
        Some(older) if older.is_of(key) => older.sequence().next(),
        _ => meta.sequence_min,
    })
}

/// Further damage says nothing; other failures end the examination.
fn known<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::Corrupt { .. }) => Ok(None),
        Err(e) => Err(e),
    }
}

fn read_suspect(file: &SegmentFile, offset: u64, end: u64) -> Result<Suspect> {
    let room = file.readable(offset, end)?;
    let mut header = [0; HEADER_BYTES_MAX];
    let len = usize::try_from(room).map_or(header.len(), |room| room.min(header.len()));
    let header = &mut header[..len];
    file.pread(header, offset)?;
    let sequence = match file.format() {
        RecordFormat::Log => RecordHeader::parse(header, file.incarnation(), offset).ok(),
        // Only the content's checksum covers it.
        RecordFormat::Sorted { .. } => None,
    };
    let sequence = sequence.map(|header| header.sequence);
    let head = file.suspect(header, offset).filter(|head| head.document_start() as u64 <= room);
    let key = match head {
        Some(head) => {
            let mut id = vec![0; usize::from(head.id_len)];
            file.pread(&mut id, offset + head.id_start() as u64)?;
            Some((head.collection, id))
        }
        None => None,
    };
    Ok(Suspect { key, sequence })
}

/// Invariant 1.
fn is_borne_out(segment: &SealedSegment, entry: u64, place: u64, key: Key<'_>) -> Result<bool> {
    let opened = segment.opened()?;
    let leads_here =
        segment.search(opened, key.hash, REGIME, |found| Ok((found == place).then_some(())))?;
    if leads_here.is_some() {
        return Ok(true);
    }
    let Some(before) = entry.checked_sub(1) else { return Ok(false) };
    let sorted = segment.sorted(REGIME)?;
    let before = sorted.place(before, &mut BlockBuffer::default())?;
    let before = sorted.records.read(before, REGIME)?;
    Ok(before.is_of(&key) && !sorted.index.names(sorted.records.file, place, REGIME)?)
}
