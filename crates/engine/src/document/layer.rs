//! A serializer around a serializer: asks the guard, then hands everything on unchanged.

use std::fmt::Display;

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::guard::Place;

/// A serializer, or one of its compounds, and the place of what it takes.
pub(super) struct Layer<'g, S> {
    inner: S,
    place: Place<'g>,
}

impl<'g, S> Layer<'g, S> {
    pub(super) fn new(inner: S, place: Place<'g>) -> Self {
        Self { inner, place }
    }
}

/// Values without content of their own.
macro_rules! fixed {
    ($($method:ident($($value:ident: $type:ty)?) $kind:literal;)*) => {$(
        fn $method(self $(, $value: $type)?) -> Result<S::Ok, S::Error> {
            self.place.leaf($kind, 0)?;
            self.inner.$method($($value)?)
        }
    )*};
}

impl<'g, S: Serializer> Serializer for Layer<'g, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Layer<'g, S::SerializeSeq>;
    type SerializeTuple = Layer<'g, S::SerializeTuple>;
    type SerializeTupleStruct = Layer<'g, S::SerializeTupleStruct>;
    type SerializeTupleVariant = Layer<'g, S::SerializeTupleVariant>;
    type SerializeMap = Layer<'g, S::SerializeMap>;
    type SerializeStruct = Layer<'g, S::SerializeStruct>;
    type SerializeStructVariant = Layer<'g, S::SerializeStructVariant>;

    fixed! {
        serialize_bool(value: bool) "a boolean";
        serialize_i8(value: i8) "an integer";
        serialize_i16(value: i16) "an integer";
        serialize_i32(value: i32) "an integer";
        serialize_i64(value: i64) "an integer";
        serialize_i128(value: i128) "an integer";
        serialize_u8(value: u8) "an integer";
        serialize_u16(value: u16) "an integer";
        serialize_u32(value: u32) "an integer";
        serialize_u128(value: u128) "an integer";
        serialize_f32(value: f32) "a number";
        serialize_f64(value: f64) "a number";
        serialize_char(value: char) "a string";
        serialize_none() "null";
        serialize_unit() "null";
        serialize_unit_struct(name: &'static str) "null";
    }

    fn serialize_u64(self, value: u64) -> Result<S::Ok, S::Error> {
        self.place.unsigned(value)?;
        self.inner.serialize_u64(value)
    }

    fn serialize_str(self, value: &str) -> Result<S::Ok, S::Error> {
        self.place.leaf("a string", value.len())?;
        self.inner.serialize_str(value)
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.serialize_str(&value.to_string())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<S::Ok, S::Error> {
        // At the top level these may be a raw document; the inner serializer knows.
        self.place.bytes(value.len())?;
        self.inner.serialize_bytes(value)
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.place.leaf("a string", variant.len())?;
        self.inner.serialize_unit_variant(name, index, variant)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        let place = self.place.transparent()?;
        self.inner.serialize_some(&place.guarded(value))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let place = self.place.transparent()?;
        self.inner.serialize_newtype_struct(name, &place.guarded(value))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let place = self.place.nested(1)?;
        self.inner.serialize_newtype_variant(name, index, variant, &place.guarded(value))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        let place = self.place.array()?;
        Ok(Layer::new(self.inner.serialize_seq(len)?, place))
    }

    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        let place = self.place.array()?;
        Ok(Layer::new(self.inner.serialize_tuple(len)?, place))
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        let place = self.place.array()?;
        Ok(Layer::new(self.inner.serialize_tuple_struct(name, len)?, place))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        // `{ variant: [fields] }`
        let place = self.place.nested(2)?;
        Ok(Layer::new(self.inner.serialize_tuple_variant(name, index, variant, len)?, place))
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        let place = self.place.nested(1)?;
        Ok(Layer::new(self.inner.serialize_map(len)?, place))
    }

    fn serialize_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStruct, S::Error> {
        let place = self.place.structure(name)?;
        Ok(Layer::new(self.inner.serialize_struct(name, len)?, place))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        // `{ variant: { fields } }`
        let place = self.place.nested(2)?;
        Ok(Layer::new(self.inner.serialize_struct_variant(name, index, variant, len)?, place))
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// Compounds whose elements have no names.
macro_rules! unnamed {
    ($($trait:ident $method:ident;)*) => {$(
        impl<S: $trait> $trait for Layer<'_, S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
                self.inner.$method(&self.place.guarded(value))
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.inner.end()
            }
        }
    )*};
}

unnamed! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

/// Compounds whose fields have names.
macro_rules! named {
    ($($trait:ident;)*) => {$(
        impl<S: $trait> $trait for Layer<'_, S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), S::Error> {
                self.inner.serialize_field(name, &self.place.guarded(value))
            }

            fn skip_field(&mut self, name: &'static str) -> Result<(), S::Error> {
                self.inner.skip_field(name)
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.inner.end()
            }
        }
    )*};
}

named! {
    SerializeStruct;
    SerializeStructVariant;
}

impl<S: SerializeMap> SerializeMap for Layer<'_, S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        self.inner.serialize_key(&self.place.guarded(key))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.inner.serialize_value(&self.place.guarded(value))
    }

    fn serialize_entry<K: Serialize + ?Sized, V: Serialize + ?Sized>(
        &mut self,
        key: &K,
        value: &V,
    ) -> Result<(), S::Error> {
        self.inner.serialize_entry(&self.place.guarded(key), &self.place.guarded(value))
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.inner.end()
    }
}
