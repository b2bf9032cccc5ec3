//! The manifest: which segments the database consists of.
//!
//! Owns the file `MANIFEST`. Invariants:
//!
//! 1. An edit takes effect in memory only once it is synced.
//! 2. A failed write or sync is never repeated at its offset: the next edit writes the whole
//!    manifest anew and renames it into place.
//! 3. Opening never appends to an old manifest: it writes a new one.
//! 4. The space reserved behind the records is zeros, and is cut off or lengthened at any time
//!    without a change of what the manifest says.
//! 5. A file that a failed edit may have named stays until a whole new manifest is known to be in
//!    place, which does not name it: a manifest must not name a file that is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

use crate::disk::{Access, Disk, DiskFile, OpenMode};
use crate::error::{Error, Result, is_full};
use crate::format::{
    CatalogueChange, CollectionId, Edit, MANIFEST_HEADER_BYTES, ManifestFault, ManifestHeader,
    Placement, SealedMeta, SegmentId, Sequence, SweepState, decode_edits, encode_edits,
};
use crate::planted::{self, Bug};
use crate::random::Random;
use crate::segment::SegmentFile;
use crate::sync::{Arc, AtomicBool, Ordering};

pub(crate) const MANIFEST_NAME: &str = "MANIFEST";
pub(crate) const MANIFEST_NEW_NAME: &str = "MANIFEST.new";

/// Reserved ahead, so that a full disk does not refuse the edits that free space.
const EDIT_BYTES: u64 = 64 << 10;
/// Held behind that, and given up on a full disk: room for deletes and what they cost, some
/// thousands of them.
const RESERVE_BYTES: u64 = 512 << 10;
/// A manifest is written anew when it has grown past this and past four times its first size.
const REWRITE_BYTES: u64 = 1 << 20;

/// What the manifest knows of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SegmentState {
    /// It may hold log records. `end` is set when a failed write or sync ended it.
    Log {
        incarnation: u64,
        end: Option<u64>,
    },
    Sealed(SealedMeta),
}

/// What the manifest knows of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CollectionEntry {
    pub(crate) name: String,
    pub(crate) dropped: Option<Sequence>,
}

/// What all edits add up to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManifestState {
    pub(crate) segments: BTreeMap<SegmentId, SegmentState>,
    /// Of the sealed segments that are no log segment with a run of its own.
    pub(crate) placements: BTreeMap<SegmentId, Placement>,
    /// Bytes of older runs that a run's records supersede, as estimated.
    pub(crate) shadowed: BTreeMap<SegmentId, u64>,
    /// Segments with a record whose id is damaged.
    pub(crate) damaged: BTreeSet<SegmentId>,
    pub(crate) sweep: Option<SweepState>,
    /// The number of the last sweep.
    pub(crate) sweeps: u64,
    pub(crate) horizon: Sequence,
    pub(crate) collections: BTreeMap<CollectionId, CollectionEntry>,
    pub(crate) next_segment: SegmentId,
    pub(crate) next_collection: CollectionId,
    pub(crate) next_sequence: Sequence,
}

/// An empty database. Everything that is numbered begins at 1: 0 stands for none.
impl Default for ManifestState {
    fn default() -> Self {
        Self {
            segments: BTreeMap::new(),
            placements: BTreeMap::new(),
            shadowed: BTreeMap::new(),
            damaged: BTreeSet::new(),
            sweep: None,
            sweeps: 0,
            horizon: Sequence(0),
            collections: BTreeMap::new(),
            next_segment: SegmentId(1),
            next_collection: CollectionId(1),
            next_sequence: Sequence(1),
        }
    }
}

