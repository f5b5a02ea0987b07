//! A step of the pool's engine, as PostgreSQL's side sees it.
//!
//! The files of `login` and `step` handle the events, one subject each.

use refrain_pool::Conn;

use crate::relay::follow::sync_settings_if_needed;
use crate::relay::link::Link;
use crate::state::parts::Pg;

/// A step under way.
pub(crate) struct Step<'s, 'a> {
    /// The pool's step.
    pub(crate) step: &'s mut refrain_pool::Step<'a, Pg>,
}

impl Step<'_, '_> {
    /// Borrows a client, its server, and everything that a message between them may touch.
    #[inline]
    pub(crate) fn linked(&mut self, client: Conn, server: Conn) -> Link<'_> {
        self.step.linked(client, server).into()
    }

    /// Gives a client's server the client's settings, unless the server has them.
    pub(crate) fn sync_settings(&mut self, client: Conn, server: Conn) {
        let mut link = self.linked(client, server);
        sync_settings_if_needed(client, &mut link.pipe, &mut link.client.session);
    }
}
