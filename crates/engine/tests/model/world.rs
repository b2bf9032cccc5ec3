//! A database and what it should hold.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use engine::disk::MemoryDisk;
use engine::executor::Stepped;
use engine::{Collection, Database, Document, Durability, Id, Snapshot};

use crate::common::{Random, Seed};
use crate::content::{Rows, Stored, ids};
use crate::history::History;
use crate::totals::Totals;

pub(crate) const NAMES: [&str; 3] = ["a", "b", "a third collection"];

/// Where a database lives.
pub(crate) enum Place {
    Memory(MemoryDisk),
    Real { folder: tempfile::TempDir, path: PathBuf, copies: usize },
}

pub(crate) struct Open {
    pub(crate) database: Database,
    /// Set when background jobs run by hand.
    pub(crate) stepped: Option<Arc<Stepped>>,
    pub(crate) durability: Durability,
    /// [`engine::Options::history`].
    pub(crate) history: u64,
}

pub(crate) struct Live {
    pub(crate) handle: Collection,
    /// Tells collections of one name apart.
    pub(crate) number: u64,
    pub(crate) rows: Rows,
}

/// A collection that was dropped since the database was opened.
pub(crate) struct Dropped {
    pub(crate) handle: Collection,
    pub(crate) number: u64,
    /// The sequence of its drop.
    pub(crate) at: u64,
}

/// A snapshot and what it must see, by the collections' numbers.
pub(crate) struct Past {
    pub(crate) snapshot: Snapshot,
    pub(crate) collections: BTreeMap<u64, (Collection, Rows)>,
}

pub(crate) struct World {
    pub(crate) random: Random,
    pub(crate) ids: Vec<Id<'static>>,
    pub(crate) place: Place,
    pub(crate) open: Option<Open>,
    pub(crate) collections: BTreeMap<&'static str, Live>,
    pub(crate) next_number: u64,
    pub(crate) dropped: Vec<Dropped>,
    pub(crate) history: History,
    /// The horizon is not above this.
    pub(crate) horizon_max: u64,
    pub(crate) snapshots: Vec<Past>,
    /// Documents that are held on to, whatever happens to the database.
    pub(crate) held: Vec<(Document, Arc<Stored>)>,
    pub(crate) totals: Totals,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let place = if random.percent(4) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("0");
            Place::Real { folder, path, copies: 0 }
        } else {
            Place::Memory(MemoryDisk::new())
        };
        let ids = ids(&mut random);
        let mut world = Self {
            random,
            ids,
            place,
            open: None,
            collections: BTreeMap::new(),
            next_number: 0,
            dropped: Vec::new(),
            history: History::default(),
            horizon_max: 0,
            snapshots: Vec::new(),
            held: Vec::new(),
            totals: Totals::default(),
        };
        world.open();
        world.create("a");
        world.create("b");
        world
    }

    pub(crate) fn database(&self) -> Database {
        self.open.as_ref().unwrap().database.clone()
    }

    /// A collection, by name.
    pub(crate) fn some_collection(&mut self) -> Option<&'static str> {
        let names: Vec<_> = self.collections.keys().copied().collect();
        (!names.is_empty()).then(|| *self.random.pick(&names))
    }

    pub(crate) fn some_id(&mut self) -> Id<'static> {
        self.random.pick(&self.ids).clone()
    }

    /// Says what happens, when one case is looked at.
    pub(crate) fn say(&self, what: impl FnOnce() -> String) {
        if Seed::asked_for().is_some() {
            println!("{}", what());
        }
    }

    pub(crate) fn operate(&mut self) {
        self.totals.operations += 1;
        match self.random.below(1000) {
            0..120 => self.put(),
            120..145 => self.read_the_past(),
            145..190 => drop(self.step_and_read()),
            190..204 => self.compact(),
            204..210 => self.pressure(),
            210..260 => self.insert(),
            260..360 => self.update(),
            360..430 => self.delete(),
            430..510 => self.batch(),
            510..540 => self.burst(),
            540..650 => self.get(),
            650..730 => self.scan_live(),
            730..760 => self.scan_while_writing(),
            760..790 => self.take_snapshot(),
            790..850 => self.read_snapshot(),
            850..860 => self.drop_snapshot(),
            860..870 => self.sync(),
            870..910 => self.background(),
            910..922 => self.close_and_reopen(),
            922..930 => self.drop_and_reopen(),
            930..942 => self.kill_and_reopen(),
            942..954 => self.cut_power_and_reopen(),
            954..970 => self.drop_collection(),
            970..985 => self.ask_for_collection(),
            999 if self.random.percent(30) => self.deep(),
            _ => self.look_at_held(),
        }
        self.check_stats();
    }

    /// A document was written to a collection, or deleted from it.
    pub(crate) fn wrote(
        &mut self,
        name: &'static str,
        id: Id<'static>,
        stored: Option<Arc<Stored>>,
    ) {
        let live = self.collections.get_mut(name).unwrap();
        self.history.wrote(live.number, id.clone(), stored.clone());
        match stored {
            Some(stored) => drop(live.rows.insert(id, stored)),
            None => drop(live.rows.remove(&id)),
        }
    }

    pub(crate) fn finish(mut self) -> Totals {
        self.verify();
        self.look_at_held();
        for at in 0..self.snapshots.len() {
            self.read_all_of_snapshot(at);
        }
        self.close_and_reopen();
        self.close();
        self.totals
    }
}
