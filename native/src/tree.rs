//! The spans of a trace in order, linked, and read by the shapes that are known.

use crate::view::{Found, Span};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBool, PyBytes, PyDict, PyList, PyString, PyTuple, PyType};

/// (start, end from above, span id, place among the spans as given): rows sort as the tree does.
type Row = (u64, u64, [u8; 8], usize);

/// See `link_spans` in `processors/spans/native.py`. Other threads have their turn after each 1,024 spans.
#[pyfunction]
pub fn link_spans<'py>(
    py: Python<'py>,
    spans: &Bound<'py, PyAny>,
    most_events: usize,
) -> Found<'py, PyTuple> {
    let Ok(spans) = spans.cast_exact::<PyList>() else { return Ok(None) };
    let (mut rows, mut event_count) = (Vec::<Row>::with_capacity(spans.len()), 0);
    let mut views: Vec<Option<(Bound<'py, PyAny>, Span)>> = Vec::with_capacity(spans.len());
    for (place, item) in spans.iter().enumerate() {
        let _ = (place % 1024 == 1023).then(|| py.detach(|| ()));
        let (span_id, raw, envelope): (Bound<'py, PyAny>, Bound<'py, PyAny>, Py<PyAny>) = item.extract()?;
        let Some(span) = Span::read(raw.cast::<PyBytes>()?, envelope) else { return Ok(None) };
        let Ok(id) = span_id.cast::<PyBytes>()?.as_bytes().try_into() else { return Ok(None) };
        event_count += span.event_count();
        rows.push((span.start_unix_nano, u64::MAX - span.end_unix_nano, id, place));
        views.push(Some((span_id, span)));
    }
    if event_count > most_events {
        return Ok(None);
    }
    rows.sort_unstable();
    let mut positions: Vec<([u8; 8], usize)> =
        rows.iter().enumerate().map(|(position, row)| (row.2, position)).collect();
    positions.sort_unstable();
    if positions.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Ok(None);
    }
    let [starts, ends, span_ids, ordered, parent_ids, parents, misses] = [(); 7].map(|()| PyList::empty(py));
    let mut is_in_order = true;
    for (position, row) in rows.iter().enumerate() {
        let Some((span_id, span)) = views[row.3].take() else { return Ok(None) };
        let _ = (position % 1024 == 1023).then(|| py.detach(|| ()));
        let (parent_id, mut parent, mut misses_parent) = (span.parent_id(py), -1, false);
        parent_ids.append(PyBytes::new(py, parent_id))?;
        match positions
            .binary_search_by(|(id, _)| id.as_slice().cmp(parent_id))
            .map(|place| positions[place].1)
        {
            Ok(above) if above == position => {}
            Ok(above) => {
                is_in_order &= above < position;
                parent = above as i64;
            }
            Err(_) => misses_parent = !parent_id.is_empty() && !span.parent_is_remote(),
        }
        starts.append(span.start_unix_nano)?;
        ends.append(span.end_unix_nano)?;
        span_ids.append(span_id)?;
        parents.append(parent)?;
        misses.append(misses_parent)?;
        ordered.append(Bound::new(py, span)?)?;
    }
    let lists = (starts, ends, span_ids, ordered, parent_ids, parents, misses, is_in_order);
    lists.into_pyobject(py).map(Some)
}

/// What is known of spans that look alike, as `SpanReader` in `processors/reconstruction/reading.py` has it.
#[derive(FromPyObject)]
pub struct Known<'py> {
    seen: Bound<'py, PyDict>,
    question: Bound<'py, PyType>,
    shape: Bound<'py, PyType>,
    reading: Bound<'py, PyAny>,
    about_name: Bound<'py, PyAny>,
    about_attributes: Bound<'py, PyAny>,
}

/// See `known_readings` in `processors/spans/native.py`.
#[pyfunction]
pub fn known_readings<'py>(
    py: Python<'py>,
    spans: &Bound<'py, PyAny>,
    known: Known<'py>,
) -> PyResult<Option<(Bound<'py, PyList>, Vec<usize>)>> {
    let Ok(spans) = spans.cast_exact::<PyList>() else { return Ok(None) };
    let (readings, mut unknown, mut key) = (PyList::empty(py), Vec::new(), Vec::with_capacity(512));
    for (position, span) in spans.iter().enumerate() {
        let Ok(view) = span.cast::<Span>() else { return Ok(None) };
        match shape_of(&known, view, &mut key)? {
            Some(shape) if shape.is_none() => readings.append(shape)?,
            Some(shape) => readings.append(known.reading.call1((span, shape))?)?,
            None => {
                readings.append(py.None())?;
                unknown.push(position);
            }
        }
    }
    Ok(Some((readings, unknown)))
}

/// What the answers of a span lead to: its shape, or Python's None where no dialect recognises it.
fn shape_of<'py>(known: &Known<'py>, view: &Bound<'py, Span>, key: &mut Vec<u8>) -> Found<'py> {
    let (py, span) = (view.py(), view.get());
    let scope = span.envelope.bind(py).getattr(intern!(py, "known_scope"))?;
    let Ok(scope) = scope.cast::<PyString>() else { return Ok(None) };
    let whole = span.raw(py);
    key.clear();
    key.extend_from_slice(scope.to_str()?.as_bytes());
    for name in span.keys(whole) {
        key.push(0);
        key.extend_from_slice(name);
    }
    let Some(seen) = known.seen.get_item(PyString::from_bytes(py, key)?)? else { return Ok(None) };
    let (count, _, mut node): (usize, Bound<'py, PyAny>, Bound<'py, PyAny>) = seen.extract()?;
    if count != span.keys(whole).len() {
        return Ok(None);
    }
    while node.get_type().is(&known.question) {
        let about = node.getattr(intern!(py, "about"))?;
        let answer = if about.is(&known.about_name) {
            span.name(py)?.into_any()
        } else if about.is(&known.about_attributes) {
            PyBool::new(py, count == 0).to_owned().into_any()
        } else if let Ok((key, words)) = about.extract::<(Bound<PyString>, Bound<PyTuple>)>() {
            let is_mentioned = Span::attributes(view.clone()).mentions(py, &key, &words)?;
            PyBool::new(py, is_mentioned).to_owned().into_any()
        } else {
            let key = about.cast::<PyString>()?.to_str()?;
            let Some(value) = span.value(whole, key.as_bytes()) else { return Ok(None) };
            PyBytes::new(py, value).into_any()
        };
        let answers = node.getattr(intern!(py, "answers"))?;
        let Some(next) = answers.cast::<PyDict>()?.get_item(answer)? else { return Ok(None) };
        node = next;
    }
    Ok((node.is_none() || node.get_type().is(&known.shape)).then_some(node))
}
