//! Purposes: why Refrain sends requests of its own, and the treatment of a server's messages while
//! it answers one.
//!
//! The client gets no reply to such a request. `TREATMENTS` has a row for each purpose. Code that
//! treats purposes differently reads the row, so a new purpose is one row.

/// Why Refrain sent a request of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To have a statement on this server, or to make room for one.
    Prepare,
    /// To read a statement's constants under the settings of the client's Parse.
    Environment,
    /// To go back from those settings to the client's current ones.
    Return,
    /// To see whether a statement still has the columns and parameters that the client was told.
    Shape,
    /// To see that of a copy which the server runs already.
    Check,
    /// Not Refrain's: the client sent it, and got an error in place of all replies.
    Discard,
    /// To give the server the settings of its client.
    SyncSettings,
    /// To read the settings that the client's session has.
    ReadSettings,
    /// To have that question answered whatever the client has set.
    Guard,
    /// To put back the settings of the client's startup packet after RESET: the server went back to
    /// those of its own login.
    Restore,
    /// To count the Syncs that a COPY has skipped.
    Count,
    /// To remove what a client left behind.
    Reset,
    /// To end a transaction that a client left open.
    Rollback,
    /// To see whether a normalized query may be prepared.
    Verify,
    /// To run a prepared statement in place of a simple query.
    Autoprepare,
    /// To see whether a server is there that was idle.
    Ask,
    /// To see how much a standby has replayed, in front of a read that needs it.
    Replayed,
}

/// The treatment of a server's messages while it answers a request of Refrain's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Treatment {
    /// The meaning of its rows.
    pub(crate) rows: Rows,
    /// The meaning of its completion.
    pub(crate) done: Done,
    /// The consequence of an error.
    pub(crate) error: OwnError,
    /// The notices and notifications that the client gets.
    pub(crate) unasked: Unasked,
    /// The reports of settings that the client gets.
    pub(crate) reports: Reports,
    /// The fate of a cancel request of the client.
    pub(crate) cancel: OwnCancel,
}

/// The meaning of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// None.
    Nothing,
    /// Settings of the session.
    Settings,
    /// Settings that were synced, as they are.
    Synced,
    /// The position up to which a standby has replayed.
    Replayed,
}

/// The meaning of a completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// No other than its replies have.
    Nothing,
    /// The columns of a copy are to be compared with those that the client expects.
    Compared,
    /// All settings of the session have been read.
    Read,
    /// Startup settings are restored.
    Restored,
    /// Nothing of a client is left in the session.
    Reset,
}

/// The consequence of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnError {
    /// The client gets the error: its own request needed this one.
    Tell,
    /// The same, and not the error of the request that fails because of it.
    TellOnce,
    /// The same in a transaction block. Outside of one, nobody gets the error.
    TellInBlock,
    /// The client's settings are refused.
    RefuseSettings,
    /// The settings are read again, or cannot be known.
    ReadAgain,
    /// The settings are restored again, or the client's block fails.
    RestoreAgain,
    /// The statement is another now, if the error is not that of its parameters.
    Stale,
    /// The server is not used again.
    Close,
    /// None: the client has got an error already.
    Nothing,
}

/// Notices and notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unasked {
    /// None: they are not from the client's session.
    Nothing,
    /// Notifications alone: the client has listened.
    Notifications,
    /// All of them: the request runs in place of the client's.
    All,
}

/// Reports of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reports {
    /// All of them.
    Told,
    /// Later, once the settings are restored.
    Later,
    /// None: the server goes back to the client's settings.
    Hidden,
}

/// A cancel request of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnCancel {
    /// It goes to the server.
    Sent,
    /// It goes to the server once that is at the client's own request.
    Later,
    /// None: the client's own request is over.
    Dropped,
}

/// The number of purposes.
const PURPOSES: usize = Purpose::Replayed as usize + 1;

/// A row for each purpose, in their order.
static TREATMENTS: [(Purpose, Treatment); PURPOSES] = {
    use Purpose::*;
    const USUAL: Treatment = Treatment {
        rows: Rows::Nothing,
        done: Done::Nothing,
        error: OwnError::Tell,
        unasked: Unasked::Notifications,
        reports: Reports::Told,
        cancel: OwnCancel::Sent,
    };
    const READING: Treatment = Treatment {
        rows: Rows::Settings,
        error: OwnError::ReadAgain,
        cancel: OwnCancel::Dropped,
        ..USUAL
    };
    const HIDDEN: Treatment = Treatment { reports: Reports::Hidden, ..USUAL };
    let table = [
        (Prepare, Treatment { error: OwnError::TellOnce, ..USUAL }),
        (Environment, Treatment { error: OwnError::TellOnce, ..HIDDEN }),
        (Return, Treatment { error: OwnError::TellInBlock, ..HIDDEN }),
        (Shape, Treatment { error: OwnError::Stale, ..USUAL }),
        (Check, Treatment { done: Done::Compared, ..USUAL }),
        (Discard, Treatment { error: OwnError::Nothing, ..USUAL }),
        (
            SyncSettings,
            Treatment {
                rows: Rows::Synced,
                error: OwnError::RefuseSettings,
                unasked: Unasked::Nothing,
                cancel: OwnCancel::Later,
                ..USUAL
            },
        ),
        (ReadSettings, Treatment { done: Done::Read, ..READING }),
        (Guard, READING),
        (
            Restore,
            Treatment {
                done: Done::Restored,
                error: OwnError::RestoreAgain,
                reports: Reports::Later,
                ..USUAL
            },
        ),
        (Count, USUAL),
        (Reset, Treatment { done: Done::Reset, error: OwnError::Close, ..USUAL }),
        (Rollback, Treatment { error: OwnError::Close, ..USUAL }),
        (Verify, Treatment { cancel: OwnCancel::Later, ..USUAL }),
        (Autoprepare, Treatment { unasked: Unasked::All, ..USUAL }),
        (Ask, Treatment { error: OwnError::Nothing, unasked: Unasked::Nothing, ..USUAL }),
        (
            Replayed,
            Treatment {
                rows: Rows::Replayed,
                error: OwnError::Nothing,
                unasked: Unasked::Nothing,
                cancel: OwnCancel::Later,
                ..USUAL
            },
        ),
    ];
    let mut at = 0;
    while at < PURPOSES {
        assert!(table[at].0 as usize == at, "the rows stand in the order of the purposes");
        at += 1;
    }
    table
};

impl Purpose {
    /// Returns the treatment of a server's messages while it answers such a request.
    #[inline]
    pub(crate) fn treatment(self) -> &'static Treatment {
        &TREATMENTS[self as usize].1
    }
}
