//! What the tests of this program have done, for docs/testing.md.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

/// Counts of one test, by name.
#[derive(Debug, Default)]
pub(crate) struct Counts(Map<String, Value>);

impl Counts {
    pub(crate) fn add(&mut self, name: &str, more: u64) {
        let now = self.get(name) + more;
        self.0.insert(name.to_owned(), now.into());
    }

    pub(crate) fn get(&self, name: &str) -> u64 {
        self.0.get(name).and_then(Value::as_u64).unwrap_or(0)
    }

    /// Asserts that a count is not so small that the test means nothing.
    pub(crate) fn at_least(&self, name: &str, least: u64) {
        assert!(self.get(name) >= least, "{name}: {}, {least} expected at least", self.get(name));
    }

    /// Prints the counts, and writes them into the folder that SEDIMENT_REPORT names.
    pub(crate) fn report(self, test: &str) {
        report(test, &Value::Object(self.0));
    }
}

/// Prints a test's result, and writes it into the folder that SEDIMENT_REPORT names.
pub(crate) fn report(test: &str, result: &Value) {
    println!("{test}: {result}");
    if let Some(folder) = std::env::var_os("SEDIMENT_REPORT") {
        let name: String =
            test.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let file = Path::new(&folder).join(format!("crash-{name}.json"));
        fs::write(&file, result.to_string()).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    }
}

/// Whether every image and fault is wanted, however long it takes: SEDIMENT_EXHAUSTIVE.
pub(crate) fn is_exhaustive() -> bool {
    std::env::var_os("SEDIMENT_EXHAUSTIVE").is_some()
}
