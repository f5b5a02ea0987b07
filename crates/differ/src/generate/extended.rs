//! Segments of the extended protocol: units of a few messages each, and an end.

use super::{Draft, Generator, Mode, copy, long, texts};
use crate::msg::{Bind, Msg, Param};

const PORTALS: [&str; 3] = ["p0", "p1", "s0"];

impl Generator {
    /// Appends a segment; the last of a step may lack its Sync.
    pub(super) fn extended(&mut self, draft: &mut Draft<'_>, last: bool) {
        if self.features.has("copy") && self.rng.chance(5) {
            return copy::copy_extended(&mut self.rng, draft);
        }
        for _ in 0..self.rng.weighted(&[4, 50, 25, 12, 9]) {
            self.unit(draft);
            if self.rng.chance(6) {
                draft.msgs.push(Msg::Flush);
            }
        }
        if draft.mode == Mode::Closed {
            draft.msgs.push(Msg::Sync);
            return;
        }
        match self.rng.weighted(&[84, 5, 4, 3, if last { 4 } else { 0 }]) {
            0 => draft.msgs.push(Msg::Sync),
            1 => draft.msgs.push(Msg::Flush),
            2 => self.simple(draft),
            3 => draft.msgs.extend([Msg::Sync, Msg::Sync]),
            _ => {}
        }
    }

    fn unit(&mut self, draft: &mut Draft<'_>) {
        let on = |name: &str, weight: usize| usize::from(self.features.has(name)) * weight;
        let weights = [
            22,
            16,
            4,
            26,
            3,
            7,
            7,
            on("portals", 8),
            on("portals", 5),
            12,
            4,
            on("deallocate", 2),
            on("large", 1),
            on("malformed", 5),
            3,
            if draft.mode == Mode::Pinning { on("sql-execute", 6) } else { 0 },
            on("long-texts", 1),
        ];
        match self.rng.weighted(&weights) {
            0 => self.unnamed(draft),
            1 => self.prepare(draft),
            2 => self.replace(draft),
            3 => self.use_known(draft),
            4 => self.use_missing(draft),
            5 => self.describe(draft),
            6 => self.close(draft),
            7 => self.open_portal(draft),
            8 => self.use_portal(draft),
            9 => self.utility(draft),
            10 => self.rebind_unnamed(draft),
            11 => {
                let sql = self.deallocate(draft);
                self.run_text(draft, sql);
            }
            12 => {
                let sql = self.large().into_bytes();
                self.run_text(draft, sql);
            }
            13 => self.malformed(draft),
            14 => draft.msgs.push(Msg::CopyDone),
            15 => self.named_by_sql(draft),
            _ => {
                let own = self.command(draft);
                let sql = long::long(&mut self.rng, own, draft);
                self.run_text(draft, sql);
            }
        }
    }

    /// Appends EXECUTE or PREPARE as extended messages. PostgreSQL looks up the name at each of
    /// them.
    fn named_by_sql(&mut self, draft: &mut Draft<'_>) {
        let sql = match self.rng.weighted(&[55, 20, 5, 20]) {
            0 => self.sql_execute(draft),
            1 => self.made_by_execute(draft),
            2 => texts::fill("drop table if exists {s}.made", draft.client, &mut self.rng),
            _ => self.sql_prepare(draft),
        };
        let name = if self.rng.chance(50) { self.new_name(draft) } else { Vec::new() };
        self.parse(draft, &name, sql.clone());
        if self.rng.chance(50) {
            draft.msgs.push(Msg::DescribeStatement(name.clone()));
        }
        if self.rng.chance(70) {
            self.bind(draft, "", &name, &sql);
            self.execute(draft, "");
        }
    }

    pub(super) fn parse(&mut self, draft: &mut Draft<'_>, name: &[u8], sql: Vec<u8>) {
        let kinds = self.kinds.get(&sql).copied().unwrap_or("");
        let oids = match self.rng.below(40) {
            0..20 => Vec::new(),
            20..26 => vec![0; kinds.len()],
            26 => vec![25],
            27 => vec![20],
            _ => kinds.bytes().map(texts::oid).collect(),
        };
        if self.needs_settled_env(draft, &sql) {
            return;
        }
        draft.parsed.insert(name.to_vec(), sql.clone());
        draft.msgs.push(Msg::Parse(name.to_vec(), sql, oids));
    }

