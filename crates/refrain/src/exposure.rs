//! Warnings about a configuration that shows secrets to others, opens a door wider than it seems,
//! or asks other name servers.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use refrain_config::{AuthMethod, Host, Options, User, UserSecret};

use crate::dns;
use crate::source::{From, PasswordFrom, Source};

/// Returns the warnings.
pub(crate) fn warnings(source: &Source, options: &Options) -> Vec<String> {
    let mut warnings = Vec::new();
    if let From::File(path) = &source.from
        && has_secrets(options)
    {
        warnings.extend(exposed("configuration file", path));
    }
    if let PasswordFrom::File(path) = &source.overrides.password {
        warnings.extend(exposed("password file", path));
    }
    let general = &options.general;
    let others =
        [("client_tls_key_file", &general.client_tls_key_file), ("auth_file", &general.auth_file)];
    for (option, path) in others {
        warnings.extend(path.as_ref().and_then(|path| exposed(option, path)));
    }
    warnings
        .extend(keys_of_databases(options).into_iter().filter_map(|key| exposed("sslkey", key)));
    if general.auth == AuthMethod::Hba && !general.insecure_trust {
        let trusting = options.hba.rules().iter().filter(|rule| rule.trusts_strangers());
        warnings.extend(trusting.map(|rule| {
            format!("hba: {rule} lets clients of other machines in without any proof")
        }));
    }
    warnings.extend(general.resolv_conf.as_deref().and_then(dns::warning));
    warnings
}

/// Whether the configuration itself has secrets, besides those of the files that it names.
fn has_secrets(options: &Options) -> bool {
    let is_own = |user: &User| user.secret != UserSecret::None && !user.is_listed;
    let of_users = options.users.iter().any(is_own);
    of_users || options.databases.iter().any(|it| it.server.password.is_some())
}

/// Returns the files of the keys that Refrain shows to servers, each once.
fn keys_of_databases(options: &Options) -> BTreeSet<&Path> {
    let keys =
        options.databases.iter().flat_map(|it| it.server.hosts()).filter_map(|host| match host {
            Host::Tcp { tls, .. } => tls.own.as_ref().map(|(_, key)| key.as_path()),
            _ => None,
        });
    keys.collect()
}

/// Returns the warning about a file that others than its owner may read, by the rule that
/// PostgreSQL has for private keys: a file of root may be readable by its group.
pub(crate) fn exposed(what: &str, path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let others = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    (metadata.is_file() && metadata.mode() & others != 0).then(|| {
        format!(
            "{what} \"{}\" has group or world access: file must have permissions u=rw (0600) or \
             less if owned by the user of Refrain, or permissions u=rw,g=r (0640) or less if owned \
             by root",
            path.display()
        )
    })
}
