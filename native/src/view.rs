//! A span as evaluation sees it: where its fields lie in the bytes that were received.

use crate::values;
use crate::wire::{Fields, Value};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyAny, PyBytes, PyFrozenSet, PyList, PyString};
use std::str;
use std::sync::atomic::{AtomicBool, Ordering};

const NO_PARENT: [u8; 8] = [0; 8];
const REMOTE_PARENT: u32 = 0x300;

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

/// See `Span` in `processors/spans/span.py`.
#[pyclass(frozen, module = "tracegrade_native")]
pub struct Span {
    #[pyo3(get)]
    raw: Py<PyBytes>,
    #[pyo3(get)]
    pub envelope: Py<PyAny>,
    trace_id: Part,
    span_id: Part,
    parent_span_id: Part,
    name: Part,
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
    status_message: Part,
    #[pyo3(get)]
    status_code: i32,
    #[pyo3(get)]
    flags: u32,
    events: PyOnceLock<Py<PyList>>,
    leaves_out_events: AtomicBool,
}

impl Span {
    /// The span in `raw`; None where that is no Span message, or an unusual one.
    pub fn read(raw: &Bound<'_, PyBytes>, envelope: Py<PyAny>) -> Option<Self> {
        let whole = raw.as_bytes();
        u32::try_from(whole.len()).ok()?;
        let mut span = Self {
            raw: raw.clone().unbind(),
            envelope,
            trace_id: Part::default(),
            span_id: Part::default(),
            parent_span_id: Part::default(),
            name: Part::default(),
            kind: 0,
            start_unix_nano: 0,
            end_unix_nano: 0,
            attributes: Vec::with_capacity(16),
            dropped_attributes_count: 0,
            event_parts: Vec::new(),
            has_links: false,
            status_message: Part::default(),
            status_code: 0,
            flags: 0,
            events: PyOnceLock::new(),
            leaves_out_events: AtomicBool::new(false),
        };
        let mut fields = Fields(whole);
        while !fields.is_empty() {
            let field = fields.next_field()?;
            match (field.number, field.value) {
                (1, Value::Bytes(id)) => span.trace_id = Part::at(whole, id),
                (2, Value::Bytes(id)) => span.span_id = Part::at(whole, id),
                (4, Value::Bytes(id)) => span.parent_span_id = Part::at(whole, id),
                (5, Value::Bytes(name)) => span.name = Part::at(whole, utf8(name)?),
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
                            (2, Value::Bytes(message)) => span.status_message = Part::at(whole, message),
                            (3, Value::Varint(code)) => span.status_code = i32::try_from(code).ok()?,
                            _ => {}
                        }
                    }
                }
                (16, Value::Fixed32(flags)) => span.flags = flags,
                _ => {}
            }
        }
        span.sort_attributes(whole);
        Some(span)
    }

    /// Order them by key; of several with one key the last counts.
    fn sort_attributes(&mut self, whole: &[u8]) {
        let attributes = &mut self.attributes;
        attributes.sort_by(|(one, _), (other, _)| one.of(whole).cmp(other.of(whole)));
        attributes.dedup_by(|later, earlier| {
            let is_repeated = later.0.of(whole) == earlier.0.of(whole);
            if is_repeated {
                earlier.1 = later.1;
            }
            is_repeated
        });
    }

    pub fn raw<'py>(&'py self, py: Python<'py>) -> &'py [u8] {
        self.raw.as_bytes(py)
    }

    /// The id of the parent, empty where there is none.
    pub fn parent_id<'a>(&self, whole: &'a [u8]) -> &'a [u8] {
        let parent = self.parent_span_id.of(whole);
        if parent == NO_PARENT { &[] } else { parent }
    }

    pub fn name_in<'a>(&self, whole: &'a [u8]) -> &'a [u8] {
        self.name.of(whole)
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

    pub fn event_total(&self) -> usize {
        self.event_parts.len()
    }
}

