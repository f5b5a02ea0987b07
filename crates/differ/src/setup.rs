//! The two databases: created once; the clients' own schemas are created again for each episode.

use crate::client::Peers;
use crate::conn::{Broken, Conn};
use crate::generate::calls::{FUNCTIONS, HOOKED};
use crate::generate::sessions;
use crate::mask::{DIRECT, PROXIED};
use std::time::Duration;

/// The longest that an administrative command may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Settings of both databases. The time limit is a safeguard: no step waits for another. Warnings
/// about escapes are off because PostgreSQL parses a shared statement once, and warns once.
const SETTINGS: [(&str, &str); 5] = [
    ("statement_timeout", "'8s'"),
    ("escape_string_warning", "off"),
    ("timezone", "'UTC'"),
    ("datestyle", "'ISO, MDY'"),
    ("jit", "off"),
];

const SHARED: &str = "
    create schema shr;
    create table shr.a (id int primary key, t text, d date, ts timestamptz, v interval,
                        n numeric, b bytea);
    insert into shr.a select g, case when g % 5 = 4 then null when g = 3 then 'é' else 'v' || g end,
        date '2024-01-01' + g * 9, timestamptz '2024-01-01 00:00:00+00' + g * interval '1 hour',
        g * interval '1 day 1 minute', g / 4.0, decode('00' || lpad(g::text, 2, '0'), 'hex')
        from generate_series(0, 9) g;
    create type shr.mood as enum ('p', 'q', 'r');
    create domain shr.small as int check (value < 10);
    create domain shr.word as varchar(3) check (value <> 'b');
    create table shr.q (id int primary key, i int, big bigint, t text, c6 char(6), v5 varchar(5),
                        n numeric(10, 2), f float8, d date, ts timestamptz, arr int[], js jsonb,
                        u uuid, b bytea, mood shr.mood, s shr.small, w shr.word);
    insert into shr.q select g, nullif(g % 5, 4), g * 1000000000::bigint,
        case when g % 6 = 5 then null else 'v' || g % 4 end, 'c' || g % 3, 'v' || g % 2,
        g / 4.0, g / 3.0, date '2024-01-01' + g,
        timestamptz '2024-01-01 00:00:00+00' + g * interval '9 hours',
        array[g, g % 3], jsonb_build_object('a', g % 3, 'b', 'x'),
        ('11111111-1111-1111-1111-11111111111' || g % 3)::uuid,
        decode('00' || lpad(g::text, 2, '0'), 'hex'),
        (array['p', 'q', 'r'])[g % 3 + 1]::shr.mood, g % 10, 'v' || g % 3
        from generate_series(0, 23) g;
    create table shr.p (id int primary key, q int, k int);
    insert into shr.p select g, g % 7, g % 5 from generate_series(0, 19) g;
    analyze shr.q; analyze shr.p;";

const OWN: &str = "
    drop schema if exists {s} cascade;
    create schema {s};
    create table {s}.t1 (id int primary key, v text, n int default 0 check (n < 1000));
    create table {s}.t2 (id serial, d date, ts timestamptz);
    create table {s}.t3 (id int, v text);
    create table {s}.late (id int unique deferrable initially deferred);
    insert into {s}.t1 select g, 'v' || g from generate_series(0, 3) g;
    insert into {s}.t3 values (1, 'one');
    create table {s}.w (id int primary key, v text, n numeric(8, 2) default 1, d date,
                        v5 varchar(5), s shr.small, w shr.word, m shr.mood, a int[], j jsonb);
    create table {s}.k (id serial primary key, s smallint, v varchar(3), n numeric(5, 2), b int,
                        l shr.mood, f real);
    insert into {s}.w (id, v) select g, 'v' || g from generate_series(0, 5) g;
    create function {s}.ddl(int) returns text language plpgsql set client_min_messages = error
        as $f$begin
        case $1 % 4
            when 0 then alter table if exists {s}.t3 add column if not exists y int;
            when 1 then alter table if exists {s}.t3 drop column if exists y;
            when 2 then alter table if exists {s}.t3 alter column v set default 'dd';
            else comment on table {s}.t1 is 'ddl';
        end case; return 'done'; end$f$;";

/// Administrative connections.
#[derive(Debug)]
pub struct Admin {
    /// One to each database, straight to the server.
    databases: [Conn; 2],
    /// One to the proxied database by way of the proxy, if the proxy keeps replies: it gives them
    /// until a write passes through it.
    seen: Option<Conn>,
    peers: Peers,
    proxied: String,
}

impl Admin {
    /// Connects, and creates the databases if they do not exist.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses.
    pub fn new(peers: &Peers) -> Result<Self, String> {
        let (addr, user) = (peers.direct.as_str(), peers.user.as_str());
        let names = [PROXIED, DIRECT].map(|name| format!("{name}{}", peers.suffix));
        let mut control = connect(addr, user, "postgres")?;
        create_role(&mut control)?;
        for name in &names {
            let known = format!("select 1 from pg_database where datname = '{name}'");
            if run(&mut control, &known)? == 0 {
                create(&mut control, peers, name)?;
            }
        }
        let seen = peers.cached.then(|| by_proxy(peers, &names[0])).transpose()?;
        Ok(Self {
            databases: [connect(addr, user, &names[0])?, connect(addr, user, &names[1])?],
            seen,
            peers: peers.clone(),
            proxied: names[0].clone(),
        })
    }

