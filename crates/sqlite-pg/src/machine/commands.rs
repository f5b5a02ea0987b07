//! Commands that a session answers without SQLite: transactions, parameters, prepared statements.

use refrain_pg_wire::back::Status;
use refrain_pg_wire::write;

use crate::command::{Assignment, Command, Modes, Which};
use crate::dialect::ResultColumn;
use crate::failure::{Failure, state};
use crate::sequences::SessionSequences;
use crate::settings::Settings;
use crate::shape::{Formats, data_texts, row_description};
use crate::types::Type;

use super::access::Access;
use super::{Machine, Outcome, RunsOn, Stop};

impl Command {
    /// Returns the columns of the reply; none if there are no rows.
    pub(super) fn columns(&self) -> Vec<ResultColumn> {
        let column =
            |name: &str| ResultColumn { name: name.to_owned(), is: Type::Text, limit: None };
        match self {
            Self::Show(Which::All) => ["name", "setting", "description"].map(column).into(),
            Self::Show(Which::Named(name)) => vec![column(Settings::title(name))],
            Self::SetConfig(all) => all.iter().map(|_| column("set_config")).collect(),
            _ => Vec::new(),
        }
    }

    /// True if the command may run in a failed transaction.
    pub(super) fn ends_failure(&self) -> bool {
        matches!(self, Self::Commit { .. } | Self::Rollback { .. } | Self::RollbackTo(_))
    }
}

impl Machine {
    /// Runs a command. With `describe`, a RowDescription comes before its rows.
    pub(super) fn command(
        &mut self,
        command: &Command,
        describe: bool,
        out: &mut Vec<u8>,
    ) -> Outcome {
        if !command.ends_failure() {
            self.access.transaction.check()?;
        }
        let columns = command.columns();
        if describe && !columns.is_empty() {
            row_description(out, &columns, &Formats::default());
        }
        let tag = match command {
            Command::Begin { modes, start } => {
                self.access.begin(*modes, out);
                if *start { "START TRANSACTION" } else { "BEGIN" }
            }
            Command::Commit { chain } => self.commit(*chain, out)?,
            Command::Rollback { chain } => self.roll_back(*chain, out),
            Command::Savepoint(name) => self.savepoint(name)?,
            Command::Release(name) => {
                self.access.inside("RELEASE SAVEPOINT")?;
                self.with(|machine, connection| {
                    Ok(machine.access.transaction.release(connection, name)?)
                })?;
                "RELEASE"
            }
            Command::RollbackTo(name) => self.back_to(name)?,
            Command::Modes(modes) => {
                self.access.transaction.set(*modes);
                "SET"
            }
            Command::SessionModes(modes) => {
                self.access.session_modes(*modes)?;
                "SET"
            }
            Command::Set(change) => {
                self.set(change, out)?;
                "SET"
            }
            Command::SetConfig(changes) => {
                for change in changes {
                    self.set(change, out)?;
                }
                let settings = self.access.context.settings();
                let value =
                    |change: &Assignment| settings.get(&change.name).unwrap_or("").to_owned();
                let values: Vec<_> = changes.iter().map(value).collect();
                data_texts(out, &values);
                "SELECT 1"
            }
            Command::Reset(which) => {
                self.reset(which, out)?;
                "RESET"
            }
            Command::Show(which) => {
                self.access.show(which, out)?;
                "SHOW"
            }
            Command::Deallocate(which) => self.deallocate(which)?,
            Command::Execute(name) => return Err(self.execute_by_name(name).into()),
            Command::Discard(what) => {
                self.discard(what, out)?;
                write::command_complete(out, format!("DISCARD {what}").as_bytes());
                return Ok(());
            }
            Command::Nothing(tag) => tag,
            Command::Copy => return Err(Failure::unsupported("COPY is not supported here").into()),
        };
        write::command_complete(out, tag.as_bytes());
        Ok(())
    }

