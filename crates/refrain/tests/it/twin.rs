//! A client twice: straight to PostgreSQL, and through the program with autoprepare on.
//!
//! Each of the two has a database of its own. The second is made as a copy of the first, so that its tables have the
//! same OIDs, and every byte that is said of them can be compared.

use refrain_differ::msg::Msg;
use refrain_differ::reply::Frame;

use crate::reply::Reply;
use crate::session::{Session, query};
use crate::world::{Config, Proxy, Version, addr, cluster};

/// The first OID that does not come with PostgreSQL.
const FIRST_OWN_OID: u32 = 16_384;

/// The program with autoprepare on, over a database, and a copy of that to compare with.
pub(crate) struct House {
    name: &'static str,
    pub(crate) proxy: Proxy,
}

/// Autoprepare from the first time a text is seen, with this many servers.
pub(crate) fn eager(servers: u32) -> Config {
    let config = Config::over(cluster(Version::V15)).pool("autoprepare", "\"on\"");
    config.pool("autoprepare_threshold", "1").pool("pool_size", &servers.to_string())
}

impl House {
    /// Both databases as `setup` makes them, and the program.
    pub(crate) fn new(name: &'static str, setup: &str, config: Config) -> Self {
        Self::encoded(name, "UTF8", setup, config)
    }

    /// The same in another encoding.
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

    /// A client, twice.
    pub(crate) fn pair(&self) -> Pair {
        self.pair_with(&[])
    }

    /// The same with startup parameters.
    pub(crate) fn pair_with(&self, params: &[(&str, &str)]) -> Pair {
        let postgres = addr(cluster(Version::V15));
        Pair {
            direct: Session::with(postgres, &direct(self.name), params),
            proxied: Session::with(self.proxy.addr(), self.name, params),
        }
    }

    /// A session straight to the database that is served.
    pub(crate) fn behind(&self) -> Session {
        Session::open(addr(cluster(Version::V15)), self.name)
    }

    /// A session straight to the copy.
    pub(crate) fn copy(&self) -> Session {
        Session::open(addr(cluster(Version::V15)), &direct(self.name))
    }

    /// Queries that were run as a prepared statement until now.
    pub(crate) fn hits(&self) -> u64 {
        self.proxy.counter("auto_hits")
    }
}

fn direct(name: &str) -> String {
    format!("{name}_direct")
}

/// A client, twice.
pub(crate) struct Pair {
    pub(crate) direct: Session,
    pub(crate) proxied: Session,
}

impl Pair {
    /// Runs a query both ways. The replies are the same, but for OIDs and for what `tolerant` leaves out.
    pub(crate) fn compare(&mut self, sql: &str, tolerant: &Tolerance) -> Result<Reply, String> {
        self.send(&[query(sql)]);
        self.settle(sql, tolerant)
    }

    /// Sends messages both ways.
    pub(crate) fn send(&mut self, msgs: &[Msg]) {
        self.direct.send(msgs);
        self.proxied.send(msgs);
    }

    /// Compares what comes up to the next ReadyForQuery.
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

    /// Runs a query both ways; every byte of the replies is the same.
    pub(crate) fn same(&mut self, sql: &str) -> Reply {
        self.compare(sql, &EXACT).unwrap_or_else(|why| panic!("{why}"))
    }

    /// Runs a query both ways that nothing is expected of.
    pub(crate) fn run(&mut self, sql: &str) {
        self.direct.query(sql);
        self.proxied.query(sql);
    }
}

fn shown(reply: &Reply) -> String {
    reply.frames.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n           ")
}

/// What replies may differ in.
pub(crate) struct Tolerance {
    /// OIDs of what was made in each database on its own.
    pub(crate) oids: bool,
    /// Fields of errors and notices.
    pub(crate) fields: &'static [u8],
}

/// Nothing.
pub(crate) const EXACT: Tolerance = Tolerance { oids: false, fields: b"" };

/// OIDs of what is made in each database on its own.
pub(crate) const OWN_OIDS: Tolerance = Tolerance { oids: true, fields: b"" };

/// The CONTEXT of an error, which within a transaction may lack a line of PostgreSQL's.
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

/// Levels the OIDs in a RowDescription: of the table at 0, of the type at 6 behind each name.
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
