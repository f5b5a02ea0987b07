//! Warnings about a configuration that shows secrets to others, or opens a door wider than it
//! seems.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use refrain_config::{AuthMethod, Options, UserSecret};

use crate::source::{From, PasswordFrom, Source};

/// Returns the warnings.
pub(crate) fn warnings(source: &Source, options: &Options) -> Vec<String> {
    let mut warnings = Vec::new();
    if let From::File(path) = &source.from
        && has_secrets(options)
    {
        warnings.extend(exposed("configuration", path));
    }
    if let PasswordFrom::File(path) = &source.overrides.password {
        warnings.extend(exposed("password", path));
    }
    let general = &options.general;
    if general.auth == AuthMethod::Hba && !general.insecure_trust {
        let trusting = options.hba.rules().iter().filter(|rule| rule.trusts_strangers());
        warnings.extend(trusting.map(|rule| {
            format!("hba: {rule} lets clients of other machines in without any proof")
        }));
    }
    warnings
}

fn has_secrets(options: &Options) -> bool {
    let of_users = options.users.iter().any(|user| user.secret != UserSecret::None);
    of_users || options.databases.iter().any(|it| it.server.password.is_some())
}

/// Returns the warning about a file that others than its owner may read, by the rule that
/// PostgreSQL has for private keys: a file of root may be readable by its group.
pub(crate) fn exposed(what: &str, path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let others = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    (metadata.is_file() && metadata.mode() & others != 0).then(|| {
        format!(
            "{what} file \"{}\" has group or world access: file must have permissions u=rw (0600) or \
             less if owned by the user of Refrain, or permissions u=rw,g=r (0640) or less if owned \
             by root",
            path.display()
        )
    })
}
