//! What the source says is public.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::Calls;

/// Public, but with tests of their own beside them: not part of what users call.
const MODULES: [&str; 3] = ["src/clock.rs", "src/disk", "src/executor"];

fn sources(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The names in `lib.rs`'s `pub use` lines.
fn exported(lib: &str) -> BTreeSet<String> {
    let lines = lib
        .lines()
        .filter_map(|line| line.strip_prefix("pub use "))
        .filter(|line| line.contains("::"));
    lines
        .flat_map(|line| {
            let names = line.rsplit("::").next().unwrap().trim_matches(|c| "{};".contains(c));
            names.split(", ").map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

/// A header such as `impl<'a> Trait for Type<'a> {`: the trait if any, and the type's name.
fn implementation(line: &str) -> Option<(Option<&str>, &str)> {
    let mut rest = line.strip_prefix("impl")?.trim_end_matches(['{', ' ']);
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        })?;
        rest = &rest[end + 1..];
    }
    let (of, name) = match rest.split_once(" for ") {
        Some((of, name)) => (Some(of.trim()), name),
        None => (None, rest),
    };
    Some((of, name.trim().split('<').next()?))
}

fn function_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest = rest.strip_prefix("const ").or(rest.strip_prefix("unsafe ")).unwrap_or(rest);
    rest.strip_prefix("fn ")?.split(['(', '<']).next()
}

/// Every public function of the exported types, every exported function, and every conversion into
/// an exported type.
fn public(sources: &[String], exported: &BTreeSet<String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for source in sources {
        let mut inherent = None;
        for line in source.lines() {
            match implementation(line) {
                Some((None, name)) => inherent = exported.contains(name).then_some(name),
                Some((Some(of), name)) => {
                    inherent = None;
                    // Errors come from inner types that nobody outside can name.
                    let is_conversion = of.starts_with("From<") || of.starts_with("TryFrom<");
                    if is_conversion && exported.contains(name) && name != "Error" {
                        found.insert(format!("{name}: {of}"));
                    }
                }
                None => {}
            }
            if let Some(name) = function_name(line)
                && exported.contains(name)
            {
                found.insert(name.to_owned());
            }
            if let Some(owner) = inherent
                && let Some(name) = line.strip_prefix("    ").and_then(function_name)
            {
                found.insert(format!("{owner}::{name}"));
            }
        }
    }
    found
}

pub(crate) fn assert_all_called(calls: &Calls) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    files.retain(|file| !MODULES.iter().any(|module| file.starts_with(root.join(module))));
    let texts: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let exported = exported(include_str!("../../src/lib.rs"));
    let public = public(&texts, &exported);
    assert!(public.len() > 60, "the source was not understood: {public:?}");

    let called = calls.names();
    let missing: Vec<_> = public.difference(&called).collect();
    assert!(missing.is_empty(), "public, but the table does not call it: {missing:#?}");
    let unknown: Vec<_> = called.difference(&public).collect();
    assert!(unknown.is_empty(), "called, but not found in the source: {unknown:#?}");
}

#[test]
fn the_source_is_understood() {
    let lib = "pub use bson;\npub use batch::Batch;\npub use id::{Id, prefix};\nuse x::Hidden;\n";
    let exported = exported(lib);
    assert_eq!(exported, ["Batch", "Id", "prefix"].map(str::to_owned).into());
    let source = "impl Batch {\n    pub fn new() -> Self {\n    pub(crate) fn inner() {\n    fn own() {\n}\n\
                  impl<'a, const N: usize> From<&'a [u8; N]> for Id<'a> {\n    pub fn not() {\n}\n\
                  impl<'a> Id<'a> {\n    pub const fn get<T: Into<U>>(self) {\n}\n\
                  impl Hidden {\n    pub fn no() {\n}\npub fn prefix(text: &str) {\npub fn hidden() {\n";
    let public = public(&[source.to_owned()], &exported);
    let expected = ["Batch::new", "Id: From<&'a [u8; N]>", "Id::get", "prefix"];
    assert_eq!(public, expected.map(str::to_owned).into());
}
