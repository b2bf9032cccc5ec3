//! A history on disk: entries of 64-bit words, little-endian, appended by one client.
//!
//! 1. An entry begins with a word that has its tag, the client, and how many words of content
//!    follow the fixed ones.
//! 2. The rows of a scan stand between its beginning and its end, so a scan of any length is
//!    written as it goes.
//! 3. Times are nanoseconds of the process's monotonic clock since the history began.

use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::Path;

use crate::error::{Context, Failure, Result};

/// Who performed an operation: a client's number, or one of the parts of a run that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Actor(pub(crate) u32);

impl Actor {
    pub(crate) const LOAD: Self = Self(0xFF_FFFF);
    /// The scan of everything after the last client's operation.
    pub(crate) const END: Self = Self(0xFF_FFFE);
    /// The same scan after the store was closed and opened again.
    pub(crate) const REOPENED: Self = Self(0xFF_FFFD);
}

impl std::fmt::Display for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::LOAD => f.write_str("the load"),
            Self::END => f.write_str("the scan at the end"),
            Self::REOPENED => f.write_str("the scan after reopening"),
            Self(number) => write!(f, "client {number}"),
        }
    }
}

/// From before the call to after its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl std::fmt::Display for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.end {
            UNANSWERED => write!(f, "[{}, not answered] ns", self.start),
            end => write!(f, "[{}, {end}] ns", self.start),
        }
    }
}

/// The end of a write that failed: it may take effect at any later time, or never.
pub(super) const UNANSWERED: u64 = u64::MAX;

/// What was met where a record was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// A document of the right shape; the content has a hash for each field.
    Whole,
    /// A document that is not of the shape that every write has.
    Torn,
    Missing,
}

/// By which call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Read,
    Update,
    Scan,
}

impl Call {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Scan => "row",
        }
    }
}

/// An entry without its content, which is in the reader's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The content has a field's number and its value's hash, in turn.
    Write {
        actor: Actor,
        key: u64,
        interval: Interval,
    },
    Observation {
        actor: Actor,
        key: u64,
        interval: Interval,
        met: Met,
        call: Call,
    },
    ScanBegin {
        actor: Actor,
        key: u64,
        limit: u64,
        start: u64,
    },
    /// `end` is when the row was handed over.
    ScanRow {
        key: u64,
        met: Met,
        end: u64,
    },
    /// A row whose key is not of the form that every write's key has.
    ForeignRow,
    /// `returned` is the store's own count; `None` if the scan failed.
    ScanEnd {
        returned: Option<u64>,
        end: u64,
    },
}

const WRITE: u8 = 1;
const OBSERVATION: u8 = 2;
const SCAN_BEGIN: u8 = 3;
const SCAN_ROW: u8 = 4;
const FOREIGN_ROW: u8 = 5;
const SCAN_END: u8 = 6;

impl Met {
    fn code(self) -> u64 {
        match self {
            Self::Whole => 0,
            Self::Torn => 1,
            Self::Missing => 2,
        }
    }

    fn from_code(code: u64) -> Result<Self> {
        match code {
            0 => Ok(Self::Whole),
            1 => Ok(Self::Torn),
            2 => Ok(Self::Missing),
            _ => Err(damaged()),
        }
    }
}

impl Call {
    fn code(self) -> u64 {
        match self {
            Self::Read => 0,
            Self::Update => 1,
            Self::Scan => 2,
        }
    }

    fn from_code(code: u64) -> Result<Self> {
        match code {
            0 => Ok(Self::Read),
            1 => Ok(Self::Update),
            2 => Ok(Self::Scan),
            _ => Err(damaged()),
        }
    }
}

fn damaged() -> Failure {
    Failure::new("a history on disk is damaged")
}

/// Appends entries to a file.
pub(super) struct EntryWriter {
    file: BufWriter<File>,
    bytes: u64,
}

impl EntryWriter {
    pub(super) fn create(path: &Path, buffer_bytes: usize) -> Result<Self> {
        let file = File::create(path).context(|| format!("cannot create {}", path.display()))?;
        Ok(Self { file: BufWriter::with_capacity(buffer_bytes, file), bytes: 0 })
    }

    pub(super) fn append(&mut self, entry: &Entry, content: &[u64]) -> Result<()> {
        let none = Actor(0);
        match *entry {
            Entry::Write { actor, key, interval } => {
                self.words(WRITE, actor, &[key, interval.start, interval.end], content)
            }
            Entry::Observation { actor, key, interval, met, call } => {
                let fixed = [key, interval.start, interval.end, met.code(), call.code()];
                self.words(OBSERVATION, actor, &fixed, content)
            }
            Entry::ScanBegin { actor, key, limit, start } => {
                self.words(SCAN_BEGIN, actor, &[key, limit, start], content)
            }
            Entry::ScanRow { key, met, end } => {
                self.words(SCAN_ROW, none, &[key, met.code(), end], content)
            }
            Entry::ForeignRow => self.words(FOREIGN_ROW, none, &[], content),
            Entry::ScanEnd { returned, end } => {
                let answered = u64::from(returned.is_some());
                let fixed = [answered, returned.unwrap_or_default(), end];
                self.words(SCAN_END, none, &fixed, content)
            }
        }
    }

