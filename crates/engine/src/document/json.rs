//! Documents to JSON, by MongoDB's relaxed Extended JSON (version 2).
//!
//! Invariant: only bytes that the validator passed come here, so that the recursion is as deep as a
//! document may nest.

use bson::spec::BinarySubtype;
use bson::{RawBinaryRef, RawBsonRef, RawDocument};
use serde_json::{Map, Value, json};

use super::limits::{from_bson, invalid};
use crate::error::{Error, Result};

/// 9999-12-31T23:59:59.999Z: dates up to here, from 1970 on, are written as text.
const LAST_TEXT_DATE_MS: i64 = 253_402_300_799_999;

pub(super) fn document(document: &RawDocument) -> Result<Value> {
    let mut map = Map::new();
    for field in document {
        let (name, field) = field.map_err(|error| from_bson(&error))?;
        // Of fields by the same name the first counts, as it does for reads of one field.
        map.entry(name.as_str()).or_insert(value(field)?);
    }
    Ok(Value::Object(map))
}

fn value(field: RawBsonRef<'_>) -> Result<Value> {
    Ok(match field {
        RawBsonRef::Document(nested) => document(nested)?,
        RawBsonRef::Array(array) => {
            let mut values = Vec::new();
            for element in array {
                values.push(value(element.map_err(|error| from_bson(&error))?)?);
            }
            Value::Array(values)
        }
        RawBsonRef::String(text) => Value::from(text),
        RawBsonRef::Int32(number) => Value::from(number),
        RawBsonRef::Int64(number) => Value::from(number),
        RawBsonRef::Boolean(truth) => Value::from(truth),
        RawBsonRef::Null => Value::Null,
        RawBsonRef::Double(number) if number.is_finite() => Value::from(number),
        RawBsonRef::Double(number) => json!({ "$numberDouble": non_finite(number) }),
        RawBsonRef::Decimal128(number) => json!({ "$numberDecimal": number.to_string() }),
        RawBsonRef::DateTime(date)
            if (0..=LAST_TEXT_DATE_MS).contains(&date.timestamp_millis()) =>
        {
            json!({ "$date": date.try_to_rfc3339_string().map_err(|error| from_bson(&error))? })
        }
        RawBsonRef::Binary(binary) => binary_value(binary)?,
        RawBsonRef::JavaScriptCodeWithScope(code) => {
            json!({ "$code": code.code, "$scope": document(code.scope)? })
        }
        // The others have the same form in the `bson` crate.
        other => serde_json::to_value(other).map_err(not_json)?,
    })
}

fn non_finite(number: f64) -> &'static str {
    if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// The `bson` crate writes generic binary as an array of numbers, and any other as Base64 with its
/// subtype: it is given another, and the subtype is then put right.
fn binary_value(binary: RawBinaryRef<'_>) -> Result<Value> {
    let subtype = u8::from(binary.subtype);
    let other = RawBinaryRef { subtype: BinarySubtype::UserDefined(0x80), bytes: binary.bytes };
    let mut value = serde_json::to_value(other).map_err(not_json)?;
    value["$binary"]["subType"] = Value::from(format!("{subtype:02x}"));
    Ok(value)
}

fn not_json(error: serde_json::Error) -> Error {
    invalid(format!("a value cannot be written as JSON: {error}"))
}
