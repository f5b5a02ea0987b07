//! What a driver's `sslmode` means.

/// A mode.
#[derive(Debug)]
pub(super) struct Mode {
    /// The word for it.
    pub(super) word: &'static str,
    /// Whether it begins in the clear.
    pub(super) begins_clear: bool,
    /// Whether it does the other if the server does not want the first.
    pub(super) may_change: bool,
    /// What it asks of the server's certificate.
    pub(super) checks: Checks,
}

/// What a mode asks of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Checks {
    /// Anything will do.
    Nothing,
    /// A trusted authority has signed it, and it has not expired.
    Authority,
    /// The same, and it is for the name that the driver connects to.
    Name,
}

impl Mode {
    /// Whether the driver insists on TLS.
    pub(super) fn insists(&self) -> bool {
        !self.begins_clear && !self.may_change
    }
}
