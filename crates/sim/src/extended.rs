//! The messages of the extended protocol, and function calls.

use std::rc::Rc;

use refrain_pg_wire::front::{Bind, Parse, Target, execute_portal};
use refrain_pg_wire::tag::back;
use refrain_pg_wire::write;

use crate::fault::{Fault, syntax_error};
use crate::lang::{self, Statement};
use crate::session::{Portal, Prepared, Session, Transaction};

impl Session {
    pub(crate) fn parse(&mut self, body: &[u8]) -> Result<(), Fault> {
        let parse = Parse::read(body).map_err(|_| Fault::protocol("invalid message format"))?;
        let name = String::from_utf8_lossy(parse.name).into_owned();
        let text = String::from_utf8_lossy(parse.text()).into_owned();
        if name.is_empty() {
            self.statements.remove("");
        }
        self.begin_implicit();
        let mut statements = lang::parse(&text);
        if let Some(Statement::Wrong(word)) = statements.first() {
            return Err(syntax_error(word));
        }
        if statements.len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(Fault::new("42601", message));
        }
        let statement = statements.pop();
        if let Some(statement) = &statement {
            self.admit(statement)?;
            self.analyse(statement)?;
        } else if matches!(self.transaction, Transaction::Failed) {
            return Err(Fault::aborted());
        }
        if self.statements.contains_key(&name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(Fault::new("42P05", message));
        }
        let prepared = self.prepare(statement, false);
        self.statements.insert(name, Rc::new(prepared));
        write::bare(&mut self.out, back::PARSE_COMPLETE);
        Ok(())
    }

    fn find(&self, name: &[u8]) -> Result<Rc<Prepared>, Fault> {
        let name = String::from_utf8_lossy(name);
        let message = if name.is_empty() {
            "unnamed prepared statement does not exist".to_owned()
        } else {
            format!("prepared statement \"{name}\" does not exist")
        };
        let found = self.statements.get(&*name).cloned();
        found.ok_or_else(|| Fault::new("26000", message))
    }

    pub(crate) fn bind(&mut self, body: &[u8]) -> Result<(), Fault> {
        let bad = || Fault::protocol("invalid message format");
        let bind = Bind::read(body, true).ok().flatten().ok_or_else(bad)?;
        self.begin_implicit();
        let arguments = arguments(&body[bind.names_bytes()..]).ok_or_else(bad)?;
        let prepared = self.find(bind.statement)?;
        if arguments.len() != prepared.params {
            let message = format!(
                "bind message supplies {} parameters, but prepared statement \"{}\" requires {}",
                arguments.len(),
                String::from_utf8_lossy(bind.statement),
                prepared.params
            );
            return Err(Fault::new("08P01", message));
        }
        match &prepared.statement {
            Some(statement) => {
                self.admit(statement)?;
                self.analyse(statement)?;
            }
            None if matches!(self.transaction, Transaction::Failed) => return Err(Fault::aborted()),
            None => {}
        }
        let name = String::from_utf8_lossy(bind.portal).into_owned();
        if !name.is_empty() && self.portals.contains_key(&name) {
            return Err(Fault::new("42P03", format!("cursor \"{name}\" already exists")));
        }
        self.portals.insert(name, Portal { prepared, arguments, rows: None });
        write::bare(&mut self.out, back::BIND_COMPLETE);
        Ok(())
    }

    pub(crate) fn describe(&mut self, body: &[u8]) -> Result<(), Fault> {
        self.begin_implicit();
        let target = Target::read(body).map_err(|_| Fault::protocol("invalid message format"))?;
        let prepared = match target {
            Target::Statement(name) => self.find(name)?,
            Target::Portal(name) => self.portal(name)?.prepared.clone(),
            Target::Unknown => return Err(Fault::protocol("invalid DESCRIBE message subtype")),
        };
        let rows = prepared.statement.as_ref().is_some_and(Statement::has_rows);
        if rows && matches!(self.transaction, Transaction::Failed) {
            return Err(Fault::aborted());
        }
        if matches!(target, Target::Statement(_)) {
            write::message(&mut self.out, back::PARAMETER_DESCRIPTION, |out| {
                out.extend_from_slice(&u16::try_from(prepared.params).unwrap_or(0).to_be_bytes());
                (0..prepared.params).for_each(|_| out.extend_from_slice(&25u32.to_be_bytes()));
            });
        }
        self.describe_rows(&prepared);
        Ok(())
    }

    pub(crate) fn execute(&mut self, body: &[u8]) -> Result<(), Fault> {
        self.begin_implicit();
        let bad = |_| Fault::protocol("invalid message format");
        let name = execute_portal(body).map_err(bad)?;
        let limit = body.last_chunk::<4>().map_or(0, |limit| u32::from_be_bytes(*limit));
        self.run_portal(name, limit as usize)?;
        self.piped = matches!(self.transaction, Transaction::Implicit(_));
        Ok(())
    }

    /// Returns the time that an Execute sleeps because of its parameters' values, in microseconds.
    pub(crate) fn sleeps_late(&self, body: &[u8]) -> u64 {
        let name = execute_portal(body).unwrap_or_default();
        let portal = self.portals.get(&*String::from_utf8_lossy(name));
        let bound = portal.and_then(|it| Some((it.prepared.statement.as_ref()?, &it.arguments)));
        bound.map_or(0, |(statement, values)| {
            statement.with(values).sleeps().saturating_sub(statement.sleeps())
        })
    }

    /// Returns the statement that an Execute runs, with the values of its parameters.
    pub(crate) fn bound(&self, body: &[u8]) -> Option<(&Statement, &[String])> {
        let name = execute_portal(body).ok().filter(|_| !self.skipping)?;
        let portal = self.portals.get(&*String::from_utf8_lossy(name))?;
        Some((portal.prepared.statement.as_ref()?, &portal.arguments))
    }

    /// Whether a lookup has run whose segment has not ended.
    pub(crate) fn has_looked_up(&self) -> bool {
        self.portals.values().any(|portal| {
            let looks_up = matches!(&portal.prepared.statement, Some(Statement::Users(..)));
            looks_up && portal.rows.is_some()
        })
    }

    /// Returns the lookup that is under way: the function, and the user.
    pub(crate) fn looks_up(&self) -> Option<(&str, &str)> {
        self.portals.values().find_map(|portal| match &portal.prepared.statement {
            Some(Statement::Users(function, _)) => {
                Some((function.as_str(), portal.arguments.first()?.as_str()))
            }
            _ => None,
        })
    }

    pub(crate) fn close(&mut self, body: &[u8]) -> Result<(), Fault> {
        match Target::read(body).map_err(|_| Fault::protocol("invalid message format"))? {
            Target::Statement(name) => {
                drop(self.statements.remove(&*String::from_utf8_lossy(name)))
            }
            Target::Portal(name) => drop(self.portals.remove(&*String::from_utf8_lossy(name))),
            Target::Unknown => return Err(Fault::protocol("invalid CLOSE message subtype")),
        }
        write::bare(&mut self.out, back::CLOSE_COMPLETE);
        Ok(())
    }

    /// Calls a function. Function zero does not exist; every other function returns its argument.
    pub(crate) fn function_call(&mut self, body: &[u8]) -> Result<(), Fault> {
        if matches!(self.transaction, Transaction::Failed) {
            return Err(Fault::aborted());
        }
        self.begin_implicit();
        if body.starts_with(&[0, 0, 0, 0]) {
            return Err(Fault::new("42883", "function with OID 0 does not exist"));
        }
        let argument = body.get(8..body.len().saturating_sub(2)).unwrap_or_default();
        write::message(&mut self.out, back::FUNCTION_CALL_RESPONSE, |out| {
            out.extend_from_slice(argument);
        });
        Ok(())
    }
}

/// Returns the parameters of a Bind, all as text.
pub(crate) fn arguments(rest: &[u8]) -> Option<Vec<String>> {
    let (formats, rest) = rest.split_first_chunk::<2>()?;
    let rest = rest.get(2 * usize::from(u16::from_be_bytes(*formats))..)?;
    let (count, mut rest) = rest.split_first_chunk::<2>()?;
    let mut arguments = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
        let (value, after) = after.split_at_checked(length)?;
        arguments.push(String::from_utf8_lossy(value).into_owned());
        rest = after;
    }
    Some(arguments)
}
