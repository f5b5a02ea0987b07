//! KILL: a client ends the statement or the session of another client of its user.
//!
//! The statement is ended by a side connection to the server that works for the client: Refrain
//! logs in there and says KILL QUERY ([`killing`](crate::killing)). The number in the client's text
//! is not the server's, so a text with KILL as a statement does not reach a server. KILL does in a
//! string that a server prepares or executes, and as the first statement of a block (BEGIN NOT
//! ATOMIC) or of a routine. Then the server takes the number for one of its own.

use refrain_mysql_wire::{Header, error_code};
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::{Conn, Step};

use crate::answers;
use crate::errors::{self, Brand};
use crate::parts::My;
use crate::sending::{Told, has_to_wait, refuse, tell};
use crate::sessions::Named;

/// The most words that such a text has.
const WORDS_MAX: usize = 8;

/// The thing that KILL ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Statement,
    Session,
}

/// The client that KILL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whom {
    /// By a number.
    Number(u64),
    /// The one that says it.
    Oneself,
}

/// Handles KILL. Returns the number of bytes handled; `None` if the client has to wait, or is gone.
pub(crate) fn kill(
    step: &mut Step<'_, My>,
    conn: Conn,
    text: &[u8],
    packet: (Header, usize),
) -> Option<usize> {
    if has_to_wait(step, conn) {
        return None;
    }
    let client = step.engine.connections.client(conn)?;
    let brand = client.session.brand.unwrap_or(Brand::MySql);
    let (own, serial) = (client.pid(), client.serial());
    let user = client.session.agreed()?.user.clone();
    let refuses = |step: &mut Step<'_, My>, code, words: &str| {
        refuse(step, conn, Told { code, words }, packet)
    };
    let Some((ends, whom)) = read(text) else {
        let words = errors::not_supported("KILL of this kind behind a proxy", brand);
        return refuses(step, error_code::NOT_SUPPORTED_YET, &words);
    };
    let sessions = step.engine.core_state.shared.protocol.sessions.clone();
    let (number, serial) = match whom {
        Whom::Oneself => (own, serial),
        Whom::Number(number) => match sessions.find(number, &user) {
            Named::Client(number, serial) => (number, serial),
            Named::OfAnother => {
                return refuses(step, error_code::KILL_DENIED, &errors::not_owner(number));
            }
            Named::Nobody => {
                return refuses(step, error_code::NO_SUCH_THREAD, &errors::unknown_thread(number));
            }
            Named::Several => {
                let what = "KILL by a number that several clients have";
                let words = errors::not_supported(what, brand);
                return refuses(step, error_code::NOT_SUPPORTED_YET, &words);
            }
        },
    };
    match (ends, number == own) {
        (Ends::Session, true) if brand == Brand::MariaDb => {
            step.end_client(conn, DisconnectReason::Killed);
            None
        }
        (_, true) => {
            let told = errors::INTERRUPTED;
            let handled = refuses(step, told.code, told.words);
            if ends == Ends::Session {
                step.end_client(conn, DisconnectReason::Terminated);
                return None;
            }
            handled
        }
        (Ends::Statement, false) => {
            let handled = succeeds(step, conn, packet);
            step.cancel_request(number, &[]);
            handled
        }
        (Ends::Session, false) => {
            let handled = succeeds(step, conn, packet);
            step.cancel_request(number, &[]);
            sessions.take_out(number);
            step.kill_anywhere(serial);
            handled
        }
    }
}

fn succeeds(step: &mut Step<'_, My>, conn: Conn, packet: (Header, usize)) -> Option<usize> {
    tell(step, conn, packet, |out, session| answers::ok(out, session.status))
}

/// Reads the text of KILL. `None` if it is of a kind that Refrain does not serve, such as one with
/// a user's name or an expression.
fn read(text: &[u8]) -> Option<(Ends, Whom)> {
    let words = words(text)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let words = words.strip_suffix(&[";"]).unwrap_or(&words);
    let rest = words.strip_prefix(&["kill"])?;
    let rest = match rest {
        ["hard" | "soft", rest @ ..] => rest,
        rest => rest,
    };
    let (ends, rest) = match rest {
        ["query", rest @ ..] => (Ends::Statement, rest),
        ["connection", rest @ ..] => (Ends::Session, rest),
        rest => (Ends::Session, rest),
    };
    let whom = match rest {
        ["connection_id", "(", ")"] => Whom::Oneself,
        [number] => Whom::Number(number.parse().ok()?),
        _ => return None,
    };
    Some((ends, whom))
}

/// Returns the words of a text without comments, in lower case. `None` if it has more than KILL
/// has, or anything else.
fn words(text: &[u8]) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(&byte) = rest.first() {
        let length = match byte {
            b' ' | b'\t'..=b'\r' => {
                rest = &rest[1..];
                continue;
            }
            // Servers run what is in some of these comments.
            b'/' if rest.starts_with(b"/*!") || rest.starts_with(b"/*M!") => return None,
            b'/' if rest.starts_with(b"/*") => {
                let end = rest.windows(2).skip(2).position(|pair| pair == b"*/")?;
                rest = &rest[end + 4..];
                continue;
            }
            b'(' | b')' | b';' => 1,
            _ => {
                let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len())
            }
        };
        if length == 0 || words.len() == WORDS_MAX {
            return None;
        }
        let (word, behind) = rest.split_at(length);
        words.push(String::from_utf8_lossy(word).to_ascii_lowercase());
        rest = behind;
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_killed() {
        let number = |ends, number| Some((ends, Whom::Number(number)));
        for (text, due) in [
            ("KILL 5", number(Ends::Session, 5)),
            ("kill query 5;", number(Ends::Statement, 5)),
            (
                "/* of a library */ KILL /**/ CONNECTION\n 18446744073709551615",
                number(Ends::Session, u64::MAX),
            ),
            ("KILL SOFT QUERY 7 ;", number(Ends::Statement, 7)),
            ("KILL HARD 7", number(Ends::Session, 7)),
            ("KILL QUERY CONNECTION_ID( )", Some((Ends::Statement, Whom::Oneself))),
            ("KILL", None),
            ("KILL QUERY", None),
            ("KILL QUERY ID 5", None),
            ("KILL USER app", None),
            ("KILL 5 + 1", None),
            ("KILL @a", None),
            ("KILL '5'", None),
            ("KILL 18446744073709551616", None),
            ("KILL 5; KILL 6", None),
            ("KILL 5 /* and so on", None),
            ("KILL /*!50000 QUERY */ 5", None),
            ("KILL /*M! QUERY */ 5", None),
            ("KILL /*!99999 QUERY */ 5", None),
            ("", None),
        ] {
            assert_eq!(read(text.as_bytes()), due, "{text}");
        }
    }
}
