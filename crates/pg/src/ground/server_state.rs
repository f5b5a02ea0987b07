//! The state of a server, and whether a pool wants it: `target_session_attrs`, with libpq's
//! meaning.
//!
//! Servers report both parts of their state since PostgreSQL 14. Older ones are asked.

use refrain_config::TargetSessionAttrs;
use refrain_pool::server::HostFinding;

/// The parameter that says whether the server is in recovery.
pub(crate) const IN_RECOVERY: &[u8] = b"in_hot_standby";
/// The parameter that says whether transactions may not write unless they say otherwise. A client
/// may set it for its own session.
pub(crate) const READ_ONLY: &[u8] = b"default_transaction_read_only";
/// The query for the state of a server that does not report it.
pub(crate) const QUERY: &[u8] = b"SELECT pg_catalog.pg_is_in_recovery(), \
    pg_catalog.current_setting('transaction_read_only')";

/// The state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerState {
    /// Whether the server is in recovery: it is a standby.
    pub(crate) is_standby: bool,
    /// Whether transactions may not write unless they say otherwise.
    pub(crate) is_read_only: bool,
}

impl ServerState {
    /// Reads the state from the values of the two parameters, or from the answer to [`QUERY`].
    pub(crate) fn of(in_recovery: &[u8], read_only: &[u8]) -> Self {
        let is_on = |value: &[u8]| matches!(value, b"on" | b"t");
        Self { is_standby: is_on(in_recovery), is_read_only: is_on(read_only) }
    }

    /// Whether a pool that wants this state takes the server.
    pub(crate) fn suits(self, wants: TargetSessionAttrs) -> bool {
        let writes = !self.is_standby && !self.is_read_only;
        match wants {
            TargetSessionAttrs::Any => true,
            TargetSessionAttrs::ReadWrite => writes,
            TargetSessionAttrs::ReadOnly => !writes,
            TargetSessionAttrs::Primary => !self.is_standby,
            TargetSessionAttrs::Standby | TargetSessionAttrs::PreferStandby => self.is_standby,
        }
    }

    /// Returns what the state is, for the log.
    pub(crate) fn words(self) -> &'static str {
        match (self.is_standby, self.is_read_only) {
            (true, _) => "it is a standby",
            (false, true) => "its sessions are read-only",
            (false, false) => "it is a primary",
        }
    }
}

/// Returns what follows from a server's report that it is, or is no longer, a standby.
pub(crate) fn of_report(wants: TargetSessionAttrs, is_standby: bool) -> Option<HostFinding> {
    match (wants, is_standby) {
        (TargetSessionAttrs::ReadWrite | TargetSessionAttrs::Primary, true)
        | (TargetSessionAttrs::Standby, false) => Some(HostFinding::Unsuited),
        // Its sessions may be read-only all the same.
        (TargetSessionAttrs::ReadOnly, false) => Some(HostFinding::Doubtful),
        _ => None,
    }
}

/// Returns what follows from a change of the default for transactions.
pub(crate) fn of_default(wants: TargetSessionAttrs, is_read_only: bool) -> Option<HostFinding> {
    match (wants, is_read_only) {
        (TargetSessionAttrs::ReadWrite, true) => Some(HostFinding::Unsuited),
        // It may be a standby all the same.
        (TargetSessionAttrs::ReadOnly, false) => Some(HostFinding::Doubtful),
        _ => None,
    }
}

/// Whether a pool that wants this state doubts a server that refuses to write.
pub(crate) fn doubts_refusal(wants: TargetSessionAttrs) -> bool {
    matches!(wants, TargetSessionAttrs::ReadWrite | TargetSessionAttrs::Primary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_taken_as_libpq_takes_them() {
        let primary = ServerState::of(b"off", b"off");
        let read_only = ServerState::of(b"off", b"on");
        let standby = ServerState::of(b"t", b"on");
        let table = [
            (TargetSessionAttrs::Any, [true, true, true]),
            (TargetSessionAttrs::ReadWrite, [true, false, false]),
            (TargetSessionAttrs::ReadOnly, [false, true, true]),
            (TargetSessionAttrs::Primary, [true, true, false]),
            (TargetSessionAttrs::Standby, [false, false, true]),
            (TargetSessionAttrs::PreferStandby, [false, false, true]),
        ];
        for (wants, expected) in table {
            let found = [primary, read_only, standby].map(|state| state.suits(wants));
            assert_eq!(found, expected, "{wants:?}");
        }
    }
}
