//! What errors say.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use engine::Error;

/// The longest message, in bytes, a path of the user's own not counted.
const MESSAGE_BYTES_MAX: usize = 600;

/// Asserts that an error and its causes are sentences for people: one line each, none in Rust's
/// debugging notation, none repeating its cause.
pub(crate) fn assert_plain(error: &Error) {
    let message = error.to_string();
    assert!(message.len() > 10 && message.len() < MESSAGE_BYTES_MAX, "{message}");
    assert!(!message.contains(char::is_control), "{message:?}");
    assert!(!message.ends_with(['.', ' ', ':']), "{message}");
    assert!(!message.starts_with(char::is_uppercase), "{message}");
    for notation in [
        "Some(",
        "None",
        "Os {",
        "Custom {",
        "kind:",
        "Error {",
        "Err(",
        "Arc",
        "ErrorKind",
        "\\\"",
    ] {
        assert!(!message.contains(notation), "{message}");
    }
    let mut cause = error.source();
    let mut steps = 0;
    while let Some(error) = cause {
        assert!(!message.contains(&error.to_string()), "{message} repeats {error}");
        cause = error.source();
        steps += 1;
        assert!(steps < 5, "{message}: its causes do not end");
    }
}

fn examples() -> Vec<Error> {
    let path = || PathBuf::from("/data/db/segment");
    let io = |kind: io::ErrorKind| Arc::new(io::Error::from(kind));
    let full = || Error::DiskFull { path: path(), source: io(io::ErrorKind::StorageFull) };
    let text = |text: &str| text.to_owned();
    let name = || "line\nbreak".to_owned();
    vec![
        Error::Io { action: "read", path: path(), source: io(io::ErrorKind::PermissionDenied) },
        Error::Corrupt { file: path(), offset: 4096, what: text("its checksum does not match") },
        full(),
        Error::WriteFailed { source: Arc::new(full()) },
        Error::ReadOnly { source: Arc::new(full()) },
        Error::Locked { path: path() },
        Error::NotADatabase { path: path() },
        Error::NoDatabase { path: path() },
        Error::UnsupportedFormat { file: path(), what: text("its version is 9") },
        Error::Closed,
        Error::CollectionDropped { name: name() },
        Error::ForeignHandle,
        Error::AlreadyExists { collection: name(), id: text("7") },
        Error::NotFound { collection: name(), id: text("7") },
        Error::InvalidId { what: text("it takes 65536 bytes") },
        Error::InvalidDocument { what: text("it takes too many bytes") },
        Error::InvalidCollectionName { what: text("it has 256 bytes") },
        Error::InvalidOptions { what: text("memtable_bytes is 1") },
        Error::BatchTooLarge { bytes: 3, limit: 2 },
        Error::HistoryGone { sequence: 3, oldest: 7, newest: 9 },
        Error::Background { what: text("a panic: 3") },
    ]
}

/// The variant's name, which is how `Debug` begins.
fn variant(error: &Error) -> String {
    let debug = format!("{error:?}");
    debug.split([' ', '{']).next().unwrap().to_owned()
}

#[test]
fn every_error_is_one_plain_sentence_with_its_cause_apart() {
    let source = include_str!("../../src/error.rs");
    let body = source.split("pub enum Error {").nth(1).unwrap().split("\n}").next().unwrap();
    let variants: BTreeSet<String> = body
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(char::is_uppercase))
        .map(|line| line.trim_end_matches([' ', '{', ',']).to_owned())
        .collect();
    let examples = examples();
    assert_eq!(examples.iter().map(variant).collect::<BTreeSet<_>>(), variants);

    for error in &examples {
        assert_plain(error);
        let mut causes = 0;
        let mut cause = error.source();
        while let Some(error) = cause {
            causes += 1;
            cause = error.source();
        }
        let expected = match error {
            Error::Io { .. } | Error::DiskFull { .. } => 1,
            Error::WriteFailed { .. } | Error::ReadOnly { .. } => 2,
            _ => 0,
        };
        assert_eq!(causes, expected, "{error:?}");
        assert_eq!(error.clone().to_string(), error.to_string());
    }
}

#[test]
fn the_operating_systems_answer_can_be_reached_from_the_error() {
    let error = Error::WriteFailed {
        source: Arc::new(Error::DiskFull {
            path: PathBuf::from("/data"),
            source: Arc::new(io::Error::from_raw_os_error(libc::ENOSPC)),
        }),
    };
    let cause = error.source().unwrap();
    assert!(matches!(cause.downcast_ref::<Error>(), Some(Error::DiskFull { .. })), "{cause:?}");
    let cause = cause.source().unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(cause.raw_os_error(), Some(libc::ENOSPC));
}
