//! Values of attributes: AnyValue messages as Python values.

use crate::view::Found;
use crate::wire::{Field, Fields, Value};
use memchr::memchr;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};

/// Values that nest deeper are left to Python.
pub const MAX_DEPTH: u32 = 100;
/// Texts of so many bytes are left to Python, as are numbers of so many digits.
const LONG: usize = 16 * 1024;
const LONG_NUMBER: usize = 19;

/// The key and the value of a KeyValue message; `None` where it has other fields, which Python leaves out.
pub fn key_value(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut key, mut value) = (&entry[..0], &entry[..0]);
    let mut fields = Fields(entry);
    while !fields.is_empty() {
        let field = fields.next_field()?;
        match (field.number, field.value) {
            (1, Value::Bytes(bytes)) => key = bytes,
            (2, Value::Bytes(bytes)) => value = bytes,
            _ => return None,
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
fn plainly_decoded<'py>(py: Python<'py>, any_value: &[u8], depth: u32) -> Found<'py> {
    let mut fields = Fields(any_value);
    if fields.is_empty() {
        return Ok(Some(py.None().into_bound(py)));
    }
    let Some(field) = fields.next_field() else { return Ok(None) };
    if !fields.is_empty() || depth == 0 {
        return Ok(None);
    }
    Ok(Some(match (field.number, field.value) {
        (1, Value::Bytes(bytes)) => PyString::from_bytes(py, bytes)?.into_any(),
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
                object.set_item(PyString::from_bytes(py, key)?, value)?;
            }
            object.into_any()
        }
        (7, Value::Bytes(bytes)) => PyBytes::new(py, bytes).into_any(),
        _ => return Ok(None),
    }))
}

/// The list or object that `entries` (keys in order with AnyValue messages) spell out, `a.0.b` as three levels.
///
/// None for keys that spell out one member twice, and for values that are no text, number, truth or nothing.
pub fn nested<'py>(py: Python<'py>, entries: &[(&[u8], &[u8])], depth: u32) -> Found<'py> {
    let (mut rest, mut members) = (entries, Vec::new());
    while let Some(&(key, value)) = rest.first() {
        let (name, count, member) = match memchr(b'.', key) {
            None => (key, 1, scalar(py, value)?),
            Some(_) if depth == 0 => return Ok(None),
            Some(end) => {
                let inside = rest.iter().take_while(|(other, _)| other.starts_with(&key[..=end]));
                let inside: Vec<_> = inside.map(|(other, value)| (&other[end + 1..], *value)).collect();
                (&key[..end], inside.len(), nested(py, &inside, depth - 1)?)
            }
        };
        let Some(member) = member else { return Ok(None) };
        members.push((name, member));
        rest = &rest[count..];
    }
    let is_list = members.iter().all(|(name, _)| !name.is_empty() && name.iter().all(u8::is_ascii_digit));
    if is_list && !members.is_empty() {
        members.sort_by_key(|(name, _)| (name.len(), *name));
        if members.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Ok(None);
        }
        return PyList::new(py, members.into_iter().map(|(_, member)| member))
            .map(|list| Some(list.into_any()));
    }
    let object = PyDict::new(py);
    for (name, member) in &members {
        object.set_item(PyString::from_bytes(py, name)?, member)?;
    }
    Ok((object.len() == members.len()).then_some(object.into_any()))
}

fn scalar<'py>(py: Python<'py>, any_value: &[u8]) -> Found<'py> {
    Ok(plainly_decoded(py, any_value, 1)?.filter(|value| {
        value.is_none()
            || value.is_exact_instance_of::<PyString>()
            || value.is_exact_instance_of::<PyBool>()
            || value.is_exact_instance_of::<PyInt>()
            || value.cast::<PyFloat>().is_ok_and(|number| number.value().is_finite())
    }))
}

/// See `plain_object` in `processors/spans/native.py`.
#[pyfunction]
pub fn plain_object<'py>(py: Python<'py>, any_value: &[u8]) -> Found<'py, PyString> {
    let mut fields = Fields(any_value);
    let Some(Field { number: 1, value: Value::Bytes(held) }) = fields.next_field() else { return Ok(None) };
    let is_object = held.len() < LONG && held.first() == Some(&b'{') && held.last() == Some(&b'}');
    if !is_object || !fields.is_empty() || !is_plain(held) {
        return Ok(None);
    }
    PyString::from_bytes(py, held).map(Some)
}

/// See `is_plain_json` in `processors/spans/native.py`.
#[pyfunction]
pub fn is_plain_json(text: &Bound<'_, PyString>) -> bool {
    text.to_str().is_ok_and(|text| is_plain(text.as_bytes()))
}

/// Whether no number in a JSON text is long, and nothing can be nested too deep.
fn is_plain(json: &[u8]) -> bool {
    let opened = json.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    if opened > MAX_DEPTH as usize {
        return false;
    }
    // Each run of that many digits has one at such a place.
    !(LONG_NUMBER - 1..json.len()).step_by(LONG_NUMBER).any(|place| {
        let after = json[place..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        after > 0 && {
            let before = json[..place].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
            before + after >= LONG_NUMBER
        }
    })
}
