//! The messages of a session: picks the function for each, and runs the statements of a Query.

use refrain_pg_wire::front::query_text;
use refrain_pg_wire::tag::{back, front};
use refrain_pg_wire::write;

use crate::fault::{Fault, syntax_error};
use crate::lang::{self, Statement};
use crate::session::Session;

impl Session {
    /// Handles a message. `interrupted` says whether a cancel request hits it.
    pub fn handle(&mut self, tag: u8, body: &[u8], interrupted: bool) {
        if self.ended {
            return;
        }
        if tag == front::TERMINATE && self.copying.is_none() {
            self.ended = true;
        } else if self.copying.is_some() {
            self.copy(tag, body);
        } else if self.skipping && tag != front::SYNC {
            // ignored
        } else {
            self.message(tag, body, interrupted);
        }
        if self.out.len() > self.ready + 8192 {
            self.ready = self.out.len();
        }
    }

    /// Cancels a COPY that waits for data.
    pub fn interrupt_copy(&mut self) {
        if let Some(copy) = self.copying.take() {
            self.copy_ends(copy, Err(Fault::cancelled()));
        }
    }

    fn message(&mut self, tag: u8, body: &[u8], interrupted: bool) {
        let conflicts = std::mem::take(&mut self.stand.conflicts);
        let hit = match (interrupted, conflicts) {
            (true, _) => Err(Fault::cancelled()),
            (false, true) => Err(Fault::in_the_way()),
            (false, false) => Ok(()),
        };
        let result = match tag {
            front::QUERY => {
                self.query(body, hit);
                return;
            }
            front::FUNCTION_CALL => {
                let result = hit.and_then(|()| self.function_call(body));
                self.finish(result);
                return;
            }
            front::SYNC => {
                self.skipping = false;
                self.finish(hit);
                return;
            }
            front::FLUSH => {
                self.ready = self.out.len();
                return;
            }
            front::COPY_DATA | front::COPY_DONE | front::COPY_FAIL => return,
            front::PARSE => {
                // PostgreSQL drops the old unnamed statement before it checks for cancel requests.
                let unnamed = body.first() == Some(&0);
                unnamed.then(|| self.statements.remove(""));
                hit.and_then(|()| self.parse(body))
            }
            front::BIND => hit.and_then(|()| self.bind(body)),
            front::EXECUTE => hit.and_then(|()| self.execute(body)),
            front::DESCRIBE => hit.and_then(|()| self.describe(body)),
            front::CLOSE => hit.and_then(|()| self.close(body)),
            _ => Err(Fault::protocol("invalid frontend message type")),
        };
        if let Err(fault) = result {
            self.fail(&fault);
            self.skipping = true;
        }
    }

    fn query(&mut self, body: &[u8], hit: Result<(), Fault>) {
        self.statements.remove("");
        let text = query_text(body).map(|text| String::from_utf8_lossy(text).into_owned());
        let text = text.unwrap_or_default();
        if self.pretends && text.starts_with(crate::plant::MARK) {
            return self.pretend(&text);
        }
        let statements = lang::parse(&text);
        if hit.is_ok() && statements.is_empty() {
            write::bare(&mut self.out, back::EMPTY_QUERY_RESPONSE);
            return self.finish(Ok(()));
        }
        let wrong = statements.iter().find_map(|statement| match statement {
            Statement::Wrong(word) => Some(syntax_error(word)),
            _ => None,
        });
        let result = hit.and(wrong.map_or(Ok(()), Err)).and_then(|()| {
            statements.iter().try_for_each(|statement| {
                self.admit(statement)?;
                self.begin_implicit();
                self.run_simply(statement)
            })
        });
        if self.copying.is_some() && result.is_ok() {
            self.ready = self.out.len();
            return;
        }
        self.finish(result);
    }
}
