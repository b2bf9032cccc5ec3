//! What criterion measured, read from its own files.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use serde::Deserialize;

/// Figures by group and function, and by parameter where there is one.
#[derive(Debug, Default)]
pub struct Estimates {
    figures: BTreeMap<(String, String), BTreeMap<String, f64>>,
}

/// A figure that a table wants and no bench has left.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing {
    /// The bench's group and function.
    pub name: String,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "criterion has left no figure of \"{}\"; run the benches first", self.name)
    }
}

impl std::error::Error for Missing {}

#[derive(Deserialize)]
struct Benchmark {
    group_id: String,
    function_id: Option<String>,
    value_str: Option<String>,
    throughput: Option<Throughput>,
}

#[derive(Deserialize)]
struct Throughput {
    #[serde(rename = "Elements")]
    elements: Option<f64>,
}

#[derive(Deserialize)]
struct Statistics {
    median: Estimate,
}

#[derive(Deserialize)]
struct Estimate {
    point_estimate: f64,
}

impl Estimates {
    /// Reads every `new/benchmark.json`, with the `estimates.json` beside it, below a folder.
    ///
    /// # Errors
    ///
    /// When the folder or a file cannot be read, or is not what criterion writes.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut all = Self::default();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.ends_with("new/benchmark.json") {
                    let estimates = fs::read_to_string(path.with_file_name("estimates.json"))?;
                    all.add(&fs::read_to_string(&path)?, &estimates)?;
                }
            }
        }
        Ok(all)
    }

    fn add(&mut self, benchmark: &str, estimates: &str) -> io::Result<()> {
        let benchmark: Benchmark = serde_json::from_str(benchmark)?;
        let statistics: Statistics = serde_json::from_str(estimates)?;
        let operations = benchmark.throughput.and_then(|t| t.elements).unwrap_or(1.0);
        let name = (benchmark.group_id, benchmark.function_id.unwrap_or_default());
        let figure = statistics.median.point_estimate / operations;
        let parameter = benchmark.value_str.unwrap_or_default();
        self.figures.entry(name).or_default().insert(parameter, figure);
        Ok(())
    }

    /// Nanoseconds an operation.
    ///
    /// # Errors
    ///
    /// [`Missing`] when no bench has left it.
    pub fn ns(&self, group: &str, function: &str, parameter: &str) -> Result<f64, Missing> {
        let figures = self.figures.get(&(group.to_owned(), function.to_owned()));
        let found = figures.and_then(|figures| figures.get(parameter).copied());
        found.ok_or_else(|| Missing { name: format!("{group}/{function}/{parameter}") })
    }

    /// The only parameter with which a function was measured, and its nanoseconds.
    ///
    /// # Errors
    ///
    /// [`Missing`] when there is none, or more than one.
    pub fn only(&self, group: &str, function: &str) -> Result<(&str, f64), Missing> {
        let figures = self.figures.get(&(group.to_owned(), function.to_owned()));
        match figures.map(|figures| figures.iter().collect::<Vec<_>>()).as_deref() {
            Some([(parameter, figure)]) => Ok((parameter, **figure)),
            _ => Err(Missing { name: format!("{group}/{function}") }),
        }
    }

    /// For tests: sets a figure.
    #[cfg(test)]
    pub(super) fn set(&mut self, group: &str, function: &str, parameter: &str, ns: f64) {
        let name = (group.to_owned(), function.to_owned());
        self.figures.entry(name).or_default().insert(parameter.to_owned(), ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_median_divided_by_the_operations() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("a_group/name_of_it/16/new");
        fs::create_dir_all(&new).unwrap();
        let benchmark = r#"{"group_id":"a group","function_id":"name of it","value_str":"16",
            "throughput":{"Elements":1000},"full_id":"x","directory_name":"x","title":"x"}"#;
        fs::write(new.join("benchmark.json"), benchmark).unwrap();
        let estimates = r#"{"mean":{"point_estimate":9.0},"median":{"point_estimate":250000.0},
            "slope":null}"#;
        fs::write(new.join("estimates.json"), estimates).unwrap();
        // What criterion keeps of the run before.
        let base = folder.path().join("a_group/name_of_it/16/base");
        fs::create_dir(&base).unwrap();
        fs::write(base.join("benchmark.json"), "not read").unwrap();

        let read = Estimates::read(folder.path()).unwrap();
        assert_eq!(read.ns("a group", "name of it", "16"), Ok(250.0));
        assert_eq!(read.only("a group", "name of it"), Ok(("16", 250.0)));
        let missing = Missing { name: "a group/name of it/2".to_owned() };
        assert_eq!(read.ns("a group", "name of it", "2"), Err(missing));
    }
}
