//! The checker of versions: a read of a row sees what was committed before it was sent, and nothing
//! that is not committed, and what is acknowledged is committed.

use refrain_wire::back::columns;
use refrain_wire::tag::back;

use crate::rows::{self, RowId};
use crate::versions::Staleness;
use crate::world::World;

impl World {
    /// Checks a message that a client has got and expected.
    pub(crate) fn check_rows(&mut self, number: usize, tag: u8, body: &[u8]) {
        match tag {
            back::DATA_ROW => self.check_row(number, body),
            back::READY_FOR_QUERY => self.acknowledge(number),
            // A query string of one command is committed when that is complete.
            back::COMMAND_COMPLETE if self.clients[number].oracle.runs_query() => {
                self.acknowledge(number);
            }
            _ => {}
        }
    }

    /// Notes the time at which a client asks for rows.
    pub(crate) fn note_asked(&mut self, number: usize, reads: Vec<String>) {
        let (now, client) = (self.now, &mut self.clients[number]);
        if client.oracle.is_settled() {
            client.asked.clear();
        }
        client.asked.extend(reads.into_iter().map(|read| (read, now)));
    }

    /// Returns when a client has asked for a row: the first time, if it has asked several times and
    /// its reads have no tags.
    fn asked(&mut self, number: usize, row: &RowId, tag: &str) -> Option<u64> {
        let asked = &mut self.clients[number].asked;
        let untagged = format!("{}.{}", row.0, row.1);
        let is_it = |(read, _): &(String, u64)| read == tag || *read == untagged;
        asked.iter().position(is_it).map(|index| asked.remove(index).1)
    }

    fn check_row(&mut self, number: usize, body: &[u8]) {
        let mut texts = columns(body).flatten().map(String::from_utf8_lossy);
        let Some((row, version)) = texts.next().and_then(|text| rows::read(&text)) else { return };
        let tag = texts.next().unwrap_or_default();
        let Some(asked) = self.asked(number, &row, &tag) else {
            return self.violate("versions", || format!("client {number} did not ask for {row:?}"));
        };
        let least =
            self.versions.least(&row, asked, number, self.plan.cached.unwrap_or(Staleness::NONE));
        if version < least {
            self.violate("versions", || {
                format!("client {number} got version {version} of {row:?}, and not {least}")
            });
        }
        // The client may have rolled it back since.
        let own = || self.rows.writer_of(version).is_some_and(|writer| is_of(&writer, number));
        if !self.rows.is_committed(&row, version) && !own() {
            self.violate("versions", || {
                format!("client {number} got version {version} of {row:?}, not committed")
            });
        }
    }

    /// Notes what a client has written and knows to be committed.
    fn acknowledge(&mut self, number: usize) {
        for (row, writer) in self.clients[number].oracle.take_written() {
            let version = self.rows.written_by(&writer).unwrap_or(0);
            if version == 0 || !self.rows.is_committed(&row, version) {
                self.violate("versions", || format!("what {writer} wrote to {row:?} is lost"));
            }
            self.versions.acknowledge(row, self.now, number, version);
        }
    }
}

impl World {
    /// Has every client know at once of what has just been committed: a server may tell others of a
    /// commit, by a notification or a lock that is free, before its answer has arrived.
    pub(crate) fn tell_news(&mut self) {
        for (row, writer) in self.rows.take_news() {
            let version = self.rows.written_by(&writer).unwrap_or(0);
            self.versions.acknowledge(row, self.now, usize::MAX, version);
        }
    }
}

/// Whether a tag is that of a client.
fn is_of(tag: &str, client: usize) -> bool {
    tag.strip_prefix('c').and_then(|rest| rest.split_once('-')).map(|(number, _)| number)
        == Some(client.to_string().as_str())
}
