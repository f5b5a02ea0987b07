//! Parse: a client's statement is recorded under the client's name, and prepared on the server
//! where it is needed.
//!
//! [`crate::messages::bind`] finds the statement of a message among the client's statements. The
//! server's statements say whether the server has it. If not, Refrain puts a Parse right before the
//! message, in the same write, and skips the reply: no extra round trip and no extra Sync (E32). A
//! statement that is used once goes through the server's unnamed statement. From its second use on
//! it gets a name on servers: a name costs the server memory for as long as it is kept (E88).
//!
//! A change that an earlier segment may still undo is not relied on. If the server's state is in
//! doubt, a Close and a Parse are right either way. If the client's is in doubt, its input waits
//! ([`Stop::Replies`]).
//!
//! The server raises errors wherever possible. An error made by Refrain would leave the server's
//! transaction open, and the messages before the error would commit (E34, E35).

use refrain_pg_wire::back::Status;
use refrain_pg_wire::front::Parse;
use refrain_pg_wire::write;
use refrain_pool::Conn;
use refrain_sql::Kind;

use crate::autoprepare::unnamed::parse_way;
use crate::ground::name::Name;
use crate::messages::fits::{ask_behind_parse, ask_of_copy};
use crate::messages::named::{intern_parse, parse_by_name};
use crate::messages::prepare::{is_over_quota, send_parse};
use crate::messages::refuse::refuse;
use crate::messages::wait::{unnamed_is, wait_in_doubt, wait_until_settled};
use crate::normalized::unnamed_run::ParseWay;
use crate::pipeline::outstanding::{
    FakeReply, OutstandingRequest, Refusal, ReplyAction, RequestKind,
};
use crate::relay::copies::Called;
use crate::relay::learn::know_settings;
use crate::relay::link::Stop;
use crate::relay::message::Message;
use crate::relay::pipe::Pipeline;
use crate::state::client::ClientSession;
use crate::state::client::pins::Pins;
use crate::state::client::statements::Parsed;
use crate::statements::of_core::CachedStatement;
use crate::statements::statement::reads_constants;

/// Handles Parse of a client whose statements are managed. `next` is the input behind it.
pub(crate) fn parse(
    conn: Conn,
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    message: &Message<'_>,
    parse: &Parse<'_>,
    next: &[u8],
) -> Result<usize, Stop> {
    // The settings decide how the server reads constants in the text (E57), and so which statement
    // this is. If the client may have changed them, Refrain first learns what they are.
    if session.settings.unknown_since().is_some() {
        let text = parse.tail.split(|&byte| byte == 0).next().unwrap_or_default();
        if reads_constants(text, refrain_sql::scan(text).traits) {
            know_settings(pipe, session)?;
        }
    }
    if parse.name.is_empty() {
        return parse_unnamed(conn, pipe, session, message, parse, next);
    }
    // `get` notes a long name, which an error repeats in full.
    if session.statements.get(parse.name).is_some() {
        return parse_again(pipe, session, message, parse);
    }
    // An earlier segment may still undo a Close: the name may be taken after all.
    let outstanding = &pipe.server.session.outstanding;
    if session.statements.may_names_return(outstanding) {
        return Err(Stop::Replies);
    }
    pipe.pool().counters.protocol.client_parses += 1;
    if is_over_quota(pipe, &session.statements, parse.tail.len()) {
        return Ok(refuse(pipe, message, RequestKind::Parse, Refusal::Quota));
    }
    let cached = intern_parse(pipe, session, parse.tail)?;
    wait_in_doubt(&pipe.server.session, &cached)?;
    // The client may also have prepared statements by SQL on this server, and one of these may have
    // the name: the server has to decide (E50).
    if session.pins.has(Pins::PREPARED) {
        parse_by_name(pipe, session, parse, &cached, next);
        return Ok(message.bytes.len());
    }
    let known = parse_is_known(pipe, &cached)?;
    let seq = if known {
        pipe.pool().counters.protocol.parses_answered += 1;
        pipe.fake(conn, RequestKind::Parse, FakeReply::Parse)
    } else {
        send_parse(pipe, &cached, ReplyAction::Forward)
    };
    let called = match known || cached.is_worth_a_name() {
        true => Called::Named(cached.statement.generation()),
        false => Called::Unnamed,
    };
    let statement = pipe.client_statement(cached.clone(), called);
    let parsed = if known { Parsed::Here } else { Parsed::There };
    session.statements.parse(
        Name::from_slice(parse.name),
        statement,
        (seq, parsed),
        &pipe.server.session.outstanding,
    );
    if known {
        ask_of_copy(pipe, &cached.statement);
    } else {
        ask_behind_parse(pipe, called, &cached, parse.name, next);
    }
    Ok(message.bytes.len())
}

