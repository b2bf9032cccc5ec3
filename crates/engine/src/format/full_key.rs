//! Full keys: the collection in four big-endian bytes, then the encoded id.
//!
//! Invariants:
//!
//! 1. Full keys compare, as bytes, as (collection, id) do: the collection's part has a fixed width.
//! 2. Unequal heads order their keys. Equal ones prove nothing: they are padded with zeros, so that
//!    "a" and "a\0" have the same.

use std::cmp::Ordering;
use std::fmt;

use super::record::ID_BYTES_MAX;
use super::types::{CollectionId, Position, Side};
use crate::sync::Arc;

const COLLECTION_BYTES: usize = 4;
/// How much of an id is in a head.
const HEAD_ID_BYTES: usize = 12;

/// A full key that owns its bytes. A clone costs one atomic increment.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FullKey(Arc<[u8]>);

impl FullKey {
    pub(crate) fn new(collection: CollectionId, id: &[u8]) -> Self {
        debug_assert!(id.len() <= ID_BYTES_MAX);
        Self([&collection.0.to_be_bytes(), id].concat().into())
    }

    /// A key whose bytes were stored. `None` when no key has them.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let lengths = COLLECTION_BYTES..=COLLECTION_BYTES + ID_BYTES_MAX;
        lengths.contains(&bytes.len()).then(|| Self(bytes.into()))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn collection(&self) -> CollectionId {
        CollectionId(u32::from_be_bytes(*self.parts().0))
    }

    /// The encoded id.
    pub(crate) fn id(&self) -> &[u8] {
        self.parts().1
    }

    /// How this key compares to another one.
    pub(crate) fn compare(&self, collection: CollectionId, id: &[u8]) -> Ordering {
        let (own_collection, own_id) = self.parts();
        own_collection.cmp(&collection.0.to_be_bytes()).then_with(|| own_id.cmp(id))
    }

    /// The place before or after all versions of the key.
    pub(crate) fn position(&self, side: Side) -> Position<'_> {
        Position { collection: self.collection(), id: self.id(), side }
    }

    /// See [`full_key_head`].
    pub(crate) fn head(&self) -> u128 {
        full_key_head(self.collection(), self.id())
    }

    fn parts(&self) -> (&[u8; COLLECTION_BYTES], &[u8]) {
        self.0.split_first_chunk().expect("a full key begins with its collection")
    }
}

impl fmt::Debug for FullKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.collection(), self.id().escape_ascii())
    }
}

/// What ends the part of a sorted segment that counts. Explicit, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Bound {
    /// The segment has nothing beyond.
    Own = 0,
    /// The segment may have records beyond: they are superseded.
    Clipped = 1,
}

impl Bound {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Own),
            1 => Some(Self::Clipped),
            _ => None,
        }
    }
}

/// The first 16 bytes of a full key, zeros appended, as a big-endian integer.
#[inline]
pub(crate) fn full_key_head(collection: CollectionId, id: &[u8]) -> u128 {
    let mut bytes = [0; COLLECTION_BYTES + HEAD_ID_BYTES];
    bytes[..COLLECTION_BYTES].copy_from_slice(&collection.0.to_be_bytes());
    match id.first_chunk::<HEAD_ID_BYTES>() {
        Some(start) => bytes[COLLECTION_BYTES..].copy_from_slice(start),
        None => bytes[COLLECTION_BYTES..][..id.len()].copy_from_slice(id),
    }
    u128::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In order, many with equal heads.
    fn ordered() -> Vec<(CollectionId, Vec<u8>)> {
        let ids: [&[u8]; 13] = [
            b"",
            b"\0",
            b"\0\0",
            b"a",
            b"a\0",
            b"a\0\0\0\0\0\0\0\0\0\0\0",
            b"a\0\0\0\0\0\0\0\0\0\0\0\0",
            b"a\0\0\0\0\0\0\0\0\0\0\0\0\x01",
            b"a\x01",
            b"twelve bytes",
            b"twelve bytes\0",
            b"twelve bytes and more",
            &[0xFF; 40],
        ];
        let collections = [0, 1, 0x61, 0xFF, 0x100, 0x6100_0000, u32::MAX].map(CollectionId);
        collections.into_iter().flat_map(|c| ids.map(|id| (c, id.to_vec()))).collect()
    }

    #[test]
    fn keys_are_in_order_by_collection_and_id() {
        let ordered = ordered();
        for (i, (collection, id)) in ordered.iter().enumerate() {
            let key = FullKey::new(*collection, id);
            assert_eq!((key.collection(), key.id()), (*collection, id.as_slice()));
            for (j, (other_collection, other_id)) in ordered.iter().enumerate() {
                let other = FullKey::new(*other_collection, other_id);
                assert_eq!(
                    key.compare(*other_collection, other_id),
                    i.cmp(&j),
                    "{key:?} {other:?}"
                );
                assert_eq!(key.cmp(&other), i.cmp(&j), "{key:?} {other:?}");
                assert_eq!(key.as_bytes().cmp(other.as_bytes()), i.cmp(&j), "{key:?} {other:?}");
            }
        }
    }

    #[test]
    fn heads_never_contradict_the_order() {
        let heads: Vec<_> = ordered().iter().map(|(c, id)| full_key_head(*c, id)).collect();
        assert!(heads.is_sorted());
        let key = FullKey::new(CollectionId(0x0102_0304), b"twelve bytes and more");
        assert_eq!(key.head().to_be_bytes(), *b"\x01\x02\x03\x04twelve bytes");
        let short = FullKey::new(CollectionId(1), b"a");
        assert_eq!(short.head(), FullKey::new(CollectionId(1), b"a\0").head());
        assert_eq!(short.head().to_be_bytes()[..6], *b"\0\0\0\x01a\0");
    }

    #[test]
    fn bytes_come_back_and_lengths_that_no_key_has_do_not() {
        for (collection, id) in ordered() {
            let key = FullKey::new(collection, &id);
            assert_eq!(FullKey::parse(key.as_bytes()), Some(key));
        }
        assert_eq!(FullKey::parse(b"\0\0\x01"), None);
        let longest = FullKey::new(CollectionId(7), &[0xFF; ID_BYTES_MAX]);
        assert_eq!(FullKey::parse(longest.as_bytes()), Some(longest));
        assert_eq!(FullKey::parse(&[0; COLLECTION_BYTES + ID_BYTES_MAX + 1]), None);
    }
}
