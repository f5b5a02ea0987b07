//! Men in the middle: they stand between a driver and Refrain, and spoil the beginning of each
//! connection.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result, ensure};
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

use crate::certificates::Authority;
use crate::records::{self, SSL_REQUEST, TLS13};

use super::relay::{self, Sealed};

/// A message in the clear that says that no password is needed.
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0";
/// A startup packet in the clear, of the user `a`.
const STARTUP: &[u8] = b"\0\0\0\x10\0\x03\0\0user\0a\0\0";
/// The mechanism that binds a login to the connection, in a list of mechanisms.
const PLUS: &[u8] = b"SCRAM-SHA-256-PLUS\0";

/// The deed of a man in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trick {
    /// Sends a message in the clear to the driver, right behind the answer to its request for TLS
    /// (CVE-2021-23222).
    Answer,
    /// Sends a packet in the clear to Refrain, right behind the driver's request for TLS
    /// (CVE-2021-23214).
    Request,
    /// Has a certificate that the driver trusts, and passes the login on within TLS.
    Between,
    /// The same, and takes the mechanism that binds logins out of Refrain's list.
    Strip,
}

/// The configurations of a man in the middle of TLS, for both sides.
struct Keys {
    own: Arc<ServerConfig>,
    far: Arc<ClientConfig>,
}

/// Starts a man in the middle, in front of Refrain at this port. Returns his own port. He stays
/// until the program ends.
pub(super) fn start(trick: Trick, authority: &Authority, refrain: u16) -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let signed = authority.sign("middle", &["localhost"])?;
    let far = records::client(&authority.certificate(), &TLS13)?;
    let keys = Arc::new(Keys { own: records::server(&signed)?, far });
    thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let keys = Arc::clone(&keys);
            // Each connection ends with an error of one of its ends, as it should.
            thread::spawn(move || drop(meet(trick, &keys, near, refrain)));
        }
    });
    Ok(port)
}

/// Handles one connection of a driver.
fn meet(trick: Trick, keys: &Keys, mut near: TcpStream, refrain: u16) -> Result<()> {
    let mut far = TcpStream::connect((Ipv4Addr::LOCALHOST, refrain))?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let mut request = [0; 8];
    near.read_exact(&mut request)?;
    ensure!(request == SSL_REQUEST, "the driver asks for something else");
    match trick {
        Trick::Answer => {
            far.write_all(&request)?;
            let mut answer = [0];
            far.read_exact(&mut answer)?;
            near.write_all(&[&answer, WELCOME].concat())?;
            relay::pass(&near, &far)
        }
        Trick::Request => {
            far.write_all(&[&request, STARTUP].concat())?;
            relay::pass(&near, &far)
        }
        Trick::Between => keys.between(near, far, |said| said),
        Trick::Strip => keys.between(near, far, strip),
    }
}

/// Takes the mechanism that binds out of a list of mechanisms.
fn strip(said: Vec<u8>) -> Vec<u8> {
    let Some(at) = said.windows(PLUS.len()).position(|part| part == PLUS) else { return said };
    let rest = [&said[..at], &said[at + PLUS.len()..]].concat();
    let length = u8::try_from(rest.len() - 1).unwrap_or_default();
    [&rest[..4], &[length], &rest[5..]].concat()
}

impl Keys {
    /// Encrypts to both, and passes on what they say.
    fn between(
        &self,
        mut near: TcpStream,
        mut far: TcpStream,
        change: fn(Vec<u8>) -> Vec<u8>,
    ) -> Result<()> {
        far.write_all(&SSL_REQUEST)?;
        let mut answer = [0];
        far.read_exact(&mut answer)?;
        ensure!(&answer == b"S", "Refrain does not encrypt");
        let name = "localhost".try_into().context("a name")?;
        let tls = ClientConnection::new(Arc::clone(&self.far), name)?;
        let mut far = Sealed { stream: far, tls: tls.into() };
        far.shake()?;
        near.write_all(b"S")?;
        let tls = ServerConnection::new(Arc::clone(&self.own))?;
        let mut near = Sealed { stream: near, tls: tls.into() };
        near.shake()?;
        relay::pass_sealed(near, far, change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binding_mechanism_is_taken_out() {
        let list = b"R\0\0\0\x2a\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
        let less = b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0";
        assert_eq!(strip(list.to_vec()), less);
        assert_eq!(strip(less.to_vec()), less);
    }
}
