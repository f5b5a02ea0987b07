//! Errors: which requests they strike off, and whether a transaction may have failed.

use refrain_pg_wire::back::Status;
use refrain_pg_wire::tag::back;

use super::{Copying, Outstanding, UnexpectedMessage};
use crate::pipeline::purposes::Purpose;
use crate::pipeline::request_kinds::{Failed, ReplyAction, RequestKind, Syncs};

impl Outstanding {
    /// Applies an error: in an extended message, the server answers nothing more up to the next
    /// Sync. Returns the request that failed, and the range of requests that were struck off.
    ///
    /// # Errors
    /// An error while the server owes nothing: it ends the connection, or answers no request.
    pub(crate) fn fail(&mut self) -> Result<Failed, UnexpectedMessage> {
        let Some(&entry) = self.entries.front() else {
            return Err(self.unexpected(back::ERROR_RESPONSE));
        };
        // The Syncs in doubt are over: the error belongs to the request behind them.
        if entry.kind == RequestKind::Readies {
            self.pop();
            return self.fail();
        }
        self.past.fails();
        let first = self.head;
        let first_segment = self.ended.wrapping_add(1);
        if self.status == Status::Transaction {
            self.status = Status::Failed; // as the ReadyForQuery to come will say
        }
        // A COPY from the client that fails may or may not have skipped the Syncs behind it (E42).
        let syncs = if self.copying == Copying::In { self.doubtful_syncs() } else { Syncs::Sure };
        let waits = matches!(syncs, Syncs::Countable | Syncs::Lost);
        self.copying = if waits { Copying::Counting } else { Copying::No };
        let skips = !entry.kind.ends_segment();
        if syncs != Syncs::Sure {
            self.strike_doubtful(syncs);
        } else if skips {
            while self.entries.front().is_some_and(|entry| entry.kind != RequestKind::Sync) {
                self.pop();
            }
        }
        let open = skips && !waits && self.entries.is_empty();
        // A Query that was skipped did not end the segment.
        self.open |= open;
        let segments = (first_segment, self.ended.wrapping_add(1));
        let failed = Failed { entry, seq: first, until: self.head, segments, open, syncs };
        if failed.covers(self.begins) {
            self.begins = segments.1;
        }
        Ok(failed)
    }

    /// Describes what led to an unexpected message, for the log.
    #[cold]
    pub(crate) fn story(&self) -> String {
        let kind: Vec<RequestKind> = self.entries.iter().map(|entry| entry.kind).collect();
        self.past.story(self.unexpected.map(|unexpected| unexpected.tag), &kind)
    }

    /// True if the transaction has failed for certain: no outstanding request may end it.
    pub(crate) fn has_failed(&self) -> bool {
        self.status == Status::Failed && self.entries.is_empty()
    }

    /// Marks the oldest request, so that the client does not get its reply.
    pub(crate) fn skip_first(&mut self, purpose: Purpose) {
        if let Some(first) = self.entries.front_mut() {
            first.action = ReplyAction::Skip(purpose);
        }
    }

    /// Has nobody get the replies of the oldest requests, up to the next Sync. False if that has
    /// not been sent.
    pub(crate) fn discard_segment(&mut self) -> bool {
        for entry in &mut self.entries {
            if entry.kind == RequestKind::Sync {
                return true;
            }
            entry.action = ReplyAction::Skip(Purpose::Discard);
        }
        false
    }

    /// True if a transaction block that has begun, or may have begun, may have failed in a segment
    /// that is not over.
    pub(crate) fn may_have_failed(&self) -> bool {
        let begun = self.status == Status::Transaction || self.is_unsettled(self.begins);
        begun && self.ended.wrapping_add(1) != self.sent
    }

    /// True if only the outstanding replies will tell whether the transaction has failed.
    pub(crate) fn is_in_doubt(&self) -> bool {
        (self.status == Status::Failed || self.may_have_failed()) && !self.entries.is_empty()
    }

    /// Notes that a command has ended the failed transaction, or the part of it that failed.
    pub(crate) fn recovers(&mut self) {
        if self.status == Status::Failed {
            self.status = Status::Transaction;
        }
    }
}
