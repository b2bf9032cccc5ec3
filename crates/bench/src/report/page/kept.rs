//! The author's text in a page: what stands between `<!-- text NAME -->` and `<!-- /text -->`.
//!
//! 1. Text that somebody wrote is never lost: a page that has no place for it is refused.
//! 2. A text that is empty is generated, where there is something to generate.

use std::collections::BTreeMap;

use crate::error::{Failure, Result};

const OPEN: &str = "<!-- text ";
const OPEN_END: &str = " -->";
const CLOSE: &str = "<!-- /text -->";

/// The texts of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Texts {
    /// By name; without those that were taken.
    left: BTreeMap<String, String>,
    /// Names of those that were taken although they are not what would be generated.
    kept: Vec<String>,
}

impl Texts {
    /// Takes the texts out of a page; `name` is the page's, for messages.
    pub(super) fn of(page: &str, name: &str) -> Result<Self> {
        let mut texts = BTreeMap::new();
        let mut open: Option<(&str, usize, Vec<&str>)> = None;
        let fail = |line: usize, what: String| {
            Err(Failure::new(format_args!("{name}:{}: {what}", line + 1)))
        };
        for (number, line) in page.lines().enumerate() {
            let opened = line.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(OPEN_END));
            match (opened, line == CLOSE, open.take()) {
                (Some(text), _, None) => open = Some((text, number, Vec::new())),
                (Some(_), _, Some((text, ..))) => {
                    return fail(number, format!("text `{text}` is still open"));
                }
                (None, true, None) => return fail(number, "no text is open".to_owned()),
                (None, true, Some((text, _, lines))) => {
                    let content = lines.join("\n").trim().to_owned();
                    if texts.insert(text.to_owned(), content).is_some() {
                        return fail(number, format!("there are two texts `{text}`"));
                    }
                }
                (None, false, Some((text, start, mut lines))) => {
                    lines.push(line);
                    open = Some((text, start, lines));
                }
                (None, false, None) => {}
            }
        }
        match open {
            Some((text, start, _)) => fail(start, format!("text `{text}` has no end")),
            None => Ok(Self { left: texts, kept: Vec::new() }),
        }
    }

    /// The text with its marks; `generated` stands there when nobody wrote one.
    pub(super) fn take(&mut self, name: &str, generated: &str) -> String {
        let (kept, generated) = (self.left.remove(name).unwrap_or_default(), generated.trim());
        let content = if kept.is_empty() { generated } else { &kept };
        if content != generated && !generated.is_empty() {
            self.kept.push(name.to_owned());
        }
        let space = if content.is_empty() { "" } else { "\n" };
        format!("{OPEN}{name}{OPEN_END}\n{content}{space}{CLOSE}\n")
    }

    /// Names of the texts that stand where others would be generated. Fails for a text that
    /// nobody has taken.
    pub(super) fn finish(self, page: &str) -> Result<Vec<String>> {
        let left: Vec<String> = self
            .left
            .into_iter()
            .filter(|(_, content)| !content.is_empty())
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        if left.is_empty() {
            return Ok(self.kept);
        }
        Err(Failure::new(format_args!(
            "{page}: the figures leave no place for the text {}; move or remove it",
            left.join(", ")
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Title\n<!-- text one -->\nA word,\n\nand another.\n<!-- /text -->\n\
        figures\n<!-- text two -->\n<!-- /text -->\n";

    #[test]
    fn text_is_kept_and_an_empty_one_generated() {
        let mut texts = Texts::of(PAGE, "page.md").unwrap();
        assert_eq!(
            texts.take("one", "generated"),
            "<!-- text one -->\nA word,\n\nand another.\n<!-- /text -->\n"
        );
        assert_eq!(texts.take("two", "new"), "<!-- text two -->\nnew\n<!-- /text -->\n");
        assert_eq!(texts.take("three", ""), "<!-- text three -->\n<!-- /text -->\n");
        assert_eq!(texts.finish("page.md").unwrap(), ["one"]);
    }

    #[test]
    fn text_without_a_place_is_not_lost() {
        let message = Texts::of(PAGE, "").unwrap().finish("page.md").unwrap_err().to_string();
        assert!(message.contains("page.md") && message.contains("`one`"), "{message}");
        assert!(!message.contains("`two`"), "{message}");
    }

    #[test]
    fn broken_marks_are_named_with_their_line() {
        let cases = [
            ("x\n<!-- text one -->\ny\n", "page.md:2: text `one` has no end"),
            ("<!-- /text -->\n", "page.md:1: no text is open"),
            ("<!-- text a -->\n<!-- text b -->\n", "page.md:2: text `a` is still open"),
            (
                "<!-- text a -->\n<!-- /text -->\n<!-- text a -->\n<!-- /text -->\n",
                "page.md:4: there are two texts `a`",
            ),
        ];
        for (page, expected) in cases {
            assert_eq!(Texts::of(page, "page.md").unwrap_err().to_string(), expected);
        }
    }
}
