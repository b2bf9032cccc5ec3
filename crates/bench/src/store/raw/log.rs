//! The file of raw: records in the engine's layout and of its size, then zeros, all synced. The
//! fields that only a store needs (checks, collection, sequence) stay zero.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::{Context, Failure, Result};

/// The engine's record header (`docs/format.md`), whose lengths stand at the same places here.
const HEADER_BYTES: usize = 28;
const KIND: usize = 4;
const KIND_PUT: u8 = 1;
const ID_LENGTH: usize = 6;
const DOCUMENT_LENGTH: usize = 8;
/// The first byte of an encoded id: a string.
const ID_STRING: u8 = 0x20;
const ALIGNMENT: usize = 8;
pub(super) const PAGE_BYTES: u64 = 4096;
/// Zeros ahead of the log: 45 seconds of 1 KB updates at 10 000 a second.
pub(super) const ZEROS_AHEAD_BYTES: u64 = 512 << 20;

/// The file with what it says.
pub(super) struct Log {
    pub(super) file: File,
    pub(super) end: u64,
    /// Below stand records, then zeros, all synced.
    pub(super) ready: u64,
    pub(super) documents: BTreeMap<String, Vec<u8>>,
    /// Reused, so that a write allocates nothing here.
    pub(super) record: Vec<u8>,
}

/// Bytes of the engine's log record of a put.
pub(super) fn record_bytes(key: &str, document: &[u8]) -> usize {
    (HEADER_BYTES + 1 + key.len() + document.len()).next_multiple_of(ALIGNMENT)
}

pub(super) fn push_record(out: &mut Vec<u8>, key: &str, document: &[u8]) -> Result<()> {
    let id = u16::try_from(key.len() + 1).context(|| "the id is too long")?;
    let length = u32::try_from(document.len()).context(|| "the document is too long")?;
    let mut header = [0; HEADER_BYTES];
    header[KIND] = KIND_PUT;
    header[ID_LENGTH..ID_LENGTH + 2].copy_from_slice(&id.to_le_bytes());
    header[DOCUMENT_LENGTH..DOCUMENT_LENGTH + 4].copy_from_slice(&length.to_le_bytes());
    let end = out.len() + record_bytes(key, document);
    out.extend_from_slice(&header);
    out.push(ID_STRING);
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(document);
    out.resize(end, 0);
    Ok(())
}

impl Log {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.context(|| "cannot open the log")?;
        let (documents, end) = read_back(&file)?;
        let ready = file.metadata().context(|| "cannot measure the log")?.len();
        let mut log = Self { file, end, ready, documents, record: Vec::new() };
        // A load needs no zeros: its writes are no part of what is compared.
        if end > 0 {
            log.zero_ahead()?;
        }
        Ok(log)
    }

    fn zero_ahead(&mut self) -> Result<()> {
        const ZEROS: [u8; 4096] = [0; 4096];
        let goal = self.end.next_multiple_of(PAGE_BYTES) + ZEROS_AHEAD_BYTES;
        let mut at = self.ready.max(self.end);
        while at < goal {
            // The first step may begin within a page.
            let next = (at / PAGE_BYTES + 1) * PAGE_BYTES;
            let length = usize::try_from(next - at).context(|| "a page is too large")?;
            self.file.write_all_at(&ZEROS[..length], at).context(|| "cannot write zeros")?;
            at = next;
        }
        self.file.sync_all().context(|| "cannot sync zeros")?;
        self.ready = self.ready.max(at);
        Ok(())
    }

    /// Writes `self.record` behind the log, and syncs.
    pub(super) fn append(&mut self) -> Result<()> {
        self.file.write_all_at(&self.record, self.end).context(|| "cannot write to the log")?;
        self.file.sync_data().context(|| "cannot sync the log")?;
        self.end += self.record.len() as u64;
        self.ready = self.ready.max(self.end);
        Ok(())
    }

    pub(super) fn put(&mut self, key: &str, document: Vec<u8>) -> Result<()> {
        self.record.clear();
        push_record(&mut self.record, key, &document)?;
        if self.end + self.record.len() as u64 > self.ready {
            self.zero_ahead()?;
        }
        self.append()?;
        self.documents.insert(key.to_owned(), document);
        Ok(())
    }
}

/// The newest document of each id, and where the log ends: zeros, or the file's end, follow.
fn read_back(file: &File) -> Result<(BTreeMap<String, Vec<u8>>, u64)> {
    let what = || "cannot read the log back";
    let (mut documents, mut end) = (BTreeMap::new(), 0);
    let length = file.metadata().context(what)?.len();
    let mut log = BufReader::with_capacity(1 << 20, file);
    let mut header = [0; HEADER_BYTES];
    while end + (HEADER_BYTES as u64) <= length {
        log.read_exact(&mut header).context(what)?;
        if header[KIND] != KIND_PUT {
            break;
        }
        let id = u16::from_le_bytes([header[ID_LENGTH], header[ID_LENGTH + 1]]);
        let document = std::array::from_fn(|byte| header[DOCUMENT_LENGTH + byte]);
        let (id, document) = (usize::from(id), u32::from_le_bytes(document));
        let document = usize::try_from(document).context(what)?;
        let bytes = (HEADER_BYTES + id + document).next_multiple_of(ALIGNMENT);
        let mut content = vec![0; bytes - HEADER_BYTES];
        log.read_exact(&mut content).context(what)?;
        let key = content.get(1..id).ok_or_else(|| Failure::new("a record has no id"))?;
        let key = String::from_utf8(key.to_vec()).context(what)?;
        documents.insert(key, content[id..id + document].to_vec());
        end += bytes as u64;
    }
    Ok((documents, end))
}
