//! What is done with a command that names a prepared statement.

use std::sync::Arc;

use refrain_mysql_wire::error_code::{self, ErrorCode};
use refrain_mysql_wire::packet::PAYLOAD_BYTES_MAX;
use refrain_mysql_wire::prepared::Execute;
use refrain_mysql_wire::{Capabilities, command};

use crate::errors::{self, Brand};
use crate::parts::ClientSession;
use crate::pins::Pins;
use crate::presence::Named;

/// What is done with a command that names a prepared statement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// More of it has to be here.
    Reads,
    /// It is dropped in silence.
    Drop,
    /// The client's statement is forgotten.
    Close,
    /// The client is told that it has succeeded.
    Answer,
    /// The client gets this error.
    Refuse(ErrorCode, String),
    /// The client's server gets it.
    Send,
    /// The client's server gets it, and it does what the statement's text says.
    Execute,
}

/// Decides on a command that names a statement of the client by this number, and notes what it
/// leaves in the statement.
pub(crate) fn plan(
    session: &mut ClientSession,
    number: u32,
    named: Named<'_>,
    is_complete: bool,
) -> Plan {
    let brand = session.brand.unwrap_or(Brand::MySql);
    let (_, command, _) = named;
    let Some(held) = session.statements.get(number) else { return unknown(command, number, brand) };
    match command {
        command::STMT_CLOSE => Plan::Close,
        command::STMT_RESET if !held.is_bound() => Plan::Answer,
        command::STMT_FETCH if !held.has_cursor => {
            let words = errors::no_cursor(number, brand);
            Plan::Refuse(error_code::STMT_HAS_NO_OPEN_CURSOR, words)
        }
        command::STMT_SEND_LONG_DATA => {
            session.statements.edit(number, |held| held.has_long_data = true);
            Plan::Send
        }
        command::STMT_EXECUTE => execute(session, number, named, is_complete),
        _ => Plan::Send,
    }
}

/// Decides on a command with a number that the client does not have.
fn unknown(command: u8, number: u32, brand: Brand) -> Plan {
    let function = match command {
        command::STMT_EXECUTE => "mysqld_stmt_execute",
        command::STMT_RESET => "mysqld_stmt_reset",
        command::STMT_FETCH => "mysqld_stmt_fetch",
        _ => return Plan::Drop,
    };
    let words = errors::unknown_statement(number, function, brand);
    Plan::Refuse(error_code::UNKNOWN_STMT_HANDLER, words)
}

/// Decides on an execution, and notes its types.
fn execute(
    session: &mut ClientSession,
    number: u32,
    (header, _, body): Named<'_>,
    is_complete: bool,
) -> Plan {
    let brand = session.brand.unwrap_or(Brand::MySql);
    let unfit = || {
        let fixed = errors::unfit_execution(brand);
        Plan::Refuse(fixed.code, fixed.words.to_owned())
    };
    let Some(held) = session.statements.get(number) else { return Plan::Drop };
    let head = match Execute::read(body, held.parameters, Capabilities::NONE, is_complete) {
        Err(_) => return unfit(),
        Ok(None) => return Plan::Reads,
        Ok(Some(head)) => head,
    };
    let has_new = head.types.is_some() && head.types != held.types.as_deref();
    if held.parameters > 0 && head.types.is_none() && held.types.is_none() {
        return unfit();
    }
    // Types cannot be put into a packet that is full: the client keeps the server that has them.
    let room = PAYLOAD_BYTES_MAX - 2 * u32::from(held.parameters);
    let is_full = header.payload >= room;
    if is_full {
        session.pins.add(Pins::VARIABLES);
    }
    let types: Option<Arc<[u8]>> = head.types.filter(|_| has_new).map(Into::into);
    session.statements.edit(number, |held| {
        held.is_full = is_full && head.types.is_none();
        held.types = types.or(held.types.take());
    });
    Plan::Execute
}
