//! The names of segment files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::format::SegmentId;

const EXTENSION: &str = "seg";
const NAME_DIGITS: usize = 16;

/// The path of a segment's file.
pub(crate) fn segment_path(dir: &Path, id: SegmentId) -> PathBuf {
    dir.join(format!("{:0NAME_DIGITS$x}.{EXTENSION}", id.0))
}

/// The segment whose file has this name; `None` for names that [`segment_path`] does not make.
pub(crate) fn parse_segment_name(name: &OsStr) -> Option<SegmentId> {
    let (digits, extension) = name.to_str()?.split_once('.')?;
    let lower_hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    if extension != EXTENSION || digits.len() != NAME_DIGITS || !digits.bytes().all(lower_hex) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok().map(SegmentId)
}
