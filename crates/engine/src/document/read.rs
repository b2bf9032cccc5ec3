//! What reads return.

use std::fmt;

use bson::spec::ElementType;
use bson::{RawArray, RawBsonRef, RawDocument};
use serde::Deserialize;

use super::elements::{Element, Elements, find, kind};
use super::limits::{from_bson, invalid};
use super::{json, validate};
use crate::error::Result;
use crate::segment::{Record, RecordDocument};
use crate::sync::Arc;

/// Fields that `Debug` shows.
const SHOWN_FIELDS_MAX: usize = 8;
/// Bytes of a value that `Debug` shows.
const SHOWN_BYTES_MAX: usize = 40;

/// A document as it was stored: BSON.
///
/// Reading a field walks over the fields before it without decoding them, and borrows from the
/// document. Cloning is cheap.
///
/// A document may borrow the segment that holds it, whose space is not given back to the disk
/// before the document is dropped. To keep one for long, copy its bytes or decode it.
///
/// ```
/// use engine::Document;
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct City<'a> {
///     name: &'a str,
///     people: i64,
/// }
///
/// # fn main() -> Result<(), engine::Error> {
/// # let bson = engine::bson::rawdoc! { "name": "Oslo", "people": 717_710_i64 };
/// # let document = Document::from_bytes(bson.as_bytes())?;
/// assert_eq!(document.get_str("name")?, Some("Oslo"));
/// assert_eq!(document.get_str("mayor")?, None);
/// assert!(document.get_str("people").is_err(), "it is an integer");
/// let city: City<'_> = document.decode()?;
/// assert_eq!((city.name, city.people), ("Oslo", 717_710));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Document {
    source: Source,
}

#[derive(Clone)]
enum Source {
    /// A record of the log, in its segment or read from it.
    Record(RecordDocument),
    /// Bytes from elsewhere.
    Bytes(Arc<[u8]>),
}

impl Document {
    /// The document of a record that was verified.
    pub(crate) fn new(record: Record) -> Self {
        Self { source: Source::Record(RecordDocument::of(record)) }
    }

    /// Becomes the document of another record that was verified. Allocates nothing.
    #[inline]
    pub(crate) fn show(&mut self, record: &Record) {
        match &mut self.source {
            Source::Record(own) => own.show(record),
            Source::Bytes(_) => *self = Self::new(record.clone()),
        }
    }

