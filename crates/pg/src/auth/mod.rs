//! Password authentication of clients, and at servers: PostgreSQL's exchanges without the sockets.
//!
//! A proxy stands in both places. To its clients it is the server that asks for a password
//! ([`Proving`]); to servers it is the client that has to give one ([`Login`]). Both are state
//! machines fed with message bodies; each answers with the next message, an end, or a refusal.
//! Supported are trust, cleartext, MD5 and SCRAM-SHA-256, which is all that PostgreSQL knows by
//! password; the latter with channel binding (`SCRAM-SHA-256-PLUS`) over TLS.
//!
//! The two halves meet in [`Secret`]. A client that proves itself by SCRAM thereby lets us work out
//! its *client key*, and with this key (though without the password) one can log in at any server
//! that holds the same verifier. So a proxy that reads verifiers from `pg_authid` can open server
//! connections as its users while no password is written down anywhere.
//!
//! What always holds:
//!
//! - only a finished exchange makes an [`Authenticated`], so a session that holds one was proved;
//! - an exchange is consumed by every message: after a failure nothing is left to try again with;
//! - an unknown user, a user whose secret does not fit the method and a wrong password take the
//!   same steps, and end in the same words (`28P01`);
//! - a server that asked for SCRAM is believed only once it has shown that it knows the verifier,
//!   wherever we have the key to check that with;
//! - no input panics. Sizes and iteration counts that the other side chooses are bounded;
//! - passwords and keys are wiped when dropped and never shown by `Debug`. Scratch space inside the
//!   hash functions is not wiped.
//!
//! The rules of `pg_hba.conf` choose the method by which a client proves who it is (`hba`), and may
//! let the client in by its certificate or by its user of the operating system.
//!
//! Random bytes are passed in ([`NONCE_BYTES`] of them for an exchange), so a run is a function of
//! its inputs. They must be unpredictable and fresh for each exchange.
//!
//! Not here: GSSAPI, LDAP, framing of messages (`pg-wire`), how long an exchange may take, and
//! where a stored secret comes from: the configuration, or the database (`users`), whose query
//! leaves out the secrets of users who have expired.
//!
//! One cost to know of: a PBKDF2 of 4096 iterations takes 3 ms (2.5 GHz Xeon without SHA
//! instructions; OpenSSL takes as long). It is paid in [`Credential::prepare`] for a plain secret,
//! in [`Salted::derive`] for the first SCRAM login of a pool, and at each login of a client that
//! sends a cleartext password against a SCRAM verifier. The SCRAM logins of clients never pay it.

mod malformed;
mod password;
mod verifier;
mod scram;
mod secret;
mod credential;
mod client;
pub(crate) mod hba;
mod server;

#[cfg(test)]
mod tests;

pub use client::{AuthError, AuthRequest, AuthStep, Authenticated, Method, Proving};
pub(crate) use credential::ITERATIONS;
pub use credential::{Credential, Like, Seed};
pub use malformed::Malformed;
pub use password::{Key, Md5Hash, Password};
pub use refrain_config::ScramVerifier;
pub use scram::NONCE_BYTES;
pub use secret::{ScramKeys, Secret, StoredSecret};
pub use server::{Login, LoginError, Reply, Salted, ServerAsks};
pub use verifier::verifier_of;
