//! Maps of user names: the lines of `pg_ident.conf`.
//!
//! A line maps a name of the system (of the operating system, or in a certificate) to users. If the
//! name of the system is a regular expression, `\1` in the user's name stands for what the first
//! parentheses of the expression have matched.

use super::groups::Groups;
use super::names::{UserName, expression};
use super::tokens::{Field, Line};
use crate::pattern::Pattern;

/// The part of a user's name that stands for what an expression has matched.
const REFERENCE: &str = "\\1";

/// A line of a map.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UserMap {
    pub(super) name: String,
    system: SystemName,
    user: User,
}

#[derive(Clone, Debug, PartialEq)]
enum SystemName {
    Expression(Pattern),
    Name(String),
}

#[derive(Clone, Debug, PartialEq)]
enum User {
    /// A user's name with `\1` between these two parts.
    Around(String, String),
    Named(UserName),
}

impl UserMap {
    /// Reads a line.
    pub(super) fn read(line: &Line, groups: &Groups) -> Result<Self, String> {
        let mut fields = line.fields.iter().map(one);
        let mut next = || fields.next().unwrap_or(Err("missing entry at end of line"));
        let (name, system, user) = (next()?, next()?, next()?);
        let system = match expression(system)? {
            Some(pattern) => SystemName::Expression(pattern),
            None => SystemName::Name(system.text.clone()),
        };
        let named = UserName::read(user, groups)?;
        let around = user.text.split_once(REFERENCE);
        let user = match (&system, &named, around) {
            (SystemName::Expression(pattern), UserName::Name(name), Some((before, after))) => {
                if pattern.groups() == 0 {
                    return Err(format!(
                        "regular expression \"{}\" has no subexpressions as requested by \
                         backreference in \"{name}\"",
                        pattern.text()
                    ));
                }
                User::Around(before.to_owned(), after.to_owned())
            }
            _ => User::Named(named),
        };
        Ok(Self { name: name.text.clone(), system, user })
    }

    /// Whether the line maps a name of the system to a user.
    pub(super) fn maps(&self, system: &str, user: &str, groups: &Groups) -> bool {
        let first = match &self.system {
            SystemName::Name(name) if name == system => None,
            SystemName::Name(_) => return false,
            SystemName::Expression(pattern) => match pattern.first_group(system) {
                None => return false,
                Some(first) => first,
            },
        };
        match &self.user {
            User::Named(name) => name.means(user, groups),
            User::Around(before, after) => first
                .zip(user.strip_prefix(before.as_str()))
                .is_some_and(|(first, rest)| rest.strip_suffix(after.as_str()) == Some(first)),
        }
    }
}

/// Returns the only token of a field.
fn one(field: &Field) -> Result<&super::tokens::Token, &'static str> {
    match field.as_slice() {
        [token] => Ok(token),
        _ => Err("multiple values in ident field"),
    }
}
