//! Spans or log records joined to one export request.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::collections::HashMap;

/// The tag of what a request consists of, and of what is in that, and in that again.
const RESOURCE: u8 = 0x0a;
const INSIDE: u8 = 0x12;

struct Resource<'py> {
    bytes: Bound<'py, PyBytes>,
    scopes: Vec<Scope<'py>>,
}

struct Scope<'py> {
    bytes: Bound<'py, PyBytes>,
    items: Vec<Bound<'py, PyBytes>>,
    length: usize,
}

impl Resource<'_> {
    fn length(&self) -> usize {
        self.bytes.as_bytes().len() + self.scopes.iter().map(|scope| framed(scope.length)).sum::<usize>()
    }
}

/// The length of a message of `length` bytes with its tag and length in front.
fn framed(length: usize) -> usize {
    2 + (length | 1).ilog2() as usize / 7 + length
}

/// A buffer of the right length, as far as it is not written.
struct Rest<'a>(&'a mut [u8]);

impl Rest<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let (start, rest) = std::mem::take(&mut self.0).split_at_mut(bytes.len());
        start.copy_from_slice(bytes);
        self.0 = rest;
    }

    fn put_head(&mut self, tag: u8, mut length: usize) {
        self.put(&[tag]);
        while length >= 0x80 {
            self.put(&[length as u8 | 0x80]);
            length >>= 7;
        }
        self.put(&[length as u8]);
    }
}

#[pyfunction]
pub fn join_spans<'py>(spans: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let mut resources: Vec<Resource<'py>> = Vec::new();
    let mut resource_by_bytes: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut place_by_envelope: HashMap<usize, (usize, usize)> = HashMap::new();
    let mut last = (0, (0, 0));
    // Envelopes are known by their addresses, so they must not be released meanwhile.
    let mut envelopes = Vec::new();
    for span in spans.try_iter()? {
        let span = span?.cast_into::<PyTuple>()?;
        let envelope = span.get_item(2)?;
        let address = envelope.as_ptr() as usize;
        if last.0 != address {
            let place = if let Some(&place) = place_by_envelope.get(&address) {
                place
            } else {
                let bytes = envelope.getattr("resource")?.cast_into::<PyBytes>()?;
                let resource =
                    *resource_by_bytes.entry(bytes.as_bytes().to_vec()).or_insert_with(|| resources.len());
                if resource == resources.len() {
                    resources.push(Resource { bytes, scopes: Vec::new() });
                }
                let bytes = envelope.getattr("scope")?.cast_into::<PyBytes>()?;
                let length = bytes.as_bytes().len();
                let scopes = &mut resources[resource].scopes;
                scopes.push(Scope { bytes, items: Vec::new(), length });
                let place = (resource, scopes.len() - 1);
                place_by_envelope.insert(address, place);
                envelopes.push(envelope);
                place
            };
            last = (address, place);
        }
        let (resource, scope) = last.1;
        let scope = &mut resources[resource].scopes[scope];
        let item = span.get_item(1)?.cast_into::<PyBytes>()?;
        scope.length += framed(item.as_bytes().len());
        scope.items.push(item);
    }
    let length = resources.iter().map(|resource| framed(resource.length())).sum();
    PyBytes::new_with(spans.py(), length, |buffer| {
        let mut rest = Rest(buffer);
        for resource in &resources {
            rest.put_head(RESOURCE, resource.length());
            rest.put(resource.bytes.as_bytes());
            for scope in &resource.scopes {
                rest.put_head(INSIDE, scope.length);
                rest.put(scope.bytes.as_bytes());
                for item in &scope.items {
                    rest.put_head(INSIDE, item.as_bytes().len());
                    rest.put(item.as_bytes());
                }
            }
        }
        Ok(())
    })
}
