//! Segments of the simple protocol: Query messages.

use super::{Draft, Generator, LONG_NAME, Mode, NAMES, copy, long, texts};
use crate::msg::Msg;

impl Generator {
    /// Appends a segment that is one Query, or one Query with COPY data.
    pub(super) fn simple(&mut self, draft: &mut Draft<'_>) {
        let on = |name: &str, weight: usize| usize::from(self.features.has(name)) * weight;
        let weights = [
            40,
            34,
            on("deallocate", 5),
            on("sql-execute", 6),
            on("copy", 6),
            6,
            on("portals", 5),
            on("large", 1),
            on("namespace", 6),
            on("long-texts", 4),
        ];
        let sql = match self.rng.weighted(&weights) {
            0 => self.plain_text(draft.client),
            1 => match self.command(draft) {
                Some(sql) => sql,
                None => self.plain_text(draft.client),
            },
            2 => self.deallocate(draft),
            3 => self.sql_execute(draft),
            4 => return copy::copy_simple(&mut self.rng, draft),
            5 => self.several(draft),
            6 => self.cursor(draft),
            7 => self.large().into_bytes(),
            8 => self.clashing(draft),
            _ => {
                let own = self.command(draft);
                long::long(&mut self.rng, own, draft)
            }
        };
        draft.msgs.push(Msg::Query(sql));
    }

    /// Returns DEALLOCATE of a statement that Parse prepared.
    pub(super) fn deallocate(&mut self, draft: &Draft<'_>) -> Vec<u8> {
        let name = match self.known(draft) {
            Some((name, _)) if self.rng.chance(80) && !name.is_empty() => name,
            _ => self.rng.pick(&NAMES).as_bytes().to_vec(),
        };
        match self.rng.below(6) {
            0 => b"deallocate all".to_vec(),
            1 => b"DEALLOCATE PREPARE ALL;".to_vec(),
            2 => [b"deallocate prepare ", quoted(&name).as_bytes()].concat(),
            _ => [b"deallocate ", quoted(&name).as_bytes()].concat(),
        }
    }

    /// Returns EXECUTE of a statement that Parse prepared, and sometimes EXPLAIN EXECUTE if the
    /// statement has one possible plan.
    pub(super) fn sql_execute(&mut self, draft: &Draft<'_>) -> Vec<u8> {
        let Some((call, sql)) = self.call(draft) else {
            let plain = self.rng.chance(80);
            return if plain {
                self.plain_text(draft.client)
            } else {
                b"execute nosuch (1)".to_vec()
            };
        };
        let explain = sql.starts_with(b"select $1") || sql.starts_with(b"select 1");
        let front = if explain && self.rng.chance(40) { "explain (costs off) " } else { "" };
        format!("{front}execute {call}").into_bytes()
    }

    /// Returns CREATE TABLE AS EXECUTE of a statement that Parse prepared.
    pub(super) fn made_by_execute(&mut self, draft: &Draft<'_>) -> Vec<u8> {
        let call = self.call(draft).map_or_else(|| "nosuch".to_owned(), |(call, _)| call);
        let front = texts::fill("create table {s}.made as execute ", draft.client, &mut self.rng);
        [front, call.into_bytes()].concat()
    }

    /// Returns PREPARE, mostly under a name that Parse has used.
    pub(super) fn sql_prepare(&mut self, draft: &Draft<'_>) -> Vec<u8> {
        let name = match self.known(draft) {
            Some((name, _)) if !name.is_empty() && self.rng.chance(70) => name,
            _ => self.name(),
        };
        format!("prepare {} as select 1", quoted(&name)).into_bytes()
    }

