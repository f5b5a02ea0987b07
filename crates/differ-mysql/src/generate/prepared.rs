//! Prepared statements of the protocol.

use super::source::{Draft, Generator, Mode, Statement};
use crate::capability::{DEPRECATE_EOF, PS_MULTI_RESULTS};
use crate::command::{Command, Execute, Value};
use crate::packet::string;
use refrain_differ::rng::Rng;

/// The most statements that a client has at a time, as a rule.
const STATEMENTS_MAX: usize = 12;

/// Texts of statements, which have a parameter for each question mark outside of quotes.
const TEXTS: &[&str] = &[
    "SELECT ? + 0, ?",
    "SELECT ?",
    "SELECT 1",
    "SELECT id, v, n FROM {c}t WHERE id > ? ORDER BY id LIMIT 3",
    "SELECT * FROM shr WHERE id = ?",
    "SELECT * FROM shr ORDER BY id",
    "SELECT id, v FROM shr WHERE id < ? ORDER BY id",
    "SELECT * FROM {c}d ORDER BY id",
    "SELECT * FROM {c}n",
    "INSERT INTO {c}t (v, n) VALUES (?, ?)",
    "INSERT INTO {c}m (v) VALUES (?)",
    "INSERT INTO {c}t (v, b) VALUES ('b', ?)",
    "UPDATE {c}t SET v = ? WHERE id = ?",
    "DELETE FROM {c}m WHERE id = ?",
    "CALL p_rows(?)",
    "CALL p_fail(?)",
    "CALL p_out(?, ?, ?)",
    "CALL p_begin()",
    "SET SESSION group_concat_max_len = ?",
    "SET time_zone = '+05:00'",
    "SET @@time_zone = '+06:00', @@sql_mode = ''",
    "SET @@group_concat_max_len = ?",
    "SET NAMES latin1 COLLATE latin1_german1_ci",
    "DO ?",
    "SELECT 'a' || 'b', \"x\", ?",
    "SELECT @@sql_mode, @@time_zone, ?",
    "SELECT /*! ? + */ 1",
    "SELECT LENGTH(?), COLLATION(?), ?",
    "SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SHOW COLUMNS FROM {c}d",
    "SELECT f_plain(?)",
    "CREATE TABLE IF NOT EXISTS {c}n (id INT, v VARCHAR(5))",
    "DROP TABLE IF EXISTS {c}n",
    "SHOW WARNINGS",
    "SELECT ROW_COUNT()",
    "SELECT LAST_INSERT_ID()",
    "SELEC",
    "SELECT * FROM nowhere WHERE a = ?",
    "SELECT 1; SELECT 2",
    "",
    "SELECT ? FROM {c}t WHERE id = ? FOR UPDATE",
];

/// Types of parameters: numbers, texts, times, and one that there is not.
const KINDS: &[u16] =
    &[1, 2, 3, 8, 0x8008, 0x8001, 4, 5, 253, 254, 252, 246, 10, 12, 7, 11, 6, 15, 250];

impl Generator {
    /// Appends commands about a prepared statement.
    pub(crate) fn prepared(&mut self, draft: &mut Draft<'_>) {
        let count = self.models[draft.at].statements.len();
        let weights = match count {
            0 => [100, 0, 0, 0, 0],
            _ if count < STATEMENTS_MAX => [22, 62, 6, 5, 5],
            _ => [2, 60, 6, 5, 27],
        };
        match self.rng.weighted(&weights) {
            0 => self.prepare(draft),
            1 => {
                self.execute(draft, 0);
            }
            2 => self.by_cursor(draft),
            3 => {
                let handle = self.pick(draft).handle;
                draft.commands.push(Command::Reset(handle));
            }
            _ => {
                let at = self.rng.below(count);
                let statements = &mut self.models[draft.at].statements;
                // Its number is used again now and then, though it is gone.
                let handle = match self.rng.chance(95) {
                    true => statements.remove(at).handle,
                    false => statements[at].handle,
                };
                draft.commands.push(Command::Close(handle));
            }
        }
    }

    fn prepare(&mut self, draft: &mut Draft<'_>) {
        let template = *self.rng.pick(TEXTS);
        let mut text = self.fill(draft.at, template);
        // MySQL's reply to that has an OK packet too many then.
        let agreed = draft.client.agreed();
        let fits = agreed.has(PS_MULTI_RESULTS) && (agreed.has(DEPRECATE_EOF) || self.is_mariadb);
        if text.contains("p_out") && !fits {
            text = "SELECT ?, ?, ?".to_owned();
        }
        let handle = self.next_handle;
        self.next_handle += 1;
        let parameters = text.matches('?').count();
        // MySQL 8.0.15 ends where it reads a value by what a procedure has given back.
        let is_typed = text.contains("p_out");
        let (has_had_cursor, kinds) = (false, Vec::new());
        let statement = Statement { handle, parameters, is_typed, has_had_cursor, kinds };
        self.models[draft.at].statements.push(statement);
        draft.commands.push(Command::Prepare(handle, text));
    }

    fn pick(&mut self, draft: &Draft<'_>) -> Statement {
        let statements = &self.models[draft.at].statements;
        statements[self.rng.below(statements.len())].clone()
    }