    fn commit(&mut self, chain: bool, out: &mut Vec<u8>) -> Result<&'static str, Stop> {
        if !self.access.transaction.is_block() {
            warn_no_transaction(out);
        }
        self.portals.clear();
        // The commit has to wait for the disk, so a thread runs it.
        if self.access.permit.is_some() && self.access.runs_on == RunsOn::Loop {
            return Err(Stop::Needs(super::Need::Writer));
        }
        let committed = self.access.commit_open();
        self.access.ended(matches!(committed, Ok(true)), chain);
        match committed {
            Ok(true) => Ok("COMMIT"),
            Ok(false) => Ok("ROLLBACK"),
            Err(failure) => Err(failure.into()),
        }
    }

    fn roll_back(&mut self, chain: bool, out: &mut Vec<u8>) -> &'static str {
        if !self.access.transaction.is_block() {
            warn_no_transaction(out);
        }
        self.portals.clear();
        self.access.transaction.rollback(self.access.connection.as_deref());
        self.access.ended(false, chain);
        "ROLLBACK"
    }

    fn savepoint(&mut self, name: &str) -> Result<&'static str, Stop> {
        self.access.inside("SAVEPOINT")?;
        self.with(|machine, connection| {
            let made = machine.access.transaction.open(connection, false);
            let made = made.and_then(|()| machine.access.transaction.savepoint(connection, name));
            made.map_err(|error| machine.access.stop(&error, b""))
        })?;
        Ok("SAVEPOINT")
    }

    fn back_to(&mut self, name: &str) -> Result<&'static str, Stop> {
        self.access.inside("ROLLBACK TO SAVEPOINT")?;
        self.portals.clear();
        self.with(|machine, connection| {
            Ok(machine.access.transaction.back_to(connection, name)?)
        })?;
        Ok("ROLLBACK")
    }

    fn set(&mut self, change: &Assignment, out: &mut Vec<u8>) -> Result<(), Failure> {
        let block = self.access.transaction.is_block();
        if change.local && !block {
            let message = "SET LOCAL can only be used in transaction blocks";
            Failure::new(state::NO_TRANSACTION, message).warn(out);
        }
        self.access.context.settings().set(change, block)?;
        if change.name == "transaction_read_only" {
            let read_only = Some(self.access.context.settings().is_on(&change.name));
            self.access.transaction.set(Modes { read_only });
        }
        self.tell_settings(out);
        Ok(())
    }

    fn reset(&mut self, which: &Which, out: &mut Vec<u8>) -> Result<(), Failure> {
        let block = self.access.transaction.is_block();
        match which {
            Which::All => self.access.context.settings().reset_all(block),
            Which::Named(name) => {
                let change = Assignment { name: name.clone(), value: None, local: false };
                self.access.context.settings().set(&change, block)?;
            }
        }
        self.tell_settings(out);
        Ok(())
    }

    fn deallocate(&mut self, which: &Which) -> Result<&'static str, Failure> {
        match which {
            Which::All => {
                self.statements.clear();
                Ok("DEALLOCATE ALL")
            }
            Which::Named(name) => match self.statements.remove(name.as_bytes()) {
                Some(_) => Ok("DEALLOCATE"),
                None => Err(no_statement(name)),
            },
        }
    }

    fn execute_by_name(&self, name: &str) -> Failure {
        if self.statements.contains_key(name.as_bytes()) {
            let failure = Failure::unsupported("EXECUTE as a statement is not supported");
            return failure.hint("run prepared statements through the protocol, as drivers do");
        }
        no_statement(name)
    }

    fn discard(&mut self, what: &str, out: &mut Vec<u8>) -> Result<(), Failure> {
        if matches!(what, "ALL" | "TEMP") {
            if self.access.transaction.status() != Status::Idle {
                let message = "DISCARD ALL cannot run inside a transaction block";
                return Err(Failure::new(state::ACTIVE_TRANSACTION, message));
            }
            // Closing the connection drops its temporary tables.
            if self.access.has_temporary {
                self.access.close_connection();
            }
        }
        if what == "SEQUENCES" {
            *self.access.context.sequences() = SessionSequences::default();
        }
        if what == "ALL" {
            self.statements.clear();
            self.portals.clear();
            self.access.context.shared.advisory.release_all(self.access.context.pid);
            *self.access.context.sequences() = SessionSequences::default();
            self.access.context.settings().reset_all(false);
            self.tell_settings(out);
        }
        Ok(())
    }
}

impl Access {
    fn begin(&mut self, modes: Modes, out: &mut Vec<u8>) {
        if let Err(warning) = self.transaction.begin(modes) {
            warning.warn(out);
        }
        self.context.forget_now();
    }

    fn ended(&mut self, committed: bool, chain: bool) {
        self.context.transaction_ended(committed);
        self.context.forget_now();
        self.settle();
        if chain {
            // The old transaction has just ended, so `begin` has none to warn of.
            let _ = self.transaction.begin(Modes::default());
        }
    }

    /// Refuses a command outside of a transaction block.
    fn inside(&self, what: &str) -> Result<(), Failure> {
        if self.transaction.is_block() {
            return Ok(());
        }
        let message = format!("{what} can only be used in transaction blocks");
        Err(Failure::new(state::NO_TRANSACTION, message))
    }

    fn session_modes(&mut self, modes: Modes) -> Result<(), Failure> {
        let Some(read_only) = modes.read_only else { return Ok(()) };
        let value = Some((if read_only { "on" } else { "off" }).to_owned());
        let name = "default_transaction_read_only".to_owned();
        let block = self.transaction.is_block();
        self.context.settings().set(&Assignment { name, value, local: false }, block)
    }

    fn show(&self, which: &Which, out: &mut Vec<u8>) -> Result<(), Failure> {
        let settings = self.context.settings();
        match which {
            Which::Named(name) if name == "transaction_read_only" => {
                data_texts(out, &[if self.transaction.is_read_only() { "on" } else { "off" }]);
            }
            Which::Named(name) => data_texts(out, &[settings.show(name)?]),
            Which::All => {
                settings
                    .all()
                    .iter()
                    .for_each(|(name, value, _)| data_texts(out, &[*name, *value, ""]));
            }
        }
        Ok(())
    }
}

/// Makes error 26000.
pub(super) fn no_statement(name: &str) -> Failure {
    Failure::new(state::NO_STATEMENT, format!("prepared statement \"{name}\" does not exist"))
}

fn warn_no_transaction(out: &mut Vec<u8>) {
    Failure::new(state::NO_TRANSACTION, "there is no transaction in progress").warn(out);
}
