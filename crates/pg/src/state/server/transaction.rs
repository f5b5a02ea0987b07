//! TransactionChanges: what a server's transaction may have changed beyond its session.

use crate::ground::ids::Segment;
use crate::ground::schema::{DEFINES, Defining};
use crate::pipeline::outstanding::Outstanding;
use crate::results::writing::Writing;

/// Changes that a server's transaction may have made beyond its session. Other sessions see them
/// once the transaction is over: whoever reads that ReadyForQuery takes them, and spreads them.
#[derive(Debug, Default)]
pub(crate) struct TransactionChanges {
    /// Whether a command may have changed the schema.
    schema: bool,
    /// Held while a request that may change the schema is under way, or its transaction.
    defining: Option<Defining>,
    /// Whether a command may have changed the defaults of new sessions.
    defaults: bool,
    /// The writes that it may have made, where replies are kept that they may make wrong.
    writing: Option<Box<Writing>>,
}

impl TransactionChanges {
    /// True if a request that may change the schema has been sent.
    #[inline]
    pub(crate) fn is_defining(&self) -> bool {
        self.defining.is_some()
    }

    /// Notes that a request is sent that may change the schema.
    pub(crate) fn begin_defining(&mut self, defining: Defining) {
        self.defining = Some(defining);
    }

    /// Returns the hold on the schema, at the end of a transaction: no request is left that may
    /// change the schema. The caller counts the change before it drops the hold.
    #[inline]
    pub(crate) fn end_defining(&mut self, outstanding: &Outstanding) -> Option<Defining> {
        self.defining.take_if(|_| !outstanding.intersects(DEFINES))
    }

    /// Whether it may have written anything.
    #[inline]
    pub(crate) fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// Returns the writes that it may have made, which `begin` makes if there are none yet.
    pub(crate) fn write(&mut self, begin: impl FnOnce() -> Writing) -> &mut Writing {
        self.writing.get_or_insert_with(|| Box::new(begin()))
    }

    /// Notes that a text is sent that may commit its writes.
    pub(crate) fn may_commit(&mut self, segment: Segment) {
        self.writing.iter_mut().for_each(|writing| writing.may_commit(segment));
    }

    /// Ends its writes, at the end of a transaction, as far as the server owes no reply that may
    /// follow from them.
    pub(crate) fn end_writes(&mut self, outstanding: &Outstanding) {
        let is_over = |segment| outstanding.is_empty() || outstanding.is_over(segment);
        drop(self.writing.take_if(|writing| writing.end(is_over)));
    }

    /// Ends the doubt about its writes, in a transaction block, as far as the server owes no reply
    /// that may follow from them.
    pub(crate) fn stay_writes(&mut self, outstanding: &Outstanding) {
        let is_over = |segment| outstanding.is_empty() || outstanding.is_over(segment);
        self.writing.iter_mut().for_each(|writing| writing.stay(is_over));
    }

    /// Notes that a command may have changed the schema.
    pub(crate) fn change_schema(&mut self) {
        self.schema = true;
    }

    /// True if a command may have changed the schema. A rollback would take that back.
    pub(crate) fn changes_schema(&self) -> bool {
        self.schema
    }

    /// Takes, at the end of a transaction, whether it may have changed the schema.
    #[inline]
    pub(crate) fn take_schema(&mut self) -> bool {
        std::mem::take(&mut self.schema)
    }

    /// Notes that a command may have changed the defaults of new sessions.
    pub(crate) fn change_defaults(&mut self) {
        self.defaults = true;
    }

    /// Takes, at the end of a transaction, whether it may have changed the defaults of new
    /// sessions.
    #[inline]
    pub(crate) fn take_defaults(&mut self) -> bool {
        std::mem::take(&mut self.defaults)
    }
}
