//! A dated page of results: Markdown, with pictures in a folder beside it.
//!
//! 1. The same files give the same bytes, so that a figure edited by hand is found.
//! 2. What an author wrote between text marks survives; everything else comes from the rows.
//! 3. A page that this program did not write is never overwritten.

mod compose;
mod figures;
mod folder;
mod kept;
mod pictures;
#[cfg(test)]
mod samples;
mod sections;
mod sentences;
mod soundness;
mod tables;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use self::compose::{Composer, Picture};
use self::sections::{Sections, day};
use super::file::read_files;
use super::superseded::refuse_superseded;
use crate::error::{Failure, Result};

/// Which page is asked for, and whether it is written or compared.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub(crate) struct PageRequest {
    /// Files of JSON lines that a bench has written; read in the order of their names.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Folder of the page.
    #[arg(long, default_value = "docs/bench")]
    out: PathBuf,
    /// Title of the page [default: that of the page there is, else job and date].
    #[arg(long)]
    title: Option<String>,
    /// Put this behind the page's name, which is date and job.
    #[arg(long, value_parser = suffix)]
    suffix: Option<String>,
    /// Write nothing, and fail when the page is not what the files give.
    #[arg(long)]
    check: bool,
    /// Also of files that the list of superseded results names.
    #[arg(long)]
    superseded: bool,
}

fn suffix(text: &str) -> std::result::Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !text.is_empty() && text.bytes().all(fits) {
        Ok(text.to_owned())
    } else {
        Err("may have lower-case letters, digits and `-`".to_owned())
    }
}

/// A page as the files give it.
struct Page {
    path: PathBuf,
    text: String,
    /// The folder of the pictures.
    folder: PathBuf,
    pictures: Vec<Picture>,
    superseded: usize,
    /// Texts of the author that stand where others would be generated.
    kept: Vec<String>,
}

/// Writes the page or compares it, and prints what was done.
pub(crate) fn report(request: &PageRequest) -> Result<()> {
    let page = Page::of(request)?;
    if request.check {
        page.check()?;
        println!("{} is what the files give", page.path.display());
    } else {
        page.write()?;
        println!("{} and {} pictures", page.path.display(), page.pictures.len());
        for text in &page.kept {
            println!("kept the text `{text}`; empty it to have it generated from the rows");
        }
    }
    if page.superseded > 0 {
        println!("{} rows were superseded by later lines of the same cell", page.superseded);
    }
    Ok(())
}

impl Page {
    fn of(request: &PageRequest) -> Result<Self> {
        let mut files = request.files.clone();
        files.sort_by(|left, right| left.file_name().cmp(&right.file_name()).then(left.cmp(right)));
        files.dedup();
        if !request.superseded {
            refuse_superseded(&files)?;
        }
        let sections = Sections::of(read_files(&files)?)?;
        let name = name(&sections, request.suffix.as_deref())?;
        let path = request.out.join(format!("{name}.md"));
        let (old_title, mut texts) = folder::existing(&path)?;
        let title = match request.title.clone().or(old_title) {
            Some(title) => title,
            None => title(&sections)?,
        };
        let names: Vec<String> = files.iter().map(|file| file_name(file)).collect();
        let composer = Composer::new(&sections, &name, &names);
        let (text, pictures) = composer.compose(title.trim(), &mut texts)?;
        let kept = texts.finish(&path.display().to_string())?;
        let superseded = sections.superseded;
        Ok(Self { folder: request.out.join(name), path, text, pictures, superseded, kept })
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The day of the last run, then the jobs, then the suffix.
fn name(sections: &Sections, suffix: Option<&str>) -> Result<String> {
    let mut parts = vec![last_day(sections)?.to_string()];
    parts.extend(sections.benches().into_iter().map(str::to_owned));
    parts.extend(suffix.map(str::to_owned));
    Ok(parts.join("-"))
}

fn title(sections: &Sections) -> Result<String> {
    let day = last_day(sections)?.strftime("%-d %B %Y").to_string();
    let mut jobs = sections.benches().join(" and ");
    if let Some(first) = jobs.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    Ok(format!("{jobs}, {day}"))
}

fn last_day(sections: &Sections) -> Result<jiff::civil::Date> {
    let days = sections.sources.iter().flat_map(|source| &source.runs).map(|run| day(run));
    let days = days.collect::<Result<Vec<_>>>()?;
    days.into_iter().max().ok_or_else(|| Failure::new("there are no runs in these files"))
}
