//! Messages that wait: what they mean depends on replies that are still to come.

use crate::relay::learn::know_settings;
use crate::relay::link::{Link, Stop};
use crate::settings::session;
use crate::statements::of_core::CachedStatement;

impl Link<'_> {
    /// Waits until no earlier segment can undo a change to the client's statements (E1, E2): a name
    /// that was closed may be taken after all, and one that was parsed may be free.
    pub(crate) fn wait_until_settled(&self) -> Result<(), Stop> {
        let outstanding = &self.pipe.server.session.outstanding;
        match self.client.session.statements.are_names_unsettled(outstanding) {
            true => Err(Stop::Replies),
            false => Ok(()),
        }
    }

    /// Waits until nothing is outstanding: a query that Refrain answers itself depends on the state
    /// of the transaction.
    pub(crate) fn wait_until_quiet(&self) -> Result<(), Stop> {
        if self.pipe.server.session.outstanding.is_empty() { Ok(()) } else { Err(Stop::Replies) }
    }

    /// Waits until it is known whether the server still has a statement that Refrain closed there
    /// to make room. An error before the Close would skip it, and the statement would still be
    /// there (E24).
    pub(crate) fn wait_in_doubt(&self, cached: &CachedStatement) -> Result<(), Stop> {
        if self.pipe.server.session.statements.is_closing(cached.statement.id) {
            return Err(Stop::Replies);
        }
        Ok(())
    }

    /// Whether a statement was parsed under other settings than the client has now, and these
    /// decide how the server reads its constants (E57).
    pub(crate) fn is_foreign(&self, cached: &CachedStatement) -> bool {
        // A failed transaction refuses a Parse under any settings.
        !session::read_alike(&cached.settings, self.client.session.settings.current())
            && cached.statement.has_constants()
            && !self.pipe.server.session.outstanding.has_failed()
    }

    /// Waits as [`Self::wait_for_reading`] does, if the server lacks the statement.
    #[inline]
    pub(crate) fn wait_for_foreign(
        &mut self,
        name: &[u8],
        cached: &CachedStatement,
    ) -> Result<(), Stop> {
        if !self.may_be_read_otherwise(cached) {
            return Ok(());
        }
        let there = match name.is_empty() {
            true => self.unnamed_is(cached),
            false => self.pipe.server.session.has(&cached.statement).is_some(),
        };
        if there { Ok(()) } else { self.wait_for_reading(cached) }
    }

    /// Waits until the client's settings are known, if the statement's constants depend on them
    /// (E57). Requests under way may change the settings, or take a change back. Then Refrain knows
    /// whether to prepare it under other settings.
    pub(crate) fn wait_for_reading(&mut self, cached: &CachedStatement) -> Result<(), Stop> {
        if !self.may_be_read_otherwise(cached) {
            return Ok(());
        }
        know_settings(&mut self.pipe, &self.client.session)?;
        let ready = self.pipe.server.session.outstanding.is_empty() || !self.is_foreign(cached);
        if ready { Ok(()) } else { Err(Stop::Replies) }
    }

    /// Whether a statement has constants that the server may read in another way than at the
    /// client's Parse.
    #[inline]
    fn may_be_read_otherwise(&self, cached: &CachedStatement) -> bool {
        let unknown = || self.client.session.settings.unknown_since();
        let unsure = || unknown().is_some_and(|since| since.reads);
        (unsure() || self.is_foreign(cached)) && cached.statement.has_constants()
    }

    /// Whether the server's unnamed statement is this one for certain, in its current generation.
    pub(crate) fn unnamed_is(&self, cached: &CachedStatement) -> bool {
        let unnamed = self.pipe.server.session.statements.unnamed();
        unnamed.id == cached.statement.id
            && unnamed.generation == cached.statement.generation()
            && !self.pipe.server.session.outstanding.is_unsettled(unnamed.segment)
    }
}
