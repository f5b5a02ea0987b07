//! The packets of real servers: MariaDB 10.11 and MySQL 8.0.
//!
//! Every packet that a server sends is read and written again, and must be the same bytes. So the
//! writers send what servers send, not what the manuals say that they do.

#![forbid(unsafe_code)]

mod encrypted;
mod session;
mod logins;
mod texts;
mod statements;

use xtask::mysql::{Flavour, Server};
use xtask::ports::free_port;

/// A server and its flavour.
pub(crate) struct World {
    flavour: Flavour,
    server: Server,
    /// The port on which the server listens as well.
    port: u16,
}

/// Runs every check with one server.
fn check(flavour: Flavour) {
    let port = free_port().expect("a port");
    let number = port.to_string();
    let settings = [
        ("local-infile", "1"),
        ("max-allowed-packet", "64M"),
        ("skip-networking", "0"),
        ("bind-address", "127.0.0.1"),
        ("port", &number),
    ];
    let server = Server::start(flavour, &settings).expect("a server");
    let world = World { flavour, server, port };
    logins::check(&world);
    texts::check(&world);
    statements::check(&world);
}

#[test]
fn mariadb() {
    check(Flavour::MariaDb);
}

#[test]
fn mysql() {
    check(Flavour::MySql);
}
