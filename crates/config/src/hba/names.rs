//! The names of databases and of users in a rule.
//!
//! Keywords and `+` lose their meaning in quotes; the slash that begins a regular expression does
//! not, because an expression with a comma needs quotes.

use super::groups::Groups;
use super::tokens::Token;
use crate::pattern::Pattern;

/// A name of a database in a rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DatabaseName {
    All,
    /// The database that is named like the user.
    SameUser,
    /// The database that is named like a group of the user.
    SameRole,
    /// Physical replication connections, which no other name is for.
    Replication,
    Expression(Pattern),
    Name(String),
}

impl DatabaseName {
    pub(super) fn read(token: &Token) -> Result<Self, String> {
        let keyword = if token.quoted { "" } else { token.text.as_str() };
        Ok(match keyword {
            "all" => Self::All,
            "sameuser" => Self::SameUser,
            "samerole" | "samegroup" => Self::SameRole,
            "replication" => Self::Replication,
            _ => match expression(token)? {
                Some(pattern) => Self::Expression(pattern),
                None => Self::Name(token.text.clone()),
            },
        })
    }

    /// Whether a user's database is meant; `None` stands for a physical replication connection,
    /// which has no database.
    pub(super) fn means(&self, database: Option<&str>, user: &str, groups: &Groups) -> bool {
        let Some(database) = database else { return *self == Self::Replication };
        match self {
            Self::All => true,
            Self::SameUser => database == user,
            Self::SameRole => groups.is_member(user, database),
            Self::Replication => false,
            Self::Expression(pattern) => pattern.matches(database.as_bytes()),
            Self::Name(name) => name == database,
        }
    }
}

/// A name of a user in a rule, or in a map.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum UserName {
    All,
    /// The members of a group.
    Member(String),
    Expression(Pattern),
    Name(String),
}

impl UserName {
    pub(super) fn read(token: &Token, groups: &Groups) -> Result<Self, String> {
        if token.is("all") {
            return Ok(Self::All);
        }
        if let Some(group) = token.text.strip_prefix('+').filter(|_| !token.quoted) {
            return match groups.has(group) {
                true => Ok(Self::Member(group.to_owned())),
                false => Err(format!("expected a group of [groups], found \"{group}\"")),
            };
        }
        Ok(match expression(token)? {
            Some(pattern) => Self::Expression(pattern),
            None => Self::Name(token.text.clone()),
        })
    }

    /// Whether a user is meant.
    pub(super) fn means(&self, user: &str, groups: &Groups) -> bool {
        match self {
            Self::All => true,
            Self::Member(group) => groups.is_member(user, group),
            Self::Expression(pattern) => pattern.matches(user.as_bytes()),
            Self::Name(name) => name == user,
        }
    }
}

/// Returns the regular expression that a token is, if it begins with a slash.
pub(super) fn expression(token: &Token) -> Result<Option<Pattern>, String> {
    let Some(text) = token.text.strip_prefix('/') else { return Ok(None) };
    let invalid = |error| format!("invalid regular expression \"{text}\": {error}");
    Pattern::new(text).map(Some).map_err(invalid)
}