    /// Creates the clients' own tables again, as they are at the start of an episode.
    ///
    /// # Errors
    /// If a command fails, for example because a transaction of an earlier episode is still open.
    pub fn reset(&mut self, clients: usize, servers: Servers) -> Result<(), String> {
        if servers == Servers::Fresh {
            self.end_servers()?;
            // The session ends with its server if the DDL has tied it to one.
            if self.seen.is_some() {
                self.seen = Some(by_proxy(&self.peers, &self.proxied)?);
            }
        }
        let own = [OWN, HOOKED, sessions::OWN].concat();
        let sql: String =
            (1..=clients).map(|number| own.replace("{s}", &format!("c{number}"))).collect();
        let mut conns = self.changing();
        for conn in &mut conns {
            ask(conn, &sql)?;
        }
        for (conn, name) in conns.into_iter().zip([PROXIED, DIRECT]) {
            rows(conn).map_err(|error| format!("reset of {name}: {error}"))?;
        }
        Ok(())
    }

    /// Returns the connections that change tables.
    fn changing(&mut self) -> [&mut Conn; 2] {
        let [proxied, direct] = &mut self.databases;
        [self.seen.as_mut().unwrap_or(proxied), direct]
    }

    /// Runs a command in both databases, on connections other than the clients'.
    ///
    /// # Errors
    /// If the command succeeds in one database and fails in the other.
    pub fn outside(&mut self, sql: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(sql).into_owned();
        let [proxied, direct] = self.changing();
        match (run(proxied, &text), run(direct, &text)) {
            (Ok(_), Ok(_)) | (Err(_), Err(_)) => Ok(()),
            (proxied, direct) => Err(format!("outside: {proxied:?} but directly {direct:?}")),
        }
    }

    /// Ends all other sessions of the proxied database, and gives the proxy time to notice.
    fn end_servers(&mut self) -> Result<(), String> {
        let ended = format!(
            "select pg_terminate_backend(pid) from pg_stat_activity \
             where datname = '{}' and pid <> pg_backend_pid()",
            self.proxied
        );
        while run(&mut self.databases[0], &ended)? > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(10));
        Ok(())
    }
}

/// Whether the proxy begins an episode with its existing servers, or has to open new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// Servers with the state that earlier episodes left in them.
    Used,
    /// No servers at the start: the episode then depends on no other, and can be repeated.
    Fresh,
}

fn create(control: &mut Conn, peers: &Peers, name: &str) -> Result<(), String> {
    let (addr, user) = (peers.direct.as_str(), peers.user.as_str());
    let encoding = &peers.encoding;
    let command =
        format!("create database {name} template template0 encoding '{encoding}' locale 'C'");
    run(control, &command)?;
    for (setting, value) in SETTINGS {
        run(control, &format!("alter database {name} set {setting} = {value}"))?;
    }
    let mut conn = connect(addr, user, name)?;
    run(&mut conn, SHARED)?;
    run(&mut conn, FUNCTIONS)?;
    run(&mut conn, sessions::SHARED)?;
    Ok(())
}

/// Creates the role of the tests, which all databases of the server share.
fn create_role(control: &mut Conn) -> Result<(), String> {
    let role = sessions::ROLE;
    let known = format!("select 1 from pg_roles where rolname = '{role}'");
    if run(control, &known)? == 0 {
        run(control, &format!("create role {role}"))?;
    }
    Ok(())
}

/// Connects straight to the server.
fn connect(addr: &str, user: &str, database: &str) -> Result<Conn, String> {
    open(addr, user, database, &[("options", "-c client_min_messages=error -c lock_timeout=10s")])
}

/// Connects to the proxy, as a client with the settings of most clients.
fn by_proxy(peers: &Peers, database: &str) -> Result<Conn, String> {
    open(&peers.proxied, &peers.user, database, &[])
}

fn open(addr: &str, user: &str, database: &str, more: &[(&str, &str)]) -> Result<Conn, String> {
    let own = [("user", user), ("database", database), ("client_encoding", "UTF8")];
    let params: Vec<_> = own
        .iter()
        .chain(more)
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let words = |broken: Broken| format!("cannot connect to {addr}, {database}: {broken:?}");
    let mut conn = Conn::open(addr, &params, LIMIT).map_err(words)?;
    loop {
        let frame = conn.read().map_err(words)?;
        match frame.tag {
            b'E' => return Err(frame.to_string()),
            b'Z' => return Ok(conn),
            _ => {}
        }
    }
}

/// Runs commands and returns the number of rows.
fn run(conn: &mut Conn, sql: &str) -> Result<usize, String> {
    ask(conn, sql)?;
    rows(conn)
}

fn ask(conn: &mut Conn, sql: &str) -> Result<(), String> {
    let mut bytes = Vec::new();
    crate::msg::Msg::Query(sql.as_bytes().to_vec()).encode(&mut bytes);
    conn.write(&bytes).map_err(|broken| format!("{broken:?}"))
}

fn rows(conn: &mut Conn) -> Result<usize, String> {
    let (mut rows, mut error) = (0, None);
    loop {
        let frame = conn.read().map_err(|broken| format!("{broken:?}"))?;
        match frame.tag {
            b'D' => rows += 1,
            b'E' => error = Some(frame.to_string()),
            b'Z' => return error.map_or(Ok(rows), Err),
            _ => {}
        }
    }
}
