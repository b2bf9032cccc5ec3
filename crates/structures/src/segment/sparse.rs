//! A sparse index: one key a page, then a search in the page.

use super::{InPage, Lookup, SortedFile};

const HEAD_BYTES: usize = 8;

/// The 8 bytes of an id that follow `skip` others, as a number in the order of ids.
pub(super) fn head(id: &[u8], skip: usize) -> u64 {
    let rest = id.get(skip..).unwrap_or_default();
    let taken = rest.len().min(HEAD_BYTES);
    let mut head = [0; HEAD_BYTES];
    head[..taken].copy_from_slice(&rest[..taken]);
    u64::from_be_bytes(head)
}

/// How many first bytes all ids of a file share.
pub(super) fn common_prefix(file: &SortedFile) -> usize {
    match file.len() {
        0 => 0,
        len => file.id(0).iter().zip(file.id(len - 1)).take_while(|(a, b)| a == b).count(),
    }
}

/// The heads of the pages' first ids: 8 bytes a page.
#[derive(Debug)]
pub struct Sparse {
    skip: usize,
    heads: Vec<u64>,
    in_page: InPage,
}

impl Sparse {
    /// The index of a file.
    #[must_use]
    pub fn new(file: &SortedFile, in_page: InPage) -> Self {
        let skip = common_prefix(file);
        let heads = (0..file.pages()).map(|page| head(file.first_id(page), skip)).collect();
        Self { skip, heads, in_page }
    }

    /// The one page that may have an id.
    fn page_of(&self, file: &SortedFile, id: &[u8]) -> Option<usize> {
        let head = head(id, self.skip);
        let mut page = self.heads.partition_point(|first| *first <= head).checked_sub(1)?;
        // Equal heads prove nothing.
        while self.heads[page] == head && file.first_id(page) > id {
            page = page.checked_sub(1)?;
        }
        Some(page)
    }
}

impl Lookup for Sparse {
    #[inline]
    fn find(&self, file: &SortedFile, id: &[u8]) -> Option<usize> {
        // The bench's ids all have the prefix; one that has not is in no page.
        let shared = file.id(0).get(..self.skip)?;
        if !id.starts_with(shared) {
            return None;
        }
        file.find_in(self.page_of(file, id)?, id, self.in_page)
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.heads)
    }
}
