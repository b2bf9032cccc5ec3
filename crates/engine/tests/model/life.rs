//! Operations on the database as a whole: opening, closing, crashing, collections, background work.

use std::sync::Arc;
use std::time::Duration;

use engine::clock::ManualClock;
use engine::executor::{Stepped, Threads};
use engine::{Compaction, Database, Durability, Error, Options, Reads};

use crate::common::{DB, copy_folder, killed, power_lost, tiny};
use crate::content::Rows;
use crate::world::{Dropped, Live, NAMES, Open, Place, World};

impl World {
    fn options(&mut self) -> (Options, Option<Arc<Stepped>>, Durability, u64) {
        let random = &mut self.random;
        let durability = match random.below(3) {
            0 => Durability::Durable,
            1 => Durability::BUFFERED,
            _ => Durability::Buffered { flush_interval: Duration::from_millis(1) },
        };
        let mut options = tiny()
            .durability(durability)
            .memtable_bytes(*random.pick(&[4 << 10, 4 << 10, 6000, 32 << 10]))
            .segment_bytes(*random.pick(&[16 << 10, 20_000, 64 << 10, 256 << 10]))
            .reads(*random.pick(&[Reads::Automatic, Reads::Mapped, Reads::Pread]))
            .level0_runs(*random.pick(&[2, 2, 3, 6]));
        let history = *random.pick(&[0, 0, 0, 5, 50, 1000]);
        options = options.history(history);
        if random.percent(15) {
            options = options.compaction(Compaction::Manual);
        }
        let stepped = if random.percent(60) {
            let clock = Arc::new(ManualClock::default());
            let stepped = Arc::new(Stepped::new(Arc::clone(&clock)));
            options = options.clock(clock).executor(Arc::clone(&stepped) as _);
            Some(stepped)
        } else {
            if random.percent(30) {
                options = options.executor(Arc::new(Threads::new(1).unwrap()));
            }
            None
        };
        if let Place::Memory(disk) = &self.place {
            options = options.disk(Arc::new(disk.clone()));
        }
        (options, stepped, durability, history)
    }

    pub(crate) fn open(&mut self) {
        let (options, stepped, durability, history) = self.options();
        self.say(|| format!("open: {options:?}"));
        let database = match &self.place {
            Place::Memory(_) => Database::open(DB, options),
            Place::Real { path, .. } => Database::open(path, options),
        };
        let database = database.unwrap();
        let report = database.stats().recovery;
        assert_eq!(report.damage, None);
        self.totals.records_recovered += report.records;
        self.open = Some(Open { database, stepped, durability, history });
        self.note_horizon();
    }

    /// Lets go of all that refers to the open database. It closes itself then, if it is still open.
    fn let_go(&mut self) -> Vec<(&'static str, u64, Rows)> {
        self.snapshots.clear();
        self.dropped.clear();
        self.note_horizon();
        let open = self.open.take().unwrap();
        let collections = std::mem::take(&mut self.collections).into_iter();
        let rows = collections.map(|(name, live)| (name, live.number, live.rows)).collect();
        self.totals.count(&open.database.stats());
        drop(open);
        rows
    }

