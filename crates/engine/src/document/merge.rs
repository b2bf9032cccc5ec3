//! Replaces fields of a document, on raw bytes.

use std::collections::HashMap;

use super::elements::{EMPTY_DOCUMENT_BYTES, Element, Elements};
use super::limits::{DOCUMENT_BYTES_MAX, too_large};
use crate::error::Result;

/// Up to this many fields a search through all is faster than a table.
const LINEAR_FIELDS_MAX: usize = 16;

/// Puts the fields of `fields` into `existing`: those that it has are replaced in place, others
/// appended. Only the top level is looked at; a nested document is replaced as a whole. Copies each
/// byte once.
///
/// Where `existing` has a replaced name several times, the first is replaced and the others
/// removed; where `fields` has a name several times, the last counts.
///
/// # Errors
///
/// [`Error::InvalidDocument`](crate::Error::InvalidDocument) when the result would be too large, or
/// the top level of either is malformed.
pub(crate) fn merge(existing: &[u8], fields: &[u8]) -> Result<Vec<u8>> {
    let mut fields = Fields::new(fields)?;
    let mut merged = Vec::with_capacity(existing.len() + fields.bytes);
    merged.extend_from_slice(&[0; 4]);
    for element in Elements::new(existing)? {
        let element = element?;
        match fields.position(element.name) {
            None => merged.extend_from_slice(element.whole),
            Some(position) => fields.append_once(position, &mut merged),
        }
    }
    for position in 0..fields.elements.len() {
        fields.append_once(position, &mut merged);
    }
    merged.push(0);
    if merged.len() > DOCUMENT_BYTES_MAX {
        return Err(too_large(merged.len()));
    }
    let len = u32::try_from(merged.len()).expect("a document's length was checked");
    merged[..4].copy_from_slice(&len.to_le_bytes());
    Ok(merged)
}

/// What [`merge`] does, for benchmarks that give other stores the same work. Not part of the
/// interface.
///
/// # Errors
///
/// [`Error::InvalidDocument`](crate::Error::InvalidDocument) when the result would be too large, or
/// the top level of either is malformed.
#[doc(hidden)]
pub fn merge_documents(existing: &[u8], fields: &[u8]) -> Result<Vec<u8>> {
    merge(existing, fields)
}

/// The fields to put in, each with whether it has been.
struct Fields<'a> {
    elements: Vec<(Element<'a>, Placed)>,
    /// Empty when there are few.
    by_name: HashMap<&'a [u8], usize>,
    bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Placed {
    No,
    Yes,
}

impl<'a> Fields<'a> {
    fn new(document: &'a [u8]) -> Result<Self> {
        let mut fields = Self {
            elements: Vec::new(),
            by_name: HashMap::new(),
            bytes: document.len() - document.len().min(EMPTY_DOCUMENT_BYTES),
        };
        for element in Elements::new(document)? {
            let element = element?;
            match fields.position(element.name) {
                Some(position) => fields.elements[position].0 = element,
                None => fields.push(element),
            }
        }
        Ok(fields)
    }

    fn push(&mut self, element: Element<'a>) {
        self.elements.push((element, Placed::No));
        if self.elements.len() == LINEAR_FIELDS_MAX + 1 {
            self.by_name = self
                .elements
                .iter()
                .enumerate()
                .map(|(i, (element, _))| (element.name, i))
                .collect();
        } else if self.elements.len() > LINEAR_FIELDS_MAX {
            self.by_name.insert(element.name, self.elements.len() - 1);
        }
    }

    fn position(&self, name: &[u8]) -> Option<usize> {
        if self.elements.len() <= LINEAR_FIELDS_MAX {
            self.elements.iter().position(|(element, _)| element.name == name)
        } else {
            self.by_name.get(name).copied()
        }
    }

    fn append_once(&mut self, position: usize, out: &mut Vec<u8>) {
        let (element, placed) = &mut self.elements[position];
        if *placed == Placed::No {
            out.extend_from_slice(element.whole);
            *placed = Placed::Yes;
        }
    }
}
