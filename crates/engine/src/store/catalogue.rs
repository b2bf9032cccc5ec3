//! Collections by name.
//!
//! Invariant: a collection's id is never used again; dropping one changes nothing for reads at
//! earlier sequences.

use std::collections::HashMap;

use super::Store;
use crate::error::{Error, Result};
use crate::format::{
    CATALOGUE_CREATE, CATALOGUE_DROP, CatalogueChange, CollectionId, Kind, Sequence,
};
use crate::log::Request;
use crate::manifest::ManifestState;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering};

/// The longest collection name, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// What the handles of one collection share.
#[derive(Debug)]
pub(crate) struct CollectionState {
    pub(crate) id: CollectionId,
    pub(crate) name: String,
    /// The sequence of its drop; `u64::MAX` while it lives.
    dropped: AtomicU64,
}

impl CollectionState {
    fn new(id: CollectionId, name: String, dropped: Option<Sequence>) -> Self {
        let dropped = AtomicU64::new(dropped.unwrap_or(Sequence::MAX).0);
        Self { id, name, dropped }
    }

    /// Fails when the collection does not exist any more at this sequence.
    pub(crate) fn check(&self, at: Sequence) -> Result<()> {
        if at.0 < self.dropped.load(Ordering::Acquire) {
            Ok(())
        } else {
            Err(Error::CollectionDropped { name: self.name.clone() })
        }
    }

    /// Fails when the collection was dropped.
    pub(crate) fn check_live(&self) -> Result<()> {
        self.check(Sequence(u64::MAX - 1))
    }
}

/// The collections of an open database.
#[derive(Debug)]
pub(crate) struct Catalogue {
    live: Mutex<HashMap<String, Arc<CollectionState>>>,
    /// Held while one is created or dropped.
    change: Mutex<CollectionId>,
}

impl Catalogue {
    pub(crate) fn new(state: &ManifestState) -> Self {
        let live = state
            .collections
            .iter()
            .filter(|(_, entry)| entry.dropped.is_none())
            .map(|(&id, entry)| {
                let state = CollectionState::new(id, entry.name.clone(), None);
                (entry.name.clone(), Arc::new(state))
            })
            .collect();
        Self { live: Mutex::new(live), change: Mutex::new(state.next_collection) }
    }

    fn get(&self, name: &str) -> Option<Arc<CollectionState>> {
        self.live.lock().get(name).cloned()
    }

    /// The names, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.live.lock().keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// A catalogue record became visible.
    pub(crate) fn apply(&self, change: &CatalogueChange) {
        let mut live = self.live.lock();
        match change {
            CatalogueChange::Create { collection, name } => {
                let state = CollectionState::new(*collection, name.clone(), None);
                live.insert(name.clone(), Arc::new(state));
            }
            CatalogueChange::Drop { collection, at } => live.retain(|_, state| {
                if state.id == *collection {
                    state.dropped.store(at.0, Ordering::Release);
                }
                state.id != *collection
            }),
        }
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(Error::InvalidCollectionName {
            what: format!("it has {} bytes and must have 1 to {NAME_BYTES_MAX}", name.len()),
        });
    }
    if name.contains('\0') {
        return Err(Error::InvalidCollectionName { what: "it contains a NUL byte".to_owned() });
    }
    Ok(())
}

impl Store {
    /// The collection of this name, created if there is none.
    pub(crate) fn collection(self: &Arc<Self>, name: &str) -> Result<Arc<CollectionState>> {
        self.check_open()?;
        check_name(name)?;
        if let Some(state) = self.catalogue.get(name) {
            return Ok(state);
        }
        let mut next = self.catalogue.change.lock();
        if let Some(state) = self.catalogue.get(name) {
            return Ok(state);
        }
        let id = *next;
        // The id is spent even if the write fails: its outcome is unknown.
        *next = CollectionId(id.0 + 1);
        self.write(Request::single(Kind::Catalogue, id, name.as_bytes(), &[CATALOGUE_CREATE]))?;
        self.catalogue.get(name).ok_or(Error::Closed)
    }

    /// Drops the collection of this name. False when there is none.
    pub(crate) fn drop_collection(self: &Arc<Self>, name: &str) -> Result<bool> {
        self.check_open()?;
        check_name(name)?;
        let _change = self.catalogue.change.lock();
        let Some(state) = self.catalogue.get(name) else { return Ok(false) };
        self.write(Request::single(Kind::Catalogue, state.id, name.as_bytes(), &[CATALOGUE_DROP]))?;
        Ok(true)
    }
}
