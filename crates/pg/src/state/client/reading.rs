//! Which of a client's messages Refrain reads now: those that the server ignores after an error are
//! dropped, and some wait for the reply to a request before them.
//!
//! [`crate::relay::to_server`] and [`crate::messages`] ask before they read a message; replies and
//! errors ([`crate::relay::effects`], [`crate::relay::errors`]) change the answer.

use crate::ground::name::Name;
use crate::pipeline::outstanding::{Failed, Outstanding, Seq};
use crate::settings::queries::Restores;

/// A message that drops or makes statements if it succeeds.
#[derive(Debug)]
struct Barrier {
    /// The number of its request.
    seq: Seq,
    /// Commands of its text that are not complete yet.
    commands: u32,
    /// Statements of the client's that a command of it drops by name, and how many there are from
    /// that command on.
    drops: Vec<(u32, Name)>,
    /// The client's startup settings, to be restored behind the message.
    restores: Option<Box<Restores>>,
    /// The settings that the request restores, if it is the Sync behind such a query.
    restoring: Option<Restoring>,
}

/// Startup settings that may have been reset out of sight: all of them.
#[derive(Debug, Default)]
pub(crate) struct Unseen {
    /// Names among them of which it is known that they are not as they were if the server has its
    /// default: [`refrain_sql::ANY_PARAMETER`] for all.
    pub(crate) named: Vec<Vec<u8>>,
}

/// Startup settings that are being restored. A cancel request may hit the query, though it was
/// meant for the client's RESET.
#[derive(Debug)]
pub(crate) struct Restoring {
    /// The settings.
    pub(crate) settings: Box<Restores>,
    /// Number of times that the query has failed.
    failures: u32,
    /// Whether it has failed, and is sent again.
    again: bool,
}

/// Number of times that a query that restores settings is sent, if each is cancelled.
const RESTORES_MAX: u32 = 8;

impl Restoring {
    /// Makes settings that are restored for the first time.
    pub(crate) fn new(settings: Box<Restores>) -> Self {
        Self { settings, failures: 0, again: false }
    }

    /// Returns the settings if the query has failed and is to be sent again.
    pub(crate) fn again(self) -> Option<Self> {
        self.again.then_some(Self { again: false, ..self })
    }
}

/// A Parse that Refrain put in front of a query string. If the server refuses it, the string is not
/// run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// None that the string waits for.
    #[default]
    Nothing,
    /// It has been sent.
    Prepared,
    /// The server has refused it, in a segment of its own. The client has got the error.
    Refused,
}

/// Whether a client's next message has to wait for a barrier.
pub(crate) enum Barred {
    /// The server owes the reply.
    Yes,
    /// The barrier is gone. The client's startup settings are to be restored, if there are any.
    Lifted(Option<Box<Restores>>),
}

/// Whether a client's next message is read or dropped, or waits.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// Whether the server, and so Refrain, ignores the messages up to the next Sync, after an
    /// error.
    skipping: bool,
    /// The Parse in front of the query string, which waits for the reply.
    ahead: Ahead,
    /// Startup settings that a request of the open segment may have reset, though no text says so.
    pub(crate) unseen: Option<Box<Unseen>>,
    /// The request for whose reply the next message waits.
    barrier: Option<Box<Barrier>>,
    /// Number of servers in a row that could not be used.
    missed: u8,
}

impl Reading {
    /// Forgets the barrier: it stood at another server.
    #[inline]
    pub(crate) fn begin_use(&mut self) {
        // Most clients have none, and dropping nothing would be a call.
        if self.barrier.is_some() {
            self.barrier = None;
        }
    }

    /// Whether messages are ignored up to the next Sync.
    #[inline]
    pub(crate) fn is_skipping(&self) -> bool {
        self.skipping
    }

    /// Ignores the messages up to the next Sync.
    pub(crate) fn skip_to_sync(&mut self) {
        self.skipping = true;
    }

    /// Ends that: the Sync has come.
    pub(crate) fn synced(&mut self) {
        self.skipping = false;
    }

    /// Notes an error. If its segment is open, the server ignores the rest of it; and the settings
    /// that a barrier was to restore were not reset.
    pub(crate) fn failed(&mut self, failed: &Failed) {
        self.skipping |= failed.open;
        if let Some(barrier) = self.barrier.as_mut().filter(|barrier| failed.struck(barrier.seq)) {
            // Code out of sight may have committed before it failed.
            let ran = barrier.seq == failed.seq && !failed.open;
            barrier.restores.take_if(|restores| !ran || restores.named);
        }
    }

    /// Returns the state of the Parse in front of a query string.
    #[inline]
    pub(crate) fn ahead(&self) -> Ahead {
        self.ahead
    }

    /// Has the query string that was read just now wait for a Parse in front of it.
    pub(crate) fn prepare_ahead(&mut self) {
        self.ahead = Ahead::Prepared;
    }

    /// Notes that the server has refused a Parse of Refrain's. True if a query string waits for
    /// it.
    pub(crate) fn refuse_ahead(&mut self) -> bool {
        let waits = self.ahead != Ahead::Nothing;
        if waits {
            self.ahead = Ahead::Refused;
        }
        waits
    }

