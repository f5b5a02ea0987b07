//! PgBouncer's `userlist.txt`: names and passwords, a user on each line.
//!
//! ```text
//! ; a comment
//! "ann" "secret"
//! "bob" "md5d41d8cd98f00b204e9800998ecf8427e" the rest of the line is left out
//! ```
//!
//! A quote within the quotes is doubled. If a user stands there twice, the last line counts. The
//! secret of an entry under `[users]` takes precedence.

use crate::error::{Error, Errors};
use crate::options::Options;
use crate::secret::UserSecret;
use crate::user::User;

/// Most bytes of a name, and of a password: PgBouncer's limits.
const NAME_MAX: usize = 127;
const PASSWORD_MAX: usize = 2047;

impl Options {
    /// Adds the users of a `userlist.txt`. Those under `[users]` keep the secrets that they have.
    ///
    /// # Errors
    /// Every error in the text, by line. No message has a password in it.
    pub fn add_userlist(&mut self, text: &str) -> Result<(), Errors> {
        let mut errors = Vec::new();
        let mut listed = Vec::new();
        for (index, line) in text.lines().enumerate() {
            match read(line) {
                Ok(user) => listed.extend(user),
                Err(message) => errors.push(Error {
                    line: Some(index + 1),
                    option: String::new(),
                    message: message.to_owned(),
                    file: None,
                }),
            }
        }
        if !errors.is_empty() {
            return Err(Errors(errors));
        }
        // Sorting keeps the order of lines with one name, and the last one counts.
        listed.sort_by(|(one, _), (other, _)| one.cmp(other));
        listed.reverse();
        listed.dedup_by(|(one, _), (other, _)| one == other);
        let configured = self.users.len();
        let any = self.users.iter().find(|user| user.name == User::ANY).cloned();
        for (name, secret) in listed {
            let known = self.users[..configured].binary_search_by(|user| user.name.cmp(&name));
            match known {
                Ok(at) if self.users[at].secret == UserSecret::None => {
                    self.users[at].secret = secret;
                    self.users[at].is_listed = true;
                }
                Ok(_) => {}
                Err(_) => {
                    let user = User::listed(&name, secret, any.as_ref());
                    self.users.push(user);
                }
            }
        }
        self.users.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(())
    }
}

/// Reads a line; `None` if it is empty or a comment.
fn read(line: &str) -> Result<Option<(String, UserSecret)>, &'static str> {
    let line = line.trim_start();
    if line.is_empty() || line.starts_with([';', '#']) {
        return Ok(None);
    }
    const FORM: &str = "expected \"user\" \"password\", each in double quotes";
    let (name, rest) = quoted(line).ok_or(FORM)?;
    let (password, _) = quoted(rest).ok_or(FORM)?;
    if name.is_empty() || name.len() > NAME_MAX {
        return Err("expected a user name of 1 to 127 bytes");
    }
    if name == User::ANY {
        return Err("\"*\" stands for all users, and cannot have a password");
    }
    if password.len() > PASSWORD_MAX {
        return Err("expected a password of at most 2047 bytes");
    }
    // PgBouncer's files have empty passwords for users who cannot log in.
    let secret = UserSecret::parse(&password).ok_or("the SCRAM verifier is damaged")?;
    Ok(Some((name, secret)))
}

/// Reads a text in double quotes. Returns it and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.trim_start().strip_prefix('"')?;
    let mut found = String::new();
    loop {
        let (part, behind) = rest.split_once('"')?;
        found.push_str(part);
        match behind.strip_prefix('"') {
            Some(more) => {
                found.push('"');
                rest = more;
            }
            None => return Some((found, behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "auth_file = \"/userlist.txt\"\n[databases.d]\nhost = \"h\"\n";

    fn with(toml: &str, list: &str) -> Result<Options, Errors> {
        let mut options = Options::from_toml(toml)?;
        options.add_userlist(list)?;
        Ok(options)
    }

    fn plain(options: &Options, user: &str) -> Option<String> {
        Some(options.secret(user)?.for_servers(false)?.expose().to_owned())
    }

    #[test]
    fn the_file_is_read_as_pgbouncer_reads_it() {
        let list = "; a comment\n\n  \"zoe\" \"z\"\n\"ann\"   \"se\"\"cret\" more \"words\"\r\n\
                    \"q\"\"uote\" \"\"\n\"bob\" \"md5d41d8cd98f00b204e9800998ecf8427e\" \"\"\n\
                    \"ann\" \"later\"\n";
        let options = with(FILE, list).unwrap();
        let names: Vec<_> = options.users.iter().map(|user| user.name.as_str()).collect();
        assert_eq!(names, ["ann", "bob", "q\"uote", "zoe"]);
        assert_eq!(plain(&options, "ann").as_deref(), Some("later"));
        assert_eq!(plain(&options, "q\"uote").as_deref(), Some(""));
        assert!(matches!(options.secret("bob"), Some(UserSecret::Md5(_))));
        let one = with(FILE, "\"ann\" \"se\"\"cret\" rest").unwrap();
        assert_eq!(plain(&one, "ann").as_deref(), Some("se\"cret"));
    }

    #[test]
    fn errors_name_the_line_and_no_password() {
        let list = "\"ann\" \"fine\"\nann hunter2\n\"bob\" \"hunter2\n\"\" \"hunter2\"\n\
                    \"eve\" \"SCRAM-SHA-256$hunter2\"\n\"*\" \"hunter2\"\n";
        let Err(Errors(errors)) = with(FILE, list) else { panic!("five lines are wrong") };
        let lines: Vec<_> = errors.iter().filter_map(|error| error.line).collect();
        assert_eq!(lines, [2, 3, 4, 5, 6]);
        assert!(!Errors(errors).to_string().contains("hunter2"));
    }

    #[test]
    fn an_entry_under_users_wins() {
        let toml = format!("{FILE}[users.ann]\npassword = \"own\"\n[users.bob]\npool_size = 3\n");
        let options = with(&toml, "\"ann\" \"other\"\n\"bob\" \"bobs\"\n").unwrap();
        assert_eq!(plain(&options, "ann").as_deref(), Some("own"));
        assert_eq!(plain(&options, "bob").as_deref(), Some("bobs"));
        assert_eq!(options.pool("d", "bob").unwrap().options.pool_size, 3);
    }
}
