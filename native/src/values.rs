//! Values of attributes: AnyValue messages as Python values.

use crate::view::text;
use crate::wire::{Fields, Value};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBool, PyBytes, PyDict, PyFloat, PyList};

/// Values that nest deeper are left to Python.
const MAX_DEPTH: u32 = 100;

/// The key and the value of a KeyValue message.
pub fn key_value(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut key, mut value) = (&entry[..0], &entry[..0]);
    let mut fields = Fields(entry);
    while !fields.is_empty() {
        let field = fields.next_field()?;
        match (field.number, field.value) {
            (1, Value::Bytes(bytes)) => key = bytes,
            (2, Value::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    Some((key, value))
}

/// The value in an AnyValue message.
pub fn decoded<'py>(py: Python<'py>, any_value: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match plainly_decoded(py, any_value, MAX_DEPTH)? {
        Some(value) => Ok(value),
        None => {
            let decode = py.import("processors.spans.attributes")?.getattr("decode_any_value")?;
            decode.call1((PyBytes::new(py, any_value),))
        }
    }
}

/// Likewise; None where the message is unusual.
fn plainly_decoded<'py>(
    py: Python<'py>,
    any_value: &[u8],
    depth: u32,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut fields = Fields(any_value);
    if fields.is_empty() {
        return Ok(Some(py.None().into_bound(py)));
    }
    let Some(field) = fields.next_field() else { return Ok(None) };
    if !fields.is_empty() || depth == 0 {
        return Ok(None);
    }
    Ok(Some(match (field.number, field.value) {
        (1, Value::Bytes(bytes)) => text(py, bytes)?.into_any(),
        (2, Value::Varint(value)) => PyBool::new(py, value != 0).to_owned().into_any(),
        (3, Value::Varint(value)) => (value as i64).into_pyobject(py)?.into_any(),
        (4, Value::Fixed64(value)) => PyFloat::new(py, f64::from_bits(value)).into_any(),
        (5, Value::Bytes(items)) => {
            let list = PyList::empty(py);
            let mut items = Fields(items);
            while !items.is_empty() {
                let Some(item) = items.next_field() else { return Ok(None) };
                let (1, Value::Bytes(item)) = (item.number, item.value) else { return Ok(None) };
                let Some(value) = plainly_decoded(py, item, depth - 1)? else { return Ok(None) };
                list.append(value)?;
            }
            list.into_any()
        }
        (6, Value::Bytes(members)) => {
            let object = PyDict::new(py);
            let mut members = Fields(members);
            while !members.is_empty() {
                let Some(member) = members.next_field() else { return Ok(None) };
                let (1, Value::Bytes(member)) = (member.number, member.value) else { return Ok(None) };
                let Some((key, value)) = key_value(member) else { return Ok(None) };
                let Some(value) = plainly_decoded(py, value, depth - 1)? else { return Ok(None) };
                object.set_item(text(py, key)?, value)?;
            }
            object.into_any()
        }
        (7, Value::Bytes(bytes)) => PyBytes::new(py, bytes).into_any(),
        _ => return Ok(None),
    }))
}
