//! Every place in the engine that calls the disk: found in its source, seen in its runs.
//!
//! What is in the source and was never seen to be crashed at and to fail is no tested code: the test
//! at the end fails, and names it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};

use engine::disk::faulty::{Call, Fault, Outcome, Repeat};
use engine::disk::{Disk, Gaps, MemoryDisk};
use serde_json::json;

use crate::check::Checker;
use crate::counts;
use crate::failing::{KINDS, Stage, aftermath};
use crate::faults::Random;
use crate::faults::hook::{Hook, HookDisk};
use crate::images::{self, Kept};
use crate::script::{Mode, Script, full_disk, long, scripted};
use crate::world::World;

/// A place that calls the disk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Site {
    /// Below `src`.
    file: String,
    line: u32,
    call: Call,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} {:?}", self.file, self.line, self.call)
    }
}

/// The calls in the order in which they were made.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    calls: Mutex<Vec<(Call, Option<Place>)>>,
}

type Place = (String, u32);

impl Watch {
    /// Each call, with the line in the engine that made it; none for the tests' own.
    fn calls(&self) -> Vec<(Call, Option<Place>)> {
        self.calls.lock().unwrap().clone()
    }
}

impl Hook for Watch {
    fn begin(&self, call: Call, _: &Path) {
        self.calls.lock().unwrap().push((call, caller()));
    }
}

/// A disk whose calls are watched.
pub(crate) fn watch(below: Arc<dyn Disk>) -> (Arc<Watch>, Arc<dyn Disk>) {
    let watch = Arc::new(Watch::default());
    let disk = HookDisk::new(below, &watch);
    (watch, Arc::new(disk))
}

/// Where in the engine, outside of its disks, the innermost frame is.
fn caller() -> Option<Place> {
    static KNOWN: LazyLock<Mutex<HashMap<usize, Option<Place>>>> = LazyLock::new(Mutex::default);
    let mut found = None;
    backtrace::trace(|frame| {
        let mut known = KNOWN.lock().unwrap();
        let address = frame.ip() as usize;
        let place = known.entry(address).or_insert_with(|| {
            let mut place = None;
            backtrace::resolve_frame(frame, |symbol| {
                if place.is_none()
                    && let Some(file) = symbol.filename().and_then(Path::to_str)
                    && let Some((_, file)) = file.rsplit_once("crates/engine/src/")
                    && !file.starts_with("disk/")
                {
                    place = symbol.lineno().map(|line| (file.to_owned(), line));
                }
            });
            place
        });
        found.clone_from(place);
        found.is_none()
    });
    found
}

/// The methods of the seam, and the names by which a disk or a file of it is called where others
/// have methods of the same name.
const METHODS: &[(&str, Call, &[&str])] = &[
    ("open", Call::Open, &["disk"]),
    ("rename", Call::Rename, &["disk"]),
    ("remove", Call::Remove, &["disk"]),
    ("list", Call::List, &["disk"]),
    ("create_dir_all", Call::CreateDir, &["disk"]),
    ("sync_dir", Call::SyncDir, &["disk"]),
    ("lock", Call::Lock, &["disk"]),
    ("map", Call::Map, &["file", "disk_file()"]),
    ("read_at", Call::Read, &["file", "disk_file()", "f"]),
    ("read_exact_at", Call::Read, &["file", "disk_file()"]),
    ("write_at", Call::Write, &["file", "disk_file()"]),
    ("sync_data", Call::SyncData, &["file", "disk_file()"]),
    ("allocate", Call::Allocate, &["file", "disk_file()"]),
    ("set_len", Call::SetLen, &["file", "disk_file()"]),
];

/// Every call of the seam in the engine's source, tests, planted bugs and the disks themselves left
/// out.
fn in_source() -> BTreeSet<Site> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sites = BTreeSet::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                if name != "disk" && !name.ends_with("tests") {
                    folders.push(path);
                }
            } else if !name.ends_with("tests.rs") && name != "planted.rs" {
                sites.extend(in_file(&name, &fs::read_to_string(path).unwrap()));
            }
        }
    }
    sites
}

