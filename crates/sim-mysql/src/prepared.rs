//! Prepared statements of the model server.

use std::collections::BTreeMap;

use crate::language::{Statement, parse};
use crate::reply::{Outcome, Reply};
use crate::session::{Lie, Session};
use crate::statement::Prepared;
use crate::wire::{com, flag, number_at, put_int, take_string};

/// The number of rows of a cursor.
const CURSOR_ROWS: usize = 5;

impl Session {
    /// Handles a command of prepared statements.
    pub fn statement(&mut self, command: u8, body: &[u8], reply: &mut Reply) {
        if command == com::PREPARE {
            return self.prepare(&String::from_utf8_lossy(body), reply);
        }
        let number = number_at(body, 0).unwrap_or(0);
        let Some(prepared) = self.statements.get_mut(&number) else {
            let is_silent = matches!(command, com::CLOSE | com::LONG_DATA);
            if !is_silent {
                self.fail(reply, 1243, "HY000", "Unknown prepared statement handler");
            }
            return;
        };
        match command {
            com::CLOSE => drop(self.statements.remove(&number)),
            com::LONG_DATA => {
                if let Some((&[low, high], data)) = body[4..].split_first_chunk::<2>() {
                    let parameter = u16::from_le_bytes([low, high]);
                    prepared.long.entry(parameter).or_default().extend_from_slice(data);
                }
            }
            com::STMT_RESET => {
                prepared.long.clear();
                prepared.cursor = None;
                self.ok(reply, Outcome::default());
            }
            com::FETCH => self.fetch(number, number_at(body, 4).unwrap_or(1), reply),
            _ => self.execute(number, &body[4..], reply),
        }
    }

    fn prepare(&mut self, text: &str, reply: &mut Reply) {
        self.attempts += 1;
        self.last_number += 1 + std::mem::take(&mut self.jump);
        let (_, statements) = parse(text);
        if statements.len() > 1 || statements[0] == Statement::Wrong {
            return self.fail(reply, 1064, "42000", &format!("cannot prepare {text}"));
        }
        // A text whose meaning depends on the schema means nothing without one.
        if statements[0] == Statement::State && self.schema.is_none() {
            return self.fail(reply, 1046, "3D000", "No database selected");
        }
        let parameters = text.matches('?').count();
        let columns = match statements[0] {
            Statement::State | Statement::Rows(..) => 1,
            _ => 0,
        };
        let lies = self.lie == Lie::ForetoldNumber;
        let told = if lies { self.attempts } else { self.last_number };
        let mut head = vec![0];
        head.extend_from_slice(&told.to_le_bytes());
        head.extend_from_slice(&[columns, 0, parameters as u8, 0, 0, 0, 0]);
        reply.put(head);
        let status = self.status();
        reply.definitions(&vec!["?"; parameters], status);
        reply.definitions(&vec!["c"; columns.into()], status);
        let environment = format!("{:?} {}", self.schema, self.variables.environment());
        let text = text.to_owned();
        let prepared = Prepared { text, parameters, environment, ..Prepared::default() };
        self.statements.insert(self.last_number, prepared);
    }

    fn execute(&mut self, number: u32, body: &[u8], reply: &mut Reply) {
        let Some(prepared) = self.statements.get_mut(&number) else { return };
        prepared.cursor = None;
        let long = std::mem::take(&mut prepared.long);
        let Some((flags, values)) = read(prepared, body, &long) else {
            return self.fail(reply, 1835, "HY000", "Malformed communication packet.");
        };
        let Prepared { text, types, environment, .. } = prepared.clone();
        let types = types.filter(|_| prepared.parameters > 0);
        let (tag, statements) = parse(&text);
        let statement = statements.into_iter().next().unwrap_or(Statement::Wrong);
        let shown = matches!(statement, Statement::State);
        let prefix = match shown {
            true => format!("{} under {environment} as {types:?}", values.join(" ")),
            false => values.join(" "),
        };
        reply.is_binary = true;
        if flags != 0 && matches!(statement, Statement::Rows(..)) {
            prepared.cursor = Some((format!("{tag}{prefix}"), 0, CURSOR_ROWS));
            self.warnings.clear();
            self.row_count = -1;
            reply.columns(&["r"], self.status() | flag::CURSOR_EXISTS);
            if reply.is_new() {
                // The definitions end with a packet of their own here.
                self.end_of_rows(reply, flag::CURSOR_EXISTS);
            }
            return;
        }
        self.run(&statement, (&tag, &prefix), 0, reply);
    }

    fn fetch(&mut self, number: u32, count: u32, reply: &mut Reply) {
        let cursor = self.statements.get_mut(&number).and_then(|prepared| prepared.cursor.as_mut());
        let Some((prefix, at, end)) = cursor else {
            return self.fail(reply, 1421, "HY000", "no cursor");
        };
        reply.is_binary = true;
        let until = (*at + count as usize).min(*end);
        for row in *at..until {
            reply.row(&[format!("{prefix} {row}").as_bytes()]);
        }
        *at = until;
        let is_over = until == *end;
        if is_over && let Some(prepared) = self.statements.get_mut(&number) {
            prepared.cursor = None;
        }
        let more = if is_over { flag::LAST_ROW_SENT } else { flag::CURSOR_EXISTS };
        self.end_of_rows(reply, more);
    }
}

/// Reads an execution: its flags, and the values in words. `None` if it is cut short or lacks
/// types: then those of the execution before stay.
fn read(
    prepared: &mut Prepared,
    body: &[u8],
    long: &BTreeMap<u16, Vec<u8>>,
) -> Option<(u8, Vec<String>)> {
    let flags = *body.first()?;
    let mut rest = body.get(5..)?;
    if prepared.parameters == 0 {
        return Some((flags, Vec::new()));
    }
    let (nulls, after) = rest.split_at_checked(prepared.parameters.div_ceil(8))?;
    let (&has_types, after) = after.split_first()?;
    rest = after;
    let mut types = prepared.types.clone();
    if has_types != 0 {
        let (own, after) = rest.split_at_checked(2 * prepared.parameters)?;
        types = Some(own.to_vec());
        rest = after;
    }
    let mut values = Vec::new();
    for at in 0..prepared.parameters {
        let is_null = nulls[at / 8] >> (at % 8) & 1 == 1;
        let value = match long.get(&(at as u16)) {
            Some(value) => value,
            None if is_null => &b"NULL"[..],
            None => {
                types.as_ref()?;
                take_string(&mut rest)?
            }
        };
        values.push(String::from_utf8_lossy(value).into_owned());
    }
    prepared.types = types;
    Some((flags, values))
}

/// Writes the body of an execution: of a statement with these values, and their types if they are
/// sent. A value that is not there has come ahead.
pub fn execution(
    number: u32,
    flags: u8,
    values: &[Option<Vec<u8>>],
    types: Option<&[u8]>,
) -> Vec<u8> {
    let mut body = number.to_le_bytes().to_vec();
    body.push(flags);
    body.extend_from_slice(&1u32.to_le_bytes());
    if values.is_empty() {
        return body;
    }
    body.resize(body.len() + values.len().div_ceil(8), 0);
    body.push(types.is_some().into());
    body.extend_from_slice(types.unwrap_or_default());
    for value in values.iter().flatten() {
        put_int(&mut body, value.len() as u64);
        body.extend_from_slice(value);
    }
    body
}
