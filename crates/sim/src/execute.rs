//! The execution of statements of the tiny language.

use std::rc::Rc;

use refrain_pg_wire::tag::back;
use refrain_pg_wire::write;

use crate::fault::Fault;
use crate::item::{Item, Left};
use crate::lang::Statement;
use crate::rows;
use crate::session::{Held, Prepared, Session, Transaction};
use crate::state::State;

type Row = Vec<String>;

/// The outcome of a statement.
enum Outcome {
    Rows(Vec<Row>),
    Tag(String),
    /// COPY data from the client follows.
    CopyIn,
    /// COPY data goes to the client.
    CopyOut(String),
}

/// The values with which a statement runs.
struct Given<'a> {
    arguments: &'a [String],
    frozen: &'a str,
}

impl Session {
    /// Checks what Parse and Bind check: that the statement's table exists.
    pub(crate) fn analyse(&self, statement: &Statement) -> Result<(), Fault> {
        let Statement::Select(_, Some(table)) = statement else { return Ok(()) };
        if self.state.temps.contains(table) || rows::is_table(table) {
            return Ok(());
        }
        Err(Fault::new("42P01", format!("relation \"{table}\" does not exist")))
    }

    /// Writes the columns of a statement, or NoData.
    pub(crate) fn describe_rows(&mut self, prepared: &Prepared) {
        match prepared.statement.as_ref().map(|statement| self.columns(statement)) {
            Some(columns) if columns > 0 => write_columns(&mut self.out, columns),
            _ => write::bare(&mut self.out, back::NO_DATA),
        }
    }

    fn columns(&self, statement: &Statement) -> usize {
        match statement {
            Statement::Select(items, _) => items.len(),
            Statement::Show(_)
            | Statement::Objections
            | Statement::Reads(_)
            | Statement::Restore(_) => 1,
            Statement::Probe(_) | Statement::Users(..) => 2,
            Statement::PrimaryPosition => 5,
            Statement::StandbyPosition => 4,
            Statement::Execute(name, _) => {
                let inner = self.statements.get(name).and_then(|p| p.statement.as_ref());
                inner.map_or(0, |inner| self.columns(inner))
            }
            Statement::Fetch(name) => {
                let held = self.holds.get(name);
                held.and_then(|held| held.rows.first()).map_or(1, Vec::len)
            }
            _ => 0,
        }
    }

    /// Runs a statement of a query string.
    pub(crate) fn run_simply(&mut self, statement: &Statement) -> Result<(), Fault> {
        self.analyse(statement)?;
        let frozen = self.frozen();
        let columns = self.columns(statement);
        // The columns of a SELECT are known before it runs, those of EXECUTE and FETCH are not.
        let early = matches!(statement, Statement::Select(..));
        if early {
            write_columns(&mut self.out, columns);
        }
        let outcome = self.run(statement, &Given { arguments: &[], frozen: &frozen })?;
        if let Outcome::Rows(rows) = &outcome
            && !early
        {
            write_columns(&mut self.out, columns.max(rows.first().map_or(0, Vec::len)));
        }
        self.answer(statement, outcome, false);
        Ok(())
    }

    /// Runs a portal for an Execute message.
    pub(crate) fn run_portal(&mut self, name: &[u8], limit: usize) -> Result<(), Fault> {
        let portal = self.portal(name)?;
        let prepared = portal.prepared.clone();
        let rows = portal.rows.take();
        let arguments = std::mem::take(&mut portal.arguments);
        let Some(statement) = &prepared.statement else {
            write::bare(&mut self.out, back::EMPTY_QUERY_RESPONSE);
            return Ok(());
        };
        self.admit(statement)?;
        let outcome = match rows {
            Some(rows) => Outcome::Rows(rows),
            None => {
                let given = Given { arguments: &arguments, frozen: &prepared.frozen };
                self.run(&statement.with(&arguments), &given)?
            }
        };
        match outcome {
            Outcome::Rows(mut rows) if limit > 0 && rows.len() >= limit => {
                let rest = rows.split_off(limit);
                rows.iter().for_each(|row| write_row(&mut self.out, row));
                write::bare(&mut self.out, back::PORTAL_SUSPENDED);
                if let Ok(portal) = self.portal(name) {
                    portal.rows = Some(rest);
                }
            }
            outcome => {
                self.answer(statement, outcome, true);
                if let Ok(portal) = self.portal(name) {
                    portal.rows = Some(Vec::new());
                }
            }
        }
        Ok(())
    }

