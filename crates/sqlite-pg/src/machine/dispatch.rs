//! Takes one message after the other, picks the file that handles it, and reports its errors.

use refrain_pg_wire::tag::front;

use crate::failure::Failure;
use crate::runs_on::RunsOn;

use super::bounds::{holds_much, is_long};
use super::{Machine, Need, Outcome, Stop, message};

impl Machine {
    /// Handles as many messages as it can. Returns the number of bytes used, and what the machine
    /// waits for.
    pub(crate) fn run(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        runs_on: RunsOn,
    ) -> (usize, Need) {
        self.access.runs_on = runs_on;
        let context = self.access.context.clone();
        context.control.begin();
        let writer_waits = self.access.permit.as_ref().map(|_| self.access.pool.lock_timeout());
        let done = context.enter(runs_on == RunsOn::Loop, writer_waits, || self.work(input, out));
        if matches!(done.1, Need::Input | Need::Close) {
            context.control.end();
        }
        done
    }

    fn work(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Need) {
        let mut used = self.give_up(input, out);
        loop {
            match self.go_on(out) {
                Ok(()) => {}
                Err(Stop::Needs(need)) => return (used, need),
                Err(Stop::Failed(failure)) => self.failed(&failure, out),
                Err(Stop::Stale) => self.failed(&Failure::stale_plan(), out),
            }
            let rest = input.get(used..).unwrap_or_default();
            let (header, body) = match message(rest, self.access.pool.longest_message()) {
                Ok(Some(message)) => message,
                Ok(None) => return (used, Need::Input),
                Err(failure) => {
                    failure.write(out, "FATAL");
                    return (used, Need::Close);
                }
            };
            if self.access.runs_on == RunsOn::Loop
                && (is_long(&header) || holds_much(&self.portals))
            {
                self.access.begins();
                return (used, Need::Thread);
            }
            let behind = rest.get(header.message_bytes()..).unwrap_or_default();
            let mark = out.len();
            match self.message(header.tag, body, behind, out) {
                Ok(()) => {}
                Err(Stop::Needs(need)) => {
                    if matches!(need, Need::Thread | Need::Writer) {
                        // A thread handles the message again, so its replies so far must go.
                        out.truncate(mark);
                    }
                    return (used, need);
                }
                Err(Stop::Failed(failure)) => self.failed(&failure, out),
                Err(Stop::Stale) => self.failed(&Failure::stale_plan(), out),
            }
            used += header.message_bytes();
            if !self.has_work() {
                self.access.began = None;
            }
        }
    }

    /// Ends work that has waited for a thread too long: the running statement, else the next
    /// message. Returns the bytes of that message.
    fn give_up(&mut self, input: &[u8], out: &mut Vec<u8>) -> usize {
        let Some(failure) = self.wait_ended.take() else { return 0 };
        self.access.began = None;
        if self.has_work() {
            self.failed(&failure, out);
            return 0;
        }
        let Ok(Some((header, _))) = message(input, usize::MAX) else { return 0 };
        self.failed(&failure, out);
        if header.tag == front::QUERY {
            self.skipping = false;
            self.ready(out);
        }
        header.message_bytes()
    }

    /// Goes on with a statement that an earlier message began.
    fn go_on(&mut self, out: &mut Vec<u8>) -> Outcome {
        loop {
            if self.rows.is_some() {
                self.more_rows(out)?;
            } else if self.simple.is_some() && self.copy.is_none() {
                self.more_simple(out)?;
            } else {
                return Ok(());
            }
        }
    }

    fn message(&mut self, tag: u8, body: &[u8], behind: &[u8], out: &mut Vec<u8>) -> Outcome {
        if self.copy.is_some() {
            return self.copy_message(tag, body, out);
        }
        match tag {
            front::SYNC => self.sync(out),
            front::TERMINATE => Err(Stop::Needs(Need::Close)),
            // PostgreSQL skips queries and function calls as well (`ignore_till_sync` in
            // `PostgresMain`).
            _ if self.skipping => Ok(()),
            front::QUERY => self.query(body, out),
            front::PARSE => self.parse(body, out),
            front::BIND => self.bind(body, out),
            front::DESCRIBE => self.describe(body, behind, out),
            front::EXECUTE => self.execute(body, behind, out),
            front::CLOSE => self.close(body, out),
            front::FLUSH | front::COPY_DATA | front::COPY_DONE | front::COPY_FAIL => Ok(()),
            front::FUNCTION_CALL => {
                Failure::unsupported("function calls by OID are not supported").write(out, "ERROR");
                self.end_failed();
                self.ready(out);
                Ok(())
            }
            other => {
                let message = format!("invalid frontend message type {other}");
                Failure::protocol(message).write(out, "FATAL");
                Err(Stop::Needs(Need::Close))
            }
        }
    }

    /// Handles Sync. It commits the transaction, unless BEGIN began it.
    fn sync(&mut self, out: &mut Vec<u8>) -> Outcome {
        self.skipping = false;
        self.let_go();
        self.end_segment(out);
        Ok(())
    }
}
