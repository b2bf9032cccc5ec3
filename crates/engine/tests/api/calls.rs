//! What the table called, and how it judges refusals.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use engine::disk::MemoryDisk;
use engine::{Collection, Database, Options};

/// The public functions that were called: `Type::method`, `function`, or `Type: Trait<Argument>`.
#[derive(Default)]
pub(crate) struct Calls {
    names: RefCell<BTreeSet<&'static str>>,
}

impl Calls {
    pub(crate) fn note(&self, name: &'static str) {
        self.names.borrow_mut().insert(name);
    }

    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.names.borrow().iter().map(|&name| name.to_owned()).collect()
    }
}

/// Calls a public function and notes that it was: `call!(calls, Type::method(receiver,
/// arguments))`.
macro_rules! call {
    ($calls:expr, $type:ident::$method:ident($($argument:expr),* $(,)?)) => {{
        $calls.note(concat!(stringify!($type), "::", stringify!($method)));
        $type::$method($($argument),*)
    }};
    ($calls:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        $calls.note(stringify!($function));
        $function($($argument),*)
    }};
}

/// Asserts that a call was refused with this kind of error, in plain words. `$row` says which row
/// of the table it was.
macro_rules! refused {
    ($outcome:expr, $kind:ident, $row:expr) => {
        match $outcome {
            Err(error @ engine::Error::$kind { .. }) => crate::errors::assert_plain(&error),
            other => panic!(
                "{}: {} must answer {}, not {:?}",
                $row,
                stringify!($outcome),
                stringify!($kind),
                other.map(drop)
            ),
        }
    };
}

/// A database in memory, and a collection in it.
pub(crate) fn database() -> (Database, Collection) {
    database_at("/db")
}

pub(crate) fn database_at(path: &str) -> (Database, Collection) {
    let options = Options::default().disk(Arc::new(MemoryDisk::new()));
    let database = Database::open(PathBuf::from(path), options).unwrap();
    let collection = database.collection("things").unwrap();
    (database, collection)
}
