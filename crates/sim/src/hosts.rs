//! The hosts of the database: which of them is the primary, and which of them can be reached.
//!
//! Most worlds have one host, which is a primary. Others have two, whose rows are the same at any
//! time: a commit is on both before anybody hears of it. At most one of them is a primary.

/// The number of hosts that there may be.
const HOSTS: usize = 2;

/// The hosts.
#[derive(Debug)]
pub(crate) struct Hosts {
    primary: Option<usize>,
    /// The time until which each refuses connections.
    down_until: [u64; HOSTS],
}

impl Default for Hosts {
    fn default() -> Self {
        Self { primary: Some(0), down_until: [0; HOSTS] }
    }
}

impl Hosts {
    /// Returns the number of a host by its name in the configuration.
    pub(crate) fn number(host: &str) -> usize {
        usize::from(host.starts_with("b:"))
    }

    /// Returns the primary, if there is one now.
    pub(crate) fn primary(&self) -> Option<usize> {
        self.primary
    }

    /// Whether a host refuses connections at this time.
    pub(crate) fn is_down(&self, host: usize, now: u64) -> bool {
        now < self.down_until[host]
    }

    /// Has a host refuse connections until this time.
    pub(crate) fn stop(&mut self, host: usize, until: u64) {
        self.down_until[host] = until;
    }

    /// Has no host be the primary until one is promoted.
    pub(crate) fn demote(&mut self) {
        self.primary = None;
    }

    /// Has a host become the primary, unless there is one. Returns whether it has.
    pub(crate) fn promote(&mut self, host: usize) -> bool {
        let is_needed = self.primary.is_none();
        self.primary.get_or_insert(host);
        is_needed
    }

    /// Has all hosts take connections, and one of them be the primary.
    pub(crate) fn calm(&mut self) {
        self.down_until = [0; HOSTS];
        self.promote(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_primary_at_most() {
        let mut hosts = Hosts::default();
        assert!(!hosts.promote(1));
        hosts.demote();
        hosts.stop(0, 10);
        assert!(hosts.is_down(0, 9) && !hosts.is_down(1, 9) && !hosts.is_down(0, 10));
        assert!(hosts.promote(1) && !hosts.promote(0));
        assert_eq!(hosts.primary(), Some(1));
    }
}
