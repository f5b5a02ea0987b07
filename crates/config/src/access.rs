//! Logins of clients: the rules for them, read from the options themselves or from files, and the
//! secrets of users that may be of no use.

use std::path::Path;

use crate::choices::AuthMethod;
use crate::database::Database;
use crate::general::General;
use crate::hba::{self, Groups, Hba, Source, Texts};
use crate::machine::Machine;
use crate::secret::UserSecret;

/// Reads rules and maps. Returns each problem with the option that it belongs to.
pub(crate) fn read(
    general: &General,
    groups: &Groups,
    machine: &dyn Machine,
) -> Result<Hba, Vec<(&'static str, String)>> {
    let mut problems = Vec::new();
    let mut source = |text: Option<&String>, file: Option<&Path>, option| match (text, file) {
        (Some(text), _) => Some(Source { file: None, text: text.clone() }),
        (None, Some(path)) => match machine.read(path) {
            Ok(text) => Some(Source { file: Some(path.into()), text }),
            Err(error) => {
                let name = path.display();
                problems.push((option, format!("could not open file \"{name}\": {error}")));
                None
            }
        },
        (None, None) => None,
    };
    let rules = source(general.hba.as_ref(), general.hba_file.as_deref(), "hba_file");
    let maps = source(general.ident.as_ref(), general.ident_file.as_deref(), "ident_file");
    if !problems.is_empty() {
        return Err(problems);
    }
    let option = |source: &Option<Source>, text, file| match source {
        Some(Source { file: Some(_), .. }) => file,
        _ => text,
    };
    let of_rules = option(&rules, "hba", "hba_file");
    let of_maps = option(&maps, "ident", "ident_file");
    hba::read(&Texts { rules, maps }, groups, machine).map_err(|(in_rules, in_maps)| {
        let in_rules = in_rules.into_iter().map(|problem| (of_rules, problem));
        let in_maps = in_maps.into_iter().map(|problem| (of_maps, problem));
        in_rules.chain(in_maps).collect()
    })
}

/// Whether passwords may come from elsewhere than the table of users.
pub(crate) fn are_elsewhere(general: &General, databases: &[Database]) -> bool {
    general.auth_file.is_some()
        || general.auth_user.is_some()
        || databases.iter().any(|database| database.auth_query.user.is_some())
}

/// Returns the reason why a user with this secret can never log in by this method.
pub(crate) fn unfit(
    secret: &UserSecret,
    auth: AuthMethod,
    databases: &[Database],
) -> Option<&'static str> {
    let some_mysql = databases.iter().any(Database::is_mysql);
    let all_mysql = some_mysql && databases.iter().all(Database::is_mysql);
    match (auth, secret) {
        (AuthMethod::Trust, _) | (AuthMethod::Hba, UserSecret::None) => None,
        (_, UserSecret::Native(_)) if !some_mysql => {
            Some("is a hash of MySQL's, and no database is of MySQL")
        }
        (_, UserSecret::Md5(_) | UserSecret::Scram(_)) if all_mysql => {
            Some("is a hash of PostgreSQL's, and all databases are of MySQL")
        }
        (_, UserSecret::None) => Some("is missing: without a password the user cannot log in"),
        // PostgreSQL refuses empty passwords as well.
        (_, UserSecret::Plain(secret)) if secret.expose().is_empty() => Some("is empty"),
        (AuthMethod::Scram, UserSecret::Md5(_)) => {
            Some("is an MD5 hash, which auth = \"scram\" cannot use")
        }
        (AuthMethod::Password | AuthMethod::Md5 | AuthMethod::Scram | AuthMethod::Hba, _) => None,
    }
}
