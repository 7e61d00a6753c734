//! Export requests into spans or log records, validated to the bottom in the same pass.

use crate::messages::{LOG_RECORD, MAX_DEPTH, Message, OF_RESOURCE, OF_SCOPE, REQUEST, SPAN};
use crate::wire::{Fields, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

/// Bytes of the shortest span, which has ids, and of the shortest record, which has a time.
const SHORTEST_SPAN: usize = 28;
const SHORTEST_RECORD: usize = 9;
/// Bytes that each message around them adds.
const FRAMING: usize = 2;

/// Messages shorter than that, and fields beyond the usual, for which there is room in one request.
const MAX_NEEDLESS: u32 = 1000;
const USUAL_FIELDS: u32 = 8;

/// In longer requests other threads run meanwhile, between so many spans.
const LONG: usize = 1 << 20;
const AT_ONCE: usize = 2048;

const ITEM_DEPTH: u32 = MAX_DEPTH - 3;

/// A resource and scope, each as the bytes of the message around what it belongs to, and the items in it.
struct Scope<T> {
    resource: usize,
    scope: Vec<u8>,
    items: Vec<T>,
}

struct Request<T> {
    resources: Vec<Vec<u8>>,
    scopes: Vec<Scope<T>>,
}

struct Span<'a> {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    bytes: &'a [u8],
}

impl<'a> Span<'a> {
    /// Of a valid span that has each of its ids once.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (mut trace_id, mut span_id, mut has_parent) = (None, None, false);
        let mut fields = Fields(bytes);
        while !fields.is_empty() {
            let field = fields.next_field()?;
            match (field.number, field.value) {
                (1, Value::Bytes(id)) if trace_id.is_none() => trace_id = Some(id.try_into().ok()?),
                (2, Value::Bytes(id)) if span_id.is_none() => span_id = Some(id.try_into().ok()?),
                (4, Value::Bytes(id)) if !has_parent && matches!(id.len(), 0 | 8) => has_parent = true,
                (1 | 2 | 4, _) => return None,
                _ => SPAN.check(&field, ITEM_DEPTH)?,
            }
        }
        let (trace_id, span_id) = (trace_id?, span_id?);
        (trace_id != [0; 16] && span_id != [0; 8]).then_some(Self { trace_id, span_id, bytes })
    }
}

fn record(bytes: &[u8]) -> Option<&[u8]> {
    LOG_RECORD.check_all(bytes, ITEM_DEPTH).map(|()| bytes)
}

/// What is needless in a request, up to the bound.
struct Room(u32);

impl Room {
    fn take(&mut self) -> Option<()> {
        self.0 = self.0.checked_sub(1)?;
        Some(())
    }

    /// The bytes of a message without its fields of number `repeated`, and the values of those.
    fn separate<'a>(
        &mut self,
        data: &'a [u8],
        message: &Message,
        depth: u32,
        repeated: u32,
        shortest: usize,
    ) -> Option<(Vec<u8>, Vec<&'a [u8]>)> {
        let (mut others, mut values, mut count) = (Vec::new(), Vec::new(), 0);
        let mut fields = Fields(data);
        while !fields.is_empty() {
            let before = fields.0;
            let field = fields.next_field()?;
            match field.value {
                Value::Bytes(value) if field.number == repeated => {
                    if value.len() < shortest {
                        self.take()?;
                    }
                    values.push(value);
                }
                _ => {
                    message.check(&field, depth)?;
                    others.extend_from_slice(&before[..before.len() - fields.0.len()]);
                    count += 1;
                    if count > USUAL_FIELDS {
                        self.take()?;
                    }
                }
            }
        }
        Some((others, values))
    }
}

/// A request whose items `read` accepts.
fn request<'a, T>(data: &'a [u8], shortest: usize, read: fn(&'a [u8]) -> Option<T>) -> Option<Request<T>> {
    let mut room = Room(MAX_NEEDLESS);
    let mut request = Request { resources: Vec::new(), scopes: Vec::new() };
    let (_, resources) = room.separate(data, &REQUEST, MAX_DEPTH, 1, shortest + 2 * FRAMING)?;
    for of_resource in resources {
        let (resource, scopes) =
            room.separate(of_resource, &OF_RESOURCE, MAX_DEPTH - 1, 2, shortest + FRAMING)?;
        for of_scope in scopes {
            let (scope, items) = room.separate(of_scope, &OF_SCOPE, MAX_DEPTH - 2, 2, shortest)?;
            let items = items.into_iter().map(read).collect::<Option<_>>()?;
            request.scopes.push(Scope { resource: request.resources.len(), scope, items });
        }
        request.resources.push(resource);
    }
    Some(request)
}

