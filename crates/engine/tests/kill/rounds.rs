//! Starting victims, killing them, and looking at what they leave.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use engine::{Database, Stats};
use tempfile::TempDir;

use crate::common::{Random, copy_folder};
use crate::counts::Counts;
use crate::operations::{ANSWERS, WRITERS};
use crate::oracle::Oracle;
use crate::setup::{MODES, Mode, open};
use crate::victim::{ORDERS, Orders};

/// When a victim is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So long after it began to open the database.
    Opening(Duration),
    /// So long after so many answers.
    Answers(u64, Duration),
}

/// One database, killed over and over.
pub(crate) struct Rounds {
    mode: Mode,
    seed: u64,
    random: Random,
    folder: Option<TempDir>,
    path: PathBuf,
    oracle: Option<Oracle>,
    round: u32,
    /// How long the last opening took that was not cut short.
    opening: Duration,
}

impl Rounds {
    /// Victims are killed while they create the database, before it is there.
    pub(crate) fn new(mode: Mode, seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let opening = Duration::from_millis(5);
        let random = Random::new(seed);
        let mut rounds = Self {
            mode,
            seed,
            random,
            folder: Some(folder),
            path,
            oracle: None,
            round: 0,
            opening,
        };
        for _ in 0..3 {
            let child = rounds.start(None);
            let moment = Moment::Opening(rounds.moment_of_opening());
            rounds.kill(child, moment, &mut Counts::default());
        }
        let database = open(&rounds.path, mode, seed).unwrap();
        rounds.oracle = Some(Oracle::new(seed, mode, &database));
        database.close().unwrap();
        rounds
    }

    /// A victim is killed while it writes, some that come after it while they recover what it left,
    /// and the database is compared with the oracle.
    pub(crate) fn round(&mut self, counts: &mut Counts) {
        self.round += 1;
        counts.rounds += 1;
        let answers = 1 + self.random.below(300) as u64;
        let delay = if self.random.percent(50) { self.random.below(5000) as u64 } else { 0 };
        let child = self.start(self.oracle.as_ref().map(Oracle::done));
        let seen = self.kill(child, Moment::Answers(answers, Duration::from_micros(delay)), counts);
        assert!(seen.answers >= answers, "the victim ended by itself after {seen:?}");
        if self.random.percent(60) {
            self.kill_in_recovery(counts);
        }
        self.verify(counts);
    }

    /// One after the other until one is killed before it has opened the database. They write nothing:
    /// whether the last unanswered operation came through is not known yet.
    fn kill_in_recovery(&mut self, counts: &mut Counts) {
        for _ in 0..20 {
            let child = self.start(None);
            let moment = Moment::Opening(self.moment_of_opening());
            if !self.kill(child, moment, counts).is_open {
                counts.kills_in_recovery += 1;
                return;
            }
        }
    }

    fn moment_of_opening(&mut self) -> Duration {
        let micros = usize::try_from(self.opening.as_micros()).unwrap();
        Duration::from_micros(self.random.below(micros.max(1)) as u64)
    }

