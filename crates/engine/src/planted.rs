//! Mistakes that a store like this one can make, to be made on purpose: a test that has never failed
//! proves little.
//!
//! Owns the list of the bugs, and what of them takes more than a few lines. Invariants:
//!
//! 1. Only the cfg `sediment_planted_bugs` compiles a bug in. It is no feature, so that no build
//!    gets it from its dependencies; without it [`is`] is a constant and no bug is left in the code.
//! 2. At most one bug is at work in a process: that which the environment variable `SEDIMENT_BUG`
//!    names, read once.
//! 3. A bug stands where the real mistake would be made.
//!
//! `tests/planted_bugs.rs` says which test catches which bug, and runs them all.

use std::path::Path;

use crate::disk::Disk;
use crate::format::{Edit, SegmentId};
use crate::log::records;
use crate::segment::segment_path;
use crate::sync::{AtomicU64, Ordering};

macro_rules! bugs {
    ($($bug:ident $name:literal $story:literal)*) => {
        /// A mistake that can be switched on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Bug {
            $(#[doc = $story] $bug,)*
        }

        #[cfg(sediment_planted_bugs)]
        const BUGS: &[(Bug, &str, &str)] = &[$((Bug::$bug, $name, $story),)*];
    };
}

bugs! {
    SyncIgnored "sync_ignored"
        "A durable group is answered without its fdatasync."
    DirectoryNotSynced "directory_not_synced"
        "The manifest names a log segment whose name the folder was never synced for."
    ChecksumNotVerified "checksum_not_verified"
        "Neither reads nor replay compare a record's content with its checksum."
    IncarnationLeftOutOfChecksum "incarnation_left_out_of_checksum"
        "Checksums depend on offset and sequence alone: stale bytes of an earlier use verify."
    DroppedWrite "dropped_write"
        "Every 50th record never reaches the file, and the memtable has it."
    MemberAnsweredBeforeSync "member_answered_before_sync"
        "Those that wait for a group's leader get their Ok before the group is synced."
    TombstoneDroppedEarly "tombstone_dropped_early"
        "A merge within level 0 drops tombstones without a look at the older runs."
    SnapshotVersionDropped "snapshot_version_dropped"
        "A merge drops versions that only a live snapshot sees."
    HorizonMovedBeforeDurable "horizon_moved_before_durable"
        "Versions go under a horizon that no edit of the manifest has made durable."
    InputsUnlinkedEarly "inputs_unlinked_early"
        "What a merge has read is unlinked before the edit that removes it is synced."
    CutIgnoredByRead "cut_ignored_by_read"
        "Reads below a sweep's cursor still look into level 0 up to the cut."
    RemovalOutOfAgeOrder "removal_out_of_age_order"
        "A sweep's end removes the newer runs of level 0 and leaves the oldest one."
    ChecksumRecomputed "checksum_recomputed"
        "A merge computes a record's checksum from the bytes at hand instead of carrying it."
    SuccessorAccepted "successor_accepted"
        "A segment is believed though its predecessor does not replay to the end it names."
    OldTailAppendedTo "old_tail_appended_to"
        "After a failed write or sync the log goes on in the same file, at its old end."
}

/// Whether this bug is at work.
#[cfg(not(sediment_planted_bugs))]
#[inline(always)]
pub(crate) const fn is(_bug: Bug) -> bool {
    false
}

/// Whether this bug is at work.
///
/// # Panics
///
/// When `SEDIMENT_BUG` names none: a misspelt bug would pass every test.
#[cfg(sediment_planted_bugs)]
pub(crate) fn is(bug: Bug) -> bool {
    static CHOSEN: crate::sync::OnceLock<Option<Bug>> = crate::sync::OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| {
        let name = std::env::var_os("SEDIMENT_BUG")?;
        let found = BUGS.iter().find(|(_, known, _)| name == *known);
        Some(found.unwrap_or_else(|| panic!("SEDIMENT_BUG={} is no bug", name.display())).0)
    });
    *chosen == Some(bug)
}

/// The name of each bug, and what it does.
#[cfg(sediment_planted_bugs)]
pub fn bugs() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUGS.iter().map(|(_, name, story)| (*name, *story))
}

/// A group as [`Bug::DroppedWrite`] writes it: some records are left out, and what is there reads as
/// a place that was never written.
pub(crate) fn with_holes(group: &[u8]) -> Vec<u8> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let mut bytes = group.to_vec();
    for (at, header) in records(group).filter(|(_, header)| header.is_counted()) {
        if (WRITTEN.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(50) {
            bytes[at..at + header.record_len()].fill(0);
        }
    }
    bytes
}

/// An edit's record as [`Bug::HorizonMovedBeforeDurable`] writes it.
pub(crate) fn without_horizon(edits: &[Edit]) -> Vec<Edit> {
    edits.iter().filter(|edit| !matches!(edit, Edit::Horizon(_))).cloned().collect()
}

/// Unlinks a merge's inputs at once, as [`Bug::InputsUnlinkedEarly`] does.
pub(crate) fn unlink(disk: &dyn Disk, dir: &Path, inputs: &[SegmentId]) {
    for &id in inputs {
        drop(disk.remove(&segment_path(dir, id)));
    }
}
