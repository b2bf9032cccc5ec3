//! What is left of a disk after a power cut.
//!
//! The rules, stricter than any file system in use:
//!
//! 1. A sector of 512 bytes holds one of the states it had since the file's last sync, whole; each
//!    sector decides for itself, whichever call wrote it.
//! 2. A file's length survives apart from its bytes, so a longer file may show zeros.
//! 3. A name's creation, renaming or removal survives by itself; syncing the file does not help it,
//!    only [`Disk::sync_dir`](crate::disk::Disk::sync_dir) does. A rename is never half done.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use super::image::{Change, Image, sectors};
use super::names::NameChange;
use super::{MemoryDisk, Node, SECTOR_BYTES, State};
use crate::disk::sys;
use crate::sync::{Arc, Mutex};

/// Something that a power cut may lose.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsynced {
    /// One sector of a write, as that write left it. Keeping it overrides the earlier ones of the
    /// sector.
    Sector {
        /// The file's number, in order of creation.
        file: u64,
        /// The sector's first byte in the file.
        offset: u64,
    },
    /// A change of the file's length, by a call or by writing past the end.
    Length {
        /// The file's number, in order of creation.
        file: u64,
        /// The new length in bytes.
        len: u64,
    },
    /// The creation of a name. When it is lost, so is the file.
    Create {
        /// The name.
        path: PathBuf,
    },
    /// A rename.
    Rename {
        /// The name before.
        from: PathBuf,
        /// The name after.
        to: PathBuf,
    },
    /// The removal of a name.
    Remove {
        /// The name.
        path: PathBuf,
    },
}

/// A file as a power cut finds it.
struct Cut {
    /// With every change up to the one at hand.
    live: Image,
    /// With those that survive.
    kept: Image,
}

impl MemoryDisk {
    /// A new disk as this one would be after a power cut now: what is durable, and of the rest what
    /// `survives` says yes to, asked in the order in which it happened. Locks are free, nothing is
    /// unsynced, and nothing is traced. This disk goes on as before.
    ///
    /// Costs a copy of everything. Fails when the operating system gives no memory or descriptor.
    pub fn power_cut(&self, mut survives: impl FnMut(&Unsynced) -> bool) -> io::Result<Self> {
        let (mut names, dirs, next_file, mut events, mut files) = {
            let state = self.shared.state.lock();
            let mut events: Vec<_> = state
                .unsynced_names
                .iter()
                .map(|(order, change)| (*order, Event::Name(change.clone())))
                .collect();
            let mut files = BTreeMap::new();
            for node in state.reachable() {
                let content = node.content.lock();
                let cut = Cut { live: content.durable.clone(), kept: content.durable.clone() };
                if files.insert(node.number, cut).is_none() {
                    let changes = content.unsynced.iter().cloned();
                    events
                        .extend(changes.map(|(at, change)| (at, Event::File(node.number, change))));
                }
            }
            let (names, dirs) = (state.durable_names.clone(), state.dirs.clone());
            (names, dirs, state.next_file, events, files)
        };
        events.sort_by_key(|(order, _)| *order);
        for (_, event) in &events {
            match event {
                Event::Name(change) => {
                    if survives(&change.unsynced()) {
                        change.apply(&mut names);
                    }
                }
                Event::File(number, change) => {
                    if let Some(cut) = files.get_mut(number) {
                        cut.apply(*number, change, &mut survives);
                    }
                }
            }
        }
        let mut durable_names = BTreeMap::new();
        for (path, node) in names {
            let durable = files.remove(&node.number).map(|cut| cut.kept).unwrap_or_default();
            let memory = sys::memory_file()?;
            durable.store(&memory)?;
            durable_names.insert(path, Arc::new(Node::new(node.number, memory, durable)));
        }
        let names = durable_names.clone();
        Ok(Self::with(State { names, durable_names, dirs, next_file, ..State::default() }))
    }
}

enum Event {
    Name(NameChange),
    File(u64, Change),
}

impl Cut {
    fn apply(&mut self, file: u64, change: &Change, survives: &mut impl FnMut(&Unsynced) -> bool) {
        let before = self.live.len();
        self.live.apply(change);
        let len = self.live.len();
        if len != before && survives(&Unsynced::Length { file, len }) {
            self.kept.set_len(len);
        }
        if let Change::Write { offset, bytes } = change {
            for index in sectors(*offset, bytes.len()) {
                let offset = index * SECTOR_BYTES as u64;
                if survives(&Unsynced::Sector { file, offset }) {
                    self.kept.copy_sector(&self.live, index);
                }
            }
        }
    }
}

/// The nodes and what they are durably, for a disk that starts with them.
impl Node {
    pub(super) fn new(number: u64, memory: std::fs::File, durable: Image) -> Self {
        let content = Mutex::new(super::Content { durable, unsynced: Vec::new() });
        Self { number, memory, content }
    }
}