/// As `request`; while a long one is read other threads run.
fn request_beside<'a, T: Send>(
    py: Python<'_>,
    data: &'a [u8],
    shortest: usize,
    read: fn(&'a [u8]) -> Option<T>,
) -> Option<Request<T>> {
    if data.len() > LONG {
        py.detach(|| request(data, shortest, read))
    } else {
        request(data, shortest, read)
    }
}

impl<T> Request<T> {
    /// Calls `add` with each item and the envelope that `envelope_of` makes of its resource and scope.
    fn for_each<'py>(
        self,
        envelope_of: &Bound<'py, PyAny>,
        mut add: impl FnMut(T, &Bound<'py, PyAny>) -> PyResult<()>,
    ) -> PyResult<()> {
        let py = envelope_of.py();
        let mut resource = (usize::MAX, PyBytes::new(py, b""));
        for scope in self.scopes {
            if resource.0 != scope.resource {
                resource = (scope.resource, PyBytes::new(py, &self.resources[scope.resource]));
            }
            let envelope = envelope_of.call1((&resource.1, PyBytes::new(py, &scope.scope)))?;
            for (number, item) in scope.items.into_iter().enumerate() {
                if number % AT_ONCE == AT_ONCE - 1 {
                    py.detach(|| ());
                }
                add(item, &envelope)?;
            }
        }
        Ok(())
    }
}

#[pyfunction]
pub fn split_spans<'py>(
    body: &Bound<'py, PyBytes>,
    envelope_of: &Bound<'py, PyAny>,
) -> PyResult<Option<(Bound<'py, PyDict>, usize)>> {
    let py = body.py();
    let Some(request) = request_beside(py, body.as_bytes(), SHORTEST_SPAN, Span::read) else {
        return Ok(None);
    };
    let traces = PyDict::new(py);
    let mut accepted = 0;
    let mut last: Option<([u8; 16], Bound<'py, PyList>)> = None;
    request.for_each(envelope_of, |span, envelope| {
        accepted += 1;
        let row = PyTuple::new(
            py,
            [PyBytes::new(py, &span.span_id).as_any(), PyBytes::new(py, span.bytes).as_any(), envelope],
        )?;
        if let Some((trace_id, spans)) = &last
            && *trace_id == span.trace_id
        {
            return spans.append(row);
        }
        let key = PyBytes::new(py, &span.trace_id);
        let spans = if let Some(known) = traces.get_item(&key)? {
            known.cast_into::<PyList>()?
        } else {
            let spans = PyList::empty(py);
            traces.set_item(key, &spans)?;
            spans
        };
        spans.append(row)?;
        last = Some((span.trace_id, spans));
        Ok(())
    })?;
    Ok(Some((traces, accepted)))
}

#[pyfunction]
pub fn split_records<'py>(
    body: &Bound<'py, PyBytes>,
    envelope_of: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyList>>> {
    let py = body.py();
    let Some(request) = request_beside(py, body.as_bytes(), SHORTEST_RECORD, record) else {
        return Ok(None);
    };
    let records = PyList::empty(py);
    let no_id = PyBytes::new(py, b"");
    request.for_each(envelope_of, |record, envelope| {
        let record = PyBytes::new(py, record);
        records.append(PyTuple::new(py, [no_id.as_any(), record.as_any(), envelope])?)
    })?;
    Ok(Some(records))
}

#[pyfunction]
pub fn count_records(py: Python<'_>, body: &[u8]) -> Option<usize> {
    let request = request_beside(py, body, SHORTEST_RECORD, |bytes| record(bytes).map(|_| ()))?;
    Some(request.scopes.iter().map(|scope| scope.items.len()).sum())
}
