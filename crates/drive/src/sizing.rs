//! How much memory a driver reserves, and its time limits.

use std::time::Duration;

use crate::tuning::Tuning;

/// How much memory a driver reserves, and its time limits.
///
/// `buffers`, `buffer_bytes` and `entries` concern io_uring only: epoll receives into one buffer of
/// 64 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizing {
    /// How many receives can be under way between the kernel and the caller: at most 32768, rounded
    /// up to a power of two. The driver allocates only as many buffers as were ever needed.
    pub buffers: u16,
    /// Bytes that one receive can bring.
    pub buffer_bytes: u32,
    /// Requests handed to the kernel at once, and a quarter of the completions it can report at
    /// once. More are split over several calls.
    pub entries: u32,
    /// How long a closed connection may take to send its last bytes to a peer that reads slowly.
    pub linger: Duration,
    /// The lowest file descriptor that an accepted connection must not have. The driver holds a
    /// connection with such a descriptor for up to a second, until a lower descriptor is free, and
    /// accepts no other meanwhile.
    pub gate: u32,
    /// Options of the TCP sockets that the driver connects.
    pub tuning: Tuning,
}

impl Default for Sizing {
    fn default() -> Sizing {
        Sizing {
            buffers: 512,
            buffer_bytes: 16 << 10,
            entries: 1024,
            linger: Duration::from_secs(5),
            gate: u32::MAX,
            tuning: Tuning::default(),
        }
    }
}
