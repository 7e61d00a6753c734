//! A span as evaluation sees it: where its fields lie in the bytes that were received.

use crate::values;
use crate::wire::{Fields, Value};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyAny, PyBytes, PyFrozenSet, PyList, PyString, PyTuple};
use std::str;

const NO_PARENT: [u8; 8] = [0; 8];
const REMOTE_PARENT: u32 = 0x300;

/// What may be there, for Python.
pub type Found<'py, T = PyAny> = PyResult<Option<Bound<'py, T>>>;

/// A part of a span's bytes.
#[derive(Clone, Copy, Default)]
struct Part {
    start: u32,
    end: u32,
}

impl Part {
    /// Where `part`, a slice of `whole`, lies in it.
    #[inline(always)]
    fn at(whole: &[u8], part: &[u8]) -> Self {
        let start = part.as_ptr() as usize - whole.as_ptr() as usize;
        Self { start: start as u32, end: (start + part.len()) as u32 }
    }

    #[inline(always)]
    fn of(self, whole: &[u8]) -> &[u8] {
        &whole[self.start as usize..self.end as usize]
    }
}

const TRACE_ID: usize = 0;
const SPAN_ID: usize = 1;
const PARENT_ID: usize = 2;
const NAME: usize = 3;
const STATUS_MESSAGE: usize = 4;

/// See `Span` in `processors/spans/span.py`.
#[pyclass(frozen, module = "tracegrade_native")]
pub struct Span {
    #[pyo3(get)]
    raw: Py<PyBytes>,
    #[pyo3(get)]
    pub envelope: Py<PyAny>,
    /// By the numbers above.
    parts: [Part; 5],
    #[pyo3(get)]
    kind: i32,
    #[pyo3(get)]
    pub start_unix_nano: u64,
    #[pyo3(get)]
    pub end_unix_nano: u64,
    /// Keys with the AnyValue messages of their values, in order of the keys.
    attributes: Vec<(Part, Part)>,
    #[pyo3(get)]
    dropped_attributes_count: u32,
    event_parts: Vec<Part>,
    #[pyo3(get)]
    has_links: bool,
    #[pyo3(get)]
    status_code: i32,
    #[pyo3(get)]
    flags: u32,
    events: PyOnceLock<Py<PyList>>,
}

impl Span {
    /// The span in `raw`; None where that is no Span message, or an unusual one.
    pub fn read(raw: &Bound<'_, PyBytes>, envelope: Py<PyAny>) -> Option<Self> {
        let whole = raw.as_bytes();
        u32::try_from(whole.len()).ok()?;
        let mut span = Self {
            raw: raw.clone().unbind(),
            envelope,
            parts: [Part::default(); 5],
            kind: 0,
            start_unix_nano: 0,
            end_unix_nano: 0,
            attributes: Vec::with_capacity(16),
            dropped_attributes_count: 0,
            event_parts: Vec::new(),
            has_links: false,
            status_code: 0,
            flags: 0,
            events: PyOnceLock::new(),
        };
        let mut fields = Fields(whole);
        while !fields.is_empty() {
            let field = fields.next_field()?;
            match (field.number, field.value) {
                (1, Value::Bytes(id)) => span.parts[TRACE_ID] = Part::at(whole, id),
                (2, Value::Bytes(id)) => span.parts[SPAN_ID] = Part::at(whole, id),
                (4, Value::Bytes(id)) => span.parts[PARENT_ID] = Part::at(whole, id),
                (5, Value::Bytes(name)) => span.parts[NAME] = Part::at(whole, utf8(name)?),
                (6, Value::Varint(kind)) => span.kind = i32::try_from(kind).ok()?,
                (7, Value::Fixed64(time)) => span.start_unix_nano = time,
                (8, Value::Fixed64(time)) => span.end_unix_nano = time,
                (9, Value::Bytes(entry)) => {
                    let (key, value) = values::key_value(entry)?;
                    span.attributes.push((Part::at(whole, utf8(key)?), Part::at(whole, value)));
                }
                (10, Value::Varint(count)) => span.dropped_attributes_count = u32::try_from(count).ok()?,
                (11, Value::Bytes(event)) => span.event_parts.push(Part::at(whole, event)),
                (13, Value::Bytes(_)) => span.has_links = true,
                (15, Value::Bytes(status)) => {
                    let mut fields = Fields(status);
                    while !fields.is_empty() {
                        let field = fields.next_field()?;
                        match (field.number, field.value) {
                            (2, Value::Bytes(message)) => {
                                span.parts[STATUS_MESSAGE] = Part::at(whole, message)
                            }
                            (3, Value::Varint(code)) => span.status_code = i32::try_from(code).ok()?,
                            _ => {}
                        }
                    }
                }
                (16, Value::Fixed32(flags)) => span.flags = flags,
                _ => {}
            }
        }
        // Of several with one key the last counts.
        span.attributes.sort_by(|(one, _), (other, _)| one.of(whole).cmp(other.of(whole)));
        span.attributes.dedup_by(|later, earlier| {
            let is_repeated = later.0.of(whole) == earlier.0.of(whole);
            earlier.1 = if is_repeated { later.1 } else { earlier.1 };
            is_repeated
        });
        Some(span)
    }

