//! The lines of a dialogue: one function for each message of the protocol.

use refrain_pg_wire::back::Status;
use refrain_pg_wire::tag::{back, front};
use refrain_pg_wire::write::{self, Report};

/// One message, or a pattern for one.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The message as on the wire. Of a pattern, the tag and the words to look for.
    pub(crate) bytes: Vec<u8>,
    /// Whether any message of this tag will do that has these words in it.
    pub(crate) is_pattern: bool,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.bytes.escape_ascii())
    }
}

fn line(fill: impl FnOnce(&mut Vec<u8>)) -> Line {
    let mut bytes = Vec::new();
    fill(&mut bytes);
    Line { bytes, is_pattern: false }
}

fn bare(tag: u8) -> Line {
    line(|out| write::bare(out, tag))
}

fn pattern(tag: u8, words: &str) -> Line {
    Line { bytes: [&[tag], words.as_bytes()].concat(), is_pattern: true }
}

/// Returns bytes as they are.
pub(crate) fn raw(bytes: &[u8]) -> Line {
    Line { bytes: bytes.to_vec(), is_pattern: false }
}

// From clients.

pub(crate) fn startup(minor: u16, parameters: &[(&str, &str)]) -> Line {
    let parameters = parameters.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    line(|out| refrain_pg_wire::startup::write(out, minor, parameters))
}

pub(crate) fn cancel_request(pid: u32, key: &[u8]) -> Line {
    line(|out| refrain_pg_wire::startup::write_cancel(out, pid, key))
}

pub(crate) fn password(body: &[u8]) -> Line {
    line(|out| write::password(out, body))
}

pub(crate) fn query(text: &str) -> Line {
    line(|out| write::query(out, text.as_bytes()))
}

/// Matches any Query with these words in it.
pub(crate) fn query_with(words: &str) -> Line {
    pattern(front::QUERY, words)
}

pub(crate) fn parse(name: &str, text: &str) -> Line {
    line(|out| write::parse(out, name.as_bytes(), &[text.as_bytes(), b"\0\0\0"].concat()))
}

/// Writes a Parse that declares types of parameters, by OID.
pub(crate) fn parse_typed(name: &str, text: &str, oids: &[u32]) -> Line {
    let mut tail = [text.as_bytes(), b"\0"].concat();
    tail.extend_from_slice(&u16::try_from(oids.len()).unwrap_or(0).to_be_bytes());
    oids.iter().for_each(|oid| tail.extend_from_slice(&oid.to_be_bytes()));
    line(|out| write::parse(out, name.as_bytes(), &tail))
}

/// Matches any Parse with these words in its text.
pub(crate) fn parse_with(words: &str) -> Line {
    pattern(front::PARSE, words)
}

pub(crate) fn bind(portal: &str, statement: &str) -> Line {
    line(|out| write::bind(out, portal.as_bytes(), statement.as_bytes()))
}

/// Writes a Bind of one value in text format.
pub(crate) fn bind_value(portal: &str, statement: &str, value: &str) -> Line {
    bind_values(portal, statement, &[value])
}

/// Writes a Bind of values in text format.
pub(crate) fn bind_values(portal: &str, statement: &str, values: &[&str]) -> Line {
    line(|out| {
        write::message(out, front::BIND, |out| {
            write::string(out, portal.as_bytes());
            write::string(out, statement.as_bytes());
            out.extend_from_slice(&[0; 2]);
            out.extend_from_slice(&u16::try_from(values.len()).unwrap_or(0).to_be_bytes());
            for value in values {
                out.extend_from_slice(&u32::try_from(value.len()).unwrap_or(0).to_be_bytes());
                out.extend_from_slice(value.as_bytes());
            }
            out.extend_from_slice(&[0; 2]);
        });
    })
}

pub(crate) fn describe_statement(name: &str) -> Line {
    line(|out| write::describe_statement(out, name.as_bytes()))
}