#[pymethods]
impl Span {
    #[getter]
    fn by_key(slf: Bound<'_, Self>) -> Attributes {
        Attributes { span: slf.unbind(), is_encoded: true }
    }

    #[getter]
    fn attributes(slf: Bound<'_, Self>) -> Attributes {
        Attributes { span: slf.unbind(), is_encoded: false }
    }

    #[getter]
    fn trace_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.trace_id.of(self.raw(py)))
    }

    #[getter]
    fn span_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.span_id.of(self.raw(py)))
    }

    #[getter]
    fn parent_span_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.parent_id(self.raw(py)))
    }

    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        text(py, self.name.of(self.raw(py)))
    }

    #[getter]
    fn status_message<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        text(py, self.status_message.of(self.raw(py)))
    }

    #[getter]
    pub fn parent_is_remote(&self) -> bool {
        self.flags & REMOTE_PARENT == REMOTE_PARENT
    }

    #[getter]
    fn event_count(&self) -> usize {
        self.event_parts.len()
    }

    #[getter]
    fn has_events(&self) -> bool {
        !self.event_parts.is_empty() && !self.leaves_out_events.load(Ordering::Relaxed)
    }

    fn leave_out_events(&self) {
        self.leaves_out_events.store(true, Ordering::Relaxed);
    }

    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        if !self.has_events() {
            return Ok(PyList::empty(py));
        }
        let events = self.events.get_or_try_init(py, || -> PyResult<Py<PyList>> {
            let decode = py.import("processors.spans.span")?.getattr("decode_event")?;
            let events = PyList::empty(py);
            for part in &self.event_parts {
                events.append(decode.call1((PyBytes::new(py, part.of(self.raw(py))),))?)?;
            }
            Ok(events.unbind())
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
    fn value<'py>(&self, py: Python<'py>, key: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.find(py, key)?;
        found
            .map(|value| {
                if self.is_encoded {
                    Ok(PyBytes::new(py, value).into_any())
                } else {
                    values::decoded(py, value)
                }
            })
            .transpose()
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
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.value(py, key)?.or(default))
    }

    fn encoded<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyString>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(self.find(py, key)?.map(|value| PyBytes::new(py, value)))
    }

    fn text<'py>(&self, py: Python<'py>, key: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(encoded) = self.find(py, key)? else { return Ok(None) };
        let value = values::decoded(py, encoded)?;
        let is_text = value.cast::<PyString>().is_ok() && value.is_truthy()?;
        Ok(is_text.then_some(value))
    }

    fn beginning_with<'py>(&self, py: Python<'py>, prefix: &str) -> PyResult<Bound<'py, PyList>> {
        let span = self.span.get();
        texts(py, span.beginning_with(span.raw(py), prefix.as_bytes()).map(|(key, _)| key))
    }

    fn flattened<'py>(&self, py: Python<'py>, prefix: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let span = self.span.get();
        let entries = span.beginning_with(span.raw(py), prefix.as_bytes());
        let entries: Vec<_> = entries.map(|(key, value)| (&key[prefix.len()..], value)).collect();
        values::nested(py, &entries, values::MAX_DEPTH - 1)
    }

    fn among<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyFrozenSet>,
    ) -> PyResult<Bound<'py, PyFrozenSet>> {
        let mut found = Vec::new();
        for key in keys {
            if self.find(py, key.cast::<PyString>()?)?.is_some() {
                found.push(key);
            }
        }
        PyFrozenSet::new(py, found)
    }

    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        texts(py, self.span.get().keys(self.span.get().raw(py)))
    }
}

fn utf8(text: &[u8]) -> Option<&[u8]> {
    str::from_utf8(text).is_ok().then_some(text)
}

pub fn text<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyString>> {
    PyString::from_bytes(py, text)
}

fn texts<'a, 'py>(py: Python<'py>, keys: impl Iterator<Item = &'a [u8]>) -> PyResult<Bound<'py, PyList>> {
    let keys = keys.map(|key| text(py, key)).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, keys)
}
