//! Messages whose bodies are not what the protocol says. PostgreSQL reads the names of a Bind, and
//! any other body to its end, before it does anything; it answers a malformed one with an error
//! (08P01, `pqformat.c`), behind which the session goes on. So Refrain passes on such a message as
//! it is: whatever names it has, the server looks none of them up.
//!
//! Not here: bodies that Refrain cannot take although they are well-formed, like a name of 8 KiB.
//! Those end the session.

use refrain_pg_wire::front::{self as read, Parse, Target};
use refrain_pg_wire::tag::front;

use crate::pipeline::outstanding::RequestKind;
use crate::relay::message::Message;

/// Returns the kind of request as which PostgreSQL refuses a message whose body is malformed;
/// `None` if the body is sound, or if PostgreSQL looks something up before it sees what is wrong.
pub(crate) fn refused(message: &Message<'_>) -> Option<RequestKind> {
    let body = message.body();
    let (kind, is_bad) = match message.header.tag {
        front::PARSE => (RequestKind::Parse, Parse::read(body).is_err()),
        // Behind the two names, PostgreSQL looks the statement up before it reads on.
        front::BIND => (RequestKind::Bind, body.iter().filter(|&&byte| byte == 0).count() < 2),
        front::EXECUTE => (RequestKind::Execute, read::execute_portal(body).is_err()),
        front::DESCRIBE => (RequestKind::DescribeStatement, Target::read(body).is_err()),
        front::CLOSE => (RequestKind::Close, Target::read(body).is_err()),
        front::QUERY => (RequestKind::Query, read::query_text(body).is_err()),
        _ => return None,
    };
    (message.complete && is_bad).then_some(kind)
}
