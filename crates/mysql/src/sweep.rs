//! When a table of things that sessions share is searched for those that no session has any more.

/// The least length of a table that is searched.
pub(crate) const LENGTH_MIN: usize = 256;

/// The length at which a table is searched next.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    length: usize,
}

impl Sweep {
    /// Whether a table of this length is searched now.
    pub(crate) fn is_due(&self, length: usize) -> bool {
        length >= self.length.max(LENGTH_MIN)
    }

    /// Notes what a search has left. The next one comes when that has doubled, so each addition
    /// pays for a bounded part of a search.
    pub(crate) fn done(&mut self, length: usize) {
        self.length = 2 * length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_searched_when_it_has_doubled() {
        let mut sweep = Sweep::default();
        assert!(!sweep.is_due(LENGTH_MIN - 1) && sweep.is_due(LENGTH_MIN));
        sweep.done(200);
        assert!(!sweep.is_due(399) && sweep.is_due(400));
        sweep.done(0);
        assert!(!sweep.is_due(LENGTH_MIN - 1) && sweep.is_due(LENGTH_MIN));
    }
}
