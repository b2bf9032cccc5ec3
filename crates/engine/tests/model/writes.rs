//! Operations that change documents.

use engine::{Batch, Error, Id, WriteDurability, bson};

use crate::content::{Stored, document, fields};
use crate::world::World;

impl World {
    pub(crate) fn put(&mut self) {
        let Some(name) = self.some_collection() else { return };
        let id = self.some_id();
        let fields = document(&mut self.random);
        self.put_this(name, id, fields);
    }

    pub(crate) fn put_this(&mut self, name: &'static str, id: Id<'static>, fields: bson::Document) {
        let stored = Stored::new(fields);
        self.say(|| format!("put {name} {id}: {} bytes", stored.bytes.len()));
        let live = self.collections.get_mut(name).unwrap();
        if self.random.percent(50) {
            live.handle.put(&id, &stored.fields).unwrap();
        } else {
            live.handle.put_raw(&id, &stored.bytes).unwrap();
        }
        self.wrote(name, id, Some(stored));
    }

    pub(crate) fn insert(&mut self) {
        let Some(name) = self.some_collection() else { return };
        let id = self.some_id();
        let stored = Stored::new(document(&mut self.random));
        self.say(|| format!("insert {name} {id}"));
        let live = self.collections.get_mut(name).unwrap();
        let answer = live.handle.insert(&id, &stored.fields);
        if live.rows.contains_key(&id) {
            assert!(matches!(answer, Err(Error::AlreadyExists { .. })), "{answer:?}");
        } else {
            answer.unwrap();
            self.wrote(name, id, Some(stored));
        }
    }

    pub(crate) fn update(&mut self) {
        let Some(name) = self.some_collection() else { return };
        let id = self.some_id();
        let fields = fields(&mut self.random);
        self.say(|| format!("update {name} {id} {:?}", fields.keys().collect::<Vec<_>>()));
        let live = self.collections.get_mut(name).unwrap();
        let answer = live.handle.update(&id, &fields);
        match live.rows.get(&id) {
            None => assert!(matches!(answer, Err(Error::NotFound { .. })), "{id}: {answer:?}"),
            Some(stored) => {
                answer.unwrap();
                let updated = stored.updated(&fields);
                self.wrote(name, id, Some(updated));
            }
        }
    }

    pub(crate) fn delete(&mut self) {
        let Some(name) = self.some_collection() else { return };
        let id = self.some_id();
        self.say(|| format!("delete {name} {id}"));
        let live = self.collections.get_mut(name).unwrap();
        live.handle.delete(&id).unwrap();
        self.wrote(name, id, None);
    }

    /// Puts and deletes in all collections at once, the same id several times perhaps.
    pub(crate) fn batch(&mut self) {
        let mut batch = Batch::new();
        let number = if self.random.percent(5) { 100 } else { self.random.below(12) };
        self.say(|| format!("batch of {number}"));
        for _ in 0..number {
            let Some(name) = self.some_collection() else { return };
            let id = self.some_id();
            let stored = self.random.percent(70).then(|| Stored::new(document(&mut self.random)));
            let live = self.collections.get_mut(name).unwrap();
            match &stored {
                Some(stored) => batch.put(&live.handle, &id, &stored.fields).unwrap(),
                None => batch.delete(&live.handle, &id).unwrap(),
            }
            self.wrote(name, id, stored);
        }
        if self.random.percent(20) {
            self.database().write_with(batch, WriteDurability::Durable).unwrap();
        } else {
            self.database().write(batch).unwrap();
        }
    }

    /// Enough small puts to fill a memtable or two.
    pub(crate) fn burst(&mut self) {
        let Some(name) = self.some_collection() else { return };
        let number = 20 + self.random.below(120);
        self.say(|| format!("burst of {number}"));
        for i in 0..number {
            let id = self.some_id();
            self.put_this(name, id, bson::doc! { "burst": i64::try_from(i).unwrap() });
            self.totals.operations += 1;
        }
    }
}
