//! The packets of real servers: MariaDB 10.11 and MySQL 8.0.
//!
//! Every packet that a server sends is read and written again, and must be the same bytes. So the
//! writers send what servers send, not what the manuals say that they do.

#![forbid(unsafe_code)]

mod session;
mod logins;
mod texts;
mod statements;

use xtask::mysql::{Flavour, Server};

/// A server and its flavour.
pub(crate) struct World {
    flavour: Flavour,
    server: Server,
}

/// Runs every check with one server.
fn check(flavour: Flavour) {
    let settings = [("local-infile", "1"), ("max-allowed-packet", "64M")];
    let server = Server::start(flavour, &settings).expect("a server");
    let world = World { flavour, server };
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
