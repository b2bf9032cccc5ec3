//! What benches call their figures, and under which names the tables find them.

use crate::records::RECORD_BYTES;
use crate::segment::{Shape, SlotWidth};

/// Numbers of reader threads.
pub const READERS: [usize; 3] = [1, 2, 16];
/// Records in the memtables that are compared.
pub const MEMTABLE_SIZES: [usize; 2] = [65_536, 1_000_000];

/// The group of an operation on memtables of this many records.
#[must_use]
pub fn memtable_group(operation: &str, records: usize) -> String {
    format!("memtable {operation} {records}")
}

/// Records in the segments that are compared.
pub const SEGMENT_SIZES: [usize; 2] = [1_000_000, 10_000_000];

/// Fingerprint tables: a name, the bytes of a bucket, and the rest.
pub const SHAPES: [(&str, usize, Shape); 13] = [
    ("fingerprints, as the engine's, 12 bits", 64, Shape::ENGINE),
    ("fingerprints, 10 bits", 64, bits(10)),
    ("fingerprints, 9 bits", 64, bits(9)),
    ("fingerprints, 8 bits", 64, bits(8)),
    ("fingerprints, wide slots, 24 bits", 64, Shape::WIDE),
    ("fingerprints, 12 bits, 10/16 full", 64, load(10)),
    ("fingerprints, 12 bits, 13/16 full", 64, load(13)),
    ("fingerprints, 12 bits, 14/16 full", 64, load(14)),
    ("fingerprints, 12 bits, 15/16 full", 64, load(15)),
    ("fingerprints, 12 bits, 32-byte buckets", 32, Shape::ENGINE),
    ("fingerprints, 12 bits, 128-byte buckets", 128, Shape::ENGINE),
    ("fingerprints, 12 bits, 128-byte buckets, 13/16 full", 128, load(13)),
    ("fingerprints, 12 bits, 128-byte buckets, 14/16 full", 128, load(14)),
];

const fn bits(fingerprint_bits: u32) -> Shape {
    Shape { fingerprint_bits, slot: SlotWidth::Narrow, ..Shape::ENGINE }
}

const fn load(used_sixteenths: usize) -> Shape {
    Shape { used_sixteenths, ..Shape::ENGINE }
}

/// The tables of [`SEGMENT_SIZES`]' larger one, whose places leave 8 bits.
pub const LARGE_SHAPES: [(&str, usize, Shape); 2] = [
    (
        "fingerprints, as the engine's, 8 bits",
        64,
        Shape { place_bits: 24, fingerprint_bits: 8, ..Shape::ENGINE },
    ),
    ("fingerprints, wide slots, 24 bits", 64, Shape::WIDE),
];

/// What fingerprint tables are compared with.
pub const OTHERS: [&str; 6] = [
    "sparse index, linear in the page",
    "sparse index, binary in the page",
    "binary fuse 8 + sparse, binary",
    "binary fuse 16 + sparse, binary",
    "dense index",
    "binary fuse 8 + dense",
];

/// The kinds of lookups in a segment.
pub const LOOKUPS: [&str; 4] = ["hit, cold", "miss, cold", "hit, warm", "miss, warm"];

/// The group of a kind of lookups in a segment of this many records.
#[must_use]
pub fn segment_group(lookup: &str, records: usize) -> String {
    format!("segment {lookup} {records}")
}

/// How many segments a lookup passes.
pub const PASSED: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// The group of lookups that pass segments.
pub const PASSED_GROUP: &str = "segments passed";
/// Segment sizes, in MiB of log.
pub const SEGMENT_MIB: [usize; 5] = [8, 16, 32, 64, 128];
/// The log of all segments of a size, in MiB.
pub const TOTAL_MIB: usize = 512;
/// The group of lookups that pass all segments of a size.
pub const SIZES_GROUP: &str = "segment size";

/// The records of 100-byte documents in a segment of this size.
#[must_use]
pub fn records_of(mib: usize) -> usize {
    (mib << 20) / RECORD_BYTES - 1
}

/// Records in the layouts of 100-byte documents.
pub const PLACEMENT_RECORDS: usize = 262_144;
/// The layouts, in the order of the module's table.
pub const LAYOUTS: [&str; 4] = [
    "memtable, in the log",
    "memtable, in the node",
    "segment, in the log",
    "segment, in the leaf",
];

/// The group of an operation on layouts.
#[must_use]
pub fn placement_group(operation: &str) -> String {
    format!("placement {operation}")
}

