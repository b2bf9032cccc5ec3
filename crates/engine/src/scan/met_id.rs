//! A copy of the id that a merge has come to.

/// Ids up to this length are kept in place.
const INLINE_BYTES: usize = 32;
const HALF: usize = INLINE_BYTES / 2;

/// An id that is replaced at each row: a short one costs a few moves and no call, and only a long
/// one has ever an allocation.
#[derive(Default)]
pub(super) struct MetId {
    inline: [u8; INLINE_BYTES],
    /// Of an id that is kept in place.
    len: usize,
    /// An id that is longer; else empty.
    long: Vec<u8>,
}

impl MetId {
    #[inline]
    pub(super) fn set(&mut self, id: &[u8]) {
        match (id.first_chunk::<HALF>(), id.last_chunk::<HALF>()) {
            // Two moves that overlap, unless it has the whole length.
            (Some(first), Some(last)) if id.len() <= INLINE_BYTES => {
                self.inline[..HALF].copy_from_slice(first);
                self.inline[id.len() - HALF..id.len()].copy_from_slice(last);
                self.len = id.len();
            }
            _ => self.set_slowly(id),
        }
    }

    fn set_slowly(&mut self, id: &[u8]) {
        if let Some(place) = self.inline.get_mut(..id.len()) {
            place.copy_from_slice(id);
            self.len = id.len();
        } else {
            self.long.clear();
            self.long.extend_from_slice(id);
            self.len = id.len();
        }
    }

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.inline.get(..self.len).unwrap_or(&self.long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_any_length_replaces_one_of_any_other() {
        let id = |len: u8| (0..len).map(|i| len.wrapping_mul(7) ^ i).collect::<Vec<_>>();
        let mut met = MetId::default();
        assert_eq!(met.as_bytes(), b"");
        for before in 0..80 {
            for len in 0..80 {
                met.set(&id(before));
                assert_eq!(met.as_bytes(), id(before));
                met.set(&id(len));
                assert_eq!(met.as_bytes(), id(len), "{len} bytes after {before}");
            }
        }
    }
}