    fn reopen_with(&mut self, rows: Vec<(&'static str, u64, Rows)>) {
        self.look_at_held();
        if self.held.len() > 30 {
            self.held.clear();
        }
        self.open();
        let database = self.database();
        for (name, number, rows) in rows {
            assert!(database.collections().unwrap().iter().any(|known| known == name), "{name}");
            let handle = database.collection(name).unwrap();
            self.collections.insert(name, Live { handle, number, rows });
        }
        self.verify();
    }

    pub(crate) fn close(&mut self) {
        let database = self.database();
        database.close().unwrap();
        database.close().unwrap();
        assert!(matches!(database.snapshot(), Err(Error::Closed)));
        for past in &self.snapshots {
            for (collection, _) in past.collections.values() {
                assert!(matches!(past.snapshot.get(collection, 1), Err(Error::Closed)));
            }
        }
        for live in self.collections.values() {
            assert!(matches!(live.handle.get(1), Err(Error::Closed)));
            assert!(matches!(live.handle.delete(1), Err(Error::Closed)));
        }
    }

    pub(crate) fn close_and_reopen(&mut self) {
        self.say(|| "close".to_owned());
        self.totals.closes += 1;
        self.close();
        let rows = self.let_go();
        self.reopen_with(rows);
        let report = self.database().stats().recovery;
        assert_eq!((report.records, report.segments), (0, 0), "after a clean close");
    }

    pub(crate) fn drop_and_reopen(&mut self) {
        self.say(|| "drop without close".to_owned());
        self.totals.drops += 1;
        let rows = self.let_go();
        self.reopen_with(rows);
        let report = self.database().stats().recovery;
        assert_eq!((report.records, report.segments), (0, 0), "the last handle closes");
    }

    /// As if the process was killed: what the operating system has stays, in both durabilities.
    pub(crate) fn kill_and_reopen(&mut self) {
        let by_hand = self.open.as_ref().unwrap().stepped.is_some();
        self.say(|| "kill".to_owned());
        match &mut self.place {
            Place::Memory(disk) => {
                let left = killed(disk);
                let rows = self.let_go();
                self.place = Place::Memory(left);
                self.totals.kills += 1;
                self.reopen_with(rows);
            }
            // Threads may write while the files are copied.
            Place::Real { .. } if !by_hand => {}
            Place::Real { folder, path, copies } => {
                *copies += 1;
                let copy = folder.path().join(copies.to_string());
                copy_folder(path, &copy);
                *path = copy;
                let rows = self.let_go();
                self.totals.kills += 1;
                self.reopen_with(rows);
            }
        }
    }

    /// What is answered and durable stays, whatever becomes of the rest.
    pub(crate) fn cut_power_and_reopen(&mut self) {
        self.say(|| "power cut".to_owned());
        if self.open.as_ref().unwrap().durability != Durability::Durable {
            self.sync();
        }
        let Place::Memory(disk) = &self.place else { return };
        let left = if self.random.percent(50) {
            power_lost(disk)
        } else {
            let random = &mut self.random;
            disk.power_cut(|_| random.percent(50)).unwrap()
        };
        let rows = self.let_go();
        self.place = Place::Memory(left);
        self.totals.power_cuts += 1;
        self.reopen_with(rows);
    }

    pub(crate) fn sync(&mut self) {
        self.say(|| "sync".to_owned());
        self.database().sync().unwrap();
    }

    pub(crate) fn background(&mut self) {
        if self.random.percent(20) {
            self.say(|| "wait until idle".to_owned());
            let database = self.database();
            database.wait_idle().unwrap();
            let stats = database.stats();
            assert_eq!(stats.segments_unsealed, 1, "{stats:?}");
            return;
        }
        let Some(stepped) = &self.open.as_ref().unwrap().stepped else { return };
        let (steps, moved) = (self.random.below(5), self.random.below(400));
        self.say(|| format!("{moved} ms pass, {steps} jobs run"));
        stepped.advance(Duration::from_millis(moved as u64));
        for _ in 0..steps {
            stepped.step();
        }
    }

    pub(crate) fn create(&mut self, name: &'static str) {
        self.say(|| format!("create {name}"));
        let handle = self.database().collection(name).unwrap();
        self.next_number += 1;
        self.history.created();
        let live = Live { handle, number: self.next_number, rows: Rows::new() };
        assert!(self.collections.insert(name, live).is_none());
    }

    pub(crate) fn drop_collection(&mut self) {
        let name = *self.random.pick(&NAMES);
        self.say(|| format!("drop collection {name}"));
        let existed = self.database().drop_collection(name).unwrap();
        match self.collections.remove(name) {
            None => assert!(!existed, "{name}"),
            Some(live) => {
                assert!(existed, "{name}");
                self.totals.collections_dropped += 1;
                let at = self.history.dropped(live.number);
                self.dropped.push(Dropped { handle: live.handle, number: live.number, at });
            }
        }
    }

    /// Gets a collection anew, or creates it.
    pub(crate) fn ask_for_collection(&mut self) {
        let name = *self.random.pick(&NAMES);
        match self.collections.get_mut(name) {
            None => self.create(name),
            Some(live) => {
                let again = self.open.as_ref().unwrap().database.collection(name).unwrap();
                assert_eq!(again.scan_ids(..).unwrap().count(), live.rows.len());
                live.handle = again;
            }
        }
    }
}