    /// Has the query string wait no longer. True if the server has refused the Parse.
    pub(crate) fn end_ahead(&mut self) -> bool {
        std::mem::take(&mut self.ahead) == Ahead::Refused
    }

    /// Whether a barrier stands, or has to be lifted.
    #[inline]
    pub(crate) fn has_barrier(&self) -> bool {
        self.barrier.is_some()
    }

    /// Removes the barrier unless the server owes the reply.
    pub(crate) fn lift_barrier(&mut self, outstanding: &Outstanding) -> Barred {
        if self.barrier.as_ref().is_some_and(|barrier| outstanding.owes(barrier.seq)) {
            return Barred::Yes;
        }
        self.missed = 0;
        Barred::Lifted(self.barrier.take().and_then(|barrier| barrier.restores))
    }

    /// Notes a server that could not be used. False if there are more than so many in a row, which
    /// ends the row.
    pub(crate) fn note_miss(&mut self, most: u8) -> bool {
        self.missed = if self.missed < most { self.missed + 1 } else { 0 };
        self.missed > 0
    }

    /// Makes the next message wait for the reply to request `seq`, a text of so many commands, and
    /// for the restoring of settings behind it.
    pub(crate) fn bar(&mut self, seq: Seq, commands: u32, restores: Option<Box<Restores>>) {
        let (drops, restoring) = (Vec::new(), None);
        self.barrier = Some(Box::new(Barrier { seq, commands, drops, restores, restoring }));
    }

    /// Makes the next message wait for request `seq`, the Sync behind the query that restores
    /// settings.
    pub(crate) fn bar_restoring(&mut self, seq: Seq, restoring: Restoring) {
        self.bar(seq, 0, None);
        if let Some(barrier) = &mut self.barrier {
            barrier.restoring = Some(restoring);
        }
    }

    /// Whether settings are being restored that no text has reset for certain.
    pub(crate) fn is_restoring_unseen(&self) -> bool {
        let restoring = self.barrier.as_ref().and_then(|barrier| barrier.restoring.as_ref());
        restoring.is_some_and(|restoring| restoring.settings.unseen)
    }

    /// Whether settings are being restored.
    pub(crate) fn is_restoring(&self) -> bool {
        self.barrier.as_ref().is_some_and(|barrier| barrier.restoring.is_some())
    }

    /// Notes that the query that restores settings was cancelled. True if it is sent again.
    pub(crate) fn restore_again(&mut self) -> bool {
        let barrier = self.barrier.as_mut();
        let Some(restoring) = barrier.and_then(|it| it.restoring.as_mut()) else { return false };
        restoring.failures += 1;
        restoring.again = restoring.failures < RESTORES_MAX;
        restoring.again
    }

    /// Takes out the settings that were being restored up to request `seq`.
    pub(crate) fn take_restoring(&mut self, seq: Seq) -> Option<Restoring> {
        self.barrier.as_mut().filter(|barrier| barrier.seq == seq)?.restoring.take()
    }

    /// Makes the next message wait for the reply to request `seq`, whose text drops statements.
    pub(crate) fn bar_drops(&mut self, seq: Seq, commands: u32, drops: Vec<(u32, Name)>) {
        let restores = self.barrier.take().and_then(|barrier| barrier.restores);
        self.bar(seq, commands, restores);
        if let Some(barrier) = &mut self.barrier {
            barrier.drops = drops;
        }
    }

    /// Has the barrier, if one stands, restore settings once it is lifted.
    pub(crate) fn restore_when_lifted(&mut self, restores: Box<Restores>) {
        if let Some(barrier) = &mut self.barrier {
            barrier.restores = Some(restores);
        }
    }

    /// Makes the next message wait for request `seq`, and for the restoring of settings behind it.
    pub(crate) fn restore_behind(&mut self, seq: Seq, restores: Box<Restores>) {
        if !self.is_barred_by(seq) {
            self.bar(seq, 0, None);
        }
        if let Some(barrier) = &mut self.barrier {
            barrier.restores = Restores::both(barrier.restores.take(), Some(restores));
        }
    }

    /// Takes out the settings to be restored behind request `seq`.
    pub(crate) fn take_restores(&mut self, seq: Seq) -> Option<Box<Restores>> {
        self.barrier.as_mut().filter(|barrier| barrier.seq == seq)?.restores.take()
    }

    /// Whether the next message waits for the reply to request `seq`.
    #[inline]
    pub(crate) fn is_barred_by(&self, seq: Seq) -> bool {
        self.barrier.as_ref().is_some_and(|barrier| barrier.seq == seq)
    }

    /// Whether it waits for the last command of request `seq`.
    pub(crate) fn is_barred_by_end_of(&self, seq: Seq) -> bool {
        let barrier = self.barrier.as_ref().filter(|barrier| barrier.seq == seq);
        barrier.is_some_and(|barrier| barrier.commands == 1)
    }

    /// Notes that a command of the barrier's text is complete. Returns the name of the client's
    /// statement that the command has dropped.
    pub(crate) fn command_completed(&mut self) -> Option<Name> {
        let barrier = self.barrier.as_mut()?;
        let at = barrier.drops.iter().position(|(from, _)| *from == barrier.commands);
        let dropped = at.map(|at| barrier.drops.swap_remove(at).1);
        barrier.commands = barrier.commands.saturating_sub(1);
        dropped
    }
}