    fn words(&mut self, tag: u8, actor: Actor, fixed: &[u64], content: &[u64]) -> Result<()> {
        let head = u64::from(tag) | (u64::from(actor.0) << 8) | ((content.len() as u64) << 32);
        let mut write = |word: u64| self.file.write_all(&word.to_le_bytes());
        write(head)
            .and_then(|()| fixed.iter().chain(content).try_for_each(|&word| write(word)))
            .context(|| "cannot write a history")?;
        self.bytes += 8 * (1 + fixed.len() + content.len()) as u64;
        Ok(())
    }

    /// Writes what is buffered, and gives the file's length.
    pub(super) fn finish(mut self) -> Result<u64> {
        self.file.flush().context(|| "cannot write a history")?;
        Ok(self.bytes)
    }
}

/// Reads the entries of a file in their order.
pub(super) struct EntryReader {
    file: BufReader<File>,
    content: Vec<u64>,
}

impl EntryReader {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).context(|| format!("cannot open {}", path.display()))?;
        Ok(Self { file: BufReader::with_capacity(1 << 16, file), content: Vec::new() })
    }

    /// The next entry with its content.
    pub(super) fn next(&mut self) -> Result<Option<(Entry, &[u64])>> {
        let mut head = [0; 8];
        match self.file.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error).context(|| "cannot read a history"),
        }
        let [tag, a, b, c, count @ ..] = head;
        let actor = Actor(u32::from_le_bytes([a, b, c, 0]));
        let entry = match tag {
            WRITE => {
                let [key, start, end] = self.fixed()?;
                Entry::Write { actor, key, interval: Interval { start, end } }
            }
            OBSERVATION => {
                let [key, start, end, met, call] = self.fixed()?;
                let (met, call) = (Met::from_code(met)?, Call::from_code(call)?);
                Entry::Observation { actor, key, interval: Interval { start, end }, met, call }
            }
            SCAN_BEGIN => {
                let [key, limit, start] = self.fixed()?;
                Entry::ScanBegin { actor, key, limit, start }
            }
            SCAN_ROW => {
                let [key, met, end] = self.fixed()?;
                Entry::ScanRow { key, met: Met::from_code(met)?, end }
            }
            FOREIGN_ROW => Entry::ForeignRow,
            SCAN_END => {
                let [answered, returned, end] = self.fixed()?;
                Entry::ScanEnd { returned: (answered == 1).then_some(returned), end }
            }
            _ => return Err(damaged()),
        };
        self.content.clear();
        for _ in 0..u32::from_le_bytes(count) {
            let [word] = self.fixed()?;
            self.content.push(word);
        }
        Ok(Some((entry, &self.content)))
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u64; N]> {
        let mut words = [0; N];
        for word in &mut words {
            let mut bytes = [0; 8];
            self.file.read_exact(&mut bytes).context(|| "cannot read a history")?;
            *word = u64::from_le_bytes(bytes);
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let interval = Interval { start: 5, end: u64::MAX };
        let actor = Actor::LOAD;
        let entries = [
            (Entry::Write { actor, key: u64::MAX, interval }, vec![0, 7, 1, 8]),
            (
                Entry::Observation {
                    actor: Actor(1_023),
                    key: 1,
                    interval,
                    met: Met::Whole,
                    call: Call::Read,
                },
                vec![u64::MAX],
            ),
            (Entry::ScanBegin { actor, key: 0, limit: u64::MAX, start: 3 }, vec![]),
            (Entry::ScanRow { key: 9, met: Met::Torn, end: 6 }, vec![]),
            (Entry::ForeignRow, vec![]),
            (Entry::ScanEnd { returned: Some(0), end: 4 }, vec![]),
            (Entry::ScanEnd { returned: None, end: 4 }, vec![]),
        ];
        let mut writer = EntryWriter::create(&path, 16).unwrap();
        for (entry, content) in &entries {
            writer.append(entry, content).unwrap();
        }
        assert_eq!(writer.finish().unwrap(), std::fs::metadata(&path).unwrap().len());
        let mut reader = EntryReader::open(&path).unwrap();
        for (entry, content) in &entries {
            assert_eq!(reader.next().unwrap(), Some((*entry, &content[..])));
        }
        assert_eq!(reader.next().unwrap(), None);
    }
}
