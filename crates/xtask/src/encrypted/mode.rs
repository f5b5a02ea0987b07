//! Modes: the meaning of a driver's `sslmode`.

/// A mode.
#[derive(Debug)]
pub(super) struct Mode {
    /// The word for it.
    pub(super) word: &'static str,
    /// Whether it begins in the clear.
    pub(super) begins_clear: bool,
    /// Whether it does the other if the server does not want the first.
    pub(super) may_change: bool,
    /// Its demand on the server's certificate.
    pub(super) checks: Checks,
}

/// A mode's demand on a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Checks {
    /// Anything will do.
    Nothing,
    /// A trusted authority has signed it, and it has not expired.
    Authority,
    /// The same, and it is for the name that the driver connects to.
    Name,
}

/// Returns a mode that insists on TLS, and asks nothing of the certificate.
pub(super) const fn mode(word: &'static str) -> Mode {
    Mode { word, begins_clear: false, may_change: false, checks: Checks::Nothing }
}

impl Mode {
    /// Begins in the clear.
    pub(super) const fn in_the_clear(self) -> Mode {
        Mode { begins_clear: true, ..self }
    }

    /// Does the other if the server does not want the first.
    pub(super) const fn may_change(self) -> Mode {
        Mode { may_change: true, ..self }
    }

    /// Asks this of the certificate.
    pub(super) const fn checks(self, checks: Checks) -> Mode {
        Mode { checks, ..self }
    }

    /// Whether the driver insists on TLS.
    pub(super) fn insists(&self) -> bool {
        !self.begins_clear && !self.may_change
    }
}
