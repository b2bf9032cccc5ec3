//! What is left of a disk after a power cut.
//!
//! The rules, stricter than any file system in use:
//!
//! 1. A sector of 512 bytes holds one of the states it had since the file's last sync, whole; each
//!    sector decides for itself, whichever call wrote it.
//! 2. A file's length survives apart from its bytes, so a longer file may show zeros.
//!    Where nothing was ever synced it shows anything, if it is asked to.
//! 3. A name's creation, renaming or removal survives by itself; syncing the file does not help it,
//!    only [`Disk::sync_dir`](crate::disk::Disk::sync_dir) does. A rename is never half done.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

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

/// What a file shows where nothing was ever synced and what was written is lost: inside of it, or
/// at its end, where its length was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gaps {
    /// Zeros: what most file systems give.
    #[default]
    Zeros,
    /// Bytes of no meaning, from a seed: what a block held before, on a file system that writes
    /// lengths ahead of bytes.
    Garbage(u64),
}

/// What a power cut leaves of a disk: names, and the bytes of each file.
#[derive(Clone)]
pub struct CrashImage {
    dirs: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, (u64, Arc<Image>)>,
    next_file: u64,
}

impl CrashImage {
    /// A disk that starts with it: locks are free, nothing is unsynced, and nothing is traced.
    /// Files keep their numbers.
    ///
    /// # Errors
    ///
    /// When the operating system gives no memory or descriptor.
    pub fn disk(&self) -> io::Result<MemoryDisk> {
        let mut names = BTreeMap::new();
        for (path, (number, image)) in &self.files {
            let memory = sys::memory_file()?;
            image.store(&memory)?;
            names.insert(path.clone(), Arc::new(Node::new(*number, memory, Image::clone(image))));
        }
        let (dirs, next_file) = (self.dirs.clone(), self.next_file);
        let durable_names = names.clone();
        Ok(MemoryDisk::with(State { names, durable_names, dirs, next_file, ..State::default() }))
    }

    /// Writes the files of one of its folders into a folder of the operating system, which exists.
    /// Syncs nothing.
    ///
    /// # Errors
    ///
    /// The operating system's.
    pub fn write_to(&self, dir: &Path, folder: &Path) -> io::Result<()> {
        for (path, (_, image)) in &self.files {
            if path.parent() == Some(dir)
                && let Some(name) = path.file_name()
            {
                image.store(&fs::File::create_new(folder.join(name))?)?;
            }
        }
        Ok(())
    }

    /// A hash of names and bytes: two images of equal fingerprints are the same to whoever opens
    /// them.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = Xxh3::new();
        for (path, (_, image)) in &self.files {
            hasher.update(path.as_os_str().as_encoded_bytes());
            image.hash(&mut hasher);
        }
        hasher.digest()
    }
}

/// A file as a power cut finds it.
struct Cut {
    /// What is synced.
    durable: Arc<Image>,
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
        self.crash_image(Gaps::Zeros, |_, unsynced| survives(unsynced)).disk()
    }

    /// What a power cut now may lose, in the order in which it happened; each with the number of the
    /// call that made it, which the sectors and the length of one write share.
    pub fn unsynced(&self) -> Vec<(u64, Unsynced)> {
        let mut all = Vec::new();
        self.crash_image(Gaps::Zeros, |call, unsynced| {
            all.push((call, unsynced.clone()));
            false
        });
        all
    }

    /// What a power cut now leaves: what is durable, and of [`MemoryDisk::unsynced`] what `survives`
    /// says yes to, asked for each in that order.
    pub fn crash_image(
        &self,
        gaps: Gaps,
        mut survives: impl FnMut(u64, &Unsynced) -> bool,
    ) -> CrashImage {
        let (mut names, dirs, next_file, mut events, mut files) = {
            let state = self.shared.state.lock();
            let mut events: Vec<_> = state
                .unsynced_names
                .iter()
                .map(|(order, change)| (*order, Event::Name(change.clone())))
                .collect();
            let (mut untouched, mut files) = (BTreeMap::new(), BTreeMap::new());
            for node in state.reachable() {
                let content = node.content.lock();
                let durable = Arc::clone(&content.durable);
                if content.unsynced.is_empty() {
                    untouched.insert(node.number, durable);
                    continue;
                }
                let (live, kept) = (Image::clone(&durable), Image::clone(&durable));
                if files.insert(node.number, Cut { durable, live, kept }).is_none() {
                    let changes = content.unsynced.iter().cloned();
                    events
                        .extend(changes.map(|(at, change)| (at, Event::File(node.number, change))));
                }
            }
            let names = state.durable_names.clone();
            (names, state.dirs.clone(), state.next_file, events, (untouched, files))
        };
        events.sort_by_key(|(order, _)| *order);
        for (order, event) in &events {
            match event {
                Event::Name(change) => {
                    if survives(*order, &change.unsynced()) {
                        change.apply(&mut names);
                    }
                }
                Event::File(number, change) => {
                    if let Some(cut) = files.1.get_mut(number) {
                        cut.apply(*number, change, |unsynced| survives(*order, unsynced));
                    }
                }
            }
        }
        let mut kept = files.0;
        kept.extend(files.1.into_iter().map(|(number, cut)| (number, cut.end(number, gaps))));
        let files = names.into_iter().map(|(path, node)| {
            let image = kept.get(&node.number).cloned().unwrap_or_default();
            (path, (node.number, image))
        });
        CrashImage { dirs, files: files.collect(), next_file }
    }
}

enum Event {
    Name(NameChange),
    File(u64, Change),
}

impl Cut {
    fn apply(&mut self, file: u64, change: &Change, mut survives: impl FnMut(&Unsynced) -> bool) {
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

    fn end(mut self, number: u64, gaps: Gaps) -> Arc<Image> {
        if let Gaps::Garbage(seed) = gaps {
            let seed = seed ^ number.rotate_left(32);
            self.kept.fill_gaps(&self.durable, &self.live, seed);
        }
        Arc::new(self.kept)
    }
}

/// The nodes and what they are durably, for a disk that starts with them.
impl Node {
    pub(super) fn new(number: u64, memory: fs::File, durable: Image) -> Self {
        let content = super::Content { durable: Arc::new(durable), unsynced: Vec::new() };
        let content = Mutex::new(content);
        Self { number, memory, content }
    }
}
