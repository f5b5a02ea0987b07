//! Numbers that name settings and segments.

/// A parse environment: what decides, beside a text, what the text means. See
/// `crate::settings::session`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EnvId {
    /// The number of the settings that decide it.
    pub settings: u64,
    /// The number of what no setting shows: a role, temporary objects, other settings when the text
    /// was analysed. Zero for nothing of the kind.
    pub beside: u64,
}

impl EnvId {
    /// Makes the environment of settings alone.
    pub fn of(settings: u64) -> Self {
        Self { settings, beside: 0 }
    }

    /// Returns one number for hashes.
    #[inline]
    pub(crate) fn mixed(self) -> u64 {
        self.settings ^ self.beside.rotate_left(48)
    }
}

/// The number of a segment among those that one server gets, from one; zero is none. A segment ends
/// with a Sync, Query or FunctionCall.
pub(crate) type Segment = u64;

/// The database that a server has said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DatabaseIdentity {
    /// The system identifier of its cluster.
    pub cluster: u64,
    /// Its OID there.
    pub database: u32,
}

/// A server process of a cluster, from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerOrigin {
    /// The system identifier of its cluster.
    pub cluster: u64,
    /// The time of its start, in microseconds since 1970 by its own clock. It is compared with no
    /// other clock.
    pub started: u64,
}

impl ServerOrigin {
    /// The columns by which a server says it, and whether it is in recovery: a server that is has
    /// no origin.
    pub(crate) const COLUMNS: &str = "(SELECT system_identifier FROM pg_catalog.pg_control_system()), \
        (extract(epoch FROM pg_catalog.pg_postmaster_start_time()) * 1000000)::pg_catalog.int8, \
        pg_catalog.pg_is_in_recovery()";

    /// Reads these columns.
    pub(crate) fn read<'a>(mut columns: impl Iterator<Item = Option<&'a [u8]>>) -> Option<Self> {
        let mut text = || columns.next().flatten().and_then(|it| std::str::from_utf8(it).ok());
        let (cluster, started) = (text()?.parse().ok()?, text()?.parse().ok()?);
        (text()? == "f").then_some(Self { cluster, started })
    }
}