/// Handles Parse of the unnamed statement. Refrain answers it if the server's unnamed statement is
/// the same (E18) or autoprepare runs it as a named one, and else sends it on: the client's next
/// Bind may come to another server, which then gets the text again (E15).
fn parse_unnamed(
    conn: Conn,
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    message: &Message<'_>,
    parse: &Parse<'_>,
    next: &[u8],
) -> Result<usize, Stop> {
    let cached = intern_parse(pipe, session, parse.tail)?;
    let way = parse_way(conn, pipe, session, message, &cached, next)?;
    pipe.pool().counters.protocol.client_parses += 1;
    let outstanding = &pipe.server.session.outstanding;
    // A failed transaction refuses a Parse (E3), so a fake reply would be wrong there.
    let fails = outstanding.status() == Status::Failed || outstanding.may_have_failed();
    let known = match way {
        ParseWay::Usual => !fails && unnamed_is(&pipe.server.session, &cached),
        ParseWay::Sent => false,
        ParseWay::Named => true,
    };
    let seq = if known {
        pipe.pool().counters.protocol.parses_answered += 1;
        pipe.fake(conn, RequestKind::Parse, FakeReply::Parse)
    } else {
        pipe.send_parse_unnamed(&cached.statement, ReplyAction::Forward)
    };
    let runs_named = way == ParseWay::Named;
    let called = match runs_named {
        true => Called::Named(cached.statement.generation()),
        false => Called::Unnamed,
    };
    let own = pipe.client_statement(cached.clone(), called);
    let outstanding = &pipe.server.session.outstanding;
    session.statements.replace_unnamed(seq, Some(own), outstanding);
    if runs_named {
        session.statements.run_unnamed_as_named();
    }
    if !known {
        ask_behind_parse(pipe, Called::Unnamed, &cached, b"", next);
    }
    Ok(message.bytes.len())
}

/// Handles Parse of a name that the client has already given. PostgreSQL first analyses the text
/// and then refuses the name (42P05). Refrain makes the server do just that: it sends the new text
/// under an internal name that is taken (E4).
fn parse_again(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    message: &Message<'_>,
    parse: &Parse<'_>,
) -> Result<usize, Stop> {
    wait_until_settled(&pipe.server.session.outstanding, &session.statements)?;
    let Some(old) = session.statements.named(parse.name) else {
        return Err(Stop::Replies);
    };
    let id = old.held.cached().statement.id;
    let name = pipe.core_state.shared.protocol.registry.internal();
    pipe.take_name(&name);
    write::parse(pipe.out(), &name, parse.tail);
    pipe.owe(
        OutstandingRequest::new(RequestKind::Parse, ReplyAction::Forward)
            .about(id)
            .called(parse.name),
    );
    Ok(message.bytes.len())
}

/// Whether Refrain can answer a Parse of this statement by a fake reply: the server has it, and
/// would accept a Parse.
fn parse_is_known(pipe: &mut Pipeline<'_>, cached: &CachedStatement) -> Result<bool, Stop> {
    let statement = &cached.statement;
    if pipe.server.session.has(statement).is_none() {
        return Ok(false);
    }
    let outstanding = &pipe.server.session.outstanding;
    // In a failed transaction PostgreSQL refuses a Parse, except that of a statement which ends the
    // transaction (E3).
    match outstanding.status() {
        Status::Idle if !outstanding.may_have_failed() => Ok(true),
        Status::Transaction if !outstanding.has_unsettled() => Ok(true),
        Status::Failed if outstanding.is_empty() => Ok(statement.scan.kind == Kind::TransactionEnd),
        Status::Idle | Status::Transaction | Status::Failed => Err(Stop::Replies),
    }
}
