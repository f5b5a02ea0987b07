//! A prepared statement of the model server.

use std::collections::BTreeMap;

/// A prepared statement.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    /// The text.
    pub(crate) text: String,
    /// The number of parameters.
    pub(crate) parameters: usize,
    /// The settings that decided on its meaning when it was prepared.
    pub(crate) environment: String,
    /// The types of the parameters at the last execution.
    pub(crate) types: Option<Vec<u8>>,
    /// The values that have come ahead, by parameter.
    pub(crate) long: BTreeMap<u16, Vec<u8>>,
    /// The rows that a cursor has left: its prefix, the first and the end.
    pub(crate) cursor: Option<(String, usize, usize)>,
}
