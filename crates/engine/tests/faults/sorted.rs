//! Segment files of every kind, as docs/format.md draws them.

use std::path::{Path, PathBuf};

use engine::disk::Disk;

use super::{LOG_START, MARK, Record, read, records, segments};

/// What a segment's header says that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Log,
    Sorted,
    Index,
}

pub fn file_kind(bytes: &[u8]) -> Option<FileKind> {
    match bytes.get(10) {
        Some(1) => Some(FileKind::Log),
        Some(2) => Some(FileKind::Sorted),
        Some(3) => Some(FileKind::Index),
        _ => None,
    }
}

/// The segment files of a kind, oldest first.
pub fn files_of(disk: &dyn Disk, kind: FileKind) -> Vec<PathBuf> {
    let is_of = |path: &PathBuf| file_kind(&read(disk, path)) == Some(kind);
    segments(disk).into_iter().filter(is_of).collect()
}

/// A record of any segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub record: Record,
    /// Where its id begins.
    pub id: usize,
    pub id_len: usize,
}

impl Place {
    pub fn id_end(&self) -> usize {
        self.id + self.id_len
    }

    pub fn used_end(&self) -> usize {
        self.record.offset + self.record.used
    }
}

/// The records of a log or sorted segment, in the order of the file.
pub fn places(bytes: &[u8]) -> Vec<Place> {
    match file_kind(bytes) {
        Some(FileKind::Log) => records(bytes)
            .into_iter()
            .filter(|record| record.kind != MARK)
            .map(|record| {
                let header = &bytes[record.offset..];
                let id_len = usize::from(u16::from_le_bytes([header[6], header[7]]));
                Place { record, id: record.offset + 28, id_len }
            })
            .collect(),
        Some(FileKind::Sorted) => sorted(bytes),
        _ => Vec::new(),
    }
}

/// The records of a sorted segment that is complete.
fn sorted(bytes: &[u8]) -> Vec<Place> {
    let trailer = &bytes[bytes.len() - 4096..];
    let data_end = u64::from_le_bytes(trailer[96..104].try_into().unwrap());
    let data_end = usize::try_from(data_end).unwrap();
    let mut places = Vec::new();
    let mut offset = LOG_START;
    while offset < data_end {
        let header = &bytes[offset..];
        let is = |flag: u8| header[0] & flag != 0;
        let (mut header_len, mut id_len) = (8, usize::from(header[1]));
        let mut document = usize::from(u16::from_le_bytes([header[2], header[3]]));
        if is(0x10) {
            let wide = u32::from_le_bytes(header[8..12].try_into().unwrap());
            document = usize::try_from(wide).unwrap();
            id_len = usize::from(u16::from_le_bytes([header[12], header[13]]));
            header_len += 8;
        }
        header_len += if is(0x20) { 8 } else { 0 };
        header_len += if is(0x40) { 4 } else { 0 };
        let used = header_len + id_len + document;
        let len = used.next_multiple_of(8);
        let record = Record { offset, used, len, kind: header[0] & 0x0F };
        places.push(Place { record, id: offset + header_len, id_len });
        offset += len;
    }
    places
}

/// The last byte of an integer's encoding is its lowest one.
const INTEGER_BYTES: usize = 9;

/// The file and place of the newest record of an id below 256, of any kind.
pub fn find(disk: &dyn Disk, id: u8) -> (PathBuf, Place) {
    let found = segments(disk).into_iter().rev().find_map(|path| {
        let place = find_in(disk, &path, id)?;
        Some((path, place))
    });
    found.unwrap_or_else(|| panic!("no segment has {id}"))
}

/// As [`find`], in one file.
pub fn find_in(disk: &dyn Disk, path: &Path, id: u8) -> Option<Place> {
    let bytes = read(disk, path);
    places(&bytes).into_iter().rev().find(|place| is_of(&bytes, place, id))
}

/// The id of a record whose id is an integer.
pub fn integer(bytes: &[u8], place: &Place) -> Option<i64> {
    let [0x10, rest @ ..] = &bytes[place.id..place.id_end()] else { return None };
    Some(i64::from_be_bytes(rest.try_into().ok()?) ^ i64::MIN)
}

/// Whether a record is of an integer below 256.
pub fn is_of(bytes: &[u8], place: &Place, id: u8) -> bool {
    let key = &bytes[place.id..place.id_end()];
    key.len() == INTEGER_BYTES && key[2..8] == [0; 6] && key[8] == id
}
