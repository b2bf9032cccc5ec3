//! Segments that the real builder wrote, read against a model.

mod cursors;
mod damage;
mod lifetimes;
mod lookups;
mod table;

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

    fn content_len(&self) -> u64 {
        (self.id.len() + self.document.len()) as u64
    }
}

type ModelKey = (CollectionId, Vec<u8>, Reverse<Sequence>);

/// A sealed segment on a disk, and the same records in a map.
struct Fixture {
    folder: tempfile::TempDir,
    disk: Arc<dyn Disk>,
    reaper: Arc<Reaper>,
    meta: SealedMeta,
    model: BTreeMap<ModelKey, Written>,
}

/// Where the log is said to end, and the index begins.
#[derive(Clone, Copy)]
enum LogEnd {
    Exact,
    /// As if more followed, to come to wide slots and places.
    At(u64),
}

impl Fixture {
    fn new(records: Vec<(u32, Vec<u8>, Kind, Vec<u8>)>) -> Self {
        Self::with_end(records, LogEnd::Exact)
    }

    fn with_end(records: Vec<(u32, Vec<u8>, Kind, Vec<u8>)>, end: LogEnd) -> Self {
        let (fixture, _) = Self::sealed(records, end, 8 << 20);
        fixture
    }

    /// Also the file that was written.
    fn sealed(
        records: Vec<(u32, Vec<u8>, Kind, Vec<u8>)>,
        end: LogEnd,
        capacity: u64,
    ) -> (Self, Arc<SegmentFile>) {
        let folder = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::new());
        let reaper = Reaper::new();
        let file = create(&disk, folder.path(), capacity, &reaper).unwrap();
        let mut log = Vec::new();
        let mut model = BTreeMap::new();
        for (n, (collection, id, kind, document)) in (1u64..).zip(records) {
            let (collection, sequence) = (CollectionId(collection), Sequence(n));
            let start = log.len();
            let offset = LOG_START + start as u64;
            append_record(&mut log, kind, collection, &id, &document);
            place_record(&mut log[start..], INCARNATION, offset, sequence);
            let key = (collection, id.clone(), Reverse(sequence));
            let written = Written { collection, id, sequence, kind, document, offset };
            model.insert(key, written);
        }
        write(&file, LOG_START, &log);
        let log_end = match end {
            LogEnd::Exact => LOG_START + log.len() as u64,
            LogEnd::At(end) => end,
        };
        let index_offset = log_end.next_multiple_of(4096) + 4096;
        let entries = model.values().map(|w: &Written| IndexEntry {
            key: w.key(),
            offset: w.offset,
            sequence: w.sequence,
            kind: w.kind,
            content_len: w.content_len(),
        });
        let ends = (log_end, index_offset);
        let meta = build_index(&file, ends, model.len(), SUPERSEDED, entries).unwrap();
        (Self { folder, disk, reaper, meta, model }, file)
    }

    /// The segment as a database that was just opened has it.
    fn open(&self) -> Arc<SealedSegment> {
        SealedSegment::new(self.meta.clone(), &self.disk, self.folder.path(), &self.reaper)
    }

    fn path(&self) -> std::path::PathBuf {
        segment_path(self.folder.path(), ID)
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

fn any_records(seed: u64, count: usize) -> Vec<(u32, Vec<u8>, Kind, Vec<u8>)> {
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
fn numbered(count: u32) -> Vec<(u32, Vec<u8>, Kind, Vec<u8>)> {
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
