//! Logins: each side played against the other, against real servers, and against a real client.

#![forbid(unsafe_code)]

mod wire;
mod encrypted;
mod played;
mod hostile;
mod words;
mod servers;
mod clients;
