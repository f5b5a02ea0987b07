//! Run-time parameters: what a client expects, what a server has, and the calls that turn one into the other.

pub(crate) mod encoding;
pub(crate) mod session;
pub(crate) mod reported;
pub(crate) mod interned;
pub(crate) mod defaults;