impl ManifestState {
    pub(crate) fn apply(&mut self, edit: &Edit) {
        match edit {
            Edit::Created { segment, incarnation } => {
                self.saw_segment(*segment);
                let state = SegmentState::Log { incarnation: *incarnation, end: None };
                self.segments.insert(*segment, state);
            }
            Edit::Sealed(meta) => {
                self.saw_segment(meta.id);
                let next = Sequence(meta.sequence_max.0.saturating_add(1));
                self.next_sequence = self.next_sequence.max(next);
                self.segments.insert(meta.id, SegmentState::Sealed(meta.clone()));
            }
            Edit::Ended { segment, end } => {
                if let Some(SegmentState::Log { end: known, .. }) = self.segments.get_mut(segment) {
                    *known = Some(*end);
                }
            }
            Edit::Removed { segment } => {
                self.saw_segment(*segment);
                self.segments.remove(segment);
                self.placements.remove(segment);
                self.shadowed.remove(segment);
                self.damaged.remove(segment);
            }
            Edit::Catalogue(CatalogueChange::Create { collection, name }) => {
                let next = CollectionId(collection.0.saturating_add(1));
                self.next_collection = self.next_collection.max(next);
                let entry = CollectionEntry { name: name.clone(), dropped: None };
                self.collections.entry(*collection).or_insert(entry);
            }
            Edit::Catalogue(CatalogueChange::Drop { collection, at }) => {
                if let Some(entry) = self.collections.get_mut(collection) {
                    entry.dropped = Some(*at);
                }
            }
            Edit::Next { segment, collection, sequence } => {
                self.next_segment = self.next_segment.max(*segment);
                self.next_collection = self.next_collection.max(*collection);
                self.next_sequence = self.next_sequence.max(*sequence);
            }
            Edit::Closed => {}
            Edit::Placed { segment, placement } => {
                self.placements.insert(*segment, placement.clone());
            }
            Edit::Sweep(sweep) => {
                self.sweeps = self.sweeps.max(sweep.number);
                self.sweep = Some(sweep.clone());
            }
            Edit::SweepEnded => self.sweep = None,
            Edit::Horizon(sequence) => self.horizon = self.horizon.max(*sequence),
            Edit::Forgotten { collection } => {
                self.collections.remove(collection);
            }
            Edit::Damaged { segment } => {
                self.damaged.insert(*segment);
            }
            Edit::Shadowed { segment, bytes } => {
                self.shadowed.insert(*segment, *bytes);
            }
        }
    }

    /// The newest sequence of a sealed segment.
    pub(crate) fn newest_sequence(&self) -> Sequence {
        Sequence(self.next_sequence.0 - 1)
    }

    /// What no edits of this library add up to: found before a read relies on it.
    fn contradiction(&self) -> Option<String> {
        let is_sealed =
            |id: &SegmentId| matches!(self.segments.get(id), Some(SegmentState::Sealed(_)));
        let mut level1 = Vec::new();
        for (id, placement) in &self.placements {
            let members: &[SegmentId] = match placement {
                Placement::Index { members, .. } => members,
                _ => &[],
            };
            if let Some(missing) = std::iter::once(id).chain(members).find(|id| !is_sealed(id)) {
                return Some(format!("segment {missing} is placed and not sealed"));
            }
            if let Placement::Level1 { keys, .. } = placement {
                level1.push(keys);
            }
        }
        level1.sort_unstable_by(|a, b| a.first.cmp(&b.first));
        let overlap = level1.windows(2).find(|pair| pair[0].last >= pair[1].first);
        overlap.map(|pair| format!("level 1 has two segments with the key {:?}", pair[1].first))
    }

    fn saw_segment(&mut self, segment: SegmentId) {
        self.next_segment = self.next_segment.max(SegmentId(segment.0.saturating_add(1)));
    }

