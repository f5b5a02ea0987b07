//! Bursts of reads: all clients send the same few short reads at once.
//!
//! A proxy that shares servers between clients does so for statements that it knows as short
//! reads, and while the servers are busy. Random texts are hardly ever sent twice. So an episode
//! has a few reads, which its clients run in every form that a server may share (named statements,
//! unnamed ones, query strings with other literals each time) and in forms that it may not, most of
//! them in bursts of all clients. Between them are transactions, writes, errors and changes of
//! settings and of the schema, and clients leave before they have read their replies. Then come
//! some steps of the other generator, which leave servers with statements and settings of any kind.
//!
//! With the feature `neighbours`, clients also read what others have written, one client at a time:
//! a proxy that keeps replies must give none that a write has overtaken.
//!
//! Always holds: each reply has one right answer, since no client reads what another writes in the
//! same step. No text depends on whether a server is shared.

use std::collections::VecDeque;

use crate::client::Client;
use crate::features::Features;
use crate::generate::Generator;
use crate::generate::texts::{self, Text};
use crate::ledger::Ledger;
use crate::msg::{Bind, Msg};
use crate::plan::{Plan, Step};
use crate::rng::Rng;
use crate::schedule::{self, holders};

/// Number of reads of an episode.
const READS: usize = 4;
/// Number of steps before the first pause: each read has been run often enough that the proxy asks
/// the server about it.
const FIRST: usize = 12;

/// Number of reads of other clients' tables that are sent again and again.
const REQUESTS: usize = 6;

/// Short reads. None calls a function whose label is volatile. None has an expression of parameters
/// alone that may fail: a plan without values would find the error later (`docs/autoprepare.md`).
const TEXTS: &[Text] = &[
    ("select id, t from shr.a where id = $1", "i"),
    ("select id, t, d, ts, v, n, b from shr.a where id < $1 order by id", "i"),
    ("select id, 10 / (id - $1) from shr.a order by id", "i"),
    ("select id, 10 / (id - $1) from shr.a where id >= $2 order by id", "ii"),
    ("select $1::int as a, $2::text as b", "it"),
    ("select id + $1::int from shr.a where t = $2", "it"),
    ("select count(*), sum(n) from shr.q where i >= $1", "i"),
    ("select x.id, y.k from shr.q x join shr.p y on y.id = x.id where x.id = $1", "i"),
    ("select id, d + $1::int from shr.a where d > $2::date order by id", "id"),
    ("select b, b = $1::bytea from shr.a order by id", "b"),
    ("select generate_series(1, $1::int)", "i"),
    ("select id, repeat(t, 900) from shr.a where id <> $1 order by id", "i"),
    ("select count(*) from shr.a a, shr.a b, shr.a c where a.id + b.id + c.id > $1", "i"),
    ("select count(*) from shr.a a, shr.a b, shr.a c, shr.a d where a.id + d.id > $1", "i"),
    ("select current_setting('TimeZone'), ts from shr.a where id = $1", "i"),
    ("select id, v from {s}.t1 order by id", ""),
    ("select id, v, n from {s}.t1 where id = $1", "i"),
    ("select id, v from {s}.t3 where id >= $1 order by id", "i"),
    ("values (1, 'a'), (2, 'b'), (3, null)", ""),
];

/// Other texts, which clients send between reads. Few change a setting for long, since clients with
/// other settings share no server.
const OTHERS: &[&str] = &[
    "insert into {s}.t1 (id, v) values ({n}, 'r{n}') on conflict do nothing",
    "update {s}.t1 set n = n + 1 where id = {n} returning n",
    "delete from {s}.t1 where id = {n}",
    "begin; select {n}; commit",
    "select id, 1 / (id - id) from shr.a",
    "select * from nosuch",
    "selec",
    "",
    "show timezone",
    "select 1; select 2",
    "set timezone = 'Asia/Tokyo'; reset timezone",
    "select g, repeat('r', 20) from generate_series(1, 2000) g",
    "copy (select id, t from shr.a order by id) to stdout",
    "set extra_float_digits = 0",
    "set timezone = 'Asia/Tokyo'",
    "reset all",
    "reset all",
    "reset all",
    "reset all",
    "reset all",
    "reset all",
];

/// Reads of tables that belong to one client, and that others read too.
const OF_OTHERS: &[Text] = &[
    ("select id, v, n from {s}.t1 order by id", ""),
    ("select id, v, n from {s}.t1 where id = $1", "i"),
    ("select count(*), sum(n) from {s}.t1 where id in (select id from shr.a)", ""),
    ("select a.t, t1.v from shr.a a left join {s}.t1 t1 on t1.id = a.id order by a.id", ""),
    ("select id, v from {s}.w order by id", ""),
];

