//! Pins: why a client keeps its server beyond the transaction.
//!
//! [`crate::relay::effects`] pins a client when a command has left something in the session that
//! cannot be moved, and the looks of [`crate::relay::look`] when a function has. A pin that a
//! command takes away in a transaction goes when the transaction commits: a rollback would bring
//! back what the pin stands for.

/// State of a client that cannot be moved to another server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pins(u16);

impl Pins {
    /// SQL-level PREPARE, or a statement too large to be kept.
    pub(crate) const PREPARED: Self = Self(1);
    /// LISTEN.
    pub(crate) const LISTEN: Self = Self(2);
    /// Temporary tables.
    pub(crate) const TEMP: Self = Self(4);
    /// Session advisory locks.
    pub(crate) const ADVISORY: Self = Self(8);
    /// Cursors WITH HOLD.
    pub(crate) const HOLD: Self = Self(16);
    /// SET ROLE, SET SESSION AUTHORIZATION.
    pub(crate) const ROLE: Self = Self(32);
    /// LOAD.
    pub(crate) const LOAD: Self = Self(64);
    /// Settings that could not be learned.
    pub(crate) const SETTINGS: Self = Self(128);

    const WORDS: [(Self, &str); 8] = [
        (Self::PREPARED, "prepared"),
        (Self::LISTEN, "listen"),
        (Self::TEMP, "temporary tables"),
        (Self::ADVISORY, "advisory locks"),
        (Self::HOLD, "cursors with hold"),
        (Self::ROLE, "role"),
        (Self::LOAD, "load"),
        (Self::SETTINGS, "settings"),
    ];

    /// Whether there are none.
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Adds `other`.
    pub(crate) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether one of `other` is among them.
    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// The pins of a client.
#[derive(Debug, Default)]
pub(crate) struct ClientPins {
    held: Pins,
    /// The pins that end when the transaction commits.
    until_commit: Pins,
}

impl ClientPins {
    /// Whether there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether `pin` is among them.
    pub(crate) fn has(&self, pin: Pins) -> bool {
        self.held.has(pin)
    }

    /// Returns the pins as a number.
    pub(crate) fn bits(&self) -> u16 {
        self.held.0
    }

    /// Returns the pins of `found` that the client does not have.
    pub(crate) fn missing(&self, found: Pins) -> Pins {
        found.without(self.held)
    }

    /// Returns the names of the pins, for logs and the console.
    pub(crate) fn words(&self) -> String {
        let words = Pins::WORDS.iter().filter(|(pin, _)| self.has(*pin));
        words.map(|(_, word)| *word).collect::<Vec<_>>().join(", ")
    }

    /// Adds `pin`, also for the time after a commit.
    pub(crate) fn pin(&mut self, pin: Pins) {
        self.held.add(pin);
        self.until_commit = self.until_commit.without(pin);
    }

    /// Removes `pin`.
    pub(crate) fn unpin(&mut self, pin: Pins) {
        self.held = self.held.without(pin);
    }

    /// Removes `pin` when the transaction commits.
    pub(crate) fn unpin_at_commit(&mut self, pin: Pins) {
        self.until_commit.add(pin);
    }

    /// Keeps the pins that would have ended with the transaction, which has failed or was rolled
    /// back.
    pub(crate) fn rolled_back(&mut self) {
        self.until_commit = Pins::default();
    }

    /// Removes the pins that end with the transaction, which is over.
    #[inline]
    pub(crate) fn transaction_ends(&mut self) {
        self.held = self.held.without(std::mem::take(&mut self.until_commit));
    }

    /// Removes all.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_ends_with_the_commit_and_not_with_a_rollback() {
        let mut pins = ClientPins::default();
        pins.pin(Pins::LISTEN);
        pins.unpin_at_commit(Pins::LISTEN);
        pins.rolled_back();
        pins.transaction_ends();
        assert_eq!(pins.words(), "listen");
        pins.unpin_at_commit(Pins::LISTEN);
        pins.transaction_ends();
        assert!(pins.is_empty());
    }

    #[test]
    fn a_pin_that_comes_back_in_the_transaction_stays() {
        let mut pins = ClientPins::default();
        pins.unpin_at_commit(Pins::TEMP);
        pins.pin(Pins::TEMP);
        pins.transaction_ends();
        assert!(pins.has(Pins::TEMP));
        assert!(pins.missing(Pins::TEMP).is_empty());
    }
}
