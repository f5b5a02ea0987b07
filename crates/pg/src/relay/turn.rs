//! The turn of a client at a shared server: from now on the server's replies are to the client's
//! request, which may be sent again as long as the client has got none of them.

use refrain_pg_wire::tag::front;

use crate::pipeline::outstanding::{Outstanding, ReplyAction, RequestKind};
use crate::relay::message::Message;
use crate::state::parts::Client;

/// Notes that a client has got the reply to its Parse, if it has: if its request is sent again, the
/// Parse is not.
pub(crate) fn drop_answered_parse(client: &mut Client, outstanding: &Outstanding) {
    let owed = outstanding.front().is_some_and(|entry| {
        entry.kind == RequestKind::Parse && entry.action == ReplyAction::Forward
    });
    let request = client.request().unwrap_or_default();
    let parse = Message::read(request).ok().flatten();
    let parse = parse.filter(|message| message.header.tag == front::PARSE && !owed);
    if let Some(bytes) = parse.map(|message| message.bytes.len()) {
        client.drop_from_request(bytes);
    }
}
