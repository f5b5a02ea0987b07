//! The turn of a client at a shared server: from now on the server's replies are to the client's
//! request, which may be sent again as long as the client has got none of them.

use refrain_wire::tag::front;

use crate::pipeline::outstanding::{ReplyAction, RequestKind};
use crate::relay::link::{Link, write_fake};
use crate::relay::message::Message;

impl Link<'_> {
    /// Begins the client's turn at a shared server: sends the fake replies that stood behind the
    /// replies to others.
    pub(crate) fn begin_turn(&mut self) {
        self.pipe.server.session.go_on();
        while let Some((seq, reply)) = self.pipe.server.session.outstanding.take_fake_reply() {
            write_fake(self.pipe.ports.out(self.client.conn()), reply);
            self.settle(seq);
        }
        self.drop_answered_parse();
    }

    /// Notes that the client has got the reply to its Parse, if it has: if its request is sent
    /// again, the Parse is not.
    pub(crate) fn drop_answered_parse(&mut self) {
        let first = self.pipe.server.session.outstanding.front();
        let owed = first.is_some_and(|entry| {
            entry.kind == RequestKind::Parse && entry.action == ReplyAction::Forward
        });
        let request = self.client.request().unwrap_or_default();
        let parse = Message::read(request).ok().flatten();
        let parse = parse.filter(|message| message.header.tag == front::PARSE && !owed);
        if let Some(bytes) = parse.map(|message| message.bytes.len()) {
            self.client.drop_from_request(bytes);
        }
    }
}