/// Writes to the tables that [`OF_OTHERS`] read, and one to another table.
const WRITES: &[&str] = &[
    "insert into {s}.t1 (id, v) values ({n}, 'o{n}') on conflict do nothing",
    "insert into {s}.t1 (id, v) values ({n}, 'o{n}') on conflict (id) do update set n = t1.n + 1",
    "update {s}.t1 set n = n + 1 where id = {n}",
    "update {s}.t1 set v = 'p{n}', n = 5 where id < 3",
    "delete from {s}.t1 where id = {n}",
    "with gone as (delete from {s}.t1 where id = {n} returning id) select count(*) from gone",
    "begin; update {s}.t1 set n = n + 2; rollback",
    "begin; update {s}.t1 set n = n + 3; commit",
    "do 'begin update {s}.t1 set n = n + 1 where id = 1; end'",
    "update {s}.w set v = 'q{n}' where id = {n}",
    "truncate {s}.t3",
];

/// Makes the steps of one episode: calm phases, which are mostly reads, and others, which have all
/// the messages of the other generator.
#[derive(Debug)]
pub struct Reads {
    rng: Rng,
    others: Generator,
    texts: Vec<Text>,
    /// Steps of the present phase that are left.
    left: usize,
    /// Steps of the present phase that have been made.
    made: usize,
    is_calm: bool,
    due: VecDeque<Step>,
    /// The last reads of tables of other clients. Each is whole, so any client may send it.
    requests: Vec<Vec<Msg>>,
}

impl Reads {
    /// Creates a generator that starts from `seed`.
    #[must_use]
    pub fn new(seed: u64, features: &Features) -> Self {
        let mut rng = Rng::new(seed ^ 0x5245_4144);
        let texts = (0..READS).map(|_| *rng.pick(TEXTS)).collect();
        let others = Generator::new(seed, features.clone());
        Self {
            rng,
            others,
            texts,
            left: 0,
            made: 0,
            is_calm: false,
            due: VecDeque::new(),
            requests: Vec::with_capacity(REQUESTS),
        }
    }

    /// Returns the next step.
    pub fn next(&mut self, plan: &Plan, clients: &[Option<Client>]) -> Step {
        if let Some(step) = self.due.pop_front() {
            return step;
        }
        if self.left == 0 {
            self.begin(clients);
        }
        self.left -= 1;
        self.made += 1;
        if !self.is_calm {
            return schedule::next(&mut self.others, plan, clients);
        }
        if let Some(client) = schedule::without_session(plan, clients) {
            return self.connect(client);
        }
        match self.made == FIRST {
            true => Step::Pause,
            false => self.calm(plan, clients),
        }
    }

    /// Begins the next phase. A calm phase begins with new sessions, all with the same settings.
    /// The clients that hold a server begin: a login may need one.
    fn begin(&mut self, clients: &[Option<Client>]) {
        self.is_calm = !self.is_calm;
        self.made = 0;
        self.left = match self.is_calm {
            true => 100 + self.rng.below(300),
            false => 5 + self.rng.below(20),
        };
        if self.is_calm {
            let mut order = holders(clients);
            order.extend((0..clients.len()).filter(|at| !order.contains(at)).collect::<Vec<_>>());
            let sessions: Vec<Step> = order.iter().map(|client| self.connect(*client)).collect();
            self.due.extend(sessions);
        }
    }

    fn connect(&mut self, client: usize) -> Step {
        let params = if self.rng.chance(4) { self.others.startup() } else { Vec::new() };
        Step::Connect { client, polite: self.rng.chance(50), params }
    }

    fn calm(&mut self, plan: &Plan, clients: &[Option<Client>]) -> Step {
        let holders = holders(clients);
        let full = holders.len() >= plan.pool_size.min(clients.len());
        if !holders.is_empty() && (full || self.rng.chance(40)) {
            let holder = *self.rng.pick(&holders);
            return self.go_on(clients, holder);
        }
        let idle: Vec<usize> = (0..clients.len()).filter(|at| !holders.contains(at)).collect();
        let client = *self.rng.pick(&idle);
        // Nobody writes meanwhile: the step is of one client, and no transaction is open.
        if plan.features.has("neighbours") && holders.is_empty() && self.rng.chance(60) {
            return self.written(clients, client);
        }
        match self.rng.below(1000) {
            0..4 => self.connect(client),
            4..6 if holders.is_empty() => Step::Outside(self.others.outside(client)),
            6..30 => Step::Send(vec![(client, vec![Msg::Query(b"begin".to_vec())])]),
            30..32 => {
                if self.rng.chance(70) {
                    self.due.push_back(Step::Pause);
                }
                self.burst(clients, &idle, Some(client))
            }
            _ => self.burst(clients, &idle, None),
        }
    }

