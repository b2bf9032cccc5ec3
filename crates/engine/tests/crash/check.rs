//! Opens what a crash left, holds it to the history, and crashes it again.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use engine::disk::{CrashImage, Disk, Gaps, RealDisk};
use engine::{CompactionReason, Durability, Id};
use tempfile::TempDir;

use crate::cases::Situation;
use crate::counts::Counts;
use crate::faults::life::IDLE;
use crate::faults::{DIR, Opened, Random, Setup};
use crate::history::{Bounds, History, State, document, id_of, state_of};
use crate::images::{self, Kept};
use crate::script::{Script, Step};
use crate::world::{NAMES, World};

/// Crashes that follow on one another, the first included.
const GENERATIONS: u32 = 3;

/// An id that no script writes.
const AFTER: i64 = 1 << 40;

/// Opens images of the crashes of one life.
#[derive(Debug)]
pub(crate) struct Checker {
    script: Script,
    seen: HashSet<(u64, usize, usize)>,
    opened: u64,
    /// In memory where there is a folder for it, so that a sync costs little.
    fast: TempDir,
    /// On the disk that tests use.
    slow: TempDir,
    pub(crate) counts: Counts,
    /// What of the fault cases the images contained.
    pub(crate) reached: BTreeSet<Situation>,
}

impl Checker {
    pub(crate) fn new(script: &Script) -> Self {
        let slow = tempfile::tempdir().unwrap();
        let shm = Path::new("/dev/shm");
        let fast = match tempfile::Builder::new().prefix("sediment").tempdir_in(shm) {
            Ok(fast) => fast,
            Err(_) => tempfile::tempdir().unwrap(),
        };
        let (seen, counts) = (HashSet::new(), Counts::default());
        let reached = BTreeSet::new();
        Self { script: script.clone(), seen, opened: 0, fast, slow, counts, reached }
    }

    /// Whether an image is new to its bounds, and counts it.
    pub(crate) fn is_new(&mut self, image: &CrashImage, bounds: Bounds) -> bool {
        self.counts.add("images", 1);
        let is_new = self.seen.insert((image.fingerprint(), bounds.at_least, bounds.at_most));
        if is_new {
            self.counts.add("distinct images", 1);
        }
        is_new
    }