fn in_file(file: &str, source: &str) -> Vec<Site> {
    // A unit's own tests come last.
    let source = source.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
    let mut sites = Vec::new();
    for (method, call, receivers) in METHODS {
        let pattern = format!(".{method}(");
        for (at, _) in source.match_indices(&pattern) {
            let before = source[..at].trim_end();
            let is_receiver = receivers.iter().any(|receiver| {
                let rest = before.strip_suffix(receiver);
                rest.is_some_and(|rest| !rest.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
            });
            if is_receiver {
                let line = u32::try_from(source[..at].matches('\n').count() + 1).unwrap();
                sites.push(Site { file: file.to_owned(), line, call: *call });
            }
        }
    }
    sites
}

/// The site of a call. Of one that is written over several lines the compiler may name another
/// line.
fn site_of(sites: &BTreeSet<Site>, call: Call, (file, line): &Place) -> Site {
    let same = sites.iter().filter(|site| site.call == call && site.file == *file);
    let nearest = same.min_by_key(|site| site.line.abs_diff(*line));
    match nearest {
        Some(site) if site.line.abs_diff(*line) <= 4 => site.clone(),
        _ => panic!("{file}:{line} calls {call:?} of the disk, which was not found in the source"),
    }
}

/// Faults on the way to a call, one after the other: each the n-th call of all.
type Way = Vec<u64>;

/// A life in which some calls fail, up to `stop`, from which on all do: the machine stops there.
fn live(script: &Script, way: &[u64], stop: Option<u64>) -> (Stage, World) {
    let stage = Stage::new(MemoryDisk::new());
    for n in way {
        let fault = |skip| Fault {
            calls: KINDS.to_vec(),
            skip,
            outcome: Outcome::Error(libc::EIO),
            repeat: Repeat::Once,
        };
        stage.faulty.inject(fault(*n));
    }
    if let Some(stop) = stop {
        stage.faulty.fail_from(&KINDS, stop, libc::EIO);
    }
    let disk = Arc::clone(&stage.disk);
    let mut world = World::faulty(script, &stage.memory, disk).with_space(&stage.faulty);
    world.live(script);
    world.close();
    (stage, world)
}

#[test]
fn every_call_of_the_disk_is_a_crash_point_and_fails() {
    let sites = in_source();
    assert!(sites.len() > 35, "{sites:?}");
    let mut crashed: BTreeMap<Site, u64> = BTreeMap::new();
    let mut failed: BTreeMap<Site, u64> = BTreeMap::new();
    let mut scripts: Vec<Script> = Mode::ALL.into_iter().flat_map(scripted).collect();
    scripts.push(long());
    scripts.push(full_disk(Mode::Durable));
    // Lives to look for calls in: without a fault at first, then with those that the calls found
    // there meet, since some calls are made after a failure only.
    let mut lives: Vec<(usize, Way)> = (0..scripts.len()).map(|script| (script, vec![])).collect();
    let mut next = 0;
    while let Some((number, way)) = lives.get(next).cloned() {
        next += 1;
        let script = &scripts[number];
        let mut checker = Checker::new(script);
        let mut random = Random::seeded(script.seed);
        let (stage, _) = live(script, &way, None);
        let calls = stage.watch.calls();
        for (n, (call, place)) in calls.iter().enumerate() {
            let Some(place) = place else { continue };
            let site = site_of(&sites, *call, place);
            if failed.contains_key(&site) {
                continue;
            }
            let n = n as u64;
            let what = format!("{}: {site}, call {n}, after {way:?}", script.name);
            // The machine stops here.
            let (stopped, world) = live(script, &way, Some(n));
            assert_eq!(stopped.watch.calls()[usize::try_from(n).unwrap()].1.as_ref(), Some(place));
            let now = stopped.memory.trace_len();
            for kept in [Kept::Nothing, Kept::All, Kept::Random(random.next(), 4)] {
                let gaps = Gaps::Garbage(random.next());
                let image = images::build(&stopped.memory, kept, gaps);
                let bounds = world.history.bounds(now, kept == Kept::All);
                checker.check((&image, gaps), &world.history, bounds, &format!("{what}; {kept:?}"));
            }
            *crashed.entry(site.clone()).or_default() += 1;
            // The call fails.
            let mut longer = way.clone();
            longer.push(n);
            let (stage, mut world) = live(script, &longer, None);
            aftermath(&mut world, &stage.faulty, (&mut checker, &mut random), &what);
            *failed.entry(site).or_default() += 1;
            if longer.len() < 3 {
                lives.push((number, longer));
            }
        }
    }
    let missing: Vec<String> =
        sites.iter().filter(|site| !failed.contains_key(site)).map(Site::to_string).collect();
    assert!(missing.is_empty(), "never seen: {missing:#?}");
    assert_eq!(crashed.len(), failed.len());
    let table: Vec<_> = sites
        .iter()
        .map(|site| json!({ "file": site.file, "call": format!("{:?}", site.call) }))
        .collect();
    counts::report("sites", &json!({ "sites": table }));
}
