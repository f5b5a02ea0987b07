//! OwnConnection: a connection of Refrain's own to a server, on the kernel driver of its thread,
//! and encrypted as the host's options say.

use std::net::SocketAddr;
use std::sync::Arc;
use std::vec;

use refrain_config::Host;
use refrain_drive::{Address, Driver, Kernel, Token};
use refrain_pool::secured::Secured;

use super::session::{Account, OwnSession, ServerSaid};
use crate::resolve::Resolver;
use crate::tls::{self, Heard, Store, Task};

/// An event of the kernel on a connection.
pub(super) enum KernelTold {
    Connected,
    Failed(String),
    Received(Vec<u8>),
    Sent,
    Closed(Option<String>),
}

/// A connection to a server.
pub(super) struct OwnConnection {
    token: Token,
    account: Account,
    /// Startup parameters of this connection.
    more: &'static [(&'static str, &'static str)],
    /// The addresses that have not been tried.
    rest: vec::IntoIter<Address>,
    trying: Option<Address>,
    tls: Option<tls::Session>,
    secured: Option<Arc<Secured>>,
    session: Option<OwnSession>,
    /// Bytes for the server.
    pub(super) out: Vec<u8>,
    /// Whether bytes are being sent.
    is_sending: bool,
    scratch: Vec<u8>,
}

/// Returns the addresses of a host, which blocks.
fn addresses(resolver: &Resolver, host: &Host) -> Result<Vec<Address>, String> {
    match host {
        Host::Tcp { host, port, .. } => {
            let found = match host.parse() {
                Ok(address) => vec![address],
                Err(_) => resolver.look_up(host)?,
            };
            let tcp = |address| Address::Tcp(SocketAddr::new(address, *port));
            Ok(found.into_iter().map(tcp).collect())
        }
        Host::Unix { dir, port } => Ok(vec![Address::Unix(dir.join(format!(".s.PGSQL.{port}")))]),
        Host::Socket(_) | Host::Sqlite(_) => Err("the host is none of PostgreSQL".to_owned()),
    }
}

impl OwnConnection {
    /// Begins to connect to a host.
    ///
    /// # Errors
    /// If the host has no address, or its options of TLS are of no use.
    pub(super) fn open(
        (kernel, token): (&mut Kernel, Token),
        (resolver, store, host): (&Resolver, &Store, &Host),
        account: &Account,
        more: &'static [(&'static str, &'static str)],
    ) -> Result<Self, String> {
        let mut rest = addresses(resolver, host)?.into_iter();
        let trying = rest.next();
        let address = trying.as_ref().ok_or("the host has no address")?;
        kernel.connect(token, address);
        Ok(Self {
            token,
            account: account.clone(),
            more,
            rest,
            trying,
            tls: tls::Session::of_server(store, host)?,
            secured: None,
            session: None,
            out: Vec::new(),
            is_sending: false,
            scratch: Vec::new(),
        })
    }

    /// Returns the number of the server's process.
    pub(super) fn pid(&self) -> u32 {
        self.session.as_ref().map_or(0, |session| session.pid)
    }

    /// Takes in what the kernel has told.
    ///
    /// # Errors
    /// Why the connection is over.
    pub(super) fn hear(
        &mut self,
        kernel: &mut Kernel,
        told: KernelTold,
        sink: &mut dyn FnMut(ServerSaid<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut news = News::default();
        match (told, &mut self.tls) {
            (KernelTold::Connected, None) => news.is_connected = true,
            (KernelTold::Connected, Some(tls)) => {
                tls.connected(self.trying.clone(), &mut |heard| news.hear(heard));
            }
            (KernelTold::Received(bytes), None) => news.bytes = bytes,
            (KernelTold::Received(bytes), Some(tls)) => {
                tls.receive(&bytes, &mut self.scratch, &mut |heard| news.hear(heard));
            }
            (KernelTold::Sent, None) => self.is_sending = false,
            (KernelTold::Sent, Some(tls)) => drop(tls.sent()),
            (KernelTold::Failed(why), _) => match self.rest.next() {
                Some(address) => {
                    kernel.close(self.token);
                    kernel.connect(self.token, &address);
                    self.trying = Some(address);
                }
                None => return Err(why),
            },
            (KernelTold::Closed(why), None) => return Err(why.unwrap_or_else(closed)),
            (KernelTold::Closed(why), Some(tls)) => {
                tls.closed(why.as_deref(), &mut |heard| news.hear(heard));
            }
        }
        self.take(news, sink)?;
        self.send(kernel)
    }

    fn take(
        &mut self,
        news: News,
        sink: &mut dyn FnMut(ServerSaid<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        self.secured = news.secured.or(self.secured.take());
        if news.is_connected {
            // A second connection, as sslmode may want it, begins anew.
            self.out.clear();
            self.session = Some(OwnSession::begin(&self.account, self.more, &mut self.out));
        }
        let (secured, out) = (self.secured.as_deref(), &mut self.out);
        if let Some(session) = self.session.as_mut().filter(|_| !news.bytes.is_empty()) {
            session.receive(&news.bytes, secured, out, sink)?;
        }
        news.end.map_or(Ok(()), Err)
    }

    /// Sends what there is to be sent.
    ///
    /// # Errors
    /// Why the connection is over.
    pub(super) fn send(&mut self, kernel: &mut Kernel) -> Result<(), String> {
        loop {
            if !self.out.is_empty() && !self.is_sending {
                let bytes = std::mem::take(&mut self.out);
                match &mut self.tls {
                    Some(tls) => {
                        tls.send(bytes);
                        self.is_sending = true;
                    }
                    None => self.is_sending = kernel.send(self.token, bytes).is_none(),
                }
            }
            let Some(tls) = &mut self.tls else { return Ok(()) };
            match tls.next(&mut Vec::new()) {
                Task::Nothing => return Ok(()),
                Task::Send(bytes) => {
                    if kernel.send(self.token, bytes).is_some() {
                        tls.sent();
                    }
                }
                Task::Sent(_) => self.is_sending = false,
                Task::Dial(address) => {
                    kernel.close(self.token);
                    kernel.connect(self.token, &address);
                    self.is_sending = false;
                }
                Task::Dissolve => self.tls = None,
                Task::Break(why) => return Err(why),
            }
        }
    }
}

fn closed() -> String {
    "the server has closed the connection".to_owned()
}

/// The news of a session of TLS.
#[derive(Default)]
struct News {
    is_connected: bool,
    bytes: Vec<u8>,
    secured: Option<Arc<Secured>>,
    /// Why the connection is over.
    end: Option<String>,
}

impl News {
    fn hear(&mut self, heard: Heard<'_>) {
        match heard {
            Heard::Secured(secured) => self.secured = Some(secured),
            Heard::Connected => self.is_connected = true,
            Heard::Bytes(bytes) => self.bytes.extend_from_slice(bytes),
            Heard::End => self.end = Some(closed()),
            Heard::Failed(why) | Heard::Broken(why) => self.end = Some(why),
        }
    }
}
