//! The id that users see.

use std::borrow::Cow;
use std::fmt::{self, Write};

use super::EncodedId;
use crate::error::{Error, Result};
use crate::format::ID_BYTES_MAX;

const INTEGER: u8 = 0x10;
const STRING: u8 = 0x20;
const BYTES: u8 = 0x30;

/// What a displayed id shows of a long string (characters) or of long bytes.
const SHOWN_MAX: usize = 40;

/// Names a document in its collection.
///
/// Ids are ordered: integers by value, then strings by their UTF-8, then bytes. An id takes one
/// byte and its content (eight bytes for an integer), at most 65 535 bytes in all. The empty string
/// and empty bytes are ids like others.
///
/// Functions take `impl Into<Id>`: integers, strings and byte slices convert without a copy. A
/// `u64` converts by `try_from`, because only those up to `i64::MAX` are ids.
///
/// ```
/// use engine::Id;
///
/// assert!(Id::from(i64::MAX) < Id::from(""));
/// assert!(Id::from("zebra") < Id::from(b"aardvark"));
/// assert!(Id::from("10") < Id::from("9"), "strings are ordered by their bytes");
/// assert!(Id::try_from(u64::MAX).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id<'a> {
    /// A whole number.
    Integer(i64),
    /// Text.
    String(Cow<'a, str>),
    /// Anything else.
    Bytes(Cow<'a, [u8]>),
}

impl Id<'_> {
    /// The id's bytes on disk. Allocates only when they are more than 62.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidId`] when the id is too long.
    pub(crate) fn encode(&self) -> Result<EncodedId> {
        let (tag, content) = match self {
            // Flipping the sign bit makes the order of the bytes that of the numbers.
            Self::Integer(number) => {
                return Ok(EncodedId::new(INTEGER, &(number ^ i64::MIN).to_be_bytes()));
            }
            Self::String(text) => (STRING, text.as_bytes()),
            Self::Bytes(bytes) => (BYTES, bytes.as_ref()),
        };
        let len = 1 + content.len();
        if len > ID_BYTES_MAX {
            return Err(Error::InvalidId {
                what: format!("{self} takes {len} bytes encoded and {ID_BYTES_MAX} are allowed"),
            });
        }
        Ok(EncodedId::new(tag, content))
    }

    /// The id, independent of what it borrowed.
    pub fn into_owned(self) -> Id<'static> {
        match self {
            Self::Integer(number) => Id::Integer(number),
            Self::String(text) => Id::String(Cow::Owned(text.into_owned())),
            Self::Bytes(bytes) => Id::Bytes(Cow::Owned(bytes.into_owned())),
        }
    }
}

impl<'a> Id<'a> {
    /// Reads an encoding; strings and bytes borrow it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidId`] for bytes that [`Id::encode`] does not produce.
    pub(crate) fn decode(encoded: &'a [u8]) -> Result<Self> {
        let invalid = |what: String| Error::InvalidId { what };
        if encoded.len() > ID_BYTES_MAX {
            let len = encoded.len();
            return Err(invalid(format!(
                "an encoding has {len} bytes and {ID_BYTES_MAX} are allowed"
            )));
        }
        let Some((&tag, content)) = encoded.split_first() else {
            return Err(invalid("an encoding has no bytes, and needs one".to_owned()));
        };
        match tag {
            INTEGER => {
                let bytes = <[u8; 8]>::try_from(content).map_err(|_| {
                    invalid(format!("an encoded integer has {} bytes, not 8", content.len()))
                })?;
                Ok(Self::Integer(i64::from_be_bytes(bytes) ^ i64::MIN))
            }
            STRING => std::str::from_utf8(content)
                .map(Self::from)
                .map_err(|error| invalid(format!("an encoded string is not UTF-8: {error}"))),
            BYTES => Ok(Self::from(content)),
            _ => {
                Err(invalid(format!("an encoding begins with {tag:#04x}, which is no kind of id")))
            }
        }
    }
}

/// For messages: long strings and bytes are shortened.
impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::String(text) => match text.char_indices().nth(SHOWN_MAX) {
                None => write!(f, "{text:?}"),
                Some((end, _)) => write!(f, "{:?}… ({} bytes)", &text[..end], text.len()),
            },
            Self::Bytes(bytes) => {
                f.write_str("0x")?;
                for byte in bytes.iter().take(SHOWN_MAX) {
                    write!(f, "{byte:02x}")?;
                }
                if bytes.len() > SHOWN_MAX {
                    f.write_char('…')?;
                    write!(f, " ({} bytes)", bytes.len())?;
                }
                Ok(())
            }
        }
    }
}

impl From<i64> for Id<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<i32> for Id<'_> {
    fn from(number: i32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<u32> for Id<'_> {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

/// Ids are signed: numbers above `i64::MAX` would change their order.
impl TryFrom<u64> for Id<'_> {
    type Error = Error;

    fn try_from(number: u64) -> Result<Self> {
        i64::try_from(number).map(Self::Integer).map_err(|_| Error::InvalidId {
            what: format!("the integer {number} is above {}, the largest integer id", i64::MAX),
        })
    }
}

impl<'a> From<&'a str> for Id<'a> {
    fn from(text: &'a str) -> Self {
        Self::String(Cow::Borrowed(text))
    }
}

impl From<String> for Id<'_> {
    fn from(text: String) -> Self {
        Self::String(Cow::Owned(text))
    }
}

impl<'a> From<&'a String> for Id<'a> {
    fn from(text: &'a String) -> Self {
        Self::String(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a [u8]> for Id<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Id<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl From<Vec<u8>> for Id<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(Cow::Owned(bytes))
    }
}

impl<'a> From<&'a Vec<u8>> for Id<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl<'a> From<&'a Id<'_>> for Id<'a> {
    fn from(id: &'a Id<'_>) -> Self {
        match id {
            Id::Integer(number) => Self::Integer(*number),
            Id::String(text) => Self::String(Cow::Borrowed(text)),
            Id::Bytes(bytes) => Self::Bytes(Cow::Borrowed(bytes)),
        }
    }
}