pub(crate) fn describe_portal(name: &str) -> Line {
    line(|out| write::describe_portal(out, name.as_bytes()))
}

pub(crate) fn execute(portal: &str) -> Line {
    line(|out| write::execute(out, portal.as_bytes()))
}

/// Returns an Execute with a limit of rows.
pub(crate) fn execute_rows(portal: &str, limit: i32) -> Line {
    line(|out| {
        write::message(out, front::EXECUTE, |out| {
            write::string(out, portal.as_bytes());
            out.extend_from_slice(&limit.to_be_bytes());
        });
    })
}

pub(crate) fn close_statement(name: &str) -> Line {
    line(|out| write::close_statement(out, name.as_bytes()))
}

pub(crate) fn close_portal(name: &str) -> Line {
    line(|out| write::close_portal(out, name.as_bytes()))
}

pub(crate) fn sync() -> Line {
    bare(front::SYNC)
}

pub(crate) fn flush() -> Line {
    bare(front::FLUSH)
}

pub(crate) fn terminate() -> Line {
    bare(front::TERMINATE)
}

pub(crate) fn function_call(oid: u32) -> Line {
    line(|out| {
        write::message(out, front::FUNCTION_CALL, |out| {
            out.extend_from_slice(&oid.to_be_bytes());
            out.extend_from_slice(&[0; 6]);
        });
    })
}

/// Writes a piece of a COPY stream: from a client and from a server it looks the same.
pub(crate) fn copy_data(text: &str) -> Line {
    line(|out| {
        write::message(out, front::COPY_DATA, |out| out.extend_from_slice(text.as_bytes()));
    })
}

pub(crate) fn copy_done() -> Line {
    bare(front::COPY_DONE)
}

pub(crate) fn copy_fail(why: &str) -> Line {
    line(|out| write::message(out, front::COPY_FAIL, |out| write::string(out, why.as_bytes())))
}

// From servers.

pub(crate) fn authentication(code: u32, rest: &[u8]) -> Line {
    line(|out| write::authentication(out, code, rest))
}

pub(crate) fn backend_key(pid: u32, key: &[u8]) -> Line {
    line(|out| write::backend_key(out, pid, key))
}

pub(crate) fn parameter(name: &str, value: &str) -> Line {
    line(|out| write::parameter_status(out, name.as_bytes(), value.as_bytes()))
}

pub(crate) fn ready() -> Line {
    line(|out| write::ready(out, Status::Idle))
}

pub(crate) fn ready_in_block() -> Line {
    line(|out| write::ready(out, Status::Transaction))
}

pub(crate) fn ready_failed() -> Line {
    line(|out| write::ready(out, Status::Failed))
}

pub(crate) fn parse_complete() -> Line {
    bare(back::PARSE_COMPLETE)
}

pub(crate) fn bind_complete() -> Line {
    bare(back::BIND_COMPLETE)
}

pub(crate) fn close_complete() -> Line {
    bare(back::CLOSE_COMPLETE)
}

pub(crate) fn no_data() -> Line {
    bare(back::NO_DATA)
}

pub(crate) fn empty_query() -> Line {
    bare(back::EMPTY_QUERY_RESPONSE)
}

pub(crate) fn suspended() -> Line {
    bare(back::PORTAL_SUSPENDED)
}

pub(crate) fn complete(tag: &str) -> Line {
    line(|out| write::command_complete(out, tag.as_bytes()))
}

/// Describes columns of type `text`.
pub(crate) fn columns(names: &[&str]) -> Line {
    line(|out| write::text_columns(out, names))
}

pub(crate) fn row(values: &[&str]) -> Line {
    line(|out| write::text_row(out, values.iter().map(|value| Some(*value))))
}

/// Describes parameters, by the OIDs of their types.
pub(crate) fn parameters(oids: &[u32]) -> Line {
    line(|out| {
        write::message(out, back::PARAMETER_DESCRIPTION, |out| {
            out.extend_from_slice(&u16::try_from(oids.len()).unwrap_or(0).to_be_bytes());
            oids.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
        });
    })
}

