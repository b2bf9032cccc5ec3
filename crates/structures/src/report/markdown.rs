//! Tables in Markdown.

use std::fmt::Write;

/// A table whose first column is text and whose others are figures.
#[derive(Debug)]
pub(super) struct Table {
    text: String,
}

impl Table {
    /// With these column heads; the first `texts` of them are aligned left.
    pub(super) fn new(heads: &[&str], texts: usize) -> Self {
        let mut table = Self { text: String::new() };
        table.row(heads.iter().map(|&head| head.to_owned()));
        let rules = (0..heads.len()).map(|i| if i < texts { "---" } else { "--:" });
        table.text.push('|');
        for rule in rules {
            table.text.push_str(rule);
            table.text.push('|');
        }
        table.text.push('\n');
        table
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.text.push('|');
        for cell in cells {
            let _ = write!(self.text, " {cell} |");
        }
        self.text.push('\n');
    }

    /// The table, without a line's end after it.
    pub(super) fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end().len());
        self.text
    }
}

/// Nanoseconds, or other figures, with as many digits as mean something: three.
pub(super) fn figure(value: f64) -> String {
    match value {
        value if value >= 100.0 => spaced(value.round()),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// A whole number, in groups of three digits.
pub(super) fn spaced(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A share in per cent.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        value if value < 0.1 && value > 0.0 => format!("{value:.4} %"),
        value => format!("{value:.2} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_figures_are_as_markdown_wants_them() {
        let mut table = Table::new(&["what", "ns"], 1);
        table.row(["a".to_owned(), figure(1234.5)]);
        assert_eq!(table.finish(), "| what | ns |\n|---|--:|\n| a | 1 235 |");
        let figures = [0.123, 12.34, 123.4, 1_234_567.0].map(figure);
        assert_eq!(figures, ["0.12", "12.3", "123", "1 234 567"]);
        assert_eq!([0.0, 0.5, 0.000_15].map(percent), ["0.00 %", "50.00 %", "0.0150 %"]);
    }
}