    /// A document of BSON bytes from elsewhere, checked as `put` checks them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidDocument`](crate::Error::InvalidDocument) when the bytes are not BSON, or
    /// too large or too deep.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Result<Self> {
        let bytes = bytes.into();
        validate(&bytes)?;
        Ok(Self { source: Source::Bytes(bytes) })
    }

    /// A document that may be malformed.
    #[cfg(test)]
    pub(super) fn unchecked(bytes: &[u8]) -> Self {
        Self { source: Source::Bytes(bytes.into()) }
    }

    /// The BSON bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.source {
            Source::Record(document) => document.as_bytes(),
            Source::Bytes(bytes) => bytes,
        }
    }

    /// The length in bytes; an empty document has five.
    #[expect(clippy::len_without_is_empty, reason = "a length in bytes, never 0")]
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// The document for the `bson` crate's own readers. Costs nothing.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidDocument`](crate::Error::InvalidDocument) when the bytes are not BSON, which
    /// what came from a database or [`Document::from_bytes`] always is. So in the other functions.
    pub fn as_raw(&self) -> Result<&RawDocument> {
        RawDocument::from_bytes(self.as_bytes()).map_err(|error| from_bson(&error))
    }

    /// The whole document as a value of any type; strings and bytes in it can borrow from the
    /// document.
    ///
    /// Recurses once a level. For the deepest documents of 100 levels that takes up to 256 KiB of
    /// stack, and 1 MiB in a build without optimisation (4 MiB for a `bson::Document`, for which
    /// there is [`Document::to_bson`]).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidDocument`](crate::Error::InvalidDocument) when the document does not have
    /// the type's form.
    pub fn decode<'de, T: Deserialize<'de>>(&'de self) -> Result<T> {
        validate(self.as_bytes())?;
        bson::deserialize_from_slice(self.as_bytes()).map_err(|error| from_bson(&error))
    }

    /// The whole document as the `bson` crate's own. Unlike [`Document::decode`] it takes fields by
    /// names such as `$oid` as they are.
    pub fn to_bson(&self) -> Result<bson::Document> {
        validate(self.as_bytes())?;
        bson::Document::try_from(self.as_raw()?).map_err(|error| from_bson(&error))
    }

    /// The whole document as JSON. Types that JSON lacks take the form of MongoDB's relaxed
    /// Extended JSON: `{"$date": …}`.
    pub fn to_json(&self) -> Result<serde_json::Value> {
        validate(self.as_bytes())?;
        json::document(self.as_raw()?)
    }

    /// One field of the top level. None when there is none by this name.
    pub fn get(&self, field: &str) -> Result<Option<RawBsonRef<'_>>> {
        match find(self.as_bytes(), field)? {
            None => Ok(None),
            Some(element) => self.value(field, &element).map(Some),
        }
    }

    /// A field that is a string.
    ///
    /// # Errors
    ///
    /// Here and in the other functions of this kind,
    /// [`Error::InvalidDocument`](crate::Error::InvalidDocument) when the field has another type.
    pub fn get_str(&self, field: &str) -> Result<Option<&str>> {
        self.typed(field, "a string", RawBsonRef::as_str)
    }

    /// A field that is an integer of either width.
    pub fn get_i64(&self, field: &str) -> Result<Option<i64>> {
        self.typed(field, "an integer", |value| {
            value.as_i64().or_else(|| value.as_i32().map(i64::from))
        })
    }

    /// A field that is a floating-point number, or an integer of 32 bits.
    pub fn get_f64(&self, field: &str) -> Result<Option<f64>> {
        self.typed(field, "a number", |value| {
            value.as_f64().or_else(|| value.as_i32().map(f64::from))
        })
    }

    /// A field that is a boolean.
    pub fn get_bool(&self, field: &str) -> Result<Option<bool>> {
        self.typed(field, "a boolean", RawBsonRef::as_bool)
    }

    /// A field that is binary, of any subtype.
    pub fn get_bytes(&self, field: &str) -> Result<Option<&[u8]>> {
        self.typed(field, "binary", |value| value.as_binary().map(|binary| binary.bytes))
    }

    /// A field that is a document.
    pub fn get_document(&self, field: &str) -> Result<Option<&RawDocument>> {
        self.typed(field, "a document", RawBsonRef::as_document)
    }

    /// A field that is an array.
    pub fn get_array(&self, field: &str) -> Result<Option<&RawArray>> {
        self.typed(field, "an array", RawBsonRef::as_array)
    }

    fn typed<'a, T>(
        &'a self,
        field: &str,
        expected: &str,
        convert: impl FnOnce(RawBsonRef<'a>) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(field)? else {
            return Ok(None);
        };
        let found = described(value.element_type());
        match convert(value) {
            Some(value) => Ok(Some(value)),
            None => {
                let field = shortened(field);
                Err(invalid(format!("the field `{field}` is {found}, not {expected}")))
            }
        }
    }

    /// Decodes one value. The common types are read here; for the others the `bson` crate walks to
    /// the field once more.
    fn value<'a>(&'a self, field: &str, element: &Element<'a>) -> Result<RawBsonRef<'a>> {
        let value = element.value;
        Ok(match (element.kind, value.len()) {
            (kind::STRING, 5..) => match std::str::from_utf8(&value[4..value.len() - 1]) {
                Ok(text) => RawBsonRef::String(text),
                Err(_) => {
                    let field = shortened(field);
                    return Err(invalid(format!("the field `{field}` is not UTF-8")));
                }
            },
            (kind::INT32, _) => RawBsonRef::Int32(i32::from_le_bytes(chunk(value)?)),
            (kind::INT64, _) => RawBsonRef::Int64(i64::from_le_bytes(chunk(value)?)),
            (kind::DOUBLE, _) => RawBsonRef::Double(f64::from_le_bytes(chunk(value)?)),
            (kind::DOCUMENT, _) => RawBsonRef::Document(
                RawDocument::from_bytes(value).map_err(|error| from_bson(&error))?,
            ),
            _ => match self.as_raw()?.get(field).map_err(|error| from_bson(&error))? {
                Some(value) => value,
                None => {
                    let field = shortened(field);
                    return Err(invalid(format!("the field `{field}` cannot be read")));
                }
            },
        })
    }
}

