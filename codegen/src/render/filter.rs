//! Filters that templates may use beside tera's own.

use tera::{Error, Kwargs, State, TeraResult};

/// Writes a number as a CUDA `float` literal: a bare `0.125` would be a double, and the whole expression
/// around it double precision.
pub(super) fn float(value: f64, _: Kwargs, _: &State) -> TeraResult<String> {
    let single = value as f32;
    if !single.is_finite() {
        return Err(Error::message(format!(
            "float: {value} has no float literal; pass a finite value of float's range"
        )));
    }
    // `{:?}` is the shortest text that reads back as the same float, and always has a point or exponent.
    Ok(format!("{single:?}f"))
}
