//! The bytes of an id, without an allocation where they are few.

use std::cmp::Ordering;
use std::fmt;

/// Encodings up to this length are kept in place: with it an [`EncodedId`] fills one cache line.
const INLINE_BYTES: usize = 62;

/// An id's encoding, or a place between two.
// `pub`, because the signature of a sealed trait names it; the module does not export it.
#[derive(Clone)]
pub struct EncodedId(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; INLINE_BYTES] },
    Heap(Box<[u8]>),
}

impl EncodedId {
    /// A tag followed by content.
    pub(super) fn new(tag: u8, content: &[u8]) -> Self {
        let len = 1 + content.len();
        match u8::try_from(len) {
            Ok(short) if len <= INLINE_BYTES => {
                let mut bytes = [0; INLINE_BYTES];
                bytes[0] = tag;
                bytes[1..len].copy_from_slice(content);
                Self(Repr::Inline { len: short, bytes })
            }
            _ => {
                let mut bytes = Vec::with_capacity(len);
                bytes.push(tag);
                bytes.extend_from_slice(content);
                Self(Repr::Heap(bytes.into_boxed_slice()))
            }
        }
    }

    /// The encoding as bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Repr::Heap(bytes) => bytes,
        }
    }

    /// The least place after every encoding that begins with this one. None when there is none: all
    /// bytes are 0xFF.
    pub(super) fn prefix_end(&self) -> Option<Self> {
        let bytes = self.as_bytes();
        let last = bytes.iter().rposition(|&byte| byte != u8::MAX)?;
        let mut end = bytes[..=last].to_vec();
        end[last] += 1;
        Some(Self::new(end[0], &end[1..]))
    }
}

impl AsRef<[u8]> for EncodedId {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl PartialEq for EncodedId {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for EncodedId {}

impl PartialOrd for EncodedId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for EncodedId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl fmt::Debug for EncodedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match super::Id::decode(self.as_bytes()) {
            Ok(id) => write!(f, "EncodedId({id})"),
            Err(_) => write!(f, "EncodedId({:02x?})", self.as_bytes()),
        }
    }
}