    /// The edits that lead from nothing to this state.
    fn edits(&self) -> Vec<Edit> {
        let mut edits = vec![Edit::Next {
            segment: self.next_segment,
            collection: self.next_collection,
            sequence: self.next_sequence,
        }];
        for (&collection, entry) in &self.collections {
            let name = entry.name.clone();
            edits.push(Edit::Catalogue(CatalogueChange::Create { collection, name }));
            if let Some(at) = entry.dropped {
                edits.push(Edit::Catalogue(CatalogueChange::Drop { collection, at }));
            }
        }
        for (&segment, state) in &self.segments {
            match state {
                SegmentState::Log { incarnation, end } => {
                    edits.push(Edit::Created { segment, incarnation: *incarnation });
                    if let Some(end) = *end {
                        edits.push(Edit::Ended { segment, end });
                    }
                }
                SegmentState::Sealed(meta) => edits.push(Edit::Sealed(meta.clone())),
            }
        }
        for (&segment, placement) in &self.placements {
            edits.push(Edit::Placed { segment, placement: placement.clone() });
        }
        for (&segment, &bytes) in &self.shadowed {
            edits.push(Edit::Shadowed { segment, bytes });
        }
        edits.extend(self.damaged.iter().map(|&segment| Edit::Damaged { segment }));
        edits.push(Edit::Horizon(self.horizon));
        // The number of the last sweep outlives it.
        let number = SweepState { number: self.sweeps, ..SweepState::default() };
        edits.push(Edit::Sweep(self.sweep.clone().unwrap_or(number)));
        if self.sweep.is_none() {
            edits.push(Edit::SweepEnded);
        }
        edits
    }
}

/// Reads the manifest of a folder. Changes nothing.
pub(crate) fn load(disk: &dyn Disk, dir: &Path) -> Result<(ManifestHeader, ManifestState)> {
    let path = dir.join(MANIFEST_NAME);
    let file = disk.open(&path, OpenMode::Read).map_err(|e| Error::io("open", &path, e))?;
    let bytes = read_whole(&*file, &path)?;
    let refuse = |offset: usize, fault: ManifestFault| match fault {
        ManifestFault::Damaged(what) => Error::corrupt(&path, offset as u64, what),
        ManifestFault::Newer(what) => Error::UnsupportedFormat { file: path.clone(), what },
    };
    let header = ManifestHeader::decode(&bytes).map_err(|fault| refuse(0, fault))?;
    let mut state = ManifestState::default();
    let mut at = MANIFEST_HEADER_BYTES;
    while let Some(record) = decode_edits(&bytes[at..], header.incarnation, at as u64) {
        let (edits, len) = record.map_err(|fault| refuse(at, fault))?;
        edits.iter().for_each(|edit| state.apply(edit));
        at = (at + len).min(bytes.len());
    }
    if at == MANIFEST_HEADER_BYTES {
        // A manifest is renamed into place with its first record synced.
        return Err(Error::corrupt(
            &path,
            at as u64,
            "the manifest's first record does not verify",
        ));
    }
    if let Some(what) = state.contradiction() {
        return Err(Error::corrupt(&path, at as u64, what));
    }
    // A record that does not verify is the torn last edit, unless a later one shows that it was
    // once whole. What is reserved is zeros.
    for later in (at + 8..written_end(&bytes)).step_by(8) {
        if decode_edits(&bytes[later..], header.incarnation, later as u64).is_some() {
            return Err(Error::corrupt(
                &path,
                at as u64,
                "a record in the manifest does not verify",
            ));
        }
    }
    Ok((header, state))
}

fn read_whole(file: &dyn DiskFile, path: &Path) -> Result<Vec<u8>> {
    let io = |e| Error::io("read", path, e);
    let len = usize::try_from(file.len().map_err(io)?)
        .map_err(|_| Error::corrupt(path, 0, "the manifest is larger than memory"))?;
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, 0, Access::Once).map_err(io)?;
    Ok(bytes)
}

/// Behind the last byte that is not zero.
fn written_end(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// Gives the reserve of a manifest that nobody has open back to a disk that is too full to open the
/// database: only zeros behind the last record are cut. False when it holds none.
pub(crate) fn give_up_reserve(disk: &dyn Disk, dir: &Path) -> Result<bool> {
    let path = dir.join(MANIFEST_NAME);
    let file = disk.open(&path, OpenMode::ReadWrite).map_err(|e| Error::io("open", &path, e))?;
    let bytes = read_whole(&*file, &path)?;
    let Ok(header) = ManifestHeader::decode(&bytes) else { return Ok(false) };
    // A record may end with zeros.
    let mut end = MANIFEST_HEADER_BYTES;
    while let Some(Ok((_, len))) =
        bytes.get(end..).and_then(|rest| decode_edits(rest, header.incarnation, end as u64))
    {
        end += len;
    }
    let end = end.max(written_end(&bytes)) as u64;
    if bytes.len() as u64 <= end + RESERVE_BYTES / 2 {
        return Ok(false);
    }
    let cut = file.set_len(end).and_then(|()| file.sync_data());
    cut.map_err(|e| Error::io("truncate", &path, e))?;
    Ok(true)
}

/// The space that a full disk is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reserve {
    Held,
    /// The disk has no space for it: what there is belongs to deletes.
    GivenUp,
    /// The disk does not reserve space, for another reason than that it is full.
    Unavailable,
}

