//! The page's text: what was run, what the numbers say, the sections with tables and pictures.

use std::collections::{BTreeMap, BTreeSet};

use super::figures::WorkloadFigures;
use super::kept::Texts;
use super::sections::{Section, Sections, Source, day};
use super::soundness::Soundness;
use super::{pictures, sentences, tables};
use crate::error::Result;
use crate::report::chart::{Chart, Palette};
use crate::report::row::Row;

/// The line by which a page is known.
pub(super) const MARK: &str = "<!-- Written by `bench report`. Only what stands between `text` \
     marks is kept; an empty text is generated. -->";

const HOW_TO_READ: &str = "How it was measured, and every field of a row, is in \
    [README.md](README.md). The machines are shared: figures are indicative, not claims, and only \
    ratios within a run count. A ratio is the median of the ratios within each repeat, whose cells \
    ran next to each other.";

/// A picture and its place below the page's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) file: String,
    pub(super) svg: String,
}

/// What a page is composed of.
pub(super) struct Composer<'a> {
    pub(super) sections: &'a Sections,
    /// Name of the page, which is that of the pictures' folder.
    pub(super) name: &'a str,
    /// Names of the results files.
    pub(super) files: &'a [String],
    palette: Palette,
    pictures: Vec<Picture>,
}

impl<'a> Composer<'a> {
    pub(super) fn new(sections: &'a Sections, name: &'a str, files: &'a [String]) -> Self {
        let palette = Palette::new(sections.rows().map(|row| row.store.as_str()));
        Self { sections, name, files, palette, pictures: Vec::new() }
    }

    /// The page and its pictures; takes the author's texts out of `texts`.
    pub(super) fn compose(
        mut self,
        title: &str,
        texts: &mut Texts,
    ) -> Result<(String, Vec<Picture>)> {
        let mut page = format!("# {title}\n\n{MARK}\n\n{HOW_TO_READ}\n\n");
        page += &texts.take("introduction", "");
        page += "\n## What was run\n\n";
        page += &self.what_was_run()?;
        page += "\n## What the numbers say\n\n";
        page += &texts.take("numbers", &sentences::numbers(self.sections));
        for section in &self.sections.sections {
            page += &self.section(section);
            page += &texts.take(&section.slug, "");
        }
        page += "\n## What is not measured\n\n";
        page += &sentences::not_measured(self.sections);
        page += "\n";
        page += &texts.take("not-measured", "");
        Ok((page, self.pictures))
    }

    fn what_was_run(&self) -> Result<String> {
        let files: Vec<String> = self.files.iter().map(|file| code(file)).collect();
        let mut out = format!("The rows are in {}.", files.join(", "));
        if self.sections.superseded > 0 {
            out += &format!(
                " {} of them were measured again, and the last line of a cell's repeat counts.",
                self.sections.superseded
            );
        }
        out += "\n\n";
        let mut told: Vec<String> = Vec::new();
        for (number, source) in self.sections.sources.iter().enumerate() {
            let of = |section: &&Section| section.key.source == number;
            let rows = self.sections.sections.iter().filter(of).flat_map(|section| &section.rows);
            out += &format!("{}. {}\n\n", number + 1, describe(source)?);
            let options = options(&rows.collect::<Vec<_>>());
            match told.iter().position(|other| *other == options) {
                Some(first) => out += &format!("   Options as under {}.\n\n", first + 1),
                None => out += &options,
            }
            told.push(options);
        }
        let figures = ["repeats", "rows", "errors", "not found", "not settled", "digests differ"];
        out += &tables::header(&["section"], &figures);
        for section in &self.sections.sections {
            let sound = Soundness::of(&section.rows);
            let digests = match sound.digests.as_slice() {
                [] => "no".to_owned(),
                workloads => workloads.join(", "),
            };
            let cells = [
                section.repeats().to_string(),
                section.rows.len().to_string(),
                sound.errors.to_string(),
                sound.not_found.to_string(),
                sound.unsettled.len().to_string(),
                digests,
            ];
            let heading = section.key.heading(self.sections.sources.len());
            out += &tables::line(&[&heading], cells.into_iter());
        }
        Ok(out)
    }

