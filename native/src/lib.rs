//! The innermost loops of tracegrade's data path; what each function promises stands in
//! `processors/spans/native.py`, which is the interface.
//!
//! Each returns `None` for what is unusual or invalid: the Python code, which it stands for, decides then.
#![forbid(unsafe_code)]

mod join;
mod messages;
mod split;
mod tree;
mod values;
mod view;
mod wire;

use pyo3::prelude::*;

/// The number of the interface, which grows with each change that Python code must know.
const INTERFACE: u32 = 2;

#[pymodule]
fn tracegrade_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("INTERFACE", INTERFACE)?;
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(wire::contains_any, module)?)?;
    module.add_function(wrap_pyfunction!(join::join_spans, module)?)?;
    module.add_function(wrap_pyfunction!(split::split_spans, module)?)?;
    module.add_function(wrap_pyfunction!(split::split_records, module)?)?;
    module.add_function(wrap_pyfunction!(split::count_records, module)?)?;
    module.add_function(wrap_pyfunction!(tree::link_spans, module)?)?;
    module.add_function(wrap_pyfunction!(tree::known_readings, module)?)?;
    module.add_function(wrap_pyfunction!(values::plain_object, module)?)?;
    module.add_function(wrap_pyfunction!(values::is_plain_json, module)?)?;
    Ok(())
}