    /// True if a text depends on settings that a message in flight may change. Without `env-pipe`
    /// the generator does not parse such a text.
    fn needs_settled_env(&self, draft: &Draft<'_>, sql: &[u8]) -> bool {
        let text = |msg: &Msg| match msg {
            Msg::Query(sql) | Msg::Parse(_, sql, _) => crate::guard::changes_settings(sql),
            Msg::Bind(_) => true,
            _ => false,
        };
        !self.features.has("env-pipe")
            && crate::guard::is_marked(sql)
            && (draft.ledger.open() || draft.msgs.iter().any(text))
    }

    pub(super) fn bind(&mut self, draft: &mut Draft<'_>, portal: &str, stmt: &[u8], sql: &[u8]) {
        let large = self.features.has("large");
        let kinds = self.kinds.get(sql).copied().unwrap_or("");
        let mut params: Vec<Param> =
            kinds.bytes().map(|kind| texts::value(kind, large, &mut self.rng)).collect();
        match self.rng.below(40) {
            0 => params.push(Param { binary: false, value: Some(b"7".to_vec()) }),
            1 => params.truncate(1),
            _ => {}
        }
        let mut bind = Bind::new(portal.as_bytes(), stmt, params);
        bind.results = match self.rng.below(20) {
            0..13 => Vec::new(),
            13..15 => vec![0],
            15..19 => vec![1],
            _ => vec![0, 1],
        };
        if self.rng.chance(1) {
            bind.formats = vec![0; bind.values.len() + 2];
        }
        draft.msgs.push(Msg::Bind(bind));
    }

    fn execute(&mut self, draft: &mut Draft<'_>, portal: &str) {
        if self.rng.chance(50) {
            draft.msgs.push(Msg::DescribePortal(portal.as_bytes().to_vec()));
        }
        let limit = u32::try_from(self.rng.weighted(&[85, 5, 5, 5])).unwrap_or(0);
        draft.msgs.push(Msg::Execute(portal.as_bytes().to_vec(), limit));
    }

    pub(super) fn run_text(&mut self, draft: &mut Draft<'_>, sql: Vec<u8>) {
        self.parse(draft, b"", sql.clone());
        self.bind(draft, "", b"", &sql);
        self.execute(draft, "");
    }

    fn unnamed(&mut self, draft: &mut Draft<'_>) {
        let (sql, _) = self.text(draft.client);
        self.run_text(draft, sql);
    }

    fn prepare(&mut self, draft: &mut Draft<'_>) {
        let name = self.new_name(draft);
        let (sql, _) = self.text(draft.client);
        self.parse(draft, &name, sql.clone());
        if self.rng.chance(50) {
            draft.msgs.push(Msg::DescribeStatement(name.clone()));
        }
        if self.rng.chance(60) {
            self.bind(draft, "", &name, &sql);
            self.execute(draft, "");
        }
    }

    fn replace(&mut self, draft: &mut Draft<'_>) {
        let name = self.name();
        draft.msgs.push(Msg::CloseStatement(name.clone()));
        let (sql, _) = self.text(draft.client);
        self.parse(draft, &name, sql.clone());
        self.bind(draft, "", &name, &sql);
        if self.rng.chance(20) {
            draft.msgs.push(Msg::CloseStatement(name));
        }
        self.execute(draft, "");
    }

    fn use_known(&mut self, draft: &mut Draft<'_>) {
        match self.known(draft) {
            Some((name, sql)) => {
                self.bind(draft, "", &name, &sql);
                self.execute(draft, "");
            }
            None => self.prepare(draft),
        }
    }

    fn use_missing(&mut self, draft: &mut Draft<'_>) {
        let name = *self.rng.pick(&["nosuch", "REFRAIN_1", "PGBOUNCER_1", "s9", "q0"]);
        if self.rng.chance(30) {
            draft.msgs.push(Msg::DescribeStatement(name.into()));
        } else {
            self.bind(draft, "", name.as_bytes(), b"");
            self.execute(draft, "");
        }
    }

