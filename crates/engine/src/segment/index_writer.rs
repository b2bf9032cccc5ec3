//! Writes index segments: one index over the records of several segments, which stay where they
//! are.
//!
//! Invariants:
//!
//! 1. A place in the index is the record's offset in its member, behind the ends of all members
//!    before it, so that it says which member has the record.
//! 2. A writer that is dropped, or fails, leaves no file.

use super::builder::{IndexBuilder, IndexEntry, index_bytes_max};
use super::data::bases_of;
use super::draft::{Draft, NewSegment, first_page};
use super::file::SegmentFile;
use super::levels::BlockWriter;
use crate::error::Result;
use crate::format::{FileKind, LOG_START, MEMBERS_MAX, Member, SealedMeta};
use crate::sync::Arc;

/// An index segment that is being written. Holds what [`build_index`](super::build_index) does.
#[derive(Debug)]
pub(crate) struct IndexWriter {
    draft: Draft,
    builder: IndexBuilder,
    members: Vec<Member>,
    /// For each member, the sum of the lengths of those before.
    bases: Vec<u64>,
    /// Ids and documents of all records in the members, indexed there or not.
    content_bytes: u64,
}

impl IndexWriter {
    /// Creates the file, for about `count` entries over 1 to 64 members that are log or sorted
    /// segments.
    ///
    /// # Errors
    ///
    /// When the file exists, or the operating system refuses.
    pub(crate) fn create(
        new: &NewSegment<'_>,
        members: &[&SealedMeta],
        count: usize,
    ) -> Result<Self> {
        debug_assert!((1..=MEMBERS_MAX).contains(&members.len()), "1 to 64 members");
        debug_assert!(members.iter().all(|member| member.file_kind != FileKind::Index));
        let draft = Draft::create(new, LOG_START + index_bytes_max(count))?;
        let mut out = BlockWriter::new(draft.file(), 0);
        out.append(&first_page(new, FileKind::Index))?;
        let log_end = members.iter().map(|member| member.log_end).sum();
        Ok(Self {
            draft,
            builder: IndexBuilder::new(out, FileKind::Index, log_end, count),
            members: members.iter().map(|member| Member::of(member)).collect(),
            bases: bases_of(members.iter().map(|member| member.log_end)).collect(),
            content_bytes: members.iter().map(|m| m.content_bytes + m.superseded_bytes).sum(),
        })
    }

    /// Adds the next entry, in order (collection, id, newest first), whose offset is that in the
    /// member.
    ///
    /// # Errors
    ///
    /// When a write fails; the writer is then of no more use.
    pub(crate) fn push(&mut self, member: usize, entry: &IndexEntry<'_>) -> Result<()> {
        debug_assert!(entry.offset < self.members[member].log_end, "within its member");
        let offset = self.bases[member] + entry.offset;
        self.builder.push(&IndexEntry { offset, ..*entry })
    }

    /// Whether it has no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.builder.is_empty()
    }

    /// Completes the index and syncs the file. The caller syncs the folder and publishes the
    /// segment; if it does not come to that, it dooms the file.
    ///
    /// # Errors
    ///
    /// When a call on the file fails. The file is gone then.
    pub(crate) fn finish(self) -> Result<(SealedMeta, Arc<SegmentFile>)> {
        let superseded_bytes = self.content_bytes.saturating_sub(self.builder.content_bytes());
        let meta = self.builder.finish(superseded_bytes, self.members)?;
        Ok((meta, self.draft.complete()?))
    }
}
