//! Null: the harness alone. Every call is answered at once and nothing is kept, so that its figures
//! are what the clients' own work costs between two looks at the clock: nobody's can be better.

use std::path::Path;

use super::{Durability, Loses, Presence, Scope, Settings, Store, StoreConfig, Visitor};
use crate::error::Result;

pub(crate) struct Null;

impl Store for Null {
    const VERSION: &'static str = "1";
    const SCOPE: Scope = Scope::NothingKept;

    fn settings(_: &StoreConfig) -> Settings {
        Settings::from([("answers".to_owned(), "at once, without a value".into())])
    }

    fn loses(_: Durability) -> Loses {
        Loses::new("everything", "everything")
    }

    fn open(_: &Path, _: &StoreConfig) -> Result<Self> {
        Ok(Self)
    }

    fn load(&self, _: &[(String, Vec<u8>)]) -> Result<()> {
        Ok(())
    }

    fn read(&self, _: &str, _: &mut impl Visitor) -> Result<Presence> {
        Ok(Presence::Found)
    }

    fn insert(&self, _: &str, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn update(&self, _: &str, _: &[u8]) -> Result<Presence> {
        Ok(Presence::Found)
    }

    fn scan(&self, _: &str, _: usize, _: &mut impl Visitor) -> Result<usize> {
        Ok(0)
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}
