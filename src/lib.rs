//! pagesmith.