    fn section(&mut self, section: &Section) -> String {
        let figures = section.figures();
        let heading = section.key.heading(self.sections.sources.len());
        let slug = &section.slug;
        let mut out = format!("\n## {heading}\n\n### Throughput\n\n");
        out += &self.picture(slug, "throughput", &pictures::throughput(&figures, &heading));
        out += &tables::throughput(&figures);
        out += "\n### Latency\n\nMedians over the repeats, but the maximum of all.\n\n";
        for workload in figures.iter().filter(|workload| !workload.operations().is_empty()) {
            let name = format!("latency-{}", workload.name.to_lowercase());
            out += &self.picture(slug, &name, &pictures::latency(workload, &figures, &heading));
            out += &tables::latency(workload);
            out.push('\n');
        }
        out += "### Memory and disk\n\nOwn memory is anonymous memory without what the process had \
                before it opened the store; mapped files are shared with the page cache, and the \
                kernel takes them back as it needs.\n\n";
        out += &self.picture(slug, "memory", &pictures::memory(&figures, &heading));
        out += &self.picture(slug, "disk", &pictures::disk(&figures, &heading));
        out += &tables::memory_and_disk(&figures);
        out.push('\n');
        out
    }

    /// Draws a picture, and gives the reference to it.
    fn picture(&mut self, slug: &str, kind: &str, chart: &Chart) -> String {
        let file = format!("{slug}-{kind}.svg");
        let alt = chart.message.replace(['[', ']', '\\', '\n'], " ");
        let reference = format!("![{alt}]({}/{file})\n\n", self.name);
        self.pictures.push(Picture { file, svg: chart.draw(&self.palette) });
        reference
    }
}

impl WorkloadFigures {
    pub(super) fn title(&self) -> String {
        if self.name == "load" { "the load".to_owned() } else { format!("workload {}", self.name) }
    }
}

fn describe(source: &Source) -> Result<String> {
    let Source { command, commit, target_cpu, machine, runs } = source;
    let runs = runs.iter().map(|run| Ok(format!("{} on {}", code(run), day(run)?)));
    let runs = runs.collect::<Result<Vec<_>>>()?;
    let read_ahead =
        machine.read_ahead_kb.map_or_else(|| "unknown".to_owned(), |kib| format!("{kib} KiB"));
    Ok(format!(
        "{}, commit {}, compiled for {target_cpu}. Run {}. {} with {} cores and {} MiB of memory, \
         Linux {}, {} ({}), read-ahead {read_ahead}, transparent huge pages {}, DAMON: reclaim {}, \
         kdamonds {}.",
        code(&format!("bench {command}")),
        code(commit),
        runs.join(", "),
        machine.cpu,
        machine.cores,
        tables::mebibytes(machine.memory_bytes as f64),
        machine.kernel,
        machine.file_system,
        machine.mount_options,
        machine.transparent_huge_pages,
        machine.damon.reclaim,
        if machine.damon.kdamonds.is_empty() {
            "none".to_owned()
        } else {
            machine.damon.kdamonds.join(", ")
        },
    ))
}

/// Every option of every store; one that differs between rows has all its values.
fn options(rows: &[&Row]) -> String {
    let mut stores: BTreeMap<(&str, &str), BTreeMap<&str, BTreeSet<String>>> = BTreeMap::new();
    for row in rows {
        let store = stores.entry((&row.store, &row.store_version)).or_default();
        for (option, value) in &row.options {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            store.entry(option).or_default().insert(value);
        }
    }
    let mut out = String::from("   <details><summary>Options of the stores</summary>\n\n");
    for ((store, version), options) in stores {
        let options = options.into_iter().map(|(option, values)| {
            let values = values.into_iter().collect::<Vec<_>>().join(" or ");
            code(&format!("{option} = {values}"))
        });
        let options: Vec<String> = options.collect();
        out += &format!("   - {store} {version}: {}\n", options.join(", "));
    }
    out + "\n   </details>\n\n"
}

/// Inline code; the text has no backticks, or loses them.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'"))
}
