//! Pages and pictures in their folder.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::compose::{MARK, Picture};
use super::kept::Texts;
use super::{Page, file_name};
use crate::error::{Context, Failure, Result};

/// Title and texts of the page there is.
pub(super) fn existing(path: &Path) -> Result<(Option<String>, Texts)> {
    let Some(page) = read(path)? else { return Ok((None, Texts::default())) };
    let name = path.display().to_string();
    if !page.lines().any(|line| line == MARK) {
        return Err(Failure::new(format_args!(
            "{name} was not written by this command; choose another name with --suffix"
        )));
    }
    let title = page.lines().next().and_then(|line| line.strip_prefix("# "));
    Ok((title.map(str::to_owned), Texts::of(&page, &name)?))
}

/// The text of a file, if there is one.
fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context(|| format!("cannot read {}", path.display())),
    }
}

impl Page {
    /// Writes the pictures, then the page, and removes pictures that it no longer has.
    pub(super) fn write(&self) -> Result<()> {
        let folder = self.folder.display();
        fs::create_dir_all(&self.folder).context(|| format!("cannot create {folder}"))?;
        for Picture { file, svg } in &self.pictures {
            replace(&self.folder.join(file), svg)?;
        }
        replace(&self.path, &self.text)?;
        for file in self.stale()? {
            let path = self.folder.join(file);
            fs::remove_file(&path).context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }

    /// Fails for the first difference between the folder and what the files give.
    pub(super) fn check(&self) -> Result<()> {
        same(&self.path, &self.text)?;
        for Picture { file, svg } in &self.pictures {
            same(&self.folder.join(file), svg)?;
        }
        match self.stale()?.first() {
            None => Ok(()),
            Some(file) => Err(Failure::new(format_args!(
                "{} does not belong to the page",
                self.folder.join(file).display()
            ))),
        }
    }

    /// Pictures in the folder that are none of the page's.
    fn stale(&self) -> Result<Vec<String>> {
        let what = || format!("cannot read the folder {}", self.folder.display());
        let own: BTreeSet<&str> = self.pictures.iter().map(|picture| &*picture.file).collect();
        let mut stale = Vec::new();
        for entry in fs::read_dir(&self.folder).context(what)? {
            let file = file_name(&entry.context(what)?.path());
            if file.ends_with(".svg") && !own.contains(&*file) {
                stale.push(file);
            }
        }
        stale.sort_unstable();
        Ok(stale)
    }
}

/// Renamed whole, so that an interruption loses no text of the author.
fn replace(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    let what = || format!("cannot write {}", path.display());
    fs::write(&new, text).context(what)?;
    fs::rename(&new, path).context(what)
}

fn same(path: &Path, expected: &str) -> Result<()> {
    let name = path.display();
    let Some(found) = read(path)? else {
        return Err(Failure::new(format_args!("there is no {name}; write it without --check")));
    };
    if found == expected {
        return Ok(());
    }
    let differs =
        |(number, (found, expected))| (found != expected).then_some((number, found, expected));
    let mut lines = found.lines().zip(expected.lines()).enumerate();
    let shorter = found.lines().count().min(expected.lines().count());
    let (number, found, expected) =
        lines.find_map(differs).unwrap_or((shorter, "another end", "theirs"));
    Err(Failure::new(format_args!(
        "{name}:{}: the page has `{}`, the files give `{}`; write it again without --check",
        number + 1,
        around(found, expected),
        around(expected, found)
    )))
}

/// The part of a line in which it differs from another one.
fn around(line: &str, other: &str) -> String {
    const BEFORE: usize = 24;
    const LENGTH: usize = 60;
    let equal = line.chars().zip(other.chars()).take_while(|(left, right)| left == right).count();
    line.chars().skip(equal.saturating_sub(BEFORE)).take(LENGTH).collect()
}
