//! Segments that the real builder wrote, read against a model.

mod compacted;
mod cursors;
mod damage;
mod lifetimes;
mod lookups;
mod sequential;
mod table;
mod writers;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::path::Path;

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::disk::{Access, Disk, RealDisk};
use crate::error::{Error, Result};
use crate::format::{
    CollectionId, Key, Kind, LOG_START, SealedMeta, SegmentId, Sequence, append_record,
    place_record,
};
use crate::sync::Arc;

const INCARNATION: u64 = 0x1234_5678_9ABC_DEF0;
const ID: SegmentId = SegmentId(7);
/// The bytes of superseded records that fixtures tell of.
const SUPERSEDED: u64 = 4321;
const REGIMES: [Regime; 2] = [Regime::Mapped, Regime::Pread];

/// What was written, and is expected back.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    collection: CollectionId,
    id: Vec<u8>,
    sequence: Sequence,
    kind: Kind,
    document: Vec<u8>,
    offset: u64,
}

impl Written {
    fn is(&self, record: &Record) -> bool {
        (record.collection(), record.id(), record.sequence(), record.kind())
            == (self.collection, &self.id, self.sequence, self.kind)
            && record.document() == self.document
            && record.offset() == self.offset
    }

    fn key(&self) -> Key<'_> {
        Key::new(self.collection, &self.id)
    }

    fn entry(&self) -> IndexEntry<'_> {
        IndexEntry {
            key: self.key(),
            offset: self.offset,
            sequence: self.sequence,
            kind: self.kind,
            content_len: self.content_len(),
        }
    }

    fn content_len(&self) -> u64 {
        (self.id.len() + self.document.len()) as u64
    }
}

/// Collection, id, kind and document.
type AnyRecord = (u32, Vec<u8>, Kind, Vec<u8>);
type Model = BTreeMap<(CollectionId, Vec<u8>, Reverse<Sequence>), Written>;

/// A sealed segment on a disk, and the same records in a map.
struct Fixture {
    folder: tempfile::TempDir,
    disk: Arc<dyn Disk>,
    reaper: Arc<Reaper>,
    meta: SealedMeta,
    /// Of an index segment.
    members: Vec<SealedMeta>,
    model: Model,
}

/// Where the log is said to end, and the index begins.
#[derive(Clone, Copy)]
enum LogEnd {
    Exact,
    /// As if more followed, to come to wide slots and places.
    At(u64),
}

impl Fixture {
    fn new(records: Vec<AnyRecord>) -> Self {
        Self::with_end(records, LogEnd::Exact)
    }

    fn with_end(records: Vec<AnyRecord>, end: LogEnd) -> Self {
        let (fixture, _) = Self::sealed(records, end, 8 << 20);
        fixture
    }

    /// Also the file that was written.
    fn sealed(records: Vec<AnyRecord>, end: LogEnd, capacity: u64) -> (Self, Arc<SegmentFile>) {
        let folder = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::new());
        let reaper = Reaper::new();
        let file = create(&disk, folder.path(), capacity, &reaper).unwrap();
        let (log_end, model) = write_log(&file, (1u64..).zip(records));
        let log_end = match end {
            LogEnd::Exact => log_end,
            LogEnd::At(end) => end,
        };
        let meta = seal(&file, log_end, &model);
        (Self { folder, disk, reaper, meta, members: Vec::new(), model }, file)
    }

    /// The segment as a database that was just opened has it.
    fn open(&self) -> Arc<SealedSegment> {
        if self.members.is_empty() {
            return SealedSegment::of(self.data(&self.meta));
        }
        let members = self.members.iter().map(|meta| self.data(meta)).collect();
        SealedSegment::over(self.data(&self.meta), members)
    }

    fn data(&self, meta: &SealedMeta) -> Arc<DataSegment> {
        DataSegment::new(meta.clone(), &self.disk, self.folder.path(), &self.reaper)
    }

    fn path(&self) -> std::path::PathBuf {
        self.path_of(self.meta.id)
    }

    fn path_of(&self, id: SegmentId) -> std::path::PathBuf {
        segment_path(self.folder.path(), id)
    }

    fn ordered(&self) -> Vec<&Written> {
        self.model.values().collect()
    }

    /// The newest version at or before a sequence.
    fn expected(&self, key: &Key<'_>, at: Sequence) -> Option<&Written> {
        let from = (key.collection, key.id.to_vec(), Reverse(at));
        let found = self.model.range(from..).next().map(|(_, written)| written);
        found.filter(|w| (w.collection, w.id.as_slice()) == (key.collection, key.id))
    }
}

