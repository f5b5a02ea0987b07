//! The users of the model server: their passwords as they change, and what has been found of them.
//!
//! All sessions of a server have the same [`Directory`]. Each database has users of its own, as
//! databases on several hosts have.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use refrain_pg::auth::{Credential, Md5Hash, Password, Seed, StoredSecret, verifier_of};

use crate::fault::Fault;

/// A user: the database that knows it, and its name.
pub type UserId = (String, String);

/// The form in which passwords are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As they are.
    #[default]
    Plain,
    /// As MD5 hashes.
    Md5,
    /// As SCRAM verifiers.
    Scram,
}

/// How a lookup is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mood {
    /// With what is true.
    #[default]
    Honest,
    /// With an error.
    Fails,
    /// With two rows.
    Twice,
    /// With the row of another user.
    Others,
}

/// An answer to a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) user: UserId,
    /// The function that was asked.
    pub(crate) function: String,
    pub(crate) at: u64,
    /// The password; `None` if there is no such user.
    pub(crate) password: Option<String>,
}

#[derive(Debug, Default)]
struct Inner {
    form: Form,
    /// The passwords of users, and since when they have had them.
    users: BTreeMap<UserId, Vec<(u64, Option<String>)>>,
    found: Vec<Found>,
    failures: u64,
    now: u64,
    mood: Mood,
    /// Number of passwords so far, no two of which are the same.
    passwords: u64,
}

/// The users of a server.
#[derive(Clone, Debug, Default)]
pub struct Directory(Rc<RefCell<Inner>>);

impl Directory {
    /// Creates a directory without users.
    pub(crate) fn new(form: Form) -> Self {
        Self(Rc::new(RefCell::new(Inner { form, ..Inner::default() })))
    }

    /// Returns a password that nobody has had.
    pub(crate) fn new_password(&self) -> String {
        let inner = &mut *self.0.borrow_mut();
        inner.passwords += 1;
        format!("pw{}", inner.passwords)
    }

    /// Gives a user a password, or removes the user.
    pub(crate) fn set(&self, user: UserId, now: u64, password: Option<String>) {
        self.0.borrow_mut().users.entry(user).or_default().push((now, password));
    }

    /// Returns the passwords of a user so far, the newest last.
    pub(crate) fn passwords(&self, user: &UserId) -> Vec<(u64, Option<String>)> {
        self.0.borrow().users.get(user).cloned().unwrap_or_default()
    }

    /// Returns the password of a user.
    pub(crate) fn password(&self, user: &UserId) -> Option<String> {
        self.0.borrow().users.get(user).and_then(|all| all.last()?.1.clone())
    }

    /// Sets the time, and how the next lookup is answered.
    pub(crate) fn prepare(&self, now: u64, mood: Mood) {
        let inner = &mut *self.0.borrow_mut();
        (inner.now, inner.mood) = (now, mood);
    }

    /// Answers a lookup.
    pub(crate) fn look_up(&self, function: &str, user: UserId) -> Result<Vec<Vec<String>>, Fault> {
        let mood = self.0.borrow().mood;
        let password = self.password(&user);
        let stored = password.as_ref().map(|password| self.stored(&user.1, password));
        // A password that is empty lets nobody in.
        let row = vec![user.1.clone(), stored.unwrap_or_default()];
        let inner = &mut *self.0.borrow_mut();
        if mood != Mood::Honest {
            inner.failures += 1;
        }
        match mood {
            Mood::Honest => {}
            Mood::Fails => return Err(Fault::new("42501", "permission denied for function")),
            Mood::Twice => return Ok(vec![row.clone(), row]),
            Mood::Others => return Ok(vec![vec!["other".to_owned(), row[1].clone()]]),
        }
        let at = inner.now;
        inner.found.push(Found { user, function: function.to_owned(), at, password });
        // The database says in either way that nobody can log in as this user.
        let is_said = !row[1].is_empty() || at.is_multiple_of(2);
        Ok(if is_said { vec![row] } else { Vec::new() })
    }

    /// Returns the answers that satisfy a condition, the oldest first.
    pub(crate) fn found(&self, fits: impl Fn(&Found) -> bool) -> Vec<Found> {
        self.0.borrow().found.iter().filter(|found| fits(found)).cloned().collect()
    }

    /// Returns the number of lookups that were answered in a way that says nothing.
    pub(crate) fn failures(&self) -> u64 {
        self.0.borrow().failures
    }

    /// Returns the number of answers.
    pub(crate) fn answers(&self) -> u64 {
        self.0.borrow().found.len() as u64
    }

    /// Returns what a server checks the login of this user by.
    pub(crate) fn credential(&self, user: &UserId) -> Option<Credential> {
        let password = self.password(user)?;
        let form = if self.0.borrow().form == Form::Md5 { Form::Md5 } else { Form::Scram };
        let stored = StoredSecret::parse(&stored(form, &user.1, &password))?;
        Some(Credential::prepare(&user.1, stored, &Seed::new([7; 32])))
    }

    fn stored(&self, user: &str, password: &str) -> String {
        stored(self.0.borrow().form, user, password)
    }
}

/// Returns a password in the form in which `pg_authid` has it. One round of PBKDF2 has to do: a
/// world has many logins.
fn stored(form: Form, user: &str, plain: &str) -> String {
    let Some(password) = Password::new(plain) else { return String::new() };
    match form {
        Form::Plain => plain.to_owned(),
        Form::Md5 => String::from_utf8_lossy(Md5Hash::of(&password, user).bytes()).into_owned(),
        Form::Scram => {
            let salt = format!("salt of {user} and {plain}");
            verifier_of(&password, salt.as_bytes(), 1).to_string()
        }
    }
}
