//! Deletes on a full disk.
//!
//! The manifest holds space for this. When a write finds the disk full that only
//! deletes, documents or collections, the space is given back to the disk and the write is done
//! again: its record, the segment that a repair may need, indexes. From then on what is free belongs
//! to deletes and to compaction, which frees more: no document is taken before the reserve is filled
//! again, which each write of one tries first.
//!
//! Invariant: while the reserve is given up, nothing is written but deletes, drops and what they and
//! compaction cost; no zeros ahead either.

use super::{LogState, Store};
use crate::error::{Error, Result};
use crate::log::Member;
use crate::sync::{Arc, Ordering};

impl Store {
    pub(super) fn takes_deletes_only(&self) -> bool {
        self.deletes_only.load(Ordering::Acquire)
    }

    /// Refuses what is put while the disk has no space for the reserve.
    pub(super) fn refuse_puts(&self, members: &mut [Member]) {
        if self.takes_deletes_only()
            && members.iter().any(|member| member.request.puts())
            && let Err(e) = self.manifest.lock().fill_reserve()
        {
            refuse(members, &Error::ReadOnly { source: Arc::new(e) });
        }
    }

    /// After a write that failed: gives the reserve up where that may let the deletes among the
    /// members succeed, and refuses the others. False when there is nothing to be done.
    pub(super) fn make_room(
        &self,
        state: &mut LogState,
        error: &Error,
        members: &mut [Member],
    ) -> bool {
        let deletes = |member: &Member| {
            member.outcome.is_none() && member.request.count > 0 && !member.request.puts()
        };
        if !error.is_of_full_disk()
            || !members.iter().any(deletes)
            || !self.manifest.lock().give_up_reserve()
        {
            return false;
        }
        refuse(members, error);
        // What is answered and not synced would have to be copied by the repair, for which there may
        // be no room. If this fails, it is copied.
        drop(self.sync_older(state).and_then(|()| state.active.sync()));
        self.trim_tail(state);
        true
    }

    /// Does what a close needs, again in the reserve's space where the disk is full.
    pub(super) fn in_reserve(&self, mut act: impl FnMut() -> Result<()>) -> Result<()> {
        act().or_else(|e| {
            let has_room = e.is_of_full_disk() && self.manifest.lock().give_up_reserve();
            if has_room { act() } else { Err(e) }
        })
    }
}

fn refuse(members: &mut [Member], error: &Error) {
    for member in members {
        if member.request.puts() {
            member.outcome.get_or_insert_with(|| Err(error.clone()));
        }
    }
}
