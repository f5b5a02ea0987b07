//! The user of a client that logs in: configured, known from the database, or to be looked up
//! there.
//!
//! The client waits for the answer in its login, within `client_login_timeout`. If it leaves, the
//! lookup goes on for others, and for the next login.

use refrain_cache::Waiter;
use refrain_config::AuthQuery;
use refrain_pool::Now;
use refrain_pool::ids::PoolId;

use crate::auth::Credential;
use crate::engine::ClientLogin;
use crate::pipeline::job::Job;
use crate::state::client::login::{LoginRequest, NAME_BYTES_MAX};
use crate::state::parts::{CoreState, Shared, waiter};
use crate::users::known::{FoundUser, Look, Terms, UserKey};
use crate::users::lookup::Lookup;

/// The user of a login, as far as the user is known.
pub(crate) enum UserFound {
    /// The credential; of an unknown user, one that no proof satisfies.
    Credential(Credential),
    /// The database is asked: the client is told when its answer is there, or will not come.
    Later,
    /// The database cannot be asked.
    Nothing,
}

impl ClientLogin<'_, '_> {
    /// Returns the credential of a client's user, or begins to ask the database. `since` is when
    /// the client began to wait for its answer, if it did.
    pub(crate) fn find_user(
        &mut self,
        login_request: &LoginRequest,
        since: Option<Now>,
    ) -> UserFound {
        let shared = self.step.engine.core_state.shared.clone();
        let options = shared.options();
        let user = &login_request.user;
        if let Some(secret) = options.secret(user) {
            return UserFound::Credential(shared.protocol.configured_credential(user, secret));
        }
        let Some(source) = options.auth_query(&login_request.database) else {
            return UserFound::Credential(shared.protocol.unknown_credential(user, false));
        };
        // PostgreSQL has cut this name within a character: no role has such a name, and no server
        // could be asked for it.
        if user.len() > NAME_BYTES_MAX {
            return UserFound::Credential(shared.protocol.unknown_credential(user, true));
        }
        let key = key(source, user);
        let Some(waiter) = self.waiter() else { return UserFound::Later };
        let terms = Terms::of(&options.general);
        let known = shared.protocol.known_users();
        let Look { found, asks } = known.look(&key, &terms, self.step.now, since, waiter);
        if asks {
            self.look_up(key);
        }
        match found {
            FoundUser::Answer(Some(credential)) => UserFound::Credential(credential),
            FoundUser::Answer(None) => {
                UserFound::Credential(shared.protocol.unknown_credential(user, true))
            }
            FoundUser::Wait => UserFound::Later,
            FoundUser::Nothing => UserFound::Nothing,
        }
    }

    fn waiter(&mut self) -> Option<Waiter> {
        let core = self.step.engine.core_state.core();
        Some(waiter(core, self.step.engine.connections.client(self.conn)?))
    }

    /// Has a server of the database asked, in the pool's line.
    fn look_up(&mut self, key: UserKey) {
        let shared = self.step.engine.core_state.shared.clone();
        let (database, user) = (key.source.database.clone(), key.source.user.clone());
        let lookup = Lookup::new(shared.protocol.known_users().clone(), key);
        // If there is no such pool, or there are too many, the lookup is lost.
        let Some(pool) = shared.pool(&database, &user) else { return };
        let part = self.step.engine.core_state.open_pool(&pool, self.step.now);
        part.protocol.lookups.push(lookup);
        if part.waiting_jobs() == 0 {
            self.step.queue_job(pool.id, Job::default());
        }
    }
}

/// Notes that a client could not prove who it is: the password in the database may be a new one.
pub(crate) fn doubt_user(shared: &Shared, database: &str, user: &str, now: Now) {
    let options = shared.options();
    if options.secret(user).is_none()
        && let Some(source) = options.auth_query(database)
    {
        shared.protocol.known_users().doubt(&key(source, user), now);
    }
}

/// Notes that a pool's servers refuse the secret with which Refrain has logged in: it is that of a
/// client, and the database has another one by now.
pub(crate) fn doubt_secret(core_state: &mut CoreState, id: PoolId, version: u32, now: Now) {
    let Some(pool) = core_state.find_pool(id) else { return };
    let (database, user) = (pool.shared.database.clone(), pool.shared.user.clone());
    if pool.shared.protocol.forget_secret(version) {
        doubt_user(&core_state.shared, &database, &user, now);
    }
}

fn key(source: AuthQuery, user: &str) -> UserKey {
    UserKey { source: source.into(), user: user.into() }
}
