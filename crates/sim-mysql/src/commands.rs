//! The commands of the model server's sessions.

use crate::reply::{Outcome, Reply};
use crate::session::{Lie, Session};
use crate::wire::{Message, com};

impl Session {
    /// Handles a message.
    pub fn handle(&mut self, message: &Message) -> Reply {
        let Some(agreed) = self.agreed else { return self.log_in(message) };
        let mut reply = Reply::to(message.last, agreed);
        if let Some((tag, mut file)) = self.file.take() {
            if message.payload.is_empty() {
                self.load(&mut reply, &tag, &file);
            } else {
                file.extend_from_slice(&message.payload);
                self.file = Some((tag, file));
            }
            return reply;
        }
        if message.first != 0 {
            reply.sequence = 0;
            reply.err(1156, "08S01", "Got packets out of order");
            reply.closes = true;
            return reply;
        }
        let Some((&command, body)) = message.payload.split_first() else {
            reply.err(1047, "08S01", "Unknown command");
            return reply;
        };
        self.command(command, body, &mut reply);
        self.ended |= reply.closes;
        reply
    }

    fn command(&mut self, command: u8, body: &[u8], reply: &mut Reply) {
        let text = String::from_utf8_lossy(body);
        match command {
            com::QUIT => reply.closes = true,
            com::PING => {
                let status =
                    if self.lie == Lie::OldStatus { self.last_status } else { self.status() };
                reply.ok(0, Outcome { status, ..Outcome::default() }, &[]);
            }
            com::INIT_DB => self.use_schema(&text, reply),
            com::QUERY => self.text(&text, reply),
            com::RESET_CONNECTION => {
                self.reset();
                self.ok(reply, Outcome::default());
            }
            com::SET_OPTION => {
                if self.lie != Lie::KeepsOption {
                    self.has_several = body.first() == Some(&0);
                }
                self.end_of_rows(reply, 0);
            }
            com::PREPARE
            | com::EXECUTE
            | com::LONG_DATA
            | com::CLOSE
            | com::STMT_RESET
            | com::FETCH => self.statement(command, body, reply),
            _ => reply.err(1047, "08S01", "Unknown command"),
        }
    }
}