pub(crate) fn error(sqlstate: &str, message: &str) -> Line {
    line(|out| write::error(out, &report("ERROR", sqlstate, message)))
}

pub(crate) fn fatal(sqlstate: &str, message: &str) -> Line {
    line(|out| write::error(out, &report("FATAL", sqlstate, message)))
}

/// Writes an error with further fields, each a code and its value.
pub(crate) fn error_with(sqlstate: &str, message: &str, more: &[(u8, &str)]) -> Line {
    line(|out| {
        write::error(out, &report("ERROR", sqlstate, message));
        out.pop();
        for (code, value) in more {
            out.push(*code);
            write::string(out, value.as_bytes());
        }
        out.push(0);
        let length = u32::try_from(out.len() - 1).unwrap_or(0);
        out[1..5].copy_from_slice(&length.to_be_bytes());
    })
}

/// Matches any error with these words in it.
pub(crate) fn error_like(words: &str) -> Line {
    pattern(back::ERROR_RESPONSE, words)
}

pub(crate) fn notice(message: &str) -> Line {
    line(|out| write::notice(out, &report("NOTICE", "00000", message)))
}

pub(crate) fn notification(pid: u32, channel: &str) -> Line {
    line(|out| {
        write::message(out, back::NOTIFICATION_RESPONSE, |out| {
            out.extend_from_slice(&pid.to_be_bytes());
            write::string(out, channel.as_bytes());
            write::string(out, b"");
        });
    })
}

pub(crate) fn copy_in_response() -> Line {
    line(|out| write::message(out, back::COPY_IN_RESPONSE, |out| out.extend_from_slice(&[0; 3])))
}

pub(crate) fn copy_out_response() -> Line {
    line(|out| write::message(out, back::COPY_OUT_RESPONSE, |out| out.extend_from_slice(&[0; 3])))
}

pub(crate) fn function_result() -> Line {
    line(|out| {
        let value = |out: &mut Vec<u8>| out.extend_from_slice(b"\0\0\0\x01t");
        write::message(out, back::FUNCTION_CALL_RESPONSE, value);
    })
}

fn report<'a>(severity: &'a str, sqlstate: &'a str, message: &'a str) -> Report<'a> {
    Report { severity, sqlstate, message, hint: "" }
}

// Several at once.

/// Returns the server's answer to a query string that has one row `1`.
pub(crate) fn one_row() -> Vec<Line> {
    vec![columns(&["a"]), row(&["1"]), complete("SELECT 1"), ready()]
}

/// Returns the messages of an internal query whose text has these words in it.
pub(crate) fn internal(words: &str) -> Vec<Line> {
    vec![
        close_statement("~aside"),
        parse_with(words),
        bind("~aside", "~aside"),
        execute("~aside"),
        close_portal("~aside"),
        close_statement("~aside"),
    ]
}

/// Returns the server's answer to an internal query that has these rows.
pub(crate) fn internal_answer(rows: &[&[&str]]) -> Vec<Line> {
    let mut lines = vec![close_complete(), parse_complete(), bind_complete()];
    lines.extend(rows.iter().map(|values| row(values)));
    lines.extend([complete("SELECT 1"), close_complete(), close_complete()]);
    lines
}

/// Returns Refrain's question for the settings of a session, in a segment of its own.
pub(crate) fn settings_asked() -> Vec<Line> {
    [internal("FROM pg_catalog.pg_settings"), vec![sync()]].concat()
}

/// Returns the server's answer to that question: a name and a value in each row.
pub(crate) fn settings_answer(rows: &[&[&str]]) -> Vec<Line> {
    [internal_answer(rows), vec![ready()]].concat()
}

/// Returns the server's answer to a query that syncs settings and has these values.
pub(crate) fn synced(values: &[&str]) -> Vec<Line> {
    vec![columns(&vec!["set_config"; values.len()]), row(values), complete("SELECT 1"), ready()]
}