/// Writes records under their sequences; where the log ends, and what was written.
fn write_log(
    file: &SegmentFile,
    records: impl IntoIterator<Item = (u64, AnyRecord)>,
) -> (u64, Model) {
    let (mut log, mut model) = (Vec::new(), Model::new());
    for (sequence, (collection, id, kind, document)) in records {
        let (collection, sequence) = (CollectionId(collection), Sequence(sequence));
        let start = log.len();
        let offset = LOG_START + start as u64;
        append_record(&mut log, kind, collection, &id, &document);
        place_record(&mut log[start..], file.incarnation(), offset, sequence);
        let key = (collection, id.clone(), Reverse(sequence));
        model.insert(key, Written { collection, id, sequence, kind, document, offset });
    }
    write(file, LOG_START, &log);
    (LOG_START + log.len() as u64, model)
}

/// Writes the index of all that was written.
fn seal(file: &Arc<SegmentFile>, log_end: u64, model: &Model) -> SealedMeta {
    let index_offset = log_end.next_multiple_of(4096) + 4096;
    let entries = model.values().map(Written::entry);
    let mut ids: Vec<_> =
        model.values().map(|w| (w.entry().key.collection, w.entry().key.id)).collect();
    ids.dedup();
    build_index(file, (log_end, index_offset), ids.len(), SUPERSEDED, entries).unwrap()
}

fn create(
    disk: &Arc<dyn Disk>,
    dir: &Path,
    capacity: u64,
    reaper: &Arc<Reaper>,
) -> Result<Arc<SegmentFile>> {
    SegmentFile::create(disk, dir, (ID, INCARNATION), RecordFormat::Log, capacity, reaper)
}

fn write(file: &SegmentFile, mut offset: u64, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let n = file.disk_file().write_at(&[IoSlice::new(bytes)], offset, Access::Keep).unwrap();
        bytes = &bytes[n..];
        offset += n as u64;
    }
}

fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// Ids of many shapes: short, long, sharing long prefixes, prefixes of each other, with zero bytes.
fn any_id(rng: &mut impl Rng) -> Vec<u8> {
    let tail = rng.random_range(0..400u32);
    match rng.random_range(0..8) {
        0 => Vec::new(),
        1 => tail.to_be_bytes().to_vec(),
        2 => format!("user{tail:012}").into_bytes(),
        3 => [&[b'p'; 70][..], &tail.to_be_bytes()].concat(),
        4 => vec![0; rng.random_range(0..20)],
        5 => vec![0xFF; rng.random_range(1..60)],
        6 => [b"user0000", &vec![0; rng.random_range(0..4)][..]].concat(),
        _ => [&vec![b'x'; rng.random_range(0..300)][..], &tail.to_le_bytes()].concat(),
    }
}

fn any_records(seed: u64, count: usize) -> Vec<AnyRecord> {
    let mut rng = rng(seed);
    (0..count)
        .map(|_| {
            let collection = [1, 2, 0x0100_0000, u32::MAX][rng.random_range(0..4)];
            let id = any_id(&mut rng);
            if rng.random_range(0..6) == 0 {
                return (collection, id, Kind::Delete, Vec::new());
            }
            let len = [0, 1, 100, 1200, 1300, 9000][rng.random_range(0..6)];
            (collection, id, Kind::Put, (0..len).map(|_| rng.random()).collect())
        })
        .collect()
}

/// `count` documents of 8 bytes under ids that differ.
fn numbered(count: u32) -> Vec<AnyRecord> {
    (0..count)
        .map(|n| {
            let scattered = n.wrapping_mul(0x9E37_79B1);
            let id = format!("user{scattered:010}").into_bytes();
            (1, id, Kind::Put, u64::from(n).to_le_bytes().to_vec())
        })
        .collect()
}

#[test]
fn names_of_segments_come_back_and_others_are_ignored() {
    let path = segment_path(Path::new("db"), SegmentId(0xAB));
    assert_eq!(path.to_str(), Some("db/00000000000000ab.seg"));
    assert_eq!(parse_segment_name(path.file_name().unwrap()), Some(SegmentId(0xAB)));
    for other in [
        "ab.seg",
        "00000000000000AB.seg",
        "+0000000000000ab.seg",
        "00000000000000ab.seg.tmp",
        "00000000000000ab",
        "MANIFEST",
    ] {
        assert_eq!(parse_segment_name(other.as_ref()), None, "{other}");
    }
}

impl SealedSegment {
    /// A segment that the manifest names. Touches no file.
    pub(crate) fn new(
        meta: SealedMeta,
        disk: &Arc<dyn Disk>,
        dir: &Path,
        reaper: &Arc<Reaper>,
    ) -> Arc<Self> {
        Self::of(DataSegment::new(meta, disk, dir, reaper))
    }

    /// A segment that was just sealed, whose file is open: see [`DataSegment::from_file`].
    pub(crate) fn from_file(meta: SealedMeta, file: Arc<SegmentFile>) -> Arc<Self> {
        Self::of(DataSegment::from_file(meta, file))
    }
}
