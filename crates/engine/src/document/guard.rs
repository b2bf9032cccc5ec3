//! Counts while a value is serialized, and stops at the document's limits. `layer.rs` is the
//! serializer that asks it.
//!
//! Invariants:
//!
//! 1. However a value nests, at most `LEVELS_MAX` documents and arrays and `WRAPPERS_MAX` wrappers
//!    (options, newtypes) are entered: the stack stays bounded, whoever chose the depth.
//! 2. The guard refuses nothing that is within the limits: it counts levels as the validator does,
//!    and bytes with a margin.
//! 3. The first refusal is kept, because the inner serializer's error type cannot carry it.

use std::cell::Cell;

use serde::ser::{Serialize, Serializer};

use super::layer::Layer;
use super::limits::{DOCUMENT_BYTES_MAX, LEVELS_MAX};

/// Options and newtypes around one value, summed over all the levels that it is in. They leave no
/// trace in BSON but recurse.
pub(super) const WRAPPERS_MAX: usize = 256;

/// Bytes of content after which serializing stops. A backstop for memory, not the limit: some
/// values are handed over in a form up to 2.3 times as long as their BSON (a decimal as text).
const WORK_BYTES_MAX: usize = 4 * DOCUMENT_BYTES_MAX;

/// The structs by which the `bson` crate's own types make themselves known. They become one value,
/// not a document.
const VALUE_STRUCTS: [&str; 13] = [
    "$oid",
    "$date",
    "$binary",
    "$timestamp",
    "$minKey",
    "$maxKey",
    "$code",
    "$codeWithScope",
    "$symbol",
    "$undefined",
    "$regularExpression",
    "$dbPointer",
    "$numberDecimal",
];

/// Why a value cannot be a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    TopLevel(&'static str),
    Levels(usize),
    Wrappers(usize),
    Integer(u64),
    Bytes(usize),
}

/// Counts for one document.
#[derive(Debug, Default)]
pub(super) struct Guard {
    work_bytes: Cell<usize>,
    refusal: Cell<Option<Refusal>>,
}

impl Guard {
    /// The document, to be handed to a serializer.
    pub(super) fn value<'g, T: ?Sized>(&'g self, value: &'g T) -> Guarded<'g, T> {
        Guarded {
            value,
            place: Place { guard: self, levels: 0, wrappers: 0, within: Within::Document },
        }
    }

    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.refusal.get()
    }

    fn refuse<E: serde::ser::Error>(&self, refusal: Refusal) -> E {
        if self.refusal.get().is_none() {
            self.refusal.set(Some(refusal));
        }
        E::custom("the value is beyond the limits of a document")
    }
}

/// Where a value stands.
#[derive(Clone, Copy)]
pub(super) struct Place<'g> {
    guard: &'g Guard,
    /// Documents and arrays around it.
    levels: usize,
    wrappers: usize,
    within: Within,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// A document, an array, or nothing yet.
    Document,
    /// One of [`VALUE_STRUCTS`], whose inner structs are no documents either.
    ValueStruct,
}

impl<'g> Place<'g> {
    /// A value that holds no others, with its content's bytes beyond a fixed size.
    pub(super) fn leaf<E: serde::ser::Error>(
        self,
        kind: &'static str,
        content: usize,
    ) -> Result<(), E> {
        if self.levels == 0 && self.within == Within::Document {
            return Err(self.guard.refuse(Refusal::TopLevel(kind)));
        }
        self.charge(content)
    }

    /// Bytes: a value, or the form in which a raw document is handed over.
    pub(super) fn bytes<E: serde::ser::Error>(self, len: usize) -> Result<(), E> {
        self.charge(len)
    }

    fn charge<E: serde::ser::Error>(self, content: usize) -> Result<(), E> {
        // A value takes two bytes at least: its type, and its name's terminator.
        let bytes = self.guard.work_bytes.get().saturating_add(content).saturating_add(2);
        self.guard.work_bytes.set(bytes);
        if bytes > WORK_BYTES_MAX {
            return Err(self.guard.refuse(Refusal::Bytes(bytes)));
        }
        Ok(())
    }

    /// The inside of a document, or of `more` documents around each other.
    pub(super) fn nested<E: serde::ser::Error>(self, more: usize) -> Result<Self, E> {
        self.charge(0)?;
        let levels = self.levels + more;
        if levels > LEVELS_MAX {
            return Err(self.guard.refuse(Refusal::Levels(levels)));
        }
        Ok(Self { levels, within: Within::Document, ..self })
    }

    /// The inside of an array.
    pub(super) fn array<E: serde::ser::Error>(self) -> Result<Self, E> {
        if self.levels == 0 {
            return Err(self.guard.refuse(Refusal::TopLevel("a sequence")));
        }
        self.nested(1)
    }

    /// An option or a newtype: the value in it takes its place.
    pub(super) fn transparent<E: serde::ser::Error>(self) -> Result<Self, E> {
        self.wrapped(self.within)
    }

    fn wrapped<E: serde::ser::Error>(self, within: Within) -> Result<Self, E> {
        let wrappers = self.wrappers + 1;
        if wrappers > WRAPPERS_MAX {
            return Err(self.guard.refuse(Refusal::Wrappers(wrappers)));
        }
        Ok(Self { wrappers, within, ..self })
    }

    pub(super) fn guarded<'v, T: ?Sized>(self, value: &'v T) -> Guarded<'v, T>
    where
        'g: 'v,
    {
        Guarded { value, place: self }
    }

    /// The struct by this name: a document, or a value in disguise.
    pub(super) fn structure<E: serde::ser::Error>(self, name: &str) -> Result<Self, E> {
        if self.within == Within::ValueStruct || VALUE_STRUCTS.contains(&name) {
            self.wrapped(Within::ValueStruct)
        } else {
            self.nested(1)
        }
    }

    /// An integer that BSON has no type for.
    pub(super) fn unsigned<E: serde::ser::Error>(self, number: u64) -> Result<(), E> {
        self.leaf("an integer", 0)?;
        match i64::try_from(number) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.guard.refuse(Refusal::Integer(number))),
        }
    }
}

/// A value on its way to a serializer.
pub(super) struct Guarded<'g, T: ?Sized> {
    value: &'g T,
    place: Place<'g>,
}

impl<T: Serialize + ?Sized> Serialize for Guarded<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(Layer::new(serializer, self.place))
    }
}
