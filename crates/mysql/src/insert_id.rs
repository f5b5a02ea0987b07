//! The number that LAST_INSERT_ID() tells, which follows the client.
//!
//! A server has one number for its session, and clients take turns at it. No reply tells it: the OK
//! packet of an INSERT has the number of the row, also if the statement named it itself, and then
//! LAST_INSERT_ID() stays what it was. So a server is asked for the number behind a statement that
//! may have changed it, before another client gets the server, and is given it again in front of a
//! statement that reads or changes it. That is done for pools in which somebody reads the number.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use refrain_pool::ids::ClientSerial;

/// The statement that asks for the number.
pub(crate) const QUESTION: &[u8] = b"SELECT LAST_INSERT_ID() LIMIT 1";

/// How many questions a pool is asked without a client that reads the number. Programs that read it
/// do so behind each of their rows.
const QUESTIONS_WITHOUT_READER: u32 = 1000;

/// The number of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// It is this one.
    Known(u64),
    /// The server with this serial has it, if it is still [`Kept::Of`] the client.
    OnServer(u64),
    /// Such a server has it if it is not 0 there. If it is, no server has it.
    OnServerUnlessZero(u64),
    /// No server has it.
    Lost,
}

impl Default for Own {
    fn default() -> Self {
        Self::Known(0)
    }
}

/// The number that a server's session has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is this one.
    Known(u64),
    /// A statement of a client has changed it last.
    Of(ClientSerial),
    /// It may be any.
    Unknown,
}

impl Default for Kept {
    fn default() -> Self {
        Self::Known(0)
    }
}

/// The effect of a text on the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Effect {
    /// None.
    #[default]
    None,
    /// It may change it, and then its OK packet has a number.
    Told,
    /// It may change it.
    Untold,
}

/// Whether a text reads the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reading {
    /// It does not.
    #[default]
    No,
    /// It reads that of a statement before it in the same text.
    OfText,
    /// It reads that of the session.
    OfSession,
}

/// The things that a text does with the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uses {
    pub(crate) effect: Effect,
    pub(crate) reading: Reading,
}

impl Uses {
    /// Whether the text has nothing to do with the number.
    fn are_none(self) -> bool {
        self == Self::default()
    }
}

/// Whether the clients of a pool read the number.
#[derive(Debug)]
pub(crate) struct Readers(AtomicU32);

impl Default for Readers {
    fn default() -> Self {
        Self(AtomicU32::new(QUESTIONS_WITHOUT_READER))
    }
}

impl Readers {
    /// The value that stands for a reader.
    const THERE: u32 = u32::MAX;

    fn may_be_there(&self) -> bool {
        self.0.load(Relaxed) > 0
    }

    fn note(&self) {
        if self.0.load(Relaxed) != Self::THERE {
            self.0.store(Self::THERE, Relaxed);
        }
    }

    /// Counts a question. Cores that count at once may count one for two.
    fn count(&self) {
        let left = self.0.load(Relaxed);
        if left != Self::THERE {
            self.0.store(left.saturating_sub(1), Relaxed);
        }
    }
}

/// The number on both sides of a link.
pub(crate) struct Sides<'a> {
    pub(crate) own: &'a mut Own,
    pub(crate) kept: &'a mut Kept,
    pub(crate) client: ClientSerial,
    /// The server's serial.
    pub(crate) server: u64,
}

/// What has to be done before a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// Nothing.
    Nothing,
    /// The server has to be given this number.
    Give(u64),
    /// The server has to be asked for the number first.
    Ask,
    /// The text cannot be answered.
    Refuse,
}

impl Sides<'_> {
    /// Whether the server has the client's number.
    fn agree(&self) -> bool {
        match *self.own {
            Own::Known(number) => *self.kept == Kept::Known(number),
            Own::OnServer(server) => self.is_here(server),
            Own::OnServerUnlessZero(_) | Own::Lost => false,
        }
    }

    /// Whether this is the server with a serial, and nobody else has changed the number since.
    fn is_here(&self, server: u64) -> bool {
        server == self.server && *self.kept == Kept::Of(self.client)
    }

    /// Whether the server has the client's number if it is not 0.
    fn agree_unless_zero(&self) -> bool {
        matches!(*self.own, Own::OnServerUnlessZero(server) if self.is_here(server))
    }

    /// Returns what has to be done before a text.
    pub(crate) fn before(&self, uses: Uses, readers: &Readers) -> Before {
        if uses.are_none() {
            return Before::Nothing;
        }
        if uses.reading != Reading::No {
            readers.note();
        }
        if self.agree() || !readers.may_be_there() {
            return Before::Nothing;
        }
        let of_session = uses.reading == Reading::OfSession;
        match *self.own {
            Own::Known(number) => Before::Give(number),
            _ if self.agree_unless_zero() && of_session => Before::Ask,
            _ if self.agree_unless_zero() => Before::Nothing,
            _ if of_session => Before::Refuse,
            _ if *self.kept == Kept::Known(0) => Before::Nothing,
            // Behind it the server has another number than 0 if the statement has made one.
            _ => Before::Give(0),
        }
    }

    /// Notes that the server has been given a number.
    pub(crate) fn given(&mut self, number: u64) {
        *self.kept = Kept::Known(number);
        if *self.own != Own::Known(number) {
            *self.own = Own::Lost;
        }
    }

    /// Notes the end of a reply to the client. `told` is the number that its OK packet has.
    pub(crate) fn over(&mut self, effect: Effect, told: Option<u64>) {
        let is_changed = match effect {
            Effect::None => told.is_some_and(|number| number > 0),
            Effect::Told => told != Some(0),
            Effect::Untold => true,
        };
        if !is_changed || self.agree_unless_zero() {
            return;
        }
        let own = match *self.own {
            _ if self.agree() => Own::OnServer(self.server),
            Own::Lost if *self.kept == Kept::Known(0) => Own::OnServerUnlessZero(self.server),
            _ => Own::Lost,
        };
        *self.kept = if own == Own::Lost { Kept::Unknown } else { Kept::Of(self.client) };
        *self.own = own;
    }

    /// Whether the server is to be asked for the number before another client gets it.
    pub(crate) fn asks(&self, readers: &Readers) -> bool {
        let is_open = match *self.own {
            Own::OnServer(server) | Own::OnServerUnlessZero(server) => self.is_here(server),
            Own::Known(_) | Own::Lost => false,
        };
        let asks = is_open && readers.may_be_there();
        if asks {
            readers.count();
        }
        asks
    }

    /// Notes the answer to that.
    pub(crate) fn answered(&mut self, number: u64) {
        *self.own = match *self.own {
            Own::OnServer(_) => Own::Known(number),
            _ if number > 0 => Own::Known(number),
            _ => Own::Lost,
        };
        *self.kept = Kept::Known(number);
    }
}