    pub fn raw<'py>(&'py self, py: Python<'py>) -> &'py [u8] {
        self.raw.as_bytes(py)
    }

    fn part<'py>(&'py self, py: Python<'py>, part: usize) -> &'py [u8] {
        self.parts[part].of(self.raw(py))
    }

    /// The id of the parent, empty where there is none.
    pub fn parent_id<'py>(&'py self, py: Python<'py>) -> &'py [u8] {
        Some(self.part(py, PARENT_ID)).filter(|parent| **parent != NO_PARENT).unwrap_or_default()
    }

    pub fn value<'a>(&self, whole: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
        let place = self.attributes.binary_search_by(|(own, _)| own.of(whole).cmp(key)).ok()?;
        Some(self.attributes[place].1.of(whole))
    }

    /// The keys and values, in order of the keys, from the first key on that begins with `prefix`.
    fn beginning_with<'a>(
        &'a self,
        whole: &'a [u8],
        prefix: &'a [u8],
    ) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let first = self.attributes.partition_point(|(key, _)| key.of(whole) < prefix);
        let found = self.attributes[first..].iter().map(|(key, value)| (key.of(whole), value.of(whole)));
        found.take_while(move |(key, _)| key.starts_with(prefix))
    }

    pub fn keys<'a>(&'a self, whole: &'a [u8]) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.attributes.iter().map(|(key, _)| key.of(whole))
    }
}

#[pymethods]
impl Span {
    #[getter]
    fn by_key(slf: Bound<'_, Self>) -> Attributes {
        Attributes { span: slf.unbind(), is_encoded: true }
    }

    #[getter]
    pub fn attributes(slf: Bound<'_, Self>) -> Attributes {
        Attributes { span: slf.unbind(), is_encoded: false }
    }

    #[getter]
    fn trace_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.part(py, TRACE_ID))
    }

    #[getter]
    fn span_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.part(py, SPAN_ID))
    }

    #[getter]
    fn parent_span_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.parent_id(py))
    }

    #[getter]
    pub fn name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        PyString::from_bytes(py, self.part(py, NAME))
    }

    #[getter]
    fn status_message<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        PyString::from_bytes(py, self.part(py, STATUS_MESSAGE))
    }

    #[getter]
    pub fn parent_is_remote(&self) -> bool {
        self.flags & REMOTE_PARENT == REMOTE_PARENT
    }

    #[getter]
    pub fn event_count(&self) -> usize {
        self.event_parts.len()
    }

    #[getter]
    fn has_events(&self) -> bool {
        !self.event_parts.is_empty()
    }

    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let events = self.events.get_or_try_init(py, || -> PyResult<Py<PyList>> {
            let decode = py.import("processors.spans.span")?.getattr("decode_event")?;
            let encoded = self.event_parts.iter().map(|part| PyBytes::new(py, part.of(self.raw(py))));
            let events = encoded.map(|event| decode.call1((event,))).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, events)?.unbind())
        })?;
        Ok(events.bind(py).clone())
    }
}

