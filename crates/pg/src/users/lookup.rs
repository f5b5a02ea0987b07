//! One look at a user in the database: the query's answer as it comes, and the looks that wait.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_cache::Waiter;
use refrain_pg_wire::back::{self as read, Fields, field};
use refrain_pg_wire::tag::back;
use refrain_pool::Now;

use crate::auth::{Password, StoredSecret};
use crate::users::known::{KnownUsers, UserKey};

/// Most characters of a server's error that go into the log.
const LOGGED_MAX: usize = 1000;

/// A user that a job asks the database about.
#[derive(Debug)]
pub(crate) struct Lookup {
    known: Arc<KnownUsers>,
    key: UserKey,
    /// The secret in the row that has come; `Some(None)` if the user may not log in.
    row: Option<Option<StoredSecret>>,
    /// Why the answer cannot be read.
    wrong: Option<String>,
    /// Whether the answer, or its lack, was told.
    told: bool,
}

impl Lookup {
    /// Makes the look that a login begins.
    pub(crate) fn new(known: Arc<KnownUsers>, key: UserKey) -> Self {
        Self { known, key, row: None, wrong: None, told: false }
    }

    /// Returns the user, and how the database is asked.
    pub(crate) fn key(&self) -> &UserKey {
        &self.key
    }

    /// Takes a message of the answer.
    pub(crate) fn hears(&mut self, tag: u8, body: &[u8]) {
        if tag != back::DATA_ROW {
            return;
        }
        let columns: Vec<Option<&[u8]>> = read::columns(body).collect();
        let wrong = match (&columns[..], &self.row) {
            (_, Some(_)) => "it returned more than one row",
            ([Some(name), secret], None) if *name == self.key.user.as_bytes() => {
                self.row = Some(secret.and_then(stored));
                return;
            }
            ([Some(_), _], None) => "it returned another user than it was asked for",
            ([None, _], None) => "it returned no name",
            _ => "it has to return two columns, a name and a password",
        };
        self.wrong.get_or_insert(wrong.to_owned());
    }

    /// Notes an error of the query.
    pub(crate) fn fails(&mut self, fields: &Fields<'_>) {
        let text = fields.get(field::MESSAGE).unwrap_or_default();
        let text = String::from_utf8_lossy(text).chars().take(LOGGED_MAX).collect();
        self.wrong.get_or_insert(text);
    }

    /// Ends it when the server has become ready. Returns the logins that wait for the answer, and
    /// why the answer cannot be read.
    pub(crate) fn end(mut self, now: Now) -> (Vec<Waiter>, Option<String>) {
        self.told = true;
        match self.wrong.take() {
            Some(wrong) => (self.known.failed(&self.key, now), Some(wrong)),
            None => {
                let secret = self.row.take().flatten();
                (self.known.answered(&self.key, secret, now), None)
            }
        }
    }
}

impl Drop for Lookup {
    fn drop(&mut self) {
        if !self.told {
            self.known.lose(&self.key);
        }
    }
}

/// Reads a secret; `None` for one with which nobody can log in.
fn stored(secret: &[u8]) -> Option<StoredSecret> {
    match std::str::from_utf8(secret) {
        Ok(text) => StoredSecret::parse(text),
        Err(_) => Password::new(secret).map(StoredSecret::Password),
    }
}

/// The looks of a pool on a core that wait for a server.
#[derive(Debug, Default)]
pub(crate) struct Lookups(VecDeque<Box<Lookup>>);

impl Lookups {
    /// Adds one, behind those that wait.
    pub(crate) fn push(&mut self, lookup: Lookup) {
        self.0.push_back(Box::new(lookup));
    }

    /// Whether none waits.
    pub(crate) fn are_done(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes out the one that has waited longest.
    pub(crate) fn next(&mut self) -> Option<Box<Lookup>> {
        self.0.pop_front()
    }

    /// Drops those that wait: no server can be reached.
    pub(crate) fn lose(&mut self) {
        self.0.clear();
    }
}
