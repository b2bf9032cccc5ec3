//! What a faulty disk does to which call.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use crate::sync::{Arc, AtomicU64, Mutex, Ordering};

/// The kinds of calls that can be counted and failed. `start_writeback`, `len` and `allocated`
/// always pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the method of the same name")]
pub enum Call {
    Open,
    Read,
    Write,
    SyncData,
    SetLen,
    Allocate,
    Map,
    Rename,
    Remove,
    List,
    CreateDir,
    SyncDir,
    Lock,
}

/// A fault: which calls, after how many, what happens, how often.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The kinds of calls; they are counted together.
    pub calls: Vec<Call>,
    /// How many such calls pass before the first that is hit, counted from the fault's injection.
    pub skip: u64,
    /// What happens to the call.
    pub outcome: Outcome,
    /// How many calls are hit.
    pub repeat: Repeat,
}

/// What happens to a call that is hit. The numbers are those of the operating system (`libc::EIO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is done, and the call fails.
    Error(i32),
    /// It is done, and yet the call fails: an outcome that the caller cannot know.
    ErrorAfter(i32),
    /// A write of at most so many bytes is done, and their number is the answer. Only for writes;
    /// any other call passes.
    Short(usize),
    /// A write of at most so many bytes is done, and yet the call fails. Only for writes; any other
    /// call fails without being done.
    ShortThenError(usize, i32),
}

/// How many calls a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// One.
    Once,
    /// That one and all later ones.
    Onward,
}

/// What becomes of syncs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syncs {
    /// They reach the disk below.
    #[default]
    Honest,
    /// They succeed without reaching it, as on a drive that ignores flushes.
    Lying,
}

/// Up to where a file holds space, in bytes; shared by its handles. Changed under the plan's lock
/// only.
pub(super) type End = Arc<AtomicU64>;

#[derive(Debug, Default)]
pub(super) struct Plan {
    faults: Vec<Fault>,
    counts: BTreeMap<Call, u64>,
    syncs: Syncs,
    free: Option<u64>,
    ends: HashMap<PathBuf, End>,
}

impl Plan {
    pub(super) fn inject(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub(super) fn heal(&mut self) {
        self.faults.clear();
        self.free = None;
        self.syncs = Syncs::Honest;
    }

    pub(super) fn set_syncs(&mut self, syncs: Syncs) {
        self.syncs = syncs;
    }

    pub(super) fn syncs(&self) -> Syncs {
        self.syncs
    }

    pub(super) fn count(&self, call: Call) -> u64 {
        self.counts.get(&call).copied().unwrap_or(0)
    }

    /// Counts a call and says what hits it. Every fault of its kind counts it, whichever decides.
    pub(super) fn arrive(&mut self, call: Call) -> Option<Outcome> {
        *self.counts.entry(call).or_default() += 1;
        let mut outcome = None;
        self.faults.retain_mut(|fault| {
            if !fault.calls.contains(&call) {
                return true;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
                return true;
            }
            if outcome.is_some() {
                return true;
            }
            outcome = Some(fault.outcome);
            fault.repeat == Repeat::Onward
        });
        outcome
    }

    pub(super) fn set_free_space(&mut self, bytes: Option<u64>) {
        self.free = bytes;
    }

    pub(super) fn free_space(&self) -> Option<u64> {
        self.free
    }

    /// The end of the file of this name; `len` is its length where it is not known yet.
    pub(super) fn end_of(&mut self, path: &Path, len: u64) -> End {
        let end = self.ends.entry(path.to_path_buf());
        Arc::clone(end.or_insert_with(|| Arc::new(AtomicU64::new(len))))
    }

    /// Takes space for writing a range of a file, and says up to where there was enough: `start`
    /// when there was none.
    pub(super) fn take(&mut self, end: &End, start: u64, range_end: u64) -> u64 {
        let held = end.load(Ordering::Relaxed);
        let wanted = range_end.saturating_sub(held);
        let got = self.free.map_or(wanted, |free| free.min(wanted));
        if got < wanted && held + got <= start {
            return start;
        }
        if let Some(free) = &mut self.free {
            *free -= got;
        }
        end.store(held + got, Ordering::Relaxed);
        if got == wanted { range_end } else { held + got }
    }

    /// Whether there is space for all of a range of a file.
    pub(super) fn has_space(&self, end: &End, range_end: u64) -> bool {
        let wanted = range_end.saturating_sub(end.load(Ordering::Relaxed));
        self.free.is_none_or(|free| wanted <= free)
    }

    pub(super) fn cut(&mut self, end: &End, len: u64) {
        let held = end.load(Ordering::Relaxed);
        if len < held {
            end.store(len, Ordering::Relaxed);
            self.give_back(held - len);
        }
    }

    pub(super) fn removed(&mut self, path: &Path, len: u64) {
        let held = self.ends.remove(path).map_or(len, |end| end.load(Ordering::Relaxed));
        self.give_back(held);
    }

    pub(super) fn renamed(&mut self, from: &Path, to: &Path, replaced: u64) {
        if from == to {
            return;
        }
        self.removed(to, replaced);
        if let Some(end) = self.ends.remove(from) {
            self.ends.insert(to.to_path_buf(), end);
        }
    }

    fn give_back(&mut self, bytes: u64) {
        if let Some(free) = &mut self.free {
            *free = free.saturating_add(bytes);
        }
    }
}

/// Counts a call and makes it, or has it fail.
pub(super) fn run<T>(
    plan: &Mutex<Plan>,
    call: Call,
    act: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let outcome = plan.lock().arrive(call);
    match outcome {
        None | Some(Outcome::Short(_)) => act(),
        Some(Outcome::Error(errno) | Outcome::ShortThenError(_, errno)) => {
            Err(io::Error::from_raw_os_error(errno))
        }
        Some(Outcome::ErrorAfter(errno)) => {
            act()?;
            Err(io::Error::from_raw_os_error(errno))
        }
    }
}
