//! A client twice: directly at PostgreSQL, and through Refrain with autoprepare on.
//!
//! Each of the two has a database of its own. The database behind Refrain is a copy of the other
//! one, so that tables have the same OIDs in both, and every byte of the replies can be compared.

use refrain_differ::msg::Msg;
use refrain_differ::reply::Frame;

use crate::reply::Reply;
use crate::session::{Session, query};
use crate::world::{Config, Proxy, Version, addr, cluster};

/// The first OID that does not belong to PostgreSQL itself.
const FIRST_OWN_OID: u32 = 16_384;

/// Refrain with autoprepare on, over a database, and another database to compare with.
pub(crate) struct House {
    name: &'static str,
    pub(crate) proxy: Proxy,
}

/// Configures autoprepare from the first use of a text, with this many servers.
pub(crate) fn eager(servers: u32) -> Config {
    let config = Config::over(cluster(Version::V15)).pool("autoprepare", "\"on\"");
    config.pool("autoprepare_threshold", "1").pool("pool_size", &servers.to_string())
}

impl House {
    /// Makes both databases with `setup`, and starts Refrain.
    pub(crate) fn new(name: &'static str, setup: &str, config: Config) -> Self {
        Self::encoded(name, "UTF8", setup, config)
    }

    /// Makes them in another encoding.
    pub(crate) fn encoded(name: &'static str, encoding: &str, setup: &str, config: Config) -> Self {
        let postgres = addr(cluster(Version::V15));
        let mut session = Session::open(postgres, "postgres");
        for database in [name.to_owned(), direct(name)] {
            session.run(&format!("drop database if exists {database} with (force)"));
        }
        let made = format!("encoding '{encoding}' locale 'C' template template0");
        session.run(&format!("create database {} {made}", direct(name)));
        let mut source = Session::open(postgres, &direct(name));
        source.run(setup);
        source.leave();
        session.run(&format!("create database {name} template {}", direct(name)));
        Self { name, proxy: config.start() }
    }

    /// Opens a client's two sessions.
    pub(crate) fn pair(&self) -> Pair {
        self.pair_with(&[])
    }

    /// Opens a client's two sessions with startup parameters.
    pub(crate) fn pair_with(&self, params: &[(&str, &str)]) -> Pair {
        let postgres = addr(cluster(Version::V15));
        Pair {
            direct: Session::with(postgres, &direct(self.name), params),
            proxied: Session::with(self.proxy.addr(), self.name, params),
        }
    }

    /// Opens a session straight to the database behind Refrain.
    pub(crate) fn behind(&self) -> Session {
        Session::open(addr(cluster(Version::V15)), self.name)
    }

    /// Opens a session straight to the other database.
    pub(crate) fn copy(&self) -> Session {
        Session::open(addr(cluster(Version::V15)), &direct(self.name))
    }

    /// Returns how many queries ran as prepared statements.
    pub(crate) fn hits(&self) -> u64 {
        self.proxy.counter("auto_hits")
    }
}

fn direct(name: &str) -> String {
    format!("{name}_direct")
}

/// A client's two sessions.
pub(crate) struct Pair {
    pub(crate) direct: Session,
    pub(crate) proxied: Session,
}

impl Pair {
    /// Runs a query both ways. Compares the replies, except for what `tolerant` leaves out.
    pub(crate) fn compare(&mut self, sql: &str, tolerant: &Tolerance) -> Result<Reply, String> {
        self.send(&[query(sql)]);
        self.settle(sql, tolerant)
    }

    /// Sends messages both ways.
    pub(crate) fn send(&mut self, msgs: &[Msg]) {
        self.direct.send(msgs);
        self.proxied.send(msgs);
    }

    /// Compares the replies up to the next ReadyForQuery.
    pub(crate) fn settle(&mut self, what: &str, tolerant: &Tolerance) -> Result<Reply, String> {
        let (direct, proxied) = (self.direct.ready(), self.proxied.ready());
        let masked = |reply: &Reply| -> Vec<Frame> {
            reply.frames.iter().map(|frame| tolerant.mask(frame)).collect()
        };
        if masked(&direct) == masked(&proxied) {
            return Ok(proxied);
        }
        Err(format!("{what}\n   direct: {}\n  through: {}", shown(&direct), shown(&proxied)))
    }

    /// Runs a query both ways. Every byte of the replies must be the same.
    pub(crate) fn same(&mut self, sql: &str) -> Reply {
        self.compare(sql, &EXACT).unwrap_or_else(|why| panic!("{why}"))
    }

    /// Runs a query both ways, and compares nothing.
    pub(crate) fn run(&mut self, sql: &str) {
        self.direct.query(sql);
        self.proxied.query(sql);
    }
}

fn shown(reply: &Reply) -> String {
    reply.frames.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n           ")
}

/// Parts of replies that may differ.
pub(crate) struct Tolerance {
    /// OIDs that each database gave on its own.
    pub(crate) oids: bool,
    /// Fields of errors and notices, by their codes.
    pub(crate) fields: &'static [u8],
}

/// No part may differ.
pub(crate) const EXACT: Tolerance = Tolerance { oids: false, fields: b"" };

/// OIDs that each database gave on its own.
pub(crate) const OWN_OIDS: Tolerance = Tolerance { oids: true, fields: b"" };

/// Fields of the CONTEXT of an error, which within a transaction may lack a line.
pub(crate) const IN_TRANSACTION: Tolerance = Tolerance { oids: false, fields: b"WFLR" };

impl Tolerance {
    fn mask(&self, frame: &Frame) -> Frame {
        let mut masked = frame.clone();
        if self.oids && frame.tag == b'T' {
            mask_oids(&mut masked.body);
        }
        if frame.has_fields() {
            let kept = frame.fields().into_iter().filter(|(code, _)| !self.fields.contains(code));
            let kept: Vec<_> = kept.map(|(code, value)| (code, value.to_vec())).collect();
            masked.set_fields(&kept);
        }
        masked
    }
}

/// Makes the OIDs in a RowDescription equal: after each name, that of the table is at 0 and that of
/// the type at 6.
fn mask_oids(body: &mut [u8]) {
    let mut at = 2;
    while let Some(length) = body[at..].iter().position(|byte| *byte == 0) {
        at += length + 1;
        for place in [at, at + 6] {
            let oid = body[place..].first_chunk_mut::<4>().unwrap();
            if u32::from_be_bytes(*oid) >= FIRST_OWN_OID {
                *oid = FIRST_OWN_OID.to_be_bytes();
            }
        }
        at += 18;
    }
}
