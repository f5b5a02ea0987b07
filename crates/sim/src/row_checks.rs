//! The checker of versions: a read of a row sees what was committed before it was sent, and nothing
//! that is not committed, and what is acknowledged is committed.

use refrain_pg_wire::back::columns;
use refrain_pg_wire::tag::back;

use crate::client::Client;
use crate::rows::{self, RowId, Rows};
use crate::versions::{Staleness, Versions};

/// A client, with the rows of the servers and what clients know of them.
#[derive(Debug)]
pub(crate) struct RowCheck<'a> {
    /// The client's number.
    pub(crate) number: usize,
    pub(crate) client: &'a mut Client,
    pub(crate) rows: &'a Rows,
    pub(crate) versions: &'a mut Versions,
    /// The allowance of reads to miss acknowledged writes.
    pub(crate) allowed: Staleness,
    pub(crate) now: u64,
}

impl RowCheck<'_> {
    /// Checks a message that the client has got and expected.
    ///
    /// # Errors
    /// The violation, in words.
    pub(crate) fn check(&mut self, tag: u8, body: &[u8]) -> Result<(), String> {
        match tag {
            back::DATA_ROW => self.check_row(body),
            back::READY_FOR_QUERY => self.acknowledge(),
            // A query string of one command is committed when that is complete.
            back::COMMAND_COMPLETE if self.client.oracle.runs_query() => self.acknowledge(),
            _ => Ok(()),
        }
    }

    /// Returns when the client has asked for a row: the first time, if it has asked several times
    /// and its reads have no tags.
    fn asked(&mut self, row: &RowId, tag: &str) -> Option<u64> {
        let asked = &mut self.client.asked;
        let untagged = format!("{}.{}", row.0, row.1);
        let is_it = |(read, _): &(String, u64)| read == tag || *read == untagged;
        asked.iter().position(is_it).map(|index| asked.remove(index).1)
    }

    fn check_row(&mut self, body: &[u8]) -> Result<(), String> {
        let number = self.number;
        let mut texts = columns(body).flatten().map(String::from_utf8_lossy);
        let row = texts.next().and_then(|text| rows::read(&text));
        let Some((row, version)) = row else { return Ok(()) };
        let tag = texts.next().unwrap_or_default();
        let Some(asked) = self.asked(&row, &tag) else {
            return Err(format!("client {number} did not ask for {row:?}"));
        };
        let least = self.versions.least(&row, asked, number, self.allowed);
        if version < least {
            return Err(format!(
                "client {number} got version {version} of {row:?}, and not {least}"
            ));
        }
        // The client may have rolled it back since.
        let own = || self.rows.writer_of(version).is_some_and(|writer| is_of(&writer, number));
        if !self.rows.is_committed(&row, version) && !own() {
            return Err(format!("client {number} got version {version} of {row:?}, not committed"));
        }
        Ok(())
    }

    /// Notes what the client has written and knows to be committed.
    fn acknowledge(&mut self) -> Result<(), String> {
        let mut found = Ok(());
        for (row, writer) in self.client.oracle.take_written() {
            let version = self.rows.written_by(&writer).unwrap_or(0);
            if found.is_ok() && (version == 0 || !self.rows.is_committed(&row, version)) {
                found = Err(format!("what {writer} wrote to {row:?} is lost"));
            }
            self.versions.acknowledge(row, self.now, self.number, version);
        }
        found
    }
}

/// Notes the time at which a client asks for rows.
pub(crate) fn note_asked(client: &mut Client, reads: Vec<String>, now: u64) {
    if client.oracle.is_settled() {
        client.asked.clear();
    }
    client.asked.extend(reads.into_iter().map(|read| (read, now)));
}

/// Has every client know at once of what has just been committed: a server may tell others of a
/// commit, by a notification or a lock that is free, before its answer has arrived.
pub(crate) fn tell_news(rows: &Rows, versions: &mut Versions, now: u64) {
    for (row, writer) in rows.take_news() {
        let version = rows.written_by(&writer).unwrap_or(0);
        versions.acknowledge(row, now, usize::MAX, version);
    }
}

/// Whether a tag is that of a client.
fn is_of(tag: &str, client: usize) -> bool {
    tag.strip_prefix('c').and_then(|rest| rest.split_once('-')).map(|(number, _)| number)
        == Some(client.to_string().as_str())
}
