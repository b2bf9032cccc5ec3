//! What the micro suite asks of a store beyond what YCSB does.

use super::Store;
use crate::error::Result;

/// A store that deletes. One that implements it takes part in the micro suite once it is named in
/// `run::micro::cell::perform`.
pub(crate) trait Deletes: Store {
    /// Deletes a record, which exists, with the durability of a timed write.
    fn delete(&self, key: &str) -> Result<()>;
}
