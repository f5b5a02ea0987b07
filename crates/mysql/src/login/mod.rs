//! Logins of clients to Refrain, and of Refrain to servers: exchanges without the sockets.
//!
//! To its clients a proxy is the server that greets and asks for a proof ([`ClientLogin`]); to
//! servers it is the client that gives one ([`ServerLogin`]). Both are state machines that are fed
//! with payloads, append packets, and say what comes next. A client is greeted as its server would
//! greet it ([`Flavour`]). The two halves meet in [`ServerSecret`]: a configured password serves
//! both, and where the double hash of `mysql_native_password` alone is configured, a client's proof
//! yields the key that logs in.
//!
//! Refrain holds the password, so every proof can be checked at once: a client is never asked for
//! the password itself, and Refrain needs no RSA key of its own.

mod secret;
mod flavour;
mod encrypted;
mod of_client;
mod of_server;

pub use flavour::Flavour;
pub use of_client::{Agreed, Change, ClientLogin, ClientStep, Welcome};
pub(crate) use of_server::refusal;
pub use of_server::{Failure, LoggedIn, ServerLogin, ServerStep, Tls, Wanted};
pub use secret::{Like, Plugin, Secret, ServerSecret};

/// Most bytes of a payload in a login, in either direction. A longer one ends the login. Attributes
/// of a connection may have 64 KiB, which is by far the most.
pub const LOGIN_BYTES_MAX: u32 = 128 * 1024;