    fn describe(&mut self, draft: &mut Draft<'_>) {
        let name = match self.known(draft) {
            Some((name, _)) => name,
            None => self.name(),
        };
        draft.msgs.push(Msg::DescribeStatement(name));
    }

    fn close(&mut self, draft: &mut Draft<'_>) {
        let name = match self.known(draft) {
            Some((name, _)) if self.rng.chance(70) => name,
            _ => self.name(),
        };
        draft.msgs.push(Msg::CloseStatement(name));
    }

    fn open_portal(&mut self, draft: &mut Draft<'_>) {
        let portal = *self.rng.pick(&PORTALS);
        let Some((name, sql)) = self.known(draft) else {
            return self.prepare(draft);
        };
        self.bind(draft, portal, &name, &sql);
        for _ in 0..self.rng.below(3) {
            let limit = u32::try_from(self.rng.below(3)).unwrap_or(0);
            draft.msgs.push(Msg::Execute(portal.into(), limit));
        }
    }

    fn use_portal(&mut self, draft: &mut Draft<'_>) {
        if draft.ledger.status() != b'T' && self.rng.chance(80) {
            return self.open_portal(draft);
        }
        let portal = if self.rng.chance(20) { "" } else { *self.rng.pick(&PORTALS) };
        match self.rng.below(4) {
            0 => draft.msgs.push(Msg::ClosePortal(portal.into())),
            1 => draft.msgs.push(Msg::DescribePortal(portal.into())),
            _ => draft.msgs.push(Msg::Execute(portal.into(), 2)),
        }
    }

    /// Appends SET, BEGIN, DDL and the like as extended messages, often under a name.
    fn utility(&mut self, draft: &mut Draft<'_>) {
        let Some(sql) = self.command(draft) else {
            return self.unnamed(draft);
        };
        if self.rng.chance(30) {
            let name = self.new_name(draft);
            self.parse(draft, &name, sql.clone());
            self.bind(draft, "", &name, &sql);
            self.execute(draft, "");
        } else {
            self.run_text(draft, sql);
        }
    }

    /// Binds and executes the unnamed statement of an earlier segment, or one that does not exist.
    fn rebind_unnamed(&mut self, draft: &mut Draft<'_>) {
        let sql = match (draft.parsed.get(&b""[..]), draft.ledger.stmts.get(&b""[..])) {
            (Some(sql), _) => sql.clone(),
            (None, Some(prepared)) => prepared.sql.clone(),
            (None, None) if self.rng.chance(80) => return self.unnamed(draft),
            (None, None) => Vec::new(),
        };
        let closed = draft.mode == Mode::Closed;
        if sql.starts_with(b"copy ") || (closed && super::opens_transaction(&sql)) {
            return;
        }
        self.bind(draft, "", b"", &sql);
        self.execute(draft, "");
    }

    fn malformed(&mut self, draft: &mut Draft<'_>) {
        let (tag, body): (u8, &[u8]) = match self.rng.below(16) {
            7 => (b'D', b""),
            8 => (b'D', b"Ss0"),
            9 => (b'D', b"Ss0\0tail"),
            10 => (b'C', b"Xs0\0"),
            11 => (b'E', b"p0\0\0"),
            12 => (b'P', b"s0"),
            13 => (b'P', b"s0\0select 1\0\0\0tail"),
            14 => (b'B', b"\0s0"),
            15 => (b'B', b"\0s0\0\0\0\0\x01\0\0\0\xff"),
            0 => (b'D', b"Xs0\0"),
            1 => (b'C', b"\0s0\0"),
            2 => (b'E', b"p0"),
            3 => (b'B', b"\0s0\0\0\x02\0\0"),
            4 => (b'P', b"s0\0select 1\0\0\x05"),
            5 => (b'B', b"\0s0\0\0\0\0\0\0\0tail"),
            _ => (b'S', b"tail"),
        };
        draft.msgs.push(Msg::Raw(tag, body.to_vec()));
    }
}
