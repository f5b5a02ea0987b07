//! Texts of the model server.

use crate::language::{Statement, parse};
use crate::reply::{Outcome, Reply};
use crate::session::{Lie, News, Session, Transaction};
use crate::variables::{COLLATIONS, default_collation};
use crate::wire::{cap, flag};

/// An error: its number, its SQLSTATE and its words.
type Refusal = (u16, &'static str, String);

impl Session {
    /// Runs a text.
    pub fn text(&mut self, text: &str, reply: &mut Reply) {
        let (tag, statements) = parse(text);
        if statements.len() > 1 && !self.has_several {
            return self.fail(reply, 1064, "42000", &format!("several statements in {text}"));
        }
        let count = statements.len();
        for (at, statement) in statements.into_iter().enumerate() {
            let more = if at + 1 < count { flag::MORE_RESULTS } else { 0 };
            let before = reply.packets.len();
            self.run(&statement, (&tag, ""), more, reply);
            let ended = reply.packets[before..].last();
            if ended.is_none_or(|(_, payload)| payload.first() == Some(&0xFF))
                || self.file.is_some()
            {
                return;
            }
        }
    }

    /// Runs one statement. `tag` names the text, and `prefix` what a prepared one was of.
    pub fn run(
        &mut self,
        statement: &Statement,
        (tag, prefix): (&str, &str),
        more: u16,
        reply: &mut Reply,
    ) {
        if self.is_question(statement, tag, prefix, more, reply) {
            return;
        }
        self.row_count = 0;
        self.warnings.clear();
        let mut outcome = Outcome { status: more, ..Outcome::default() };
        match statement {
            Statement::Load => {
                if reply.agreed & cap::LOCAL_FILES == 0 {
                    return self.fail(reply, 1148, "42000", "no files");
                }
                self.file = Some((tag.to_owned(), Vec::new()));
                return reply.put([b"\xFBfile of ", tag.as_bytes()].concat());
            }
            Statement::Insert(id) | Statement::InsertNamed(id) => match self.write_row(tag, prefix)
            {
                Ok(()) => {
                    (outcome.rows, outcome.id) = (1, *id);
                    self.row_count = 1;
                    // A number that the statement names is told, and is none that a row got.
                    if matches!(statement, Statement::Insert(_)) {
                        self.insert_id = *id;
                    }
                }
                Err(words) => return self.fail(reply, 1792, "25006", words),
            },
            Statement::Begin(_)
            | Statement::Commit
            | Statement::Rollback
            | Statement::Savepoint(_)
            | Statement::RollbackTo(_)
            | Statement::SetTransaction(_)
            | Statement::InsertAgain
            | Statement::Deadlock
            | Statement::Ddl(_) => {
                if let Err((number, state, words)) = self.transact(statement) {
                    return self.fail(reply, number, state, words);
                }
            }
            _ => {
                if let Err((number, state, words)) = self.change(statement, tag) {
                    return self.fail(reply, number, state, &words);
                }
            }
        }
        outcome.warnings = self.warnings.len() as u16;
        self.ok(reply, outcome);
    }

    /// Changes the session as a statement says that is none about transactions.
    fn change(&mut self, statement: &Statement, tag: &str) -> Result<(), Refusal> {
        match statement {
            Statement::Set(values) if values[0].0 == "last_insert_id" => {
                self.insert_id = values[0].1.parse().unwrap_or(0);
            }
            Statement::Set(values) => {
                if values.iter().any(|(name, _)| !self.variables.has(name)) {
                    return Err((1193, "HY000", "Unknown system variable".to_owned()));
                }
                values.iter().for_each(|(name, value)| self.set(name, value));
            }
            Statement::Names(set, collation) => {
                let collation = collation.as_deref().unwrap_or(default_collation(set));
                self.variables.set_names(set, collation);
                // Nobody is told of the collation.
                for name in
                    ["character_set_client", "character_set_connection", "character_set_results"]
                {
                    self.changed_variable(name, set);
                }
            }
            Statement::Use(schema) if schema.starts_with("no") => {
                return Err((1049, "42000", format!("Unknown database '{schema}'")));
            }
            Statement::Use(schema) => {
                self.schema = Some(schema.clone());
                self.changed_schema(schema);
            }
            Statement::UserVariable(name) => {
                self.own.insert(format!("{name} of {tag}"));
                self.changed_state();
            }
            Statement::SelectInto(name) => {
                self.own.insert(format!("{name} of {tag}"));
            }
            Statement::Temporary(name, true) => {
                self.own.insert(format!("table {name}"));
                self.changed_state();
            }
            Statement::Temporary(name, false) => {
                if !self.own.remove(&format!("table {name}")) {
                    return Err((1051, "42S02", format!("Unknown table '{name}'")));
                }
                self.changed_state();
            }
            Statement::Handler(name) => {
                self.own.insert(format!("handler {name}"));
            }
            Statement::LockTables => {
                self.commit();
                self.locks_tables = true;
            }
            Statement::UnlockTables => self.locks_tables = false,
            Statement::Warn => {
                self.warnings.push(format!("warning of {tag}"));
            }
            Statement::CallSet(mode) => self.set("sql_mode", mode),
            Statement::CallPrepare => {
                self.jump += 1;
                self.changed_state();
            }
            Statement::Do => {}
            _ => return Err((1064, "42000", format!("error in {tag}"))),
        }
        Ok(())
    }

    /// Answers a statement that has rows. Returns false if it is none.
    fn is_question(
        &mut self,
        statement: &Statement,
        tag: &str,
        prefix: &str,
        more: u16,
        reply: &mut Reply,
    ) -> bool {
        let answers: Vec<Vec<String>> = match statement {
            Statement::State => vec![vec![format!("{tag}{prefix}: {}", self.state())]],
            Statement::Rows(count, size, fails) => {
                self.rows((*count, *size, *fails), (tag, prefix), more, reply);
                return true;
            }
            Statement::GetLock(name) => {
                self.own.insert(format!("{name} of {tag}"));
                vec![vec!["1".into()]]
            }
            Statement::ShowWarnings => {
                let warnings = self.warnings.iter().map(|warning| vec![warning.clone()]);
                let warnings: Vec<_> = warnings.collect();
                // It leaves them as they are.
                self.table(&["Message"], &warnings, more, reply);
                return true;
            }
            Statement::InsertId => vec![vec![self.insert_id.to_string()]],
            Statement::RowCount => vec![vec![self.row_count.to_string()]],
            Statement::Call(count) => {
                for at in 0..*count {
                    let row = vec![format!("{tag}{prefix} result {at}")];
                    self.table(&["r"], &[row], flag::MORE_RESULTS, reply);
                }
                self.row_count = 0;
                self.warnings.clear();
                self.ok(reply, Outcome { status: more, ..Outcome::default() });
                return true;
            }
            Statement::ShowVariables => {
                let all = self.variables.all();
                let all: Vec<_> =
                    all.map(|(name, value)| vec![name.into(), value.into()]).collect();
                self.table(&["Variable_name", "Value"], &all, more, reply);
                return true;
            }
            Statement::Catalog => {
                let user = ["user", "", ""].map(str::to_owned).to_vec();
                self.table(&["kind", "a", "b"], &[user], more, reply);
                return true;
            }
            Statement::ShowCollation => {
                let rows = COLLATIONS.iter().map(|(number, set, name)| {
                    vec![(*name).to_owned(), (*set).to_owned(), number.to_string()]
                });
                let rows: Vec<_> = rows.collect();
                self.table(&["Collation", "Charset", "Id"], &rows, more, reply);
                return true;
            }
            Statement::Ask(names) => {
                let is_collation = names == &["collation_connection"];
                if self.lie == Lie::FirstCollation && is_collation {
                    vec![vec!["utf8mb4_0900_ai_ci".to_owned()]]
                } else {
                    vec![names.iter().map(|name| self.variables.get(name).to_owned()).collect()]
                }
            }
            _ => return false,
        };
        // Refrain asks for the collation behind SET NAMES. Here that leaves what was before.
        if !matches!(statement, Statement::Ask(_)) {
            self.warnings.clear();
            self.row_count = -1;
        }
        let names = vec!["c"; answers[0].len()];
        self.table(&names, &answers, more, reply);
        true
    }

    /// Appends a table.
    fn table(&mut self, names: &[&str], rows: &[Vec<String>], more: u16, reply: &mut Reply) {
        reply.columns(names, self.status() | more);
        for row in rows {
            let values: Vec<&[u8]> = row.iter().map(String::as_bytes).collect();
            reply.row(&values);
        }
        self.end_of_rows(reply, more);
    }

    /// Appends rows of a table, which begin a transaction without autocommit.
    fn rows(
        &mut self,
        (count, size, fails): (usize, usize, Option<usize>),
        (tag, prefix): (&str, &str),
        more: u16,
        reply: &mut Reply,
    ) {
        self.touch();
        self.warnings.clear();
        self.row_count = -1;
        reply.columns(&["r"], self.status() | more);
        for at in 0..count {
            if fails == Some(at) {
                return self.fail(reply, 1317, "70100", &format!("{tag} was interrupted"));
            }
            let mut row = format!("{tag}{prefix} {at} ").into_bytes();
            row.resize(row.len() + size, 0xFE);
            reply.row(&[&row]);
        }
        self.end_of_rows(reply, more);
    }

    /// Appends an error.
    pub fn fail(&mut self, reply: &mut Reply, number: u16, state: &str, words: &str) {
        self.row_count = -1;
        self.warnings = vec![words.to_owned()];
        reply.err(number, state, words);
    }

    /// Sets a variable, and tells it.
    fn set(&mut self, name: &str, value: &str) {
        if self.lie == Lie::NoSettings && name == "time_zone" {
            return self.changed_variable(name, value);
        }
        let was = self.variables.get("autocommit") == "ON";
        let Some(value) = self.variables.set(name, value) else { return };
        if !was && self.variables.get("autocommit") == "ON" {
            self.commit();
        }
        self.changed_variable(name, &value);
    }

    /// Begins a transaction if none is open and statements do not commit.
    fn touch(&mut self) {
        if self.transaction.is_none() && self.variables.get("autocommit") == "OFF" {
            let characteristics = std::mem::take(&mut self.next);
            let reads_only = characteristics.contains("READ ONLY");
            self.transaction =
                Some(Transaction { characteristics, reads_only, is_implicit: true, wrote: vec![] });
        }
    }

    /// Writes a row.
    fn write_row(&mut self, tag: &str, prefix: &str) -> Result<(), &'static str> {
        self.touch();
        let row = format!("{tag}{prefix}");
        match &mut self.transaction {
            Some(transaction) if transaction.reads_only => {
                return Err("the transaction reads only");
            }
            Some(transaction) => {
                transaction.wrote.push(row.clone());
                self.news.push(News::Wrote(row));
            }
            // The next transaction is this statement.
            None if std::mem::take(&mut self.next).contains("READ ONLY") => {
                return Err("the transaction reads only");
            }
            None => self.news.extend([News::Wrote(row.clone()), News::Committed(row)]),
        }
        Ok(())
    }

    /// Runs a statement about transactions.
    fn transact(&mut self, statement: &Statement) -> Result<(), (u16, &'static str, &'static str)> {
        match statement {
            Statement::Begin(reads_only) => {
                self.commit();
                self.locks_tables = false;
                let characteristics = std::mem::take(&mut self.next);
                let reads_only = *reads_only || characteristics.contains("READ ONLY");
                self.transaction = Some(Transaction {
                    characteristics,
                    reads_only,
                    is_implicit: false,
                    wrote: vec![],
                });
            }
            Statement::Commit => self.commit(),
            Statement::Rollback => self.roll_back(),
            Statement::Savepoint(name) => {
                let wrote = self.transaction.as_ref().map_or(0, |open| open.wrote.len());
                if self.transaction.is_some() || self.variables.get("autocommit") == "OFF" {
                    self.savepoints.retain(|(other, _)| other != name);
                    self.savepoints.push((name.clone(), wrote));
                }
            }
            Statement::RollbackTo(name) => {
                let at = self.savepoints.iter().position(|(other, _)| other == name);
                let Some(at) = at else { return Err((1305, "42000", "no such savepoint")) };
                let (_, wrote) = self.savepoints[at];
                self.savepoints.truncate(at + 1);
                if let Some(open) = &mut self.transaction {
                    self.news.extend(open.wrote.drain(wrote..).map(News::Undone));
                }
            }
            Statement::SetTransaction(text) => {
                if self.transaction.is_some() {
                    return Err((1568, "25001", "a transaction is open"));
                }
                self.next = format!("{text};");
            }
            Statement::InsertAgain => {
                self.touch();
                return Err((1062, "23000", "Duplicate entry"));
            }
            Statement::Deadlock => {
                self.touch();
                self.roll_back();
                return Err((1213, "40001", "Deadlock found"));
            }
            Statement::Ddl(fails) => {
                self.commit();
                self.next.clear();
                if *fails {
                    return Err((1050, "42S01", "Table already exists"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends a file.
    pub fn load(&mut self, reply: &mut Reply, tag: &str, file: &[u8]) {
        let row = format!("{tag} file {} {:?}", file.len(), file.first());
        self.row_count = 1;
        match self.write_row(&row, "") {
            Ok(()) => self.ok(reply, Outcome { rows: 1, ..Outcome::default() }),
            Err(words) => self.fail(reply, 1792, "25006", words),
        }
    }
}