    /// Returns a step of a client in a transaction, often the last of it.
    fn go_on(&mut self, clients: &[Option<Client>], client: usize) -> Step {
        let mut msgs = Vec::new();
        match clients[client].as_ref().map(|client| &client.ledger) {
            Some(ledger) if self.rng.chance(40) => self.reads(&mut msgs, client, ledger, None),
            Some(_) if self.rng.chance(30) => msgs.push(Msg::Query(self.other(client))),
            _ => {
                let end: &[u8] = if self.rng.chance(70) { b"commit" } else { b"rollback" };
                msgs.push(Msg::Query(end.to_vec()));
            }
        }
        Step::Send(vec![(client, msgs)])
    }

    /// Returns a step in which a client writes to its tables or reads those of any client. The same
    /// requests come again and again, before and after each write.
    fn written(&mut self, clients: &[Option<Client>], client: usize) -> Step {
        let mut msgs = Vec::new();
        if self.rng.chance(8) {
            let sql = texts::fill(self.rng.pick::<&str>(WRITES), client, &mut self.rng);
            msgs.push(Msg::Query(sql));
        } else if self.requests.len() == REQUESTS && self.rng.chance(90) {
            msgs.clone_from(self.rng.pick(&self.requests));
        } else {
            let of = self.rng.below(clients.len());
            let (text, kinds) = *self.rng.pick(OF_OTHERS);
            let sql = texts::fill(text, of, &mut self.rng);
            if self.rng.chance(50) {
                msgs.push(Msg::Query(self.with_literals(&sql, kinds)));
            } else {
                msgs.push(Msg::Parse(Vec::new(), sql, Vec::new()));
                self.run(&mut msgs, b"", kinds);
            }
            if self.requests.len() == REQUESTS {
                self.requests.remove(0);
            }
            self.requests.push(msgs.clone());
        }
        Step::Send(vec![(client, msgs)])
    }

    fn other(&mut self, client: usize) -> Vec<u8> {
        texts::fill(self.rng.pick::<&str>(OTHERS), client, &mut self.rng)
    }

    /// Returns a step in which most of these clients send at once, nearly all of them reads.
    /// `changes` is the client, if any, that changes the schema meanwhile.
    fn burst(
        &mut self,
        clients: &[Option<Client>],
        idle: &[usize],
        changes: Option<usize>,
    ) -> Step {
        let same = self.rng.chance(80).then(|| self.rng.below(READS));
        let mut sends = Vec::new();
        for &client in idle {
            let Some(ledger) = clients[client].as_ref().map(|client| &client.ledger) else {
                continue;
            };
            let mut msgs = Vec::new();
            match self.rng.below(100) {
                _ if changes == Some(client) => msgs.push(Msg::Query(self.change(client))),
                0..3 => msgs.push(Msg::Query(self.other(client))),
                3..10 => continue,
                _ => self.reads(&mut msgs, client, ledger, same),
            }
            if self.rng.below(200) == 0 {
                msgs.push(Msg::Leave { polite: self.rng.chance(50) });
            }
            sends.push((client, msgs));
        }
        Step::Send(sends)
    }

    /// Returns DDL on a client's own table. It changes no column that a text reads.
    fn change(&mut self, client: usize) -> Vec<u8> {
        let list = [
            "alter table {s}.t3 add column if not exists y int",
            "alter table {s}.t3 drop column if exists y",
            "create index if not exists t3i on {s}.t3 (id)",
            "drop index if exists {s}.t3i",
            "select {s}.ddl({n})",
        ];
        texts::fill(self.rng.pick::<&str>(&list), client, &mut self.rng)
    }

    /// Appends one segment that reads, or now and then several.
    fn reads(&mut self, msgs: &mut Vec<Msg>, client: usize, ledger: &Ledger, same: Option<usize>) {
        for _ in 0..1 + self.rng.weighted(&[90, 6, 4]) {
            let read = same.unwrap_or_else(|| self.rng.below(READS));
            self.read(msgs, client, ledger, read);
        }
    }

    fn read(&mut self, msgs: &mut Vec<Msg>, client: usize, ledger: &Ledger, read: usize) {
        let (text, kinds) = self.texts[read];
        let sql = texts::fill(text, client, &mut self.rng);
        match self.rng.weighted(&[50, 22, 4, 24]) {
            0 => self.named(msgs, ledger, read, sql),
            1 => {
                msgs.push(Msg::Parse(Vec::new(), sql, oids(read, kinds)));
                self.run(msgs, b"", kinds);
            }
            2 => {
                msgs.push(Msg::Parse(Vec::new(), sql, oids(read, kinds)));
                msgs.extend([Msg::DescribeStatement(Vec::new()), Msg::Sync]);
                self.run(msgs, b"", kinds);
            }
            _ => msgs.push(Msg::Query(self.with_literals(&sql, kinds))),
        }
    }

