//! Normalized queries: what is known of texts that differ only in their literals.

pub(crate) mod compare_times;
pub(crate) mod stored;
pub(crate) mod query;
pub(crate) mod due;
pub(crate) mod queries;
pub(crate) mod catalog;
pub(crate) mod run;
pub(crate) mod unnamed_run;
