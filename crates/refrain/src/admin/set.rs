//! The command SET: an option until the next reload.

use std::sync::mpsc;

use refrain_config::Assignment;

use super::asked::{Answer, Asked, Outcome};
use super::words::Word;
use super::{Desk, SNAPSHOT_TIMEOUT};
use crate::console::{Part, Refusal};
use crate::machine::ThisMachine;
use crate::supervisor::{NotSet, SupervisorCommand};

/// Settings that drivers set when they connect, and that mean nothing here.
const DRIVER_SETTINGS: &[&str] = &[
    "application_name",
    "bytea_output",
    "check_function_bodies",
    "client_encoding",
    "client_min_messages",
    "datestyle",
    "default_transaction_deferrable",
    "default_transaction_isolation",
    "default_transaction_read_only",
    "escape_string_warning",
    "extra_float_digits",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "intervalstyle",
    "jit",
    "lock_timeout",
    "row_security",
    "search_path",
    "standard_conforming_strings",
    "statement_timeout",
    "synchronize_seqscans",
    "synchronous_commit",
    "timezone",
    "transaction_isolation",
    "transaction_read_only",
    "xmloption",
];
/// Settings that SET takes without `=` or TO.
const SPECIAL_SETTINGS: &[&str] =
    &["names", "time", "transaction", "characteristics", "role", "authorization"];

/// Sets an option until the next reload. Accepts and ignores settings that drivers set when they
/// connect.
pub(super) fn set(desk: &mut Desk, asked: &Asked<'_>, arguments: &[Word]) -> Answer {
    let syntax = || Refusal::syntax(asked.query);
    let arguments = match arguments {
        [scope, rest @ ..] if scope.is("session") || scope.is("local") => rest,
        all => all,
    };
    let (name, rest) = arguments.split_first().ok_or_else(syntax)?;
    let ignored = || {
        let ignored = Part::Notice { text: "SET ignored".into(), detail: String::new() };
        Ok(Outcome::Reply(vec![ignored, Part::Done("SET".into())]))
    };
    let is_of_drivers = |names: &[&str]| names.iter().any(|known| name.is(known));
    let value = match rest {
        [assigns, value @ ..] if assigns.is("=") || assigns.is("to") => value,
        _ if is_of_drivers(SPECIAL_SETTINGS) => return ignored(),
        _ => return Err(syntax()),
    };
    let value = value.iter().map(|word| word.text.as_str()).collect::<Vec<_>>();
    match Assignment::new(&name.text, &value.join(" "), &ThisMachine) {
        Ok(_) if !asked.admin => Err(Refusal::not_allowed()),
        Ok(_) if asked.describes => Ok(Outcome::Reply(Vec::new())),
        Ok(_) if value.is_empty() => Err(syntax()),
        Ok(assignment) => assign(desk, asked, assignment),
        Err(_) if is_of_drivers(DRIVER_SETTINGS) || is_of_drivers(SPECIAL_SETTINGS) => ignored(),
        Err(meant) => Err(Refusal::no_option(&name.text, meant)),
    }
}

fn assign(desk: &mut Desk, asked: &Asked<'_>, assignment: Assignment) -> Answer {
    tracing::info!(cause = "console", user = asked.user, "{}", asked.query);
    let (answer, outcome) = mpsc::channel();
    // The supervisor ends last.
    let _ = desk.commands.send(SupervisorCommand::Set(assignment, answer));
    match outcome.recv_timeout(SNAPSHOT_TIMEOUT) {
        Ok(Ok(notes)) => {
            let notice = |text: String| Part::Notice { text: text.into(), detail: String::new() };
            let notices = notes.into_iter().map(notice);
            Ok(Outcome::Reply(notices.chain([Part::Done("SET".into())]).collect()))
        }
        Ok(Err(NotSet::Invalid(why))) => Err(Refusal::new("22023", format!("SET failed: {why}"))),
        Ok(Err(NotSet::TakesRestart(option))) => {
            let message = format!("option {option} cannot be changed without a restart");
            Err(Refusal::new("55P02", message))
        }
        Err(_) => Err(Refusal::ending()),
    }
}