    fn start(&mut self, done: Option<[u64; WRITERS]>) -> Child {
        let orders = Orders {
            folder: self.path.clone(),
            mode: self.mode.name().to_owned(),
            seed: self.seed,
            options: self.random.next(),
            done,
        };
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["victim", "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(ORDERS, serde_json::to_string(&orders).unwrap());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Listens to a victim, kills it at its moment, and tells the oracle what was answered.
    fn kill(&mut self, mut child: Child, moment: Moment, counts: &mut Counts) -> Seen {
        let mut seen = Seen::default();
        let mut began = Instant::now();
        let kill = |child: &mut Child, delay| {
            thread::sleep(delay);
            child.kill().unwrap();
        };
        let mut pipe = BufReader::new(child.stdout.take().unwrap());
        let mut line = Vec::new();
        // What is in the pipe when the victim dies counts too, but for a line that is cut.
        while pipe.read_until(b'\n', &mut line).unwrap() > 0 && line.ends_with(b"\n") {
            let text = std::str::from_utf8(&line).unwrap().trim_end();
            let words: Vec<&str> = text.split(' ').collect();
            match words[..] {
                ["opening"] => {
                    began = Instant::now();
                    if let Moment::Opening(delay) = moment {
                        kill(&mut child, delay);
                    }
                }
                ["open"] => {
                    seen.is_open = true;
                    counts.reopenings += 1;
                    if let Moment::Answers(..) = moment {
                        self.opening = began.elapsed();
                    }
                }
                ["answered", writer, n, answer] => {
                    let (answer, _) = *ANSWERS.iter().find(|(_, name)| *name == answer).unwrap();
                    let oracle = self.oracle.as_mut().unwrap();
                    oracle.answered(writer.parse().unwrap(), n.parse().unwrap(), answer);
                    seen.answers += 1;
                    if let Moment::Answers(answers, delay) = moment
                        && seen.answers == answers
                    {
                        kill(&mut child, delay);
                    }
                }
                ["merged", compactions, seals] => {
                    seen.compactions = compactions.parse().unwrap();
                    seen.seals = seals.parse().unwrap();
                }
                _ => {}
            }
            line.clear();
        }
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGKILL), "the victim was not killed: {status}");
        counts.kills += 1;
        counts.answered_writes += seen.answers;
        counts.compactions += seen.compactions;
        counts.seals += seen.seals;
        seen
    }

    /// Opens the folder, or a copy of it so that the next victim finds what this one left, and
    /// compares it with the oracle.
    fn verify(&mut self, counts: &mut Counts) {
        let is_copy = self.random.percent(40);
        let mut path = self.path.clone();
        if is_copy {
            path.set_file_name("copy");
            copy_folder(&self.path, &path);
        }
        let database = self.open(&path, counts);
        let oracle = self.oracle.as_mut().unwrap();
        counts.unanswered_writes += oracle.settle(&database);
        counts.verified_rows += oracle.check(&database, "after a kill");
        if self.random.percent(30) {
            database.compact().unwrap();
            counts.verified_rows += oracle.check(&database, "merged");
        }
        database.close().unwrap();
        check_files(&path, &database.stats());
        if self.random.percent(30) {
            let database = self.open(&path, counts);
            let oracle = self.oracle.as_ref().unwrap();
            counts.verified_rows += oracle.check(&database, "after a close");
            assert_eq!(database.stats().recovery.records, 0, "all was sealed");
            database.close().unwrap();
            check_files(&path, &database.stats());
        }
        if is_copy {
            std::fs::remove_dir_all(&path).unwrap();
        }
    }

    fn open(&mut self, path: &Path, counts: &mut Counts) -> Database {
        let mode = *self.random.pick(&MODES);
        let database = open(path, mode, self.random.next()).unwrap();
        counts.reopenings += 1;
        counts.recovered_records += database.stats().recovery.records;
        database
    }
}

/// What a victim said.
#[derive(Debug, Default)]
struct Seen {
    is_open: bool,
    answers: u64,
    compactions: u64,
    seals: u64,
}

/// After a close the folder holds the files that the database knows, and no others.
fn check_files(path: &Path, stats: &Stats) {
    let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    let (segments, others): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| name.ends_with(".seg"));
    assert_eq!(others, ["LOCK", "MANIFEST"]);
    assert_eq!(segments.len() as u64, stats.segments_sealed, "{segments:?}");
    assert_eq!(stats.files_left_behind, 0);
}

impl Drop for Rounds {
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        eprintln!("in round {} of {:?}, whose seed is {}", self.round, self.mode, self.seed);
        if std::env::var_os("SEDIMENT_KEEP").is_some()
            && let Some(folder) = self.folder.take()
        {
            eprintln!("kept: {}", folder.keep().display());
        }
    }
}
