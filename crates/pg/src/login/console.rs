//! Logins to the admin console: who may, and what the client is told.

use refrain_config::{ConsoleRights, Database, Options, UserSecret};
use refrain_pg_wire::back::Status;
use refrain_pg_wire::write::{self, Report};
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::ids::Peer;
use refrain_pool::lobby::Counted;

use crate::auth::{AuthStep, Authenticated, Credential, Password};
use crate::console::session::Session;
use crate::engine::ClientLogin;
use crate::ground::reports::PoolerError;
use crate::state::client::login::LoginRequest;
use crate::state::parts::Shared;
use crate::state::shared::SharedPart;

/// The console's server version, in PgBouncer's form: collectors of metrics tell by it which
/// commands the console understands.
const SERVER_VERSION: &[u8] = b"1.24.1/bouncer";

impl ClientLogin<'_, '_> {
    /// Lets a client into the console without a password, if the operating system says that it is
    /// the user as which the program runs, and it calls itself `pgbouncer`: PgBouncer's rule for
    /// its administrators, whatever the options say. False if the client is another.
    pub(crate) fn owner_enters(&mut self, login_request: &LoginRequest) -> bool {
        let LoginRequest { database, user, .. } = login_request;
        let console = Database::console(database);
        let is_named = user == Database::CONSOLE_OWNER;
        let Some(name) = console.filter(|_| is_named) else { return false };
        let Some(client) = self.step.engine.connections.client(self.conn) else { return false };
        if !matches!(client.peer(), Peer::Unix { is_own: true, .. }) {
            return false;
        }
        let AuthStep::Done(authenticated, requests) = AuthStep::trust(user) else { return false };
        let out = self.step.ports.out(self.conn);
        requests.iter().for_each(|request| request.write(out));
        self.enter_console(authenticated, name, Session::of_owner());
        true
    }

    /// Lets a client into the console.
    pub(crate) fn enter_console(
        &mut self,
        authenticated: Authenticated,
        name: &'static str,
        session: Session,
    ) {
        let options = self.step.engine.core_state.shared.options();
        let rights = options.general.console_rights(authenticated.user());
        let may_look = session.is_owner() || rights != ConsoleRights::Nothing;
        if !may_look {
            let report = Report {
                severity: "FATAL",
                sqlstate: "42501",
                message: "not allowed to use the admin console",
                hint: "Add the user to admin_users or stats_users.",
            };
            return self.refuse_client(DisconnectReason::Login, PoolerError::Console, &report);
        }
        if !self.step.count_as(self.conn, Counted::Console) {
            return self.step.end_client(self.conn, DisconnectReason::TooManyClients);
        }
        let out = self.step.ports.out(self.conn);
        let said: [(&[u8], &[u8]); 5] = [
            (b"server_version", SERVER_VERSION),
            (b"client_encoding", b"UTF8"),
            (b"server_encoding", b"UTF8"),
            (b"DateStyle", b"ISO"),
            (b"standard_conforming_strings", b"on"),
        ];
        said.iter().for_each(|(name, value)| write::parameter_status(out, name, value));
        write::ready(out, Status::Idle);
        if let Some(client) = self.step.engine.connections.client(self.conn) {
            client.session.login.let_in_to_console(authenticated, name, session);
        }
        self.step.client_logged_in(self.conn);
    }
}

/// Whether a user may look at the console and has this password. Users whom only a database knows
/// are unknown here: nobody waits for its answer.
pub fn may_look(shared: &Shared, user: &str, password: &str) -> bool {
    let options = shared.options();
    let Some(sent) = Password::new(password) else { return false };
    let is_right = |of: &Credential| of.check_password(sent.clone()).is_some();
    // All of them are checked, so that the time is the same.
    let of_user = credentials(&shared.protocol, &options, user);
    let right = of_user.iter().filter(|credential| is_right(credential)).count();
    right > 0 && options.general.console_rights(user) != ConsoleRights::Nothing
}

/// Returns the credential of a user, and perhaps one that no password satisfies. A SCRAM secret is
/// slow to check. Where any user has one, there is exactly one among those returned for each user,
/// known or not: the time of a check tells nobody who has one.
fn credentials(shared: &SharedPart, options: &Options, user: &str) -> Vec<Credential> {
    let is_slow = options.users.iter().any(|it| matches!(it.secret, UserSecret::Scram(_)));
    let own = match options.secret(user) {
        Some(secret) => shared.configured_credential(user, secret),
        None => shared.unknown_credential(user, is_slow),
    };
    let needs_other = is_slow && !own.is_scram();
    let other = needs_other.then(|| shared.unknown_credential(user, true));
    [own].into_iter().chain(other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRAM: &str = "SCRAM-SHA-256$4096:TgBFWONF8iwXk4FS6v6NPA==$\
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

    /// Returns how many SCRAM secrets are checked for a user of each kind, if `ann` has this one.
    fn slow_checks(of_ann: &str) -> [usize; 4] {
        let text = format!(
            "auth = \"md5\"\n[databases.d]\nhost = \"h\"\n[users.ann]\npassword = {of_ann:?}\n\
             [users.bob]\npassword = \"plain\"\n\
             [users.carl]\npassword = \"md5{}\"\n",
            "0".repeat(32)
        );
        let options = Options::from_toml(&text).unwrap();
        let shared = SharedPart::new(&options, &mut |bytes| bytes.fill(7));
        ["ann", "bob", "carl", "nobody"].map(|user| {
            let all = credentials(&shared, &options, user);
            all.iter().filter(|credential| credential.is_scram()).count()
        })
    }

    #[test]
    fn a_login_costs_the_same_for_every_user() {
        assert_eq!(slow_checks(SCRAM), [1; 4]);
        assert_eq!(slow_checks("plain"), [0; 4]);
    }
}
