//! One failure type: a sentence for the person at the terminal.

use std::fmt::{self, Display};
use std::process::ExitCode;

/// Why the program stops.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A sentence that says what went wrong and where; always one line.
    Message(String),
    /// As above; the files or arguments that were given cannot be worked with.
    Input(String),
    /// The user pressed Ctrl-C; everything measured so far is in the results file.
    Interrupted,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure from any text; line breaks become spaces, so that it stays one line.
    pub(crate) fn new(message: impl Display) -> Self {
        Self::Message(one_line(&message))
    }

    /// As `new`, for bad input.
    pub(crate) fn input(message: impl Display) -> Self {
        Self::Input(one_line(&message))
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Message(_) => ExitCode::from(1),
            Self::Input(_) => ExitCode::from(2),
            Self::Interrupted => ExitCode::from(130),
        }
    }
}

fn one_line(message: &impl Display) -> String {
    message.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(message) | Self::Input(message) => f.write_str(message),
            Self::Interrupted => f.write_str("interrupted; the rows measured so far are valid"),
        }
    }
}

/// Adds to an error what was being attempted.
pub(crate) trait Context<T> {
    /// `what` is evaluated only for an error.
    fn context<D: Display>(self, what: impl FnOnce() -> D) -> Result<T>;
}

impl<T, E: Display> Context<T> for std::result::Result<T, E> {
    fn context<D: Display>(self, what: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|error| Failure::new(format_args!("{}: {error}", what())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_whatever_the_cause_printed() {
        let failed: std::result::Result<(), _> = Err("first\n  second");
        let failure = failed.context(|| "cannot do it").unwrap_err();
        assert_eq!(failure.to_string(), "cannot do it: first second");
    }
}
