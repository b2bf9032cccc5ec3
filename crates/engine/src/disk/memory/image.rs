//! What a power cut would leave of a file: its bytes by sector.
//!
//! Invariant: bytes of a stored sector that lie past the file's end are zero, so that growing the
//! file shows zeros and never what was there before.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use xxhash_rust::xxh3::Xxh3;

use super::SECTOR_BYTES;
use crate::sync::Arc;

/// A change of a file's content.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// Bytes written at an offset.
    Write { offset: u64, bytes: Vec<u8> },
    /// The file was cut or grown to this length.
    SetLen(u64),
    /// The file was grown to this length, unless it was longer.
    GrowTo(u64),
}

/// A file's bytes; sectors that were never written are zero and take no memory. Clones share the
/// sectors until they change.
#[derive(Clone, Debug, Default)]
pub(super) struct Image {
    len: u64,
    sectors: BTreeMap<u64, Arc<[u8; SECTOR_BYTES]>>,
}

impl Image {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Write { offset, bytes } => self.write(*offset, bytes),
            Change::SetLen(len) => self.set_len(*len),
            Change::GrowTo(len) => self.set_len(self.len.max(*len)),
        }
    }

    pub(super) fn set_len(&mut self, len: u64) {
        let sector_bytes = SECTOR_BYTES as u64;
        if len < self.len {
            self.sectors.split_off(&len.div_ceil(sector_bytes));
            if let Some(last) = self.sectors.get_mut(&(len / sector_bytes)) {
                Arc::make_mut(last)[sector_offset(len)..].fill(0);
            }
        }
        self.len = len;
    }

    /// Takes over one sector as `other` has it, and grows to hold it.
    pub(super) fn copy_sector(&mut self, other: &Self, index: u64) {
        match other.sectors.get(&index) {
            Some(sector) => self.sectors.insert(index, sector.clone()),
            None => self.sectors.remove(&index),
        };
        let end = other.len.min((index + 1).saturating_mul(SECTOR_BYTES as u64));
        self.len = self.len.max(end);
    }

    /// Puts seeded bytes, in whole sectors, where `durable` has none and there are none here either:
    /// behind its end, and where `live` has some.
    pub(super) fn fill_gaps(&mut self, durable: &Self, live: &Self, seed: u64) {
        let sector_bytes = SECTOR_BYTES as u64;
        let end = self.len.div_ceil(sector_bytes);
        let behind = durable.len.div_ceil(sector_bytes);
        let inside = live.sectors.range(..behind.min(end)).map(|(index, _)| *index);
        let lost = inside.filter(|index| !durable.sectors.contains_key(index));
        for index in lost.chain(behind..end) {
            let used = sector_offset_or_end(self.len - index * sector_bytes);
            self.sectors.entry(index).or_insert_with(|| {
                let mut sector = [0; SECTOR_BYTES];
                let mut state = seed ^ index.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                for byte in &mut sector[..used] {
                    // xorshift64; zero would stay zero.
                    state = (state | 1) ^ (state << 13);
                    state ^= state >> 7;
                    state ^= state << 17;
                    *byte = state.to_le_bytes()[3];
                }
                Arc::new(sector)
            });
        }
    }

    pub(super) fn hash(&self, hasher: &mut Xxh3) {
        hasher.update(&self.len.to_le_bytes());
        for (index, sector) in &self.sectors {
            // A sector of zeros reads as one that was never written.
            if sector.iter().any(|byte| *byte != 0) {
                hasher.update(&index.to_le_bytes());
                hasher.update(&**sector);
            }
        }
    }

    /// Writes the image to an empty file.
    pub(super) fn store(&self, file: &File) -> io::Result<()> {
        file.set_len(self.len)?;
        for (index, sector) in &self.sectors {
            let start = index * SECTOR_BYTES as u64;
            let used = (self.len - start).min(SECTOR_BYTES as u64);
            file.write_all_at(&sector[..sector_offset_or_end(used)], start)?;
        }
        Ok(())
    }

    fn write(&mut self, mut offset: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let within = sector_offset(offset);
            let (now, rest) = bytes.split_at(bytes.len().min(SECTOR_BYTES - within));
            let sector = self.sectors.entry(offset / SECTOR_BYTES as u64);
            let sector = sector.or_insert_with(|| Arc::new([0; SECTOR_BYTES]));
            Arc::make_mut(sector)[within..within + now.len()].copy_from_slice(now);
            offset += now.len() as u64;
            bytes = rest;
            self.len = self.len.max(offset);
        }
    }
}

/// The sectors that a range of bytes touches; none when it is empty.
pub(super) fn sectors(offset: u64, len: usize) -> std::ops::Range<u64> {
    let sector_bytes = SECTOR_BYTES as u64;
    let first = offset / sector_bytes;
    if len == 0 { first..first } else { first..(offset + len as u64).div_ceil(sector_bytes) }
}

/// Where in its sector a byte of a file lies.
#[expect(clippy::cast_possible_truncation, reason = "the remainder is below the sector's size")]
fn sector_offset(offset: u64) -> usize {
    (offset % SECTOR_BYTES as u64) as usize
}

/// A number of bytes that is at most a sector's.
fn sector_offset_or_end(bytes: u64) -> usize {
    usize::try_from(bytes).map_or(SECTOR_BYTES, |bytes| bytes.min(SECTOR_BYTES))
}
