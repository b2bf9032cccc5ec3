//! Segments on a disk to make chains of, and records by key to compare them with.

use std::cmp::Reverse;
use std::io::IoSlice;
use std::ops::RangeInclusive;

use super::*;
use crate::disk::{Access, Disk, RealDisk};
use crate::format::{
    FullKey, Key, LOG_START, RECORD_HEADER_BYTES, SegmentId, append_record, place_record,
};
use crate::segment::{
    IndexEntry, Reaper, RecordFormat, SealedSegment, SegmentFile, build_index, segment_path,
};

const INCARNATION: u64 = 0x0123_4567_89AB_CDEF;

/// What tells a record from all others.
pub(super) type Row = (CollectionId, Vec<u8>, Sequence);
/// Rows in the order of a scan: the newest version of an id first.
pub(super) type Rows = BTreeMap<(FullKey, Reverse<Sequence>), Kind>;

pub(super) fn key(collection: u32, id: &[u8]) -> FullKey {
    FullKey::new(CollectionId(collection), id)
}

pub(super) fn row(record: &Record) -> Row {
    if record.kind() == Kind::Put {
        assert_eq!(record.document(), record.sequence().0.to_le_bytes());
    }
    (record.collection(), record.id().to_vec(), record.sequence())
}

/// The rows whose keys are in a range, in order.
pub(super) fn rows(model: &Rows, range: &RangeInclusive<FullKey>) -> Vec<Row> {
    let within = model.keys().filter(|(key, _)| range.contains(key));
    within.map(|(key, Reverse(at))| (key.collection(), key.id().to_vec(), *at)).collect()
}

/// How many rows are before a place.
pub(super) fn rows_before(rows: &[Row], position: Position<'_>) -> usize {
    rows.partition_point(|(collection, id, _)| {
        let order = (*collection, id.as_slice()).cmp(&(position.collection, position.id));
        order.is_lt() || (order.is_eq() && position.side == Side::After)
    })
}

/// A folder of segments.
pub(super) struct Folder {
    folder: tempfile::TempDir,
    disk: Arc<dyn Disk>,
    reaper: Arc<Reaper>,
    sealed: Cell<u64>,
}

impl Folder {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (disk, reaper) = (Arc::new(RealDisk::new()), Reaper::new());
        Self { folder, disk, reaper, sealed: Cell::new(0) }
    }

    /// A sealed segment that no use has opened yet.
    pub(super) fn seal(&self, model: &Rows) -> Arc<SealedSegment> {
        let id = SegmentId(self.sealed.replace(self.sealed.get() + 1) + 1);
        let (dir, capacity) = (self.folder.path(), 1 << 20);
        let file = SegmentFile::create(
            &self.disk,
            dir,
            (id, INCARNATION),
            RecordFormat::Log,
            capacity,
            &self.reaper,
        )
        .unwrap();
        let mut log = Vec::new();
        let mut offsets = Vec::new();
        for ((key, Reverse(sequence)), kind) in model {
            let start = log.len();
            let offset = LOG_START + start as u64;
            let document = sequence.0.to_le_bytes();
            let document = if *kind == Kind::Put { &document[..] } else { b"" };
            append_record(&mut log, *kind, key.collection(), key.id(), document);
            place_record(&mut log[start..], INCARNATION, offset, *sequence);
            offsets.push(offset);
        }
        let written = file.disk_file().write_at(&[IoSlice::new(&log)], LOG_START, Access::Keep);
        assert_eq!(written.unwrap(), log.len());
        let entries =
            model.iter().zip(offsets).map(|(((key, Reverse(sequence)), kind), offset)| {
                let key = Key::new(key.collection(), key.id());
                let document_len = if *kind == Kind::Put { 8 } else { 0 };
                let content_len = key.id.len() as u64 + document_len;
                IndexEntry { key, offset, sequence: *sequence, kind: *kind, content_len }
            });
        let log_end = LOG_START + log.len() as u64;
        let index_offset = log_end.next_multiple_of(4096);
        let meta = build_index(&file, (log_end, index_offset), model.len(), 0, entries).unwrap();
        SealedSegment::new(meta, &self.disk, dir, &self.reaper)
    }

    /// Flips a bit in the id of a segment's first record.
    pub(super) fn damage(&self, segment: &SealedSegment) {
        let path = segment_path(self.folder.path(), segment.meta().id);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = usize::try_from(LOG_START).unwrap() + RECORD_HEADER_BYTES;
        bytes[at] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }
}

/// Keys in few collections whose heads often tie, also by the zeros that pad them.
pub(super) fn any_key(random: &mut Xoshiro256PlusPlus) -> FullKey {
    let mut id = id(random);
    if random.random_range(0..3) == 0 {
        id.extend_from_slice(b"\0\0\0\0\0\0\0\0\0\0\0\0");
        id.push(random.random_range(0..3));
    }
    let collection = [0, 5, 6, 0x6100_0000, u32::MAX][random.random_range(0..5)];
    key(collection, &id)
}

/// A key of the model or any other, and a side.
pub(super) fn any_place(random: &mut Xoshiro256PlusPlus, model: &Rows) -> (FullKey, Side) {
    let side = if random.random() { Side::Before } else { Side::After };
    if random.random() && !model.is_empty() {
        let nth = random.random_range(0..model.len());
        return (model.keys().nth(nth).unwrap().0.clone(), side);
    }
    (any_key(random), side)
}

/// Versions of random keys.
pub(super) fn any_rows(random: &mut Xoshiro256PlusPlus, count: usize) -> Rows {
    let mut model = Rows::new();
    for sequence in (1..=count as u64).map(Sequence) {
        let kind = if random.random_range(0..5) == 0 { Kind::Delete } else { Kind::Put };
        let again = random.random_range(0..4) == 0 && !model.is_empty();
        let key = match again {
            true => model.keys().nth(random.random_range(0..model.len())).unwrap().0.clone(),
            false => any_key(random),
        };
        model.insert((key, Reverse(sequence)), kind);
    }
    model
}