    /// Opens an image with the operating system's files, and with every call that follows: lookups,
    /// scans, a write, a close, an open.
    pub(crate) fn check(
        &mut self,
        (image, gaps): (&CrashImage, Gaps),
        history: &History,
        bounds: Bounds,
        what: &str,
    ) -> usize {
        self.opened += 1;
        let place = if self.opened.is_multiple_of(64) { &self.slow } else { &self.fast };
        let folder = tempfile::tempdir_in(place).unwrap();
        image.write_to(Path::new(DIR), folder.path()).unwrap();
        let has = |name: &str| folder.path().join(name).exists();
        let names = [
            (!has("MANIFEST"), Situation::NoManifest),
            (has("MANIFEST.new"), Situation::NewManifest),
        ];
        self.reached
            .extend(names.iter().filter(|(is_there, _)| *is_there).map(|(_, found)| *found));
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::new());
        let setup = self.script.setup;
        let db = setup.open_at(folder.path(), &disk).unwrap_or_else(|e| {
            panic!("{what}: {e}\n{:?}", disk.list(folder.path()).unwrap());
        });
        self.counts.add("opened", 1);
        let found = state_of(&db.database, what);
        let is_unsure = history.unsure.as_ref() == Some(&found);
        let number = match is_unsure {
            true => history.len() - 1,
            false => history.find(&found, bounds, what),
        };
        let recovery = db.database.stats().recovery;
        assert_eq!(recovery.damage, None, "{what}");
        if recovery.torn_tail {
            self.reached.insert(Situation::TornTail);
        }
        if recovery.torn_tail && recovery.segments > 2 && number < bounds.at_most {
            self.reached.insert(Situation::LostAcrossSegments);
        }
        if self.opened.is_multiple_of(4) && !is_unsure {
            history.check_lookups(&db.database, number, what);
        }
        if self.opened.is_multiple_of(2) {
            // The database goes on, and a clean close keeps everything.
            let collection = db.database.collection(NAMES[0]).unwrap();
            collection.put(AFTER, &document(AFTER)).unwrap();
            db.step();
            self.reached.extend(resumed(&db));
            let mut expected = found;
            expected.entry(NAMES[0].to_owned()).or_default().insert(AFTER, AFTER);
            assert!(state_of(&db.database, what) == expected, "{what}: written to");
            // What was merged and removed is held by nobody.
            let deleted: Vec<_> = held(folder.path())
                .into_iter()
                .filter(|name| name.ends_with("(deleted)"))
                .collect();
            assert!(deleted.is_empty(), "{what}: {deleted:?}");
            db.database.close().unwrap_or_else(|e| panic!("{what}: {e}"));
            drop((db, collection));
            let held = held(folder.path());
            assert!(held.is_empty(), "{what}: descriptors and maps after the close: {held:?}");
            let db = setup.open_at(folder.path(), &disk).unwrap();
            assert!(state_of(&db.database, what) == expected, "{what}: opened once more");
            db.step();
            let known = known_files(&db);
            let files = segment_files(&disk, folder.path());
            let stats = db.database.stats();
            // A segment whose header is garbage might be anyone's, and stays.
            let is_known = files == known || gaps != Gaps::Zeros;
            assert!(is_known, "{what}: {files} files, {known} are known: {stats:?}");
            if self.opened.is_multiple_of(8) {
                self.check_accounting(&db, &expected, what);
            }
        }
        number
    }

    /// Once everything is merged, what counts as live is what is there, nothing is superseded, and
    /// nothing is left to do.
    fn check_accounting(&mut self, db: &Opened, state: &State, what: &str) {
        db.database.compact().unwrap();
        (0..20).for_each(|_| db.pass(IDLE));
        let rows = state.values().flatten();
        let live: u64 = rows.map(|(id, value)| content_bytes(*id, *value)).sum();
        let stats = db.database.stats();
        // What is kept of the past counts as well.
        if self.script.setup.history == 0 {
            let dead = (stats.superseded_bytes, stats.superseded_estimated_bytes);
            assert_eq!((stats.live_bytes, dead), (live, (0, 0)), "{what}: {stats:?}");
        }
        assert!(!stats.compaction_due, "{what}: {stats:?}");
        let written = stats.written_bytes;
        (0..5).for_each(|_| db.pass(IDLE));
        assert_eq!(db.database.stats().written_bytes, written, "{what}: at rest");
        self.reached.insert(Situation::AccountedAndAtRest);
    }

    /// Goes on from an image whose state is known: opens it, writes, syncs, and crashes again, while
    /// opening or later; what was there before and what was answered since must be there, and then
    /// once more.
    pub(crate) fn next_generations(
        &mut self,
        (image, gaps): (&CrashImage, Gaps),
        (history, number): (&History, usize),
        random: &mut Random,
        what: &str,
    ) {
        let mut image = image.clone();
        let (mut state, mut sequence) = (history.state(number).clone(), history.sequence(number));
        for generation in 2..=GENERATIONS {
            let disk = image.disk().unwrap();
            disk.start_trace();
            // Zeros ahead are written in one of them and not in the next, and limits become smaller.
            let flip = |setup: Setup| Setup {
                durability: match setup.durability {
                    Durability::Durable => Durability::BUFFERED,
                    _ => Durability::Durable,
                },
                memtable_bytes: setup.memtable_bytes * if generation == 2 { 2 } else { 1 },
                ..setup
            };
            let setup = if generation == 2 { flip(self.script.setup) } else { self.script.setup };
            let script = Script { seed: random.next() >> 24, setup, ..self.script.clone() };
            let known = History::starting_with(state, sequence);
            let mut world = World::again(&script, &disk, known);
            assert!(world.open(), "{what}");
            let torn = world.db().unwrap().database.stats().recovery.torn_tail;
            for step in GOING_ON {
                if random.below(3) > 0 {
                    world.step(*step);
                    world.check_live(what);
                }
            }
            let trace = disk.trace();
            let at = usize::try_from(random.below(trace.len() as u64 + 1)).unwrap();
            let mut replay = engine::disk::Replay::new(image.disk().unwrap());
            trace[..at].iter().for_each(|operation| replay.apply(operation).unwrap());
            let kept = match random.below(4) {
                0 => Kept::Nothing,
                1 => Kept::All,
                _ => Kept::Random(random.next(), 1 + random.below(7)),
            };
            let next = images::build(replay.disk(), kept, gaps);
            let what =
                format!("{what}; generation {generation}: {at} of {}, {kept:?}", trace.len());
            let bounds = world.history.bounds(at, kept == Kept::All);
            let number = self.check((&next, gaps), &world.history, bounds, &what);
            self.counts.add("generations", 1);
            if generation == 3 {
                self.reached.insert(Situation::OtherOptions);
            }
            if torn {
                self.reached.insert(Situation::CrashedAfterTornTail);
            }
            state = world.history.state(number).clone();
            sequence = world.history.sequence(number);
            image = next;
        }
    }
}

/// Whether the sweep that a crash interrupted went on: jobs of one that had begun before.
fn resumed(db: &Opened) -> Option<Situation> {
    let merges = [CompactionReason::Indexes, CompactionReason::Documents];
    let totals = db.database.stats().compactions;
    let mut sweeps = totals.iter().filter(|entry| !merges.contains(&entry.reason));
    sweeps.any(|entry| entry.count == 0 && entry.steps > 0).then_some(Situation::SweepResumed)
}

/// Bytes of an id and its document.
fn content_bytes(id: i64, value: i64) -> u64 {
    let id = match id_of(id) {
        Id::String(text) => text.len(),
        _ => 8,
    };
    // A byte tells the id's type.
    (1 + id + bson::serialize_to_vec(&document(value)).unwrap().len()) as u64
}

/// The files of a folder of which this process has a descriptor or a map.
fn held(folder: &Path) -> Vec<String> {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    // One may be closed by another test meanwhile.
    let links = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let links: Vec<String> = links.map(|link| link.to_string_lossy().into_owned()).collect();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let maps = maps.lines().filter_map(|line| line.find('/').map(|at| line[at..].to_owned()));
    let folder = folder.to_str().unwrap();
    links.into_iter().chain(maps).filter(|name| name.starts_with(folder)).collect()
}

/// What a database that was recovered does before it crashes again.
const GOING_ON: &[Step] = &[
    Step::Put(2),
    Step::Work,
    Step::Batch(4),
    Step::Sync,
    Step::Delete(1),
    Step::Roll,
    Step::Work,
    Step::DurableBatch(2),
    Step::Put(1),
    Step::Flush,
    Step::Compact,
    Step::Batch(3),
];

/// The segment files that a database knows, with the one that is prepared.
fn known_files(db: &Opened) -> u64 {
    let stats = db.database.stats();
    stats.segments_sealed + stats.segments_unsealed + 1
}

fn segment_files(disk: &Arc<dyn Disk>, folder: &Path) -> u64 {
    let names = disk.list(folder).unwrap();
    names.iter().filter(|name| name.to_string_lossy().ends_with(".seg")).count() as u64
}