/// The group of prices.
pub const MACHINE: &str = "machine";
/// Sizes of the memory in which cache misses are measured, in KiB.
pub const CHASE_KIB: [usize; 7] = [32, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// What the machine charges for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Price {
    /// A cache line of memory of this size, named by the one before.
    Line {
        /// The memory's size.
        kib: usize,
    },
    /// A CRC-32.
    Checksum {
        /// Over how many bytes.
        bytes: usize,
    },
    /// A copy between cached places.
    Copy {
        /// Of how many bytes.
        bytes: usize,
    },
    /// An id's key hash.
    Hash,
    /// A reference count up and down.
    ArcClone,
    /// Pinning the version (arc-swap).
    VersionLoad,
    /// A lock that nobody else wants, taken and released.
    Lock,
    /// One record into the page cache.
    Pwrite,
    /// From the page cache.
    Pread {
        /// How many bytes.
        bytes: usize,
    },
    /// After one record was written over zeros that are synced.
    Fdatasync,
}

impl Price {
    /// All prices.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let lines = CHASE_KIB.map(|kib| Self::Line { kib });
        let checksums = [143, 1100, 4092].map(|bytes| Self::Checksum { bytes });
        let copies = [RECORD_BYTES, 4096].map(|bytes| Self::Copy { bytes });
        let preads = [RECORD_BYTES, 4096].map(|bytes| Self::Pread { bytes });
        let single = [Self::Hash, Self::ArcClone, Self::VersionLoad, Self::Lock];
        let writes = [Self::Pwrite, Self::Fdatasync];
        [&lines[..], &checksums, &copies, &single, &preads, &writes].concat()
    }

    /// What it is called, in benches and on the page.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Line { kib } if kib >= 1 << 20 => format!("line of {} GiB", kib >> 20),
            Self::Line { kib } if kib >= 1 << 10 => format!("line of {} MiB", kib >> 10),
            Self::Line { kib } => format!("line of {kib} KiB"),
            Self::Checksum { bytes } => format!("checksum, {bytes} B"),
            Self::Copy { bytes } => format!("copy, {bytes} B"),
            Self::Hash => "key hash".to_owned(),
            Self::ArcClone => "reference count, up and down".to_owned(),
            Self::VersionLoad => "version".to_owned(),
            Self::Lock => "lock".to_owned(),
            Self::Pwrite => format!("pwrite, {RECORD_BYTES} B"),
            Self::Pread { bytes } => format!("pread, {bytes} B"),
            Self::Fdatasync => "fdatasync".to_owned(),
        }
    }
}

/// The group of the engine's own operations.
pub const ENGINE: &str = "engine";

/// What is asked of a whole database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A get that finds its document.
    Hit(Store),
    /// A get that finds nothing.
    Miss(Store),
    /// A row of a scan of 100.
    Step(Store),
    /// A put that the operating system has.
    PutBuffered,
    /// A put that the disk has.
    PutDurable,
    /// A sync after one buffered put.
    Sync,
}

/// Where the documents are that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// In the memtable's reach.
    Memtable,
    /// In one sealed segment of level 0.
    Segment,
    /// In several.
    Segments,
    /// In level 1, with nothing in level 0.
    Level1,
}

impl Store {
    const ALL: [Self; 4] = [Self::Memtable, Self::Segment, Self::Segments, Self::Level1];

    fn name(self) -> &'static str {
        match self {
            Self::Memtable => "memtable",
            Self::Segment => "one segment",
            Self::Segments => "segments",
            Self::Level1 => "level 1",
        }
    }
}

impl Operation {
    /// All operations.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let of = |store| [Self::Hit(store), Self::Miss(store), Self::Step(store)];
        let mut all = Store::ALL.map(of).concat();
        all.extend([Self::PutBuffered, Self::PutDurable, Self::Sync]);
        all
    }

    /// What it is called, in benches and on the page.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Hit(store) => format!("get, found, {}", store.name()),
            Self::Miss(store) => format!("get, not found, {}", store.name()),
            Self::Step(store) => format!("scan step, {}", store.name()),
            Self::PutBuffered => "put, buffered".to_owned(),
            Self::PutDurable => "put, durable".to_owned(),
            Self::Sync => "sync".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ() {
        let mut names: Vec<String> = Price::all().into_iter().map(Price::name).collect();
        names.extend(Operation::all().into_iter().map(Operation::name));
        names.extend(SHAPES.map(|(name, ..)| name.to_owned()));
        names.extend(OTHERS.map(str::to_owned));
        names.extend(LAYOUTS.map(str::to_owned));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
