//! A binary fuse filter (Graf and Lemire, 2022) in front of an index.

use engine::internals::key_hash;
use xorf::{BinaryFuse8, BinaryFuse16, DmaSerializable, Filter};

use super::{Lookup, SortedFile};

/// An index that is asked only when the filter does not say that the id is absent.
#[derive(Debug)]
pub struct Filtered<F, I> {
    filter: F,
    index: I,
}

impl<F: Filter<u64>, I> Filtered<F, I> {
    /// A filter over the key hashes of the index's ids.
    pub fn new(filter: F, index: I) -> Self {
        Self { filter, index }
    }
}

/// What the trait of filters does not say.
pub trait Size {
    /// The filter's bytes.
    fn bytes(&self) -> usize;
}

impl Size for BinaryFuse8 {
    fn bytes(&self) -> usize {
        self.dma_fingerprints().len()
    }
}

impl Size for BinaryFuse16 {
    fn bytes(&self) -> usize {
        self.dma_fingerprints().len()
    }
}

impl<F: Filter<u64> + Size + Send + Sync, I: Lookup> Lookup for Filtered<F, I> {
    #[inline]
    fn find(&self, file: &SortedFile, id: &[u8]) -> Option<usize> {
        if !self.filter.contains(&key_hash(id)) {
            return None;
        }
        self.index.find(file, id)
    }

    fn bytes(&self) -> usize {
        self.filter.bytes() + self.index.bytes()
    }
}
