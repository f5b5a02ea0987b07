//! The commands that write rows and lock tables.

use crate::fault::Fault;
use crate::lang::Statement;
use crate::session::{Session, Transaction};

impl Session {
    /// Runs a command that concerns rows and returns its tag, or `None` for any other.
    pub(crate) fn change_rows(&self, statement: &Statement) -> Option<Result<&'static str, Fault>> {
        match statement {
            Statement::Update(table, key, writer) => {
                let (Some(key), Some(writer)) = (key.value(&[]), writer.value(&[])) else {
                    return Some(Err(Fault::new("42P02", "there is no parameter $1")));
                };
                self.rows.write(self.number, (table.clone(), key), &writer);
                Some(Ok("UPDATE 1"))
            }
            Statement::Lock(table) if matches!(self.transaction, Transaction::Block(_)) => {
                self.rows.lock(self.number, table);
                Some(Ok("LOCK TABLE"))
            }
            Statement::Lock(_) => {
                let message = "LOCK TABLE can only be used in transaction blocks";
                Some(Err(Fault::new("25P01", message)))
            }
            _ => None,
        }
    }
}
