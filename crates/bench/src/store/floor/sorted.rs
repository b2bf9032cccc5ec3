//! The sorted file: records one after the other, and where each of them is.
//!
//! A record is a checksum of all that follows, the lengths of id and document, and both of them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::BuildHasher;
use std::io::{self, Read};
use std::path::Path;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use memmap2::Mmap;

use crate::error::{Context, Failure, Result};

const CHECKSUM_BYTES: usize = 4;
const HEADER_BYTES: usize = CHECKSUM_BYTES + 8;

/// A record in the map.
pub(super) struct Record<'a> {
    pub(super) key: &'a [u8],
    pub(super) document: &'a [u8],
    pub(super) end: usize,
}

/// The file, mapped, with its indexes.
pub(super) struct Sorted {
    /// `None` for no record, since nothing cannot be mapped.
    map: Option<Mmap>,
    hasher: FixedState,
    places: HashTable<usize>,
    in_order: Vec<usize>,
}

pub(super) fn push_record(out: &mut Vec<u8>, key: &[u8], document: &[u8]) -> Result<()> {
    let lengths = (u32::try_from(key.len()), u32::try_from(document.len()));
    let (Ok(key_length), Ok(document_length)) = lengths else {
        return Err(Failure::new("a record is too long"));
    };
    let start = out.len();
    out.extend_from_slice(&[0; CHECKSUM_BYTES]);
    out.extend_from_slice(&key_length.to_le_bytes());
    out.extend_from_slice(&document_length.to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(document);
    let checksum = crc32fast::hash(&out[start + CHECKSUM_BYTES..]);
    out[start..start + CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
    Ok(())
}

/// Without the checksum.
fn parse(bytes: &[u8], place: usize) -> Option<Record<'_>> {
    let header = bytes.get(place..place + HEADER_BYTES)?;
    let length = |at: usize| {
        let bytes = header.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let key = place + HEADER_BYTES;
    let document = key.checked_add(length(CHECKSUM_BYTES)?)?;
    let end = document.checked_add(length(CHECKSUM_BYTES + 4)?)?;
    Some(Record { key: bytes.get(key..document)?, document: bytes.get(document..end)?, end })
}

fn damaged(place: usize) -> Failure {
    Failure::new(format_args!("floor: the record at {place} is damaged"))
}

/// Writes the records of a log into the file at `path`, in the order of their ids; of two with the
/// same id the later one.
pub(super) fn sort(mut log: impl Read, path: &Path) -> Result<()> {
    let mut bytes = Vec::new();
    log.read_to_end(&mut bytes).context(|| "floor cannot read its log")?;
    let mut records = BTreeMap::new();
    let mut place = 0;
    while place < bytes.len() {
        let record = parse(&bytes, place).ok_or_else(|| damaged(place))?;
        records.insert(record.key, place..record.end);
        place = record.end;
    }
    let mut sorted = Vec::with_capacity(bytes.len());
    records.into_values().for_each(|record| sorted.extend_from_slice(&bytes[record]));
    fs::write(path, sorted).context(|| "floor cannot write its file")
}

impl Sorted {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let what = || format!("floor cannot map {}", path.display());
        let file = File::open(path).context(what)?;
        let length = file.metadata().context(what)?.len();
        let map = (length > 0).then(|| map(&file)).transpose().context(what)?;
        let mut sorted = Self {
            map,
            hasher: FixedState::default(),
            places: HashTable::new(),
            in_order: Vec::new(),
        };
        sorted.index()?;
        Ok(sorted)
    }

    fn index(&mut self) -> Result<()> {
        let bytes = self.map.as_deref().unwrap_or_default();
        let mut place = 0;
        while place < bytes.len() {
            self.in_order.push(place);
            place = parse(bytes, place).ok_or_else(|| damaged(place))?.end;
        }
        let hash = |place: &usize| self.hasher.hash_one(key_at(bytes, *place));
        self.places = HashTable::with_capacity(self.in_order.len());
        for place in &self.in_order {
            self.places.insert_unique(hash(place), *place, hash);
        }
        Ok(())
    }

    fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    pub(super) fn is_end(&self, place: usize) -> bool {
        place >= self.bytes().len()
    }

    /// Where the record of this id is.
    pub(super) fn find(&self, key: &[u8]) -> Option<usize> {
        let bytes = self.bytes();
        let hash = self.hasher.hash_one(key);
        self.places.find(hash, |place| key_at(bytes, *place) == key).copied()
    }

    /// Where the first record with this id or a later one is; the end, if there is none.
    pub(super) fn first_from(&self, key: &[u8]) -> usize {
        self.find(key).unwrap_or_else(|| {
            let bytes = self.bytes();
            let before = self.in_order.partition_point(|place| key_at(bytes, *place) < key);
            self.in_order.get(before).copied().unwrap_or(bytes.len())
        })
    }

    /// The record at a place, once its checksum is right.
    pub(super) fn record(&self, place: usize) -> Result<Record<'_>> {
        let bytes = self.bytes();
        let record = parse(bytes, place).ok_or_else(|| damaged(place))?;
        let (checksum, content) = bytes[place..record.end].split_at(CHECKSUM_BYTES);
        if crc32fast::hash(content).to_le_bytes() == checksum {
            Ok(record)
        } else {
            Err(damaged(place))
        }
    }
}

/// Opening has seen that there is a record at each place of the indexes.
fn key_at(bytes: &[u8], place: usize) -> &[u8] {
    parse(bytes, place).map_or(&[], |record| record.key)
}

#[expect(unsafe_code, reason = "a map is unsafe by its interface")]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the file is written whole before it is mapped, and the run's folder is its own:
    // nothing writes to it or cuts it afterwards.
    unsafe { Mmap::map(file) }
}