/// The manifest of an open database.
#[derive(Debug)]
pub(crate) struct Manifest {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    path: PathBuf,
    header: ManifestHeader,
    state: ManifestState,
    random: Arc<Random>,
    file: Arc<dyn DiskFile>,
    end: u64,
    first_end: u64,
    /// Up to where there is space for edits; the reserve is behind it.
    reserved: u64,
    reserve: Reserve,
    /// Whether the reserve is given up, for those that do not take the manifest's lock.
    is_given_up: Arc<AtomicBool>,
    /// An edit failed: what is on disk behind `end` is unknown.
    broken: Arc<AtomicBool>,
    /// Files that only failed edits name.
    abandoned: Vec<Arc<SegmentFile>>,
    written_bytes: u64,
}

impl Manifest {
    /// Writes a new manifest with this state, synced, and renames it into place.
    pub(crate) fn create(
        disk: Arc<dyn Disk>,
        dir: &Path,
        database_id: [u8; 16],
        state: ManifestState,
        random: Arc<Random>,
    ) -> Result<Self> {
        let header = ManifestHeader { database_id, incarnation: random.next() };
        let path = dir.join(MANIFEST_NAME);
        let Whole { file, end, reserve } =
            write_whole(&*disk, dir, &header, &state, Reserve::Held)?;
        Ok(Self {
            disk,
            dir: dir.to_owned(),
            path,
            header,
            state,
            random,
            file,
            end,
            first_end: end,
            reserved: reserved_for(end),
            reserve,
            is_given_up: Arc::new(AtomicBool::new(reserve == Reserve::GivenUp)),
            broken: Arc::new(AtomicBool::new(false)),
            abandoned: Vec::new(),
            written_bytes: end,
        })
    }

    pub(crate) fn state(&self) -> &ManifestState {
        &self.state
    }

    pub(crate) fn database_id(&self) -> [u8; 16] {
        self.header.database_id
    }

    /// Bytes written by this value.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Hands out the id of a new segment. Durable with the first edit that names it.
    pub(crate) fn next_segment(&mut self) -> SegmentId {
        let id = self.state.next_segment;
        self.state.next_segment = SegmentId(id.0 + 1);
        id
    }

    /// Makes the edits durable, all or none, and applies them. After an error it is unknown whether
    /// they are on disk; either way the manifest there is one that opens.
    pub(crate) fn append(&mut self, edits: &[Edit]) -> Result<()> {
        let mut state = self.state.clone();
        edits.iter().for_each(|edit| state.apply(edit));
        let is_whole = self.is_broken() || self.end > REWRITE_BYTES.max(4 * self.first_end);
        let outcome = if is_whole { self.rewrite(&state) } else { self.append_record(edits) };
        self.broken.store(outcome.is_err(), Ordering::Release);
        outcome?;
        self.state = state;
        if is_whole {
            self.abandoned.drain(..).for_each(|file| file.doom());
        }
        Ok(())
    }

    fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Whether an edit failed, now and later, for those that do not wait for an edit under way.
    pub(crate) fn broken(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.broken)
    }

    /// Writes the manifest anew if an edit failed: until then it is unknown which segments the one
    /// on disk names, and none of them may take records that are answered.
    pub(crate) fn ensure_whole(&mut self) -> Result<()> {
        if self.is_broken() { self.append(&[]) } else { Ok(()) }
    }

    /// Has a file removed that an edit named which failed: it goes as soon as it is certain that no
    /// manifest names it. If that never comes, the next open removes it.
    pub(crate) fn abandon(&mut self, file: Arc<SegmentFile>) {
        if self.is_broken() {
            self.abandoned.push(file);
        } else {
            file.doom();
        }
    }

    fn append_record(&mut self, edits: &[Edit]) -> Result<()> {
        let without_horizon =
            planted::is(Bug::HorizonMovedBeforeDurable).then(|| planted::without_horizon(edits));
        let edits = without_horizon.as_deref().unwrap_or(edits);
        let record = encode_edits(edits, self.header.incarnation, self.end);
        write_all(&*self.file, &self.path, &record, self.end)?;
        self.file.sync_data().map_err(|e| Error::io("sync", &self.path, e))?;
        self.end += record.len() as u64;
        self.written_bytes += record.len() as u64;
        if self.end + EDIT_BYTES / 2 > self.reserved {
            // A courtesy to later edits: a disk too full to reserve may still take them.
            let behind = if self.reserve == Reserve::Held { RESERVE_BYTES } else { 0 };
            if self.file.allocate(self.reserved, EDIT_BYTES + behind).is_ok() {
                self.reserved += EDIT_BYTES;
            }
        }
        Ok(())
    }

    /// Whether the reserve is given up, now and later.
    pub(crate) fn is_reserve_given_up(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_given_up)
    }

    fn set_reserve(&mut self, reserve: Reserve) {
        self.reserve = reserve;
        self.is_given_up.store(reserve == Reserve::GivenUp, Ordering::Release);
    }

    /// Takes a reserve again that was given up; an error while the disk has no space for it.
    pub(crate) fn fill_reserve(&mut self) -> Result<()> {
        if self.reserve != Reserve::GivenUp {
            return Ok(());
        }
        // Edits may have gone on behind what is reserved, and a reserve that does not fit is cut off
        // again: not what they wrote.
        self.reserved = self.reserved.max(self.end);
        let filled = allocate_reserve(&*self.file, self.reserved);
        self.set_reserve(reserve_of(&filled));
        match filled {
            Err(e) if self.reserve == Reserve::GivenUp => Err(Error::io("allocate", &self.path, e)),
            _ => Ok(()),
        }
    }

    /// Gives the reserve back to the disk. False when there is none.
    pub(crate) fn give_up_reserve(&mut self) -> bool {
        if self.reserve != Reserve::Held {
            return false;
        }
        self.set_reserve(Reserve::GivenUp);
        // Edits may have gone on into it.
        self.reserved = self.reserved.max(self.end + EDIT_BYTES / 2);
        // Synced, since file systems hand out what was cut only once that is durable.
        if self.file.set_len(self.reserved).and_then(|()| self.file.sync_data()).is_err() {
            self.broken.store(true, Ordering::Release);
        }
        true
    }

    fn rewrite(&mut self, state: &ManifestState) -> Result<()> {
        let header = ManifestHeader { incarnation: self.random.next(), ..self.header };
        let Whole { file, end, reserve } =
            write_whole(&*self.disk, &self.dir, &header, state, self.reserve)?;
        self.header = header;
        self.file = file;
        self.end = end;
        self.first_end = end;
        self.reserved = reserved_for(end);
        self.set_reserve(reserve);
        self.written_bytes += end;
        Ok(())
    }
}

/// A manifest that was written anew.
struct Whole {
    file: Arc<dyn DiskFile>,
    end: u64,
    reserve: Reserve,
}

/// Up to where a manifest that ends there has space for edits.
fn reserved_for(end: u64) -> u64 {
    end.max(EDIT_BYTES)
}

fn allocate_reserve(file: &dyn DiskFile, reserved: u64) -> io::Result<()> {
    // A disk that has space for a part of it may have reserved that.
    file.allocate(reserved, RESERVE_BYTES).inspect_err(|_| drop(file.set_len(reserved)))
}

fn reserve_of(allocated: &io::Result<()>) -> Reserve {
    match allocated {
        Ok(()) => Reserve::Held,
        Err(e) if is_full(e) => Reserve::GivenUp,
        Err(_) => Reserve::Unavailable,
    }
}