/// The attributes of a span: `Attributes` in `processors/spans/attributes.py`, or `by_key`.
#[pyclass(frozen, mapping, module = "tracegrade_native")]
pub struct Attributes {
    span: Py<Span>,
    is_encoded: bool,
}

impl Attributes {
    #[inline(always)]
    fn find<'a>(&'a self, py: Python<'a>, key: &Bound<'_, PyString>) -> PyResult<Option<&'a [u8]>> {
        let span = self.span.get();
        Ok(span.value(span.raw(py), key.to_str()?.as_bytes()))
    }

    #[inline(always)]
    fn value<'py>(&self, py: Python<'py>, key: &Bound<'py, PyString>) -> Found<'py> {
        let Some(value) = self.find(py, key)? else { return Ok(None) };
        if self.is_encoded {
            Ok(Some(PyBytes::new(py, value).into_any()))
        } else {
            values::decoded(py, value).map(Some)
        }
    }
}

#[pymethods]
impl Attributes {
    fn __len__(&self) -> usize {
        self.span.get().attributes.len()
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyString>) -> PyResult<bool> {
        Ok(self.find(py, key)?.is_some())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.keys(py)?.try_iter()?.into_any())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        self.value(py, &key)?.ok_or_else(|| PyKeyError::new_err(key.unbind()))
    }

    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyString>,
        default: Option<Bound<'py, PyAny>>,
    ) -> Found<'py> {
        Ok(self.value(py, key)?.or(default))
    }

    fn encoded<'py>(&self, py: Python<'py>, key: &Bound<'py, PyString>) -> Found<'py, PyBytes> {
        Ok(self.find(py, key)?.map(|value| PyBytes::new(py, value)))
    }

    fn text<'py>(&self, py: Python<'py>, key: &Bound<'py, PyString>) -> Found<'py> {
        let value = self.value(py, key)?;
        Ok(value.filter(|value| value.is_instance_of::<PyString>() && value.len().is_ok_and(|size| size > 0)))
    }

    #[pyo3(signature = (key, *words))]
    pub fn mentions(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyString>,
        words: &Bound<'_, PyTuple>,
    ) -> PyResult<bool> {
        let Some(text) = self.text(py, key)? else { return Ok(false) };
        words.iter().try_fold(false, |found, word| Ok(found || text.contains(word)?))
    }

    fn beginning_with<'py>(&self, py: Python<'py>, prefix: &str) -> PyResult<Bound<'py, PyList>> {
        let span = self.span.get();
        texts(py, span.beginning_with(span.raw(py), prefix.as_bytes()).map(|(key, _)| key))
    }

    fn flattened<'py>(&self, py: Python<'py>, prefix: &str) -> Found<'py> {
        let span = self.span.get();
        let entries = span.beginning_with(span.raw(py), prefix.as_bytes());
        let entries: Vec<_> = entries.map(|(key, value)| (&key[prefix.len()..], value)).collect();
        values::nested(py, &entries, values::MAX_DEPTH - 1)
    }

    fn among<'py>(
        &self,
        py: Python<'py>,
        keys: Bound<'py, PyFrozenSet>,
    ) -> PyResult<Bound<'py, PyFrozenSet>> {
        let is_here = |key: &Bound<'py, PyString>| self.find(py, key).is_ok_and(|value| value.is_some());
        PyFrozenSet::new(
            py,
            keys.iter().filter_map(|key| key.cast_into().ok()).filter(is_here).collect::<Vec<_>>(),
        )
    }

    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        texts(py, self.span.get().keys(self.span.get().raw(py)))
    }
}

fn utf8(text: &[u8]) -> Option<&[u8]> {
    str::from_utf8(text).is_ok().then_some(text)
}

fn texts<'a, 'py>(py: Python<'py>, keys: impl Iterator<Item = &'a [u8]>) -> PyResult<Bound<'py, PyList>> {
    let keys = keys.map(|key| PyString::from_bytes(py, key)).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, keys)
}
