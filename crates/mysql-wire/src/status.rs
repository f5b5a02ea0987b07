//! Flags on the state of a session, which OK and EOF packets end with.
//!
//! An ERR packet has none: after an error the state is not known from the reply. (MySQL,
//! "SERVER_STATUS_flags_enum"; MariaDB, "OK_Packet", "Server Status Flag".)

/// The flags of one reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Status(pub u16);

impl Status {
    /// In a transaction. With `autocommit` off it is set when a statement first touches a
    /// transactional table, not before.
    pub const IN_TRANS: Self = Self(0x0001);
    /// The variable `autocommit` is on.
    pub const AUTOCOMMIT: Self = Self(0x0002);
    /// Another result follows in the same reply.
    pub const MORE_RESULTS_EXISTS: Self = Self(0x0008);
    /// The optimizer found no good index.
    pub const NO_GOOD_INDEX_USED: Self = Self(0x0010);
    /// The optimizer used no index.
    pub const NO_INDEX_USED: Self = Self(0x0020);
    /// COM_STMT_EXECUTE has opened a cursor; rows come by COM_STMT_FETCH.
    pub const CURSOR_EXISTS: Self = Self(0x0040);
    /// The cursor has no more rows.
    pub const LAST_ROW_SENT: Self = Self(0x0080);
    /// A database was dropped.
    pub const DB_DROPPED: Self = Self(0x0100);
    /// `sql_mode` has NO_BACKSLASH_ESCAPES.
    pub const NO_BACKSLASH_ESCAPES: Self = Self(0x0200);
    /// A prepared statement was prepared anew inside the server, and has other columns now.
    pub const METADATA_CHANGED: Self = Self(0x0400);
    /// The query took longer than `long_query_time`.
    pub const QUERY_WAS_SLOW: Self = Self(0x0800);
    /// The result set that follows has the OUT parameters of a prepared CALL.
    pub const PS_OUT_PARAMS: Self = Self(0x1000);
    /// In a transaction that was begun as READ ONLY.
    pub const IN_TRANS_READONLY: Self = Self(0x2000);
    /// The OK packet says what changed in the session's state; see [`crate::track`].
    pub const SESSION_STATE_CHANGED: Self = Self(0x4000);
    /// `sql_mode` has ANSI_QUOTES (MariaDB only).
    pub const ANSI_QUOTES: Self = Self(0x8000);

    /// The flags of a session; the others are of one reply.
    pub const OF_SESSION: Self = Self::IN_TRANS
        .with(Self::AUTOCOMMIT)
        .with(Self::NO_BACKSLASH_ESCAPES)
        .with(Self::IN_TRANS_READONLY)
        .with(Self::ANSI_QUOTES);

    /// True if every flag of `others` is set.
    #[inline]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Returns the flags of both.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns the flags of the session alone.
    #[must_use]
    pub const fn of_session(self) -> Self {
        Self(self.0 & Self::OF_SESSION.0)
    }

    /// Returns the flags without those of `others`.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }
}
