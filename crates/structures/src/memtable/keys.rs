//! Two ways to keep an id in somebody else's map.

use std::borrow::Borrow;
use std::cmp::Ordering;

/// A key that an id makes, and what a lookup compares with it.
pub trait Key: Ord + Clone + Send + Sync + Borrow<Self::Probe> + 'static {
    /// What is looked up, without an allocation.
    type Probe: Ord + ?Sized;

    /// The key of an id.
    fn new(id: &'static [u8]) -> Self;

    /// What finds the key of an id.
    fn probe(id: &'static [u8]) -> impl Borrow<Self::Probe>;
}

/// The id, owned: a block of its own for each.
pub type Owned = Box<[u8]>;

impl Key for Owned {
    type Probe = [u8];

    fn new(id: &'static [u8]) -> Self {
        id.into()
    }

    #[inline]
    fn probe(id: &'static [u8]) -> impl Borrow<[u8]> {
        id
    }
}

/// What the engine's memtable does, in a key: the first 16 bytes as two integers, and where the
/// rest is, which is not copied out of the log.
#[derive(Clone, Copy, Debug)]
pub struct Headed {
    heads: [u64; 2],
    id: &'static [u8],
}

const HEAD_BYTES: usize = 16;

impl Key for Headed {
    type Probe = Self;

    #[inline]
    fn new(id: &'static [u8]) -> Self {
        let mut bytes = [0; HEAD_BYTES];
        let len = id.len().min(HEAD_BYTES);
        bytes[..len].copy_from_slice(&id[..len]);
        let value = u128::from_be_bytes(bytes);
        Self { heads: [(value >> 64) as u64, value as u64], id }
    }

    #[inline]
    fn probe(id: &'static [u8]) -> impl Borrow<Self> {
        Self::new(id)
    }
}

impl Ord for Headed {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        // Ids that are equal so far differ behind the heads, or in zeros at their end.
        self.heads.cmp(&other.heads).then_with(|| self.id.cmp(other.id))
    }
}

impl PartialOrd for Headed {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Headed {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Headed {}