    fn answer(&mut self, statement: &Statement, outcome: Outcome, extended: bool) {
        match outcome {
            Outcome::Rows(rows) => {
                rows.iter().for_each(|row| write_row(&mut self.out, row));
                let tag = match statement {
                    Statement::Show(_) => "SHOW".to_owned(),
                    Statement::Fetch(_) => format!("FETCH {}", rows.len()),
                    _ => format!("SELECT {}", rows.len()),
                };
                write::command_complete(&mut self.out, tag.as_bytes());
            }
            Outcome::Tag(tag) => write::command_complete(&mut self.out, tag.as_bytes()),
            Outcome::CopyIn => self.begin_copy(extended),
            Outcome::CopyOut(table) => {
                let header = [0, 0, 1, 0, 0];
                let response = back::COPY_OUT_RESPONSE;
                write::message(&mut self.out, response, |out| out.extend_from_slice(&header));
                for line in 0..3 {
                    let line = format!("{table} {line}\n");
                    write::message(&mut self.out, back::COPY_DATA, |out| {
                        out.extend_from_slice(line.as_bytes());
                    });
                }
                write::bare(&mut self.out, back::COPY_DONE);
                write::command_complete(&mut self.out, b"COPY 3");
            }
        }
    }

    fn run(&mut self, statement: &Statement, given: &Given<'_>) -> Result<Outcome, Fault> {
        self.check_stand(statement)?;
        match statement {
            Statement::Select(items, _) => self.select(items, given).map(Outcome::Rows),
            Statement::Show(name) => match self.state.value(&self.base, name) {
                Some(value) => Ok(Outcome::Rows(vec![vec![value]])),
                None => Err(unknown(name)),
            },
            Statement::Objections => Ok(Outcome::Rows(Vec::new())),
            Statement::Restore(settings) => {
                Rc::make_mut(&mut self.state).restore(settings).map(Outcome::Rows)
            }
            Statement::Reads(names) => Ok(Outcome::Rows(self.findings(names))),
            Statement::Probe(names) => Ok(Outcome::Rows(self.probe(names))),
            Statement::PrimaryPosition => Ok(Outcome::Rows(vec![self.stand.of_primary()])),
            Statement::StandbyPosition => Ok(Outcome::Rows(vec![self.stand.of_standby()])),
            Statement::Users(function, user) => {
                let user = (self.database.clone(), user.value(&[]).unwrap_or_default());
                self.directory.look_up(function, user).map(Outcome::Rows)
            }
            Statement::Execute(name, arguments) => self.execute_by_name(name, arguments),
            Statement::Fetch(name) => {
                let message = format!("cursor \"{name}\" does not exist");
                let rows = self.holds.get_mut(name).map(|held| std::mem::take(&mut held.rows));
                rows.map(Outcome::Rows).ok_or_else(|| Fault::new("34000", message))
            }
            Statement::CopyIn => Ok(Outcome::CopyIn),
            Statement::CopyOut(table) => Ok(Outcome::CopyOut(table.clone())),
            Statement::Declare(name, body) => {
                let Outcome::Rows(rows) = self.run(body, given)? else {
                    return Err(Fault::new("42601", "a cursor is of rows"));
                };
                if self.holds.contains_key(name) {
                    return Err(Fault::new("42P03", format!("cursor \"{name}\" already exists")));
                }
                self.holds.insert(name.clone(), Held { rows, kept: false });
                Ok(Outcome::Tag("DECLARE CURSOR".to_owned()))
            }
            other => {
                let result = self.change_rows(other).unwrap_or_else(|| self.command(other));
                result.map(|tag| Outcome::Tag(tag.to_owned()))
            }
        }
    }

    fn execute_by_name(&mut self, name: &str, arguments: &[String]) -> Result<Outcome, Fault> {
        let message = format!("prepared statement \"{name}\" does not exist");
        let found = self.statements.get(name).cloned();
        let prepared = found.ok_or_else(|| Fault::new("26000", message))?;
        let Some(statement) = &prepared.statement else {
            return Ok(Outcome::Rows(Vec::new()));
        };
        if arguments.len() != prepared.params {
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            return Err(Fault::new("42601", message));
        }
        self.analyse(statement)?;
        self.run(&statement.with(arguments), &Given { arguments, frozen: &prepared.frozen })
    }