    /// Returns the name and arguments of EXECUTE for a statement that should exist, and its text.
    fn call(&mut self, draft: &Draft<'_>) -> Option<(String, Vec<u8>)> {
        let (name, sql) = self.known(draft)?;
        // An error of the Parse that the proxy puts in front comes without the notice that a long
        // name is truncated.
        let sure = draft.msgs.is_empty() && draft.ledger.status() == b'I';
        let fit = name.len() <= LONG_NAME.len() || sure && sql.starts_with(b"select $1");
        if name.is_empty() || !fit || !self.may_execute(&sql) {
            return None;
        }
        let kinds = self.kinds.get(&sql).copied().unwrap_or("");
        let args: Vec<_> = kinds.bytes().map(|kind| self.literal(kind)).collect();
        let args = if args.is_empty() { String::new() } else { format!(" ({})", args.join(", ")) };
        Some((format!("{}{args}", quoted(&name)), sql))
    }

    /// True if the generator may execute this text. PostgreSQL itself ends the session on EXECUTE
    /// of a SAVEPOINT that Parse prepared (XX000 "DefineSavepoint: unexpected state STARTED"), and
    /// PostgreSQL 15 crashes on EXECUTE of a statement that executes itself, so transaction control
    /// and EXECUTE are left out.
    fn may_execute(&self, sql: &[u8]) -> bool {
        let words = ["select", "insert", "update", "delete", "values", "show", "set", "reset"];
        self.features.has("execute-any")
            || words.iter().any(|word| sql.starts_with(word.as_bytes()))
    }

    fn literal(&mut self, kind: u8) -> String {
        match kind {
            b'i' => self.rng.below(10).to_string(),
            b't' => format!("'v{}'", self.rng.below(10)),
            b'd' => "'2024-03-04'".to_owned(),
            _ => "'\\x01'".to_owned(),
        }
    }

    /// Returns several commands in one text.
    fn several(&mut self, draft: &Draft<'_>) -> Vec<u8> {
        let mut commands = Vec::new();
        for _ in 0..2 + self.rng.below(3) {
            let command = if self.rng.chance(25) { self.command(draft) } else { None };
            commands.push(match command {
                Some(sql) => sql,
                None => self.plain_text(draft.client),
            });
        }
        commands.join(&b"; "[..])
    }

    fn cursor(&mut self, draft: &Draft<'_>) -> Vec<u8> {
        let list = [
            "declare c cursor for select id, t from shr.a order by id",
            "begin; declare c cursor for select generate_series(1, 9)",
            "fetch 2 from c",
            "fetch backward 1 from c",
            "move 1 in c",
            "close c",
            "fetch 1 from p0",
        ];
        let text = *self.rng.pick(&list);
        let text = if draft.mode == Mode::Closed { "fetch 2 from c" } else { text };
        texts::fill(text, draft.client, &mut self.rng)
    }

    /// Returns a query with tens of kilobytes of result, in few rows or in many.
    pub(super) fn large(&mut self) -> String {
        let size = self.rng.below(60_000);
        match self.rng.below(3) {
            0 => format!("select repeat('x', {size}), 1"),
            1 => format!("select g, repeat('r', 20) from generate_series(1, {}) g", size / 40),
            _ => format!("select '{}'", "l".repeat(size)),
        }
    }

    /// Returns a text whose SQL commands name statements that Parse prepared, in a place where the
    /// proxy cannot replace the name.
    fn clashing(&mut self, draft: &Draft<'_>) -> Vec<u8> {
        if draft.mode != Mode::Pinning {
            return self.plain_text(draft.client);
        }
        if self.rng.chance(25) {
            return self.sql_prepare(draft);
        }
        let mut commands = vec![self.plain_text(draft.client)];
        for _ in 0..1 + self.rng.below(3) {
            let command = match self.rng.weighted(&[50, 20, 10, 20]) {
                0 => self.sql_execute(draft),
                1 => self.deallocate(draft),
                2 => self.sql_prepare(draft),
                _ => self.plain_text(draft.client),
            };
            let at = self.rng.below(commands.len() + 1);
            commands.insert(at, command);
        }
        commands.join(&b"; "[..])
    }
}

/// Returns a name as an SQL identifier, quoted if it must be.
fn quoted(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let bare = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if bare { text.into_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}
