//! The tests of the suite: where they are, and which of them can run at a server that is up.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Words of tests that start, stop or replicate servers.
const OTHER_SERVERS: &[&str] = &[
    "restart_mysqld",
    "shutdown_mysqld",
    "kill_mysqld",
    "start_mysqld",
    "master-slave.inc",
    "$MYSQLD_CMD",
    "$MYSQLD_BOOTSTRAP",
    "--shutdown_server",
];

/// Returns the folders that may have a suite's tests.
fn folders(tests: &Path, suite: &str) -> [PathBuf; 3] {
    let own = tests.join("suite").join(suite);
    [tests.join(suite), own.join("t"), own]
}

/// Returns the names of a suite's tests, `suite.test`, sorted, without those that need servers of
/// their own.
pub(super) fn of(tests: &Path, suite: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for folder in folders(tests, suite) {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "test") {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                names.push(format!("{suite}.{name}"));
            }
        }
    }
    names.sort();
    let mut kept = Vec::new();
    for name in names {
        let text = text(tests, &name)?;
        if !OTHER_SERVERS.iter().any(|word| text.contains(word)) {
            kept.push(name);
        }
    }
    Ok(kept)
}

fn text(tests: &Path, name: &str) -> Result<String> {
    let (suite, test) = name.split_once('.').context("a test is named `suite.test`")?;
    let paths = folders(tests, suite).map(|folder| folder.join(format!("{test}.test")));
    let path = paths.iter().find(|path| path.is_file());
    let path = path.with_context(|| format!("there is no test {name}"))?;
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

/// Returns the users as whom tests log in with a password, and the first password of each.
///
/// Refrain has to know them: it logs in to the server with them.
pub(super) fn users(tests: &Path, names: &[String]) -> Result<BTreeMap<String, String>> {
    let mut users = BTreeMap::new();
    for name in names {
        for (user, password) in logins(&text(tests, name)?) {
            users.entry(user).or_insert(password);
        }
    }
    Ok(users)
}

/// Returns users and passwords of the commands `connect`, without those that are variables.
fn logins(text: &str) -> Vec<(String, String)> {
    let command = |line: &str| {
        let line = line.trim_start_matches([' ', '\t', '-']);
        let rest = line.strip_prefix("connect")?;
        let rest = rest.trim_start().trim_start_matches('(');
        let fields = rest.split([';', ')']).next()?.split(',');
        let fields: Vec<_> = fields.map(|field| field.trim().trim_matches(['\'', '"'])).collect();
        let [_, _, user, password, ..] = fields[..] else { return None };
        let plain = |word: &str| !word.is_empty() && !word.contains(['$', '"', '\\']);
        (plain(user) && plain(password)).then(|| (user.to_owned(), password.to_owned()))
    };
    text.lines().filter_map(command).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_with_passwords_are_those_of_connect() {
        let text = "connect (one, localhost, a, b, test);\n--connect (two,localhost,\"c\",'d',)\n\
                    connect three,localhost,e,,;\nconnect(four,localhost,$user,x);\n\
                    connection one;\nSELECT 'connect (a,b,c,d)';\n";
        let pairs = [("a", "b"), ("c", "d")];
        assert_eq!(logins(text), pairs.map(|(user, word)| (user.to_owned(), word.to_owned())));
    }
}
