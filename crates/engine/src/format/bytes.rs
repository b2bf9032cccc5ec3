//! Reading little-endian fields one after the other.

/// Takes fields off the front of a slice; every method returns `None` when too few bytes are left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.bytes.split_at_checked(len)?;
        self.bytes = tail;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.bytes.split_first_chunk()?;
        self.bytes = tail;
        Some(*head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// What [`put_bytes`] wrote, as UTF-8.
    pub(crate) fn string(&mut self) -> Option<String> {
        let len = self.u16()?;
        String::from_utf8(self.take(usize::from(len))?.to_vec()).ok()
    }
}

/// Appends a length in two bytes, then the bytes.
///
/// # Panics
///
/// When there are more than 65 535 bytes; callers write names and cut keys.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u16::try_from(bytes.len()).expect("names and cut keys are short");
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
}