    /// Runs a command without rows and returns its tag.
    fn command(&mut self, statement: &Statement) -> Result<&'static str, Fault> {
        let state = Rc::make_mut(&mut self.state);
        Ok(match statement {
            Statement::Insert(_) => "INSERT 0 1",
            Statement::Begin | Statement::Commit | Statement::Rollback => {
                return Ok(self.transact(statement));
            }
            Statement::Set(name, value, local) => {
                state.assign(name, value.as_deref(), *local)?;
                "SET"
            }
            Statement::Reset(Some(name)) => {
                state.assign(name, None, false)?;
                "RESET"
            }
            Statement::Reset(None) => {
                state.set.clear();
                state.local.clear();
                "RESET"
            }
            Statement::Prepare(name, body) => return self.prepare_by_sql(name, body),
            Statement::Deallocate(Some(name)) => {
                let message = format!("prepared statement \"{name}\" does not exist");
                let gone = self.statements.remove(name);
                gone.ok_or_else(|| Fault::new("26000", message))?;
                "DEALLOCATE"
            }
            Statement::Deallocate(None) => {
                self.statements.retain(|name, _| name.is_empty());
                "DEALLOCATE ALL"
            }
            Statement::DiscardAll => return self.discard_all(),
            Statement::DiscardTemp => {
                state.temps.clear();
                "DISCARD TEMP"
            }
            Statement::Listen(channel) => {
                state.listens.insert(channel.clone());
                "LISTEN"
            }
            Statement::Unlisten(channel) => {
                match channel {
                    Some(channel) => drop(state.listens.remove(channel)),
                    None => state.listens.clear(),
                }
                "UNLISTEN"
            }
            Statement::Notify(channel, payload) => {
                state.notes.push((channel.clone(), payload.clone()));
                "NOTIFY"
            }
            Statement::CreateTemp(table) if state.temps.insert(table.clone()) => "CREATE TABLE",
            Statement::CreateTemp(table) => {
                return Err(Fault::new("42P07", format!("relation \"{table}\" already exists")));
            }
            Statement::Drop(table) if state.temps.remove(table) => "DROP TABLE",
            Statement::Drop(table) => {
                return Err(Fault::new("42P01", format!("table \"{table}\" does not exist")));
            }
            Statement::Ddl(tag) => tag,
            Statement::CloseCursor(Some(name)) => {
                let message = format!("cursor \"{name}\" does not exist");
                self.holds.remove(name).ok_or_else(|| Fault::new("34000", message))?;
                "CLOSE CURSOR"
            }
            Statement::CloseCursor(None) => {
                self.holds.clear();
                "CLOSE CURSOR ALL"
            }
            _ => return Err(Fault::new("XX000", "not a command")),
        })
    }

    fn transact(&mut self, statement: &Statement) -> &'static str {
        let block = matches!(self.transaction, Transaction::Block(_) | Transaction::Failed);
        match statement {
            Statement::Begin => {
                match std::mem::take(&mut self.transaction) {
                    Transaction::Implicit(saved) => self.transaction = Transaction::Block(saved),
                    Transaction::None => self.transaction = Transaction::Block(self.state.clone()),
                    open => {
                        self.transaction = open;
                        self.warn("25001", "there is already a transaction in progress");
                    }
                }
                "BEGIN"
            }
            Statement::Commit if !block => {
                self.warn("25P01", "there is no transaction in progress");
                self.commit();
                "COMMIT"
            }
            Statement::Commit if matches!(self.transaction, Transaction::Failed) => {
                self.rollback();
                "ROLLBACK"
            }
            Statement::Commit => {
                self.commit();
                "COMMIT"
            }
            _ => {
                if !block {
                    self.warn("25P01", "there is no transaction in progress");
                }
                self.rollback();
                "ROLLBACK"
            }
        }
    }

    fn warn(&mut self, sqlstate: &str, message: &str) {
        let report = write::Report { severity: "WARNING", sqlstate, message, hint: "" };
        write::notice(&mut self.out, &report);
    }

    fn prepare_by_sql(&mut self, name: &str, body: &Statement) -> Result<&'static str, Fault> {
        if self.statements.contains_key(name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(Fault::new("42P05", message));
        }
        self.analyse(body)?;
        let prepared = self.prepare(Some(body.clone()), true);
        self.statements.insert(name.to_owned(), Rc::new(prepared));
        Ok("PREPARE")
    }

    fn discard_all(&mut self) -> Result<&'static str, Fault> {
        if matches!(self.transaction, Transaction::Block(_)) {
            let message = "DISCARD ALL cannot run inside a transaction block";
            return Err(Fault::new("25001", message));
        }
        if self.piped {
            let message = "DISCARD ALL cannot be executed within a pipeline";
            return Err(Fault::new("25001", message));
        }
        // The unnamed statement stays.
        self.statements.retain(|name, _| name.is_empty());
        self.locks = 0;
        self.holds.clear();
        Rc::make_mut(&mut self.state).discard();
        self.commit();
        Ok("DISCARD ALL")
    }

    fn leave(&mut self, left: Left) {
        let state: &mut State = Rc::make_mut(&mut self.state);
        match left {
            Left::Nothing => {}
            Left::Lock => self.locks += 1,
            Left::Temp => drop(state.temps.insert("mine".to_owned())),
            Left::Listen => drop(state.listens.insert("left".to_owned())),
            Left::Setting => drop(state.set.insert("work_mem".to_owned(), "77MB".to_owned())),
        }
    }

    fn select(&mut self, items: &[Item], given: &Given<'_>) -> Result<Vec<Row>, Fault> {
        let series =
            items.iter().find_map(|i| if let Item::Series(n) = i { Some(*n) } else { None });
        (1..=series.unwrap_or(1))
            .map(|n| items.iter().map(|item| self.item(item, n, given)).collect())
            .collect()
    }

    fn item(&mut self, item: &Item, n: u64, given: &Given<'_>) -> Result<String, Fault> {
        Ok(match item {
            Item::Text(text) => text.clone(),
            Item::Dated(index) => {
                let text = given.arguments.get(index - 1).cloned().unwrap_or_default();
                format!("{text}@{}", self.frozen())
            }
            Item::Param(index) => given.arguments.get(index - 1).cloned().unwrap_or_default(),
            Item::Sleep(_) | Item::Next => String::new(),
            Item::Setting(name) => {
                self.state.value(&self.base, name).ok_or_else(|| unknown(name))?
            }
            Item::Frozen(text) => format!("{text}@{}", given.frozen),
            Item::Series(_) => n.to_string(),
            Item::Repeat(text, count) => text.repeat(*count),
            Item::SetConfig(name, value, local) => {
                let state: &mut State = Rc::make_mut(&mut self.state);
                state.assign(name, value.as_deref(), *local)?;
                self.setting(name)
            }
            Item::Fail(tag) => return Err(Fault::new("22012", format!("failed: {tag}"))),
            Item::Version(table, key) => {
                let row = (table.clone(), key.value(&[]).unwrap_or_default());
                rows::show(&row, self.rows.version(self.number, self.stand.shows, &row))
            }
            Item::Late(name, _) => {
                return Err(Fault::new("42P02", format!("{name} has no value for a parameter")));
            }
            Item::Lock => {
                self.locks += 1;
                String::new()
            }
            Item::Leave(left) => {
                self.leave(*left);
                String::new()
            }
            Item::Unlock => {
                self.locks = 0;
                String::new()
            }
        })
    }

    /// Answers the engine's question for the state of the server, with a value for both its parts.
    pub(crate) fn tell_state(&mut self, value: &str) {
        write_columns(&mut self.out, 2);
        write_row(&mut self.out, &[value.to_owned(), value.to_owned()]);
        write::command_complete(&mut self.out, b"SELECT 1");
        write::ready(&mut self.out, refrain_pg_wire::back::Status::Idle);
        self.flush();
    }

    /// Answers a planted text as if the session had run it.
    pub(crate) fn pretend(&mut self, text: &str) {
        let tag = if text.contains("DISCARD") { "DISCARD ALL" } else { "ROLLBACK" };
        if text.contains("set_config") {
            write_columns(&mut self.out, 1);
            write_row(&mut self.out, &["planted".to_owned()]);
            write::command_complete(&mut self.out, b"SELECT 1");
        } else {
            write::command_complete(&mut self.out, tag.as_bytes());
        }
        write::ready(&mut self.out, refrain_pg_wire::back::Status::Idle);
        self.flush();
    }
}

fn unknown(name: &str) -> Fault {
    Fault::new("42704", format!("unrecognized configuration parameter \"{name}\""))
}

fn write_columns(out: &mut Vec<u8>, count: usize) {
    const NAMES: [&str; 64] = ["?column?"; 64];
    write::text_columns(out, &NAMES[..count.min(NAMES.len())]);
}

fn write_row(out: &mut Vec<u8>, row: &[String]) {
    write::text_row(out, row.iter().map(|value| Some(value.as_str())));
}