fn chunk<const N: usize>(value: &[u8]) -> Result<[u8; N]> {
    value.first_chunk().copied().ok_or_else(|| invalid("a value is cut short"))
}

/// The first fields, each shortened.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({} bytes) ", self.len())?;
        let Ok(elements) = Elements::new(self.as_bytes()) else {
            return f.write_str("malformed");
        };
        let mut map = f.debug_map();
        for element in elements.clone().take(SHOWN_FIELDS_MAX) {
            let Ok(element) = element else {
                return map.entry(&"…", &"malformed").finish();
            };
            let name = String::from_utf8_lossy(element.name);
            map.key(&shortened(&name));
            match std::str::from_utf8(element.name).ok().and_then(|name| self.get(name).ok()?) {
                Some(value) => map.value(&format_args!("{}", brief(value))),
                None => map.value(&format_args!("malformed")),
            };
        }
        if elements.count() > SHOWN_FIELDS_MAX {
            return map.finish_non_exhaustive();
        }
        map.finish()
    }
}

fn brief(value: RawBsonRef<'_>) -> String {
    match value {
        RawBsonRef::String(text) => format!("{:?}", shortened(text)),
        RawBsonRef::Document(document) => format!("{{{} bytes}}", document.as_bytes().len()),
        RawBsonRef::Array(array) => format!("[{} bytes]", array.as_bytes().len()),
        RawBsonRef::Binary(binary) => format!("<{} bytes>", binary.bytes.len()),
        RawBsonRef::Int32(number) => number.to_string(),
        RawBsonRef::Int64(number) => number.to_string(),
        RawBsonRef::Double(number) => format!("{number:?}"),
        RawBsonRef::Boolean(truth) => truth.to_string(),
        RawBsonRef::Null => "null".to_owned(),
        RawBsonRef::ObjectId(id) => format!("ObjectId({id})"),
        other => name_of(other.element_type()),
    }
}

fn name_of(kind: ElementType) -> String {
    format!("{kind:?}")
}

/// A type as messages name it.
fn described(kind: ElementType) -> &'static str {
    match kind {
        ElementType::Double => "a floating-point number",
        ElementType::String => "a string",
        ElementType::EmbeddedDocument => "a document",
        ElementType::Array => "an array",
        ElementType::Binary => "binary",
        ElementType::Undefined => "undefined",
        ElementType::ObjectId => "an object id",
        ElementType::Boolean => "a boolean",
        ElementType::DateTime => "a date",
        ElementType::Null => "null",
        ElementType::RegularExpression => "a regular expression",
        ElementType::DbPointer => "a database pointer",
        ElementType::JavaScriptCode => "JavaScript",
        ElementType::Symbol => "a symbol",
        ElementType::JavaScriptCodeWithScope => "JavaScript with a scope",
        ElementType::Int32 => "an integer of 32 bits",
        ElementType::Timestamp => "a timestamp",
        ElementType::Int64 => "an integer of 64 bits",
        ElementType::Decimal128 => "a decimal",
        ElementType::MaxKey => "the largest key",
        ElementType::MinKey => "the smallest key",
    }
}

fn shortened(text: &str) -> String {
    if text.len() <= SHOWN_BYTES_MAX {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)])
}
