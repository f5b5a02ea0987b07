//! Things beside the settings that decide what a client's texts mean, and that no setting shows.
//!
//! A role, the user of the session and a path that ends with the transaction decide which object a
//! name is, and which rows a policy leaves. PostgreSQL lists none of them among a session's
//! settings, and a path of the moment not in time. So the commands that make them stand for them:
//! clients that have said the same are alike, and all others are not. Where a command does not show
//! what it makes, and where there are temporary objects, the client is like no other.

use std::sync::Arc;

use crate::ground::ids::{EnvId, Segment};

/// A number of [`crate::state::shared::SharedPart::beside`], kept in use.
pub(crate) type Lease = Arc<EnvId>;

/// The things that stand beside the settings of a client.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// Its number; zero while there is nothing.
    number: u64,
    /// The user of the session (SET SESSION AUTHORIZATION).
    user: Option<Lease>,
    /// The role.
    role: Option<Lease>,
    /// A role or a path that ends with the transaction.
    local: Option<Lease>,
    /// Temporary objects.
    temporary: Option<Lease>,
    /// The server's segments of the last change of role or user, and of the last local one.
    changed: Segment,
    local_since: Segment,
}

/// A part of [`Beside`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    User,
    Role,
    Local,
    Temporary,
}

impl Beside {
    /// Returns the number; zero for nothing.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// True if the session has a role or a user that a command gave it.
    pub(crate) fn has_role(&self) -> bool {
        self.user.is_some() || self.role.is_some()
    }

    /// True if a command has given the transaction its own path or role.
    pub(crate) fn has_local(&self) -> bool {
        self.local.is_some()
    }

    /// Returns the number below a part: that of the parts which it builds upon.
    pub(crate) fn below(&self, part: Part) -> u64 {
        let number = |lease: &Option<Lease>| lease.as_ref().map_or(0, |lease| lease.beside);
        match part {
            Part::User => 0,
            Part::Role => number(&self.user),
            Part::Local | Part::Temporary => self.number,
        }
    }

    /// True if there is nothing, and no error can say otherwise.
    pub(crate) fn is_empty(&self) -> bool {
        self.number == 0
    }

    /// Returns the server's segment of the last change of role or user.
    pub(crate) fn changed(&self) -> Segment {
        self.changed
    }

    /// Gives a part a number.
    pub(crate) fn set(&mut self, part: Part, lease: Lease, segment: Segment) {
        match part {
            Part::User => (self.user, self.role) = (Some(lease), None),
            Part::Role => self.role = Some(lease),
            Part::Local => self.local = Some(lease),
            Part::Temporary => self.temporary = Some(lease),
        }
        self.note(part, segment);
        self.count();
    }

    fn note(&mut self, part: Part, segment: Segment) {
        match part {
            Part::User | Part::Role => self.changed = segment,
            Part::Local => self.local_since = segment,
            Part::Temporary => {}
        }
    }

    /// Takes a part away. A session that has its own user again has its own role as well.
    pub(crate) fn take(&mut self, part: Part, segment: Segment) {
        match part {
            Part::User => (self.user, self.role) = (None, None),
            Part::Role => self.role = None,
            Part::Local => self.local = None,
            Part::Temporary => self.temporary = None,
        }
        self.note(part, segment);
        self.count();
    }

    /// Takes away what ends with the transaction, unless it was made behind that.
    #[inline]
    pub(crate) fn transaction_ends(&mut self, is_over: impl Fn(Segment) -> bool) {
        if self.local.is_some() && is_over(self.local_since) {
            self.take(Part::Local, self.local_since);
        }
    }

    /// Counts the part that was given last, and builds upon the others.
    fn count(&mut self) {
        let parts = [&self.temporary, &self.local, &self.role, &self.user];
        self.number = parts.into_iter().flatten().next().map_or(0, |lease| lease.beside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(beside: u64) -> Lease {
        Arc::new(EnvId { settings: 0, beside })
    }

    #[test]
    fn a_session_goes_back_to_what_it_had() {
        let mut beside = Beside::default();
        beside.set(Part::Role, lease(1), 1);
        beside.set(Part::Local, lease(2), 2);
        beside.transaction_ends(|segment| segment < 2);
        assert_eq!(beside.number(), 2);
        beside.transaction_ends(|segment| segment < 3);
        assert_eq!((beside.number(), beside.has_role()), (1, true));
        beside.set(Part::User, lease(3), 3);
        assert_eq!((beside.number(), beside.below(Part::Role)), (3, 3));
        beside.take(Part::User, 4);
        assert_eq!((beside.number(), beside.has_role()), (0, false));
    }
}
