//! The process that is killed: opens the database, has its writers go on where they were, and tells
//! the parent of each answer.

use std::io::Write;
use std::path::PathBuf;
use std::thread;

use engine::{Batch, Collection, Database, Error, Id, Snapshot, WriteDurability};
use serde::{Deserialize, Serialize};

use crate::operations::{
    ANSWERS, Answer, COLLECTIONS, Change, Operation, WRITERS, field, field_of, fleeting, id_of,
    shared_id,
};
use crate::setup::{Mode, open};

/// The variable that holds the [`Orders`].
pub(crate) const ORDERS: &str = "SEDIMENT_KILL_ORDERS";

/// What the parent tells the victim.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Orders {
    pub(crate) folder: PathBuf,
    pub(crate) mode: String,
    /// From which the operations follow.
    pub(crate) seed: u64,
    /// From which the options follow.
    pub(crate) options: u64,
    /// The number of each writer's last operation; without them nothing is to be written.
    pub(crate) done: Option<[u64; WRITERS]>,
}

pub(crate) fn run() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let orders: Orders = serde_json::from_str(&orders).unwrap();
    let mode = Mode::named(&orders.mode);
    // A panic anywhere ends the process at once, which the parent notices.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        report(info);
        std::process::exit(101);
    }));
    // The line before may be the test harness's.
    say("\nopening");
    let database = open(&orders.folder, mode, orders.options).unwrap();
    say("open");
    let Some(done) = orders.done else {
        loop {
            thread::park();
        }
    };
    thread::scope(|scope| {
        for (writer, done) in done.into_iter().enumerate() {
            let mut writer = Writer::new(&database, writer);
            scope.spawn(move || {
                for n in done + 1.. {
                    let operation = Operation::of(orders.seed, mode, writer.number, n);
                    let answer = writer.carry_out(n, operation).unwrap();
                    let (_, name) = ANSWERS.iter().find(|(known, _)| *known == answer).unwrap();
                    say(&format!("answered {} {n} {name}", writer.number));
                    if writer.number == 0 {
                        writer.say_what_was_merged();
                    }
                }
            });
        }
    });
}

/// One write to the pipe, a whole line. Ends the process when nobody listens.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

type Rows = Vec<(Id<'static>, Vec<u8>)>;

struct Writer<'a> {
    number: usize,
    database: &'a Database,
    collections: [Collection; 2],
    /// The last snapshot, and what it saw.
    snapshot: Option<(Snapshot, [Rows; 2])>,
}

impl<'a> Writer<'a> {
    fn new(database: &'a Database, number: usize) -> Self {
        let collections = COLLECTIONS.map(|name| database.collection(name).unwrap());
        Self { number, database, collections, snapshot: None }
    }

    fn carry_out(&mut self, n: u64, operation: Operation) -> engine::Result<Answer> {
        let number = self.number;
        match operation {
            Operation::Change(Change { collection, slot, document }) => {
                let (collection, id) = (&self.collections[collection], id_of(number, slot));
                match document {
                    Some(document) => collection.put_raw(id, &document)?,
                    None => collection.delete(id)?,
                }
            }
            Operation::Batch(changes) => self.database.write(self.batch(&changes)?)?,
            Operation::Durable(changes) => {
                self.database.write_with(self.batch(&changes)?, WriteDurability::Durable)?;
            }
            Operation::Insert(Change { collection, slot, document }) => {
                let document = document.expect("an insert has a document");
                match self.collections[collection].insert_raw(id_of(number, slot), &document) {
                    Err(Error::AlreadyExists { .. }) => return Ok(Answer::Taken),
                    outcome => outcome?,
                }
            }
            Operation::Update { slot } => {
                match self.collections[0].update_raw(id_of(number, slot), &field("n", n)) {
                    Err(Error::NotFound { .. }) => return Ok(Answer::Missing),
                    outcome => outcome?,
                }
            }
            Operation::Share { shared } => {
                self.collections[0].update_raw(shared_id(shared), &field(&field_of(number), n))?;
            }
            Operation::PutFleeting { slot, document } => {
                let own = self.database.collection(&fleeting(number))?;
                own.put_raw(id_of(number, slot), &document)?;
            }
            Operation::DropFleeting => {
                self.database.drop_collection(&fleeting(number))?;
            }
            Operation::Sync => self.database.sync()?,
            Operation::Compact => self.database.compact()?,
            Operation::Snapshot => self.look_back()?,
        }
        Ok(Answer::Done)
    }

    fn batch(&self, changes: &[Change]) -> engine::Result<Batch> {
        let mut batch = Batch::new();
        for Change { collection, slot, document } in changes {
            let (collection, id) = (&self.collections[*collection], id_of(self.number, *slot));
            match document {
                Some(document) => batch.put_raw(collection, id, document)?,
                None => batch.delete(collection, id)?,
            }
        }
        Ok(batch)
    }

    /// What the last snapshot saw must still be what it sees.
    fn look_back(&mut self) -> engine::Result<()> {
        if let Some((snapshot, before)) = self.snapshot.take() {
            assert!(self.read(&snapshot)? == before, "a snapshot has changed");
        }
        let snapshot = self.database.snapshot()?;
        let rows = self.read(&snapshot)?;
        self.snapshot = Some((snapshot, rows));
        Ok(())
    }

    fn read(&self, snapshot: &Snapshot) -> engine::Result<[Rows; 2]> {
        let mut rows = [Rows::new(), Rows::new()];
        for (collection, rows) in self.collections.iter().zip(&mut rows) {
            for row in snapshot.scan(collection, ..)? {
                let (id, document) = row?;
                rows.push((id, document.as_bytes().to_vec()));
            }
        }
        Ok(rows)
    }

    fn say_what_was_merged(&self) {
        let stats = self.database.stats();
        let count: u64 = stats.compactions.iter().map(|did| did.count).sum();
        say(&format!("merged {count} {}", stats.seals));
    }
}
