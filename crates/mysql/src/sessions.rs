//! The clients of the process by the numbers by which KILL names them: that of the greeting, and
//! those that CONNECTION_ID() has told them.
//!
//! A client's own number is that of the greeting. No other client gets it while anybody can
//! remember it. CONNECTION_ID() tells the number that the client's server has at the moment, so
//! several clients may have been told the same one.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refrain_pool::ids::ClientSerial;

/// Most numbers of CONNECTION_ID() that are remembered of a client: those that it was told last.
const TOLD_MAX: usize = 256;

/// The clients that are logged in.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<Names>);

#[derive(Debug, Default)]
struct Names {
    /// The clients, by their own numbers.
    own: HashMap<u32, Session>,
    /// The own numbers of the clients that were told a server's number.
    told: HashMap<u32, HashSet<u32>>,
}

impl Names {
    /// Forgets that a client was told a server's number.
    fn forget(&mut self, number: u32, client: u32) {
        let Some(clients) = self.told.get_mut(&number) else { return };
        clients.remove(&client);
        if clients.is_empty() {
            self.told.remove(&number);
        }
    }
}

#[derive(Debug)]
struct Session {
    serial: ClientSerial,
    user: Box<[u8]>,
}

/// The client that a number names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// A client of the user, with its own number.
    Client(u32, ClientSerial),
    /// Clients of other users alone.
    OfAnother,
    /// Several clients of the user.
    Several,
    /// None.
    Nobody,
}

/// A client's places in the tables, for as long as it is logged in.
#[derive(Debug)]
pub(crate) struct Listed {
    sessions: Arc<Sessions>,
    number: u32,
    told: Vec<u32>,
}

impl Sessions {
    /// Lists a client that is logged in under its own number.
    pub(crate) fn list(
        self: &Arc<Self>,
        number: u32,
        serial: ClientSerial,
        user: Box<[u8]>,
    ) -> Listed {
        self.lock().own.insert(number, Session { serial, user });
        Listed { sessions: self.clone(), number, told: Vec::new() }
    }

    /// Finds the client that a number names for a user.
    pub(crate) fn find(&self, number: u64, user: &[u8]) -> Named {
        let Ok(number) = u32::try_from(number) else { return Named::Nobody };
        let tables = self.lock();
        let told = tables.told.get(&number).into_iter().flatten().filter(|own| **own != number);
        let candidates = || {
            let numbers = std::iter::once(&number).chain(told.clone());
            numbers.filter_map(|own| Some((*own, tables.own.get(own)?)))
        };
        let mut of_user = candidates().filter(|(_, session)| *session.user == *user);
        match (of_user.next(), of_user.next()) {
            (Some((number, session)), None) => Named::Client(number, session.serial),
            (Some(_), Some(_)) => Named::Several,
            (None, _) if candidates().next().is_some() => Named::OfAnother,
            (None, _) => Named::Nobody,
        }
    }

    /// Takes a client out that is about to be ended, so that no other KILL finds it.
    pub(crate) fn take_out(&self, number: u32) {
        self.lock().own.remove(&number);
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listed {
    /// Notes that the client is told its server's number.
    pub(crate) fn note_told(&mut self, number: u32) {
        if self.told.last() == Some(&number) {
            return;
        }
        if let Some(at) = self.told.iter().position(|told| *told == number) {
            return self.told[at..].rotate_left(1);
        }
        let mut tables = self.sessions.lock();
        if self.told.len() == TOLD_MAX {
            tables.forget(self.told.remove(0), self.number);
        }
        self.told.push(number);
        tables.told.entry(number).or_default().insert(self.number);
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut tables = self.sessions.lock();
        tables.own.remove(&self.number);
        for &number in &self.told {
            tables.forget(number, self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_names_one_client_or_none() {
        let sessions = Arc::new(Sessions::default());
        let list = |number, user: &[u8]| {
            sessions.list(number, ClientSerial(u64::from(number) + 100), user.into())
        };
        let (mut one, mut two) = (list(1, b"app"), list(2, b"app"));
        assert_eq!(sessions.find(1, b"app"), Named::Client(1, ClientSerial(101)));
        assert_eq!(sessions.find(1, b"other"), Named::OfAnother);
        assert_eq!(sessions.find(70, b"app"), Named::Nobody);
        assert_eq!(sessions.find(u64::MAX, b"app"), Named::Nobody);
        one.note_told(70);
        one.note_told(1);
        assert_eq!(sessions.find(70, b"app"), Named::Client(1, ClientSerial(101)));
        two.note_told(70);
        assert_eq!(sessions.find(70, b"app"), Named::Several);
        two.note_told(1);
        assert_eq!(sessions.find(1, b"app"), Named::Several);
        drop(one);
        assert_eq!(sessions.find(70, b"app"), Named::Client(2, ClientSerial(102)));
        assert_eq!(sessions.find(1, b"app"), Named::Client(2, ClientSerial(102)));
        for number in 1000..1000 + TOLD_MAX as u32 - 1 {
            two.note_told(number);
            two.note_told(70);
        }
        assert_eq!(sessions.find(70, b"app"), Named::Client(2, ClientSerial(102)), "the last told");
        assert_eq!(sessions.find(1, b"app"), Named::Nobody, "the first told is forgotten");
        drop(two);
        assert_eq!(sessions.find(70, b"app"), Named::Nobody);
        let (own, mut others) = (list(70, b"app"), [list(3, b"other"), list(4, b"other")]);
        others[0].note_told(70);
        assert_eq!(sessions.find(70, b"app"), Named::Client(70, ClientSerial(170)));
        assert_eq!(sessions.find(70, b"other"), Named::Client(3, ClientSerial(103)));
        others[1].note_told(70);
        assert_eq!(sessions.find(70, b"app"), Named::Client(70, ClientSerial(170)));
        assert_eq!(sessions.find(70, b"other"), Named::Several);
        assert_eq!(sessions.find(70, b"third"), Named::OfAnother);
        sessions.take_out(70);
        assert_eq!(sessions.find(70, b"app"), Named::OfAnother, "it is about to be ended");
        drop((own, others));
        assert!(sessions.lock().own.is_empty() && sessions.lock().told.is_empty());
    }
}