    /// Appends an execution of a statement, with values of it ahead now and then.
    fn execute(&mut self, draft: &mut Draft<'_>, cursor: u8) -> u32 {
        let statement = self.pick(draft);
        let handle = statement.handle;
        // A statement that has had a cursor says OK in place of rows in MySQL 9.7 if it has none,
        // and the test would wait for them.
        let needs_cursor = self.is_mysql_9 && statement.has_had_cursor;
        let cursor = if needs_cursor { cursor | 1 } else { cursor };
        let known = statement.kinds.len() == statement.parameters;
        // Without types that it has got before, the server refuses it.
        let has_types = statement.is_typed || !known || self.rng.chance(50);
        // In MySQL 9.7 the types of a statement's first execution count for those behind it as
        // well, and on another server the first execution is another one.
        let has_run = self.is_mysql_9 && statement.kinds.len() == statement.parameters;
        let keeps_kinds = !has_types || known && (has_run || self.rng.chance(60));
        let kinds: Vec<u16> = match keeps_kinds && known {
            true => statement.kinds.clone(),
            false => (0..statement.parameters).map(|_| *self.rng.pick(KINDS)).collect(),
        };
        let mut values: Vec<_> = kinds.iter().map(|kind| value(&mut self.rng, *kind)).collect();
        let is_ahead = self.features.has("cursors") && self.rng.chance(6);
        let at = self.rng.below(values.len());
        let is_ahead = is_ahead && values.get(at).is_some_and(|value| self.takes_parts(value.kind));
        // MariaDB tells an address where the parameter had another type before.
        let is_ahead = is_ahead && statement.kinds.get(at).is_none_or(|kind| *kind == kinds[at]);
        if is_ahead {
            self.ahead(draft, handle, (at, &mut values[at]));
        }
        // MySQL keeps parts of values behind an execution that lacks its types or its end, and
        // MariaDB and the proxy do not.
        let keeps_types = statement.is_typed || is_ahead;
        let has_types = has_types && (keeps_types || !self.rng.chance(2));
        let is_cut = self.rng.chance(1) && !keeps_types;
        let cut = if is_cut { 1 + self.rng.below(9) } else { 0 };
        let execute = Execute { handle, cursor, has_types, values, cut };
        draft.commands.push(Command::Execute(execute));
        if is_ahead && draft.mode == Mode::Free {
            draft.commands.push(Command::Close(handle));
            self.models[draft.at].statements.retain(|other| other.handle != handle);
        }
        let mut statements = self.models[draft.at].statements.iter_mut();
        if let Some(known) = statements.find(|other| other.handle == handle) {
            // A server may not have read those of an execution that is cut short.
            if cut == 0 {
                known.kinds = kinds;
            }
            known.has_had_cursor |= cursor != 0;
        }
        handle
    }

    /// Whether a value of a type may be sent ahead. That gives a parameter of the type NULL another
    /// one. MySQL refuses other types than those of strings, but takes them from an execution that
    /// it has refused.
    fn takes_parts(&self, kind: u16) -> bool {
        matches!(kind, 15 | 249..=254) || self.is_mariadb && kind != 6
    }

    /// Sends a value ahead, in parts.
    fn ahead(&mut self, draft: &mut Draft<'_>, handle: u32, (at, value): (usize, &mut Value)) {
        value.is_ahead = true;
        let parameter = u16::try_from(at).unwrap_or(0);
        for _ in 0..1 + self.rng.below(3) {
            let large = self.features.has("large") && self.rng.chance(5);
            let length = if large { 70_000 } else { self.rng.below(40) };
            let data = vec![b'l'; length];
            draft.commands.push(Command::LongData(handle, parameter, data));
        }
        if self.rng.chance(5) {
            draft.commands.push(Command::LongData(handle, 77, b"no such parameter".to_vec()));
        }
    }

    /// Appends an execution with a cursor, and what follows it.
    fn by_cursor(&mut self, draft: &mut Draft<'_>) {
        if !self.features.has("cursors") {
            self.execute(draft, 0);
            return;
        }
        let cursor = *self.rng.pick(&[1, 1, 1, 2, 9]);
        let handle = self.execute(draft, cursor);
        for _ in 0..self.rng.below(3) {
            let rows = *self.rng.pick(&[0, 1, 2, 3, 100]);
            draft.commands.push(Command::Fetch(handle, rows));
        }
        if draft.mode == Mode::Free {
            draft.commands.push(Command::Close(handle));
            self.models[draft.at].statements.retain(|other| other.handle != handle);
        }
    }
}

/// Returns a value of a type.
fn value(rng: &mut Rng, kind: u16) -> Value {
    let number = rng.next_u64().to_le_bytes();
    let bytes = match kind & 0xFF {
        _ if rng.chance(12) => None,
        6 => None,
        1 => Some(number[..1].to_vec()),
        2 => Some(number[..2].to_vec()),
        3 => Some(u32::to_le_bytes(u32::from(number[0] % 8)).to_vec()),
        8 if rng.chance(50) => Some(u64::to_le_bytes(u64::from(number[0] % 8)).to_vec()),
        8 => Some(number.to_vec()),
        4 => Some((f32::from(number[0]) / 4.0).to_le_bytes().to_vec()),
        5 => Some((f64::from(number[0]) / 8.0).to_le_bytes().to_vec()),
        7 | 10 | 12 => Some(date(rng)),
        11 => Some(vec![8, 0, 1, 0, 0, 0, 10, 20, 30]),
        246 => Some(string(b"12.345")),
        _ => {
            let large = rng.chance(2).then(|| vec![b'v'; 70_000]);
            let word: &[u8] = rng.pick::<&[u8]>(&[b"one", b"2", b"", b"caf\xc3\xa9", b"a'b\\c"]);
            Some(string(&large.unwrap_or_else(|| word.to_vec())))
        }
    };
    Value { kind, bytes, is_ahead: false }
}

/// Returns a date, with or without a time.
fn date(rng: &mut Rng) -> Vec<u8> {
    let whole = [11, 0xE8, 7, 2, 29, 11, 12, 13, 64, 66, 15, 0];
    let length = *rng.pick(&[0, 4, 7, 11]);
    let mut bytes = whole[..=usize::from(length)].to_vec();
    bytes[0] = length;
    bytes
}