/// Writes `MANIFEST.new`, with a reserve if one is wanted and the disk has space for it, syncs it,
/// renames it over `MANIFEST`, syncs the folder.
fn write_whole(
    disk: &dyn Disk,
    dir: &Path,
    header: &ManifestHeader,
    state: &ManifestState,
    wanted: Reserve,
) -> Result<Whole> {
    let new = dir.join(MANIFEST_NEW_NAME);
    match disk.remove(&new) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            return Err(Error::io("remove", &new, e));
        }
        _ => {}
    }
    let io = |action, e| Error::io(action, &new, e);
    let file = disk.open(&new, OpenMode::CreateNew).map_err(|e| io("create", e))?;
    let mut bytes = header.encode().to_vec();
    let edits = encode_edits(&state.edits(), header.incarnation, bytes.len() as u64);
    bytes.extend_from_slice(&edits);
    let end = bytes.len() as u64;
    file.allocate(0, reserved_for(end)).map_err(|e| io("allocate", e))?;
    let reserve = match wanted {
        Reserve::Held => reserve_of(&allocate_reserve(&*file, reserved_for(end))),
        // Whoever gave it up wants its space now.
        Reserve::GivenUp | Reserve::Unavailable => wanted,
    };
    write_all(&*file, &new, &bytes, 0)?;
    file.sync_data().map_err(|e| io("sync", e))?;
    let path = dir.join(MANIFEST_NAME);
    disk.rename(&new, &path).map_err(|e| Error::io("rename", &new, e))?;
    disk.sync_dir(dir).map_err(|e| Error::io("sync", dir, e))?;
    Ok(Whole { file, end, reserve })
}

/// One write; a short one is an error, since what stands at the rest is unknown.
pub(crate) fn write_all(file: &dyn DiskFile, path: &Path, bytes: &[u8], offset: u64) -> Result<()> {
    let written = file
        .write_at(&[IoSlice::new(bytes)], offset, Access::Keep)
        .map_err(|e| Error::io("write", path, e))?;
    if written == bytes.len() {
        Ok(())
    } else {
        Err(Error::io("write", path, io::ErrorKind::WriteZero.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::MemoryDisk;
    use crate::disk::faulty::FaultyDisk;

    /// Edits went on behind the space that was reserved for them, on a full disk; the next put tried
    /// to reserve more, could not, and cut off what it had reserved: the newest edits with it.
    #[test]
    fn a_reserve_that_cannot_be_filled_takes_no_edits_with_it() {
        let dir = Path::new("/db");
        let memory = MemoryDisk::new();
        memory.create_dir_all(dir).unwrap();
        let faulty = FaultyDisk::new(Arc::new(memory));
        let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
        let random = Arc::new(Random::new(Some(1)));
        let state = ManifestState::default();
        let mut manifest =
            Manifest::create(Arc::clone(&disk), dir, [7; 16], state, random).unwrap();
        let mut segments = 1..;
        let mut append = |manifest: &mut Manifest, count: usize| {
            let edits: Vec<_> = segments
                .by_ref()
                .take(count)
                .map(|id| Edit::Created { segment: SegmentId(id), incarnation: id })
                .collect();
            manifest.append(&edits).unwrap();
        };
        for free in [0, EDIT_BYTES / 16, EDIT_BYTES / 2, EDIT_BYTES] {
            faulty.set_free_space(None);
            manifest.fill_reserve().unwrap();
            faulty.set_free_space(Some(0));
            assert!(manifest.give_up_reserve());
            faulty.set_free_space(Some(free));
            // As long as there is space behind the last edit.
            let space = manifest.file.len().unwrap() + free;
            while manifest.end + 1600 < space {
                append(&mut manifest, 40);
                let told = manifest.fill_reserve().unwrap_err();
                assert!(told.is_of_full_disk(), "{told:?}");
                let (_, loaded) = load(&*disk, dir).unwrap();
                assert!(loaded == manifest.state, "{free} bytes free, at {}", manifest.end);
            }
        }
    }
}
