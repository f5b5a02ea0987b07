//! A client's session on its way from one core to another.
//!
//! A core's statements and settings are its own: a session refers to them without a lock. So a
//! session that leaves takes along the shared statements and the values of the settings, and the
//! core at which it arrives gives it references to its own.
//!
//! A client moves while it has no server and waits for nothing. Whatever is about a server, or a
//! transaction, is over by then and stays behind.

use crate::settings::session::Settings;
use crate::state::client::ClientSession;
use crate::state::client::login::SessionLogin;
use crate::state::client::settings::ClientSettings;
use crate::state::client::statements::TravellingStatements;
use crate::state::client::suspicion::Suspicion;
use crate::state::core::CorePart;
use crate::state::shared::SharedPart;
use refrain_pool::Now;

/// A client's session on its way from one core to another.
#[derive(Debug)]
pub struct TravellingSession {
    login: SessionLogin,
    settings: ClientSettings,
    statements: TravellingStatements,
    suspicion: Suspicion,
    /// When its last write ended.
    wrote: u64,
}

impl TravellingSession {
    /// Packs the session of a client that [may travel](ClientSession::may_travel).
    pub(crate) fn pack(session: ClientSession) -> Self {
        let ClientSession { login, settings, statements, suspicion, results, .. } = session;
        let wrote = results.wrote();
        Self { login, settings, statements: statements.pack(), suspicion, wrote }
    }

    /// Unpacks the session on the core at which it has arrived.
    pub(crate) fn unpack(self, core: &mut CorePart, shared: &SharedPart) -> ClientSession {
        let mut session = ClientSession::new(&core.nothing, Now(0));
        let Self { login, mut settings, statements, suspicion, wrote } = self;
        session.results.has_written(wrote);
        session.statements = statements.unpack(|statement, settings| {
            let own = core.settings(shared, Settings::edit(settings));
            core.statements.intern(&shared.registry, statement.identity(), &own)
        });
        settings.arrive(|edit| core.settings(shared, edit));
        (session.login, session.settings, session.suspicion) = (login, settings, suspicion);
        session
    }
}