    /// Runs a statement under a name. Prepares the statement if the client does not have it, and
    /// now and then again.
    fn named(&mut self, msgs: &mut Vec<Msg>, ledger: &Ledger, read: usize, sql: Vec<u8>) {
        let (name, kinds) = (format!("r{read}"), self.texts[read].1);
        let name = name.as_bytes();
        let prepares = |msg: &Msg| matches!(msg, Msg::Parse(parsed, ..) if parsed == name);
        let known = ledger.stmts.get(name).is_some_and(|prepared| prepared.sql == sql);
        let known = known || msgs.iter().any(prepares);
        if !known || self.rng.chance(2) {
            if known || ledger.stmts.contains_key(name) {
                msgs.push(Msg::CloseStatement(name.to_vec()));
            }
            msgs.push(Msg::Parse(name.to_vec(), sql, oids(read, kinds)));
            if self.rng.chance(60) {
                msgs.push(Msg::DescribeStatement(name.to_vec()));
            }
            if self.rng.chance(50) {
                return msgs.push(Msg::Sync);
            }
        }
        self.run(msgs, name, kinds);
    }

    /// Appends Bind to Sync.
    fn run(&mut self, msgs: &mut Vec<Msg>, stmt: &[u8], kinds: &str) {
        let values = kinds.bytes().map(|kind| texts::value(kind, false, &mut self.rng)).collect();
        let mut bind = Bind::new(b"", stmt, values);
        bind.results = self.rng.pick(&[vec![], vec![], vec![0], vec![1], vec![1]]).clone();
        msgs.push(Msg::Bind(bind));
        if self.rng.chance(50) {
            msgs.push(Msg::DescribePortal(Vec::new()));
        }
        let limit = if self.rng.chance(4) { 2 } else { 0 };
        msgs.extend([Msg::Execute(Vec::new(), limit), Msg::Sync]);
    }

    /// Returns a text with literals in the place of its parameters.
    fn with_literals(&mut self, sql: &[u8], kinds: &str) -> Vec<u8> {
        let mut text = String::from_utf8_lossy(sql).into_owned();
        for (at, kind) in kinds.bytes().enumerate() {
            let number = self.rng.below(10);
            let literal = match (kind, self.rng.below(60)) {
                (_, 0) => "null".to_owned(),
                (b'i', 1) => "'zero'".to_owned(),
                (b'i', 2) => "77777777777".to_owned(),
                (b'i', _) => number.to_string(),
                (b'd', 1) => "'2024-02-30'".to_owned(),
                (b'd', _) => format!("'2024-03-0{}'", 1 + number % 9),
                (b'b', _) => format!("'\\x0{number}'"),
                (_, 1) => "'it''s'".to_owned(),
                (_, _) => format!("'v{number}'"),
            };
            text = text.replace(&format!("${}", at + 1), &literal);
        }
        text.into_bytes()
    }
}

/// Returns the parameter types that all clients give, so that they mean the same statement.
fn oids(read: usize, kinds: &str) -> Vec<u32> {
    if read.is_multiple_of(2) { Vec::new() } else { kinds.bytes().map(texts::oid).collect() }
}

#[cfg(test)]
mod tests {
    use super::{Reads, TEXTS};
    use crate::features::Features;
    use crate::ledger::Ledger;
    use crate::msg::Msg;

    fn reads(seed: u64) -> Vec<Msg> {
        let mut reads = Reads::new(seed, &Features::default());
        let mut msgs = Vec::new();
        (0..200).for_each(|_| reads.reads(&mut msgs, 1, &Ledger::default(), None));
        msgs
    }

    #[test]
    fn the_same_seed_gives_the_same_reads() {
        assert_eq!(reads(4), reads(4));
        assert_ne!(reads(4), reads(5));
    }

    #[test]
    fn reads_come_in_every_form() {
        let msgs = reads(1);
        for tag in b"PBDESQC" {
            assert!(msgs.iter().any(|msg| msg.tag() == *tag), "{:?}", char::from(*tag));
        }
    }

    #[test]
    fn every_parameter_has_a_kind() {
        for (text, kinds) in TEXTS {
            assert_eq!(text.matches('$').count(), kinds.len(), "{text}");
        }
    }

    #[test]
    fn a_query_string_has_literals_for_all_parameters() {
        let mut reads = Reads::new(3, &Features::default());
        let text = reads.with_literals(b"select $1, $2", "id");
        assert!(!text.contains(&b'$'));
    }
}
