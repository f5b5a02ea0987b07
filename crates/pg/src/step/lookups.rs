//! Users from the database: the jobs that ask for them, and the logins that wait for an answer.

use std::sync::Arc;

use refrain_cache::Waiter;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::event::Level;
use refrain_pool::ids::{Conn, PoolId};
use refrain_wire::tag::front;
use refrain_wire::write;

use crate::engine::Step;
use crate::pipeline::job::Job;
use crate::pipeline::outstanding::{Purpose, RequestKind};
use crate::relay::pipe::Pipeline;
use crate::state::parts::Engine;
use crate::users::known::Terms;
use crate::users::lookup::Lookup;

impl Step<'_, '_> {
    /// Starts to look up a user; true if there is one to look up.
    pub(crate) fn begin_lookup(&mut self, conn: Conn) -> bool {
        let Engine { core_state, connections, .. } = &mut *self.step.engine;
        let Some(server) = connections.server(conn) else { return false };
        let pool = server.pool();
        let Some(lookup) = core_state.pool(pool).protocol.lookups.next() else { return false };
        let mut pipe = Pipeline { now: self.step.now, server, core_state, ports: self.step.ports };
        pipe.send_lookup(&lookup);
        self.step.start_job(conn, Job { lookup: Some(lookup), ..Job::default() }, None);
        true
    }

    /// Ends the job of looking up a user. Returns the logins that wait for the answer.
    pub(crate) fn conclude_lookup(&mut self, pool: PoolId, lookup: Lookup) -> Vec<Waiter> {
        let user = lookup.key().user.clone();
        let (waiters, wrong) = lookup.end(self.step.now);
        if let Some(wrong) = wrong {
            let told = format!("auth_query for user \"{user}\": {wrong}");
            self.step.note_pool(pool, Level::Error, DisconnectReason::UserLookup, told);
        }
        waiters
    }

    /// Tells logins that have waited long enough for an answer.
    pub(crate) fn tick_lookups(&mut self) {
        let shared = self.step.engine.core_state.shared.clone();
        let terms = Terms::of(&shared.options().general);
        let woken = shared.protocol.known_users().tick(&terms, self.step.now);
        self.wake_for_reply(woken);
    }
}

impl Pipeline<'_> {
    /// Sends the query for a user, under the server's own settings: those of the last client could
    /// give the names in the query another meaning.
    fn send_lookup(&mut self, lookup: &Lookup) {
        let defaults = self.server.session.settings.defaults().clone();
        let settings = Arc::clone(&defaults.settings);
        self.give_settings(&settings, &defaults, false);
        let key = lookup.key();
        let name = self.core_state.shared.protocol.registry.internal();
        let out = self.out();
        // An earlier one that failed half-way may have left its statement.
        write::close_statement(out, &name);
        write::parse(out, &name, &[key.source.query.as_bytes(), &[0; 3]].concat());
        write::message(out, front::BIND, |out| {
            write::string(out, &name);
            write::string(out, &name);
            let user = key.user.as_bytes();
            let length = u32::try_from(user.len()).unwrap_or_default();
            // No formats, one value, no formats of columns: all is text.
            out.extend_from_slice(&[0, 0, 0, 1]);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(user);
            out.extend_from_slice(&[0, 0]);
        });
        write::execute(out, &name);
        write::close_portal(out, &name);
        write::close_statement(out, &name);
        use RequestKind::{Bind, Close, Execute, Parse};
        for kind in [Close, Parse, Bind, Execute, Close, Close] {
            self.owe_us(kind, Purpose::Verify, 0);
        }
        self.end_segment(Purpose::Verify);
    }
}
