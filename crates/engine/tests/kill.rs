//! A process that is killed with SIGKILL at any moment loses no write that it was answered, in
//! either durability.
//!
//! The test runs its own program again as the victim, which reports each answered write on a pipe.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use common::{DURABILITIES, Seed, tiny};
use engine::{Batch, Collection, Database, Durability, Id};
use serde_json::json;

const FOLDER: &str = "SEDIMENT_KILL_FOLDER";
const BUFFERED: &str = "SEDIMENT_KILL_BUFFERED";
const THREADS: i64 = 3;
const ROUNDS: u64 = 12;
/// Each thread has its ids for itself.
const SPAN: i64 = 1 << 32;

fn open(path: &Path, durability: Durability) -> (Database, [Collection; 2]) {
    let durability = match durability {
        // Flushes often, so that kills meet them.
        Durability::Buffered { .. } => {
            Durability::Buffered { flush_interval: Duration::from_millis(5) }
        }
        Durability::Durable => durability,
    };
    let options = tiny().durability(durability).memtable_bytes(16 << 10).segment_bytes(64 << 10);
    let database = Database::open(path, options).unwrap();
    let collections = ["single", "together"].map(|name| database.collection(name).unwrap());
    (database, collections)
}

/// The number of a thread's last write in the database, from its own counter document.
fn last_of([single, _]: &[Collection; 2], thread: i64) -> i64 {
    let counter = single.get(format!("thread {thread}")).unwrap();
    counter.map_or(0, |counter| counter.get_i64("last").unwrap().unwrap())
}

/// Write `n` of a thread: a put, then three documents in both collections and the thread's counter
/// as one batch.
fn write(database: &Database, [single, together]: &[Collection; 2], thread: i64, n: i64) {
    let id = thread * SPAN + n;
    let document =
        json!({ "thread": thread, "n": n, "pad": "p".repeat(usize::try_from(n % 300).unwrap()) });
    single.put(id, &document).unwrap();
    let mut batch = Batch::new();
    for i in 0..3 {
        batch.put(together, id * 3 + i, &document).unwrap();
    }
    // What is deleted in the next write must not come back either.
    batch.put(single, format!("last of {thread}: {n}"), &document).unwrap();
    batch.delete(single, format!("last of {thread}: {}", n - 1)).unwrap();
    batch.put(single, format!("thread {thread}"), &json!({ "last": n })).unwrap();
    database.write(batch).unwrap();
}

/// The process that is killed: writes until then, and says so after each answer. Does nothing in an
/// ordinary run.
#[test]
fn victim() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let durability = DURABILITIES[usize::from(std::env::var_os(BUFFERED).is_some())];
    let (database, collections) = open(Path::new(&folder), durability);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (database, collections) = (&database, &collections);
            scope.spawn(move || {
                for n in last_of(collections, thread) + 1.. {
                    write(database, collections, thread, n);
                    // One write to the pipe, whole lines.
                    let line = format!("answered {thread} {n}\n");
                    let mut out = std::io::stdout().lock();
                    if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
                        // The one who wanted to know is gone.
                        return;
                    }
                }
            });
        }
    });
}

/// Runs the victim and kills it after so many answers. The last one of each thread.
fn run_and_kill(folder: &Path, durability: Durability, answers: usize) -> [i64; 3] {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["victim", "--exact", "--nocapture", "--test-threads=1"]);
    command.env(FOLDER, folder).stdin(Stdio::null()).stdout(Stdio::piped());
    if durability != Durability::Durable {
        command.env(BUFFERED, "1");
    }
    let mut child = command.spawn().unwrap();
    let mut last = [0; 3];
    let mut seen = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        // What is in the pipe when the victim dies counts too; a line may be cut.
        let line = line.unwrap();
        let mut words = line.split(' ').skip_while(|word| !word.ends_with("answered")).skip(1);
        let (Some(thread), Some(n)) = (words.next(), words.next()) else { continue };
        let (Ok(thread), Ok(n)) = (thread.parse::<usize>(), n.parse::<i64>()) else { continue };
        assert!(n > last[thread]);
        last[thread] = n;
        seen += 1;
        if seen == answers {
            child.kill().unwrap();
        }
    }
    assert!(seen >= answers, "the victim ended by itself after {seen} answers");
    assert!(!child.wait().unwrap().success(), "the victim was not killed");
    last
}

/// Every thread's writes are there without a hole up to its counter, whole, and nothing is there
/// beyond what it can have begun.
fn check(database: &Database, collections: &[Collection; 2], answered: [i64; 3]) {
    let [single, together] = collections;
    for (thread, answered) in (0..THREADS).zip(answered) {
        let last = last_of(collections, thread);
        assert!(
            last >= answered,
            "thread {thread}: write {answered} was answered, {last} is the last"
        );
        let range = thread * SPAN..(thread + 1) * SPAN;
        let numbers: Vec<i64> = single
            .scan(range.clone())
            .unwrap()
            .map(|row| {
                let (id, document) = row.unwrap();
                let n = document.get_i64("n").unwrap().unwrap();
                assert_eq!(id, Id::from(thread * SPAN + n));
                let pad = document.get_str("pad").unwrap().unwrap();
                assert_eq!(pad.len(), usize::try_from(n % 300).unwrap());
                n
            })
            .collect();
        // The put of the next write may have come through before its batch.
        let end = numbers.last().copied().unwrap_or(0);
        assert!(end == last || end == last + 1, "thread {thread}: {last} batches, {end} puts");
        assert_eq!(numbers, (1..=end).collect::<Vec<_>>(), "thread {thread} has a hole");
        let expected: Vec<_> =
            (range.start * 3 + 3..range.start * 3 + 3 * (last + 1)).map(Id::from).collect();
        let found: Vec<_> = together
            .scan_ids(range.start * 3..range.end * 3)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(found, expected, "thread {thread}: batches");
        let markers = single.scan_ids(engine::prefix(&format!("last of {thread}: "))).unwrap();
        let markers: Vec<_> = markers.map(|id| id.unwrap()).collect();
        let expected = (last > 0).then(|| Id::from(format!("last of {thread}: {last}")));
        assert_eq!(markers, expected.into_iter().collect::<Vec<_>>());
    }
    assert_eq!(database.stats().recovery.damage, None);
}

fn kill_repeatedly(durability: Durability) {
    let seed = Seed::or(9);
    let mut random = seed.random();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let mut recovered = 0;
    for _ in 0..ROUNDS {
        let answers = 1 + random.below(400);
        let answered = run_and_kill(&path, durability, answers);
        let (database, collections) = open(&path, durability);
        check(&database, &collections, answered);
        recovered += database.stats().recovery.records;
        if random.percent(50) {
            // Otherwise the next victim finds what this one leaves: a clean close.
            write(&database, &collections, 0, last_of(&collections, 0) + 1);
            drop(database);
            drop(collections);
            let (database, collections) = open(&path, durability);
            check(&database, &collections, answered);
        }
    }
    assert!(recovered > 0, "no kill left anything to recover");
}

/// One durability after the other: a victim that one thread forks would for a moment share the lock
/// that another thread lets go of.
#[test]
fn a_killed_process_loses_no_answered_write() {
    for durability in DURABILITIES {
        kill_repeatedly(durability);
    }
}
