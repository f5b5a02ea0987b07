//! Options of TCP sockets that an operator may choose.

use std::time::Duration;

/// Options of TCP sockets: for connections that are accepted and for those to others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// Whether the kernel asks idle connections for their peers.
    pub keepalive: bool,
    /// Time for which a connection is idle before the kernel asks; `None` is the system's.
    pub idle: Option<Duration>,
    /// Time between two such questions; `None` is the system's.
    pub interval: Option<Duration>,
    /// Questions without an answer after which a connection ends; `None` is the system's.
    pub retries: Option<u32>,
    /// Time for which sent bytes may stay without an answer; `None` is the system's.
    pub user_timeout: Option<Duration>,
    /// Bytes that the kernel buffers in each direction; `None` is the system's.
    pub buffer: Option<usize>,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            keepalive: true,
            idle: None,
            interval: None,
            retries: None,
            user_timeout: None,
            buffer: None,
        }
    }
}
