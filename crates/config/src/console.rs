//! The users of the admin console, whatever protocol they speak.

use crate::{AuthMethod, Database, General};

/// The rights of a user at the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleRights {
    /// To run all commands.
    Change,
    /// To run commands that change nothing.
    Look,
    /// None: the user may not log in.
    Nothing,
}

impl General {
    /// Returns the rights of a user at the console.
    pub fn console_rights(&self, user: &str) -> ConsoleRights {
        let open = self.admin_users.is_empty() && self.auth == AuthMethod::Trust;
        if open || self.admin_users.iter().any(|admin| admin == user) {
            ConsoleRights::Change
        } else if self.stats_users.iter().any(|other| other == user) {
            ConsoleRights::Look
        } else {
            ConsoleRights::Nothing
        }
    }
}

impl Database {
    /// The name under which the user as which the program runs needs no password at the console, by
    /// a Unix socket: PgBouncer's rule for its administrators.
    pub const CONSOLE_OWNER: &str = "pgbouncer";

    /// Returns the console's name that a client has asked for, if it has asked for the console.
    pub fn console(name: &str) -> Option<&'static str> {
        Self::CONSOLES.into_iter().find(|console| *console == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    fn rights(head: &str) -> [ConsoleRights; 3] {
        let text =
            format!("{head}\n[users.ann]\npassword = \"x\"\n[databases.d]\nhost = \"127.0.0.1\"\n");
        let options = Options::from_toml(&text).expect("a configuration");
        ["ann", "bob", "carl"].map(|user| options.general.console_rights(user))
    }

    #[test]
    fn admins_change_others_look_and_trust_without_admins_is_open() {
        use ConsoleRights::{Change, Look, Nothing};
        assert_eq!(rights("auth = \"trust\""), [Change; 3]);
        let named = "admin_users = [\"ann\"]\nstats_users = [\"ann\", \"bob\"]";
        assert_eq!(rights(&format!("auth = \"trust\"\n{named}")), [Change, Look, Nothing]);
        assert_eq!(rights(&format!("auth = \"scram\"\n{named}")), [Change, Look, Nothing]);
        assert_eq!(rights("auth = \"scram\""), [Nothing; 3]);
    }

    #[test]
    fn the_console_has_two_names() {
        assert_eq!(Database::console("refrain"), Some("refrain"));
        assert_eq!(Database::console("pgbouncer"), Some("pgbouncer"));
        assert_eq!(Database::console("Refrain"), None);
    }
}
