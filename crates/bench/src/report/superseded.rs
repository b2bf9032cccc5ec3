//! Results that must no longer be shown: `superseded.txt` beside the results files has a line for each
//! one, its name and why. The file stays, since a page of its day may tell of it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{Context, Failure, Result};

const LIST: &str = "superseded.txt";

/// Fails for the first file that is in the list beside it.
pub(crate) fn refuse_superseded(files: &[PathBuf]) -> Result<()> {
    for file in files {
        if let Some(reason) = reason(file)? {
            return Err(Failure::new(format_args!(
                "{} is superseded: {reason}; --superseded shows it all the same",
                file.display()
            )));
        }
    }
    Ok(())
}

fn reason(file: &Path) -> Result<Option<String>> {
    let list = file.with_file_name(LIST);
    let text = match fs::read_to_string(&list) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.context(|| format!("cannot read {}", list.display()))?,
    };
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut lines = text.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
    let line = lines.find(|(superseded, _)| *superseded == name);
    Ok(line.map(|(_, reason)| reason.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_list_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        refuse_superseded(&[file("old.jsonl")]).unwrap();
        let list = "# file reason\nold.jsonl  by new.jsonl: a slow disk\nolder.jsonl x\n";
        fs::write(file(LIST), list).unwrap();
        refuse_superseded(&[file("new.jsonl"), file("ol")]).unwrap();
        let failure = refuse_superseded(&[file("new.jsonl"), file("old.jsonl")]).unwrap_err();
        let text = failure.to_string();
        assert!(text.contains("old.jsonl is superseded: by new.jsonl: a slow disk;"), "{text}");
    }
}
