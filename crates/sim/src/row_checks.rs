//! The checker of versions: a read of a row sees what was acknowledged before it was sent, and
//! nothing that is not committed, and what is acknowledged is committed.

use refrain_wire::back::columns;
use refrain_wire::tag::back;

use crate::rows;
use crate::world::World;

impl World {
    /// Checks a message that a client has got and expected.
    pub(crate) fn check_rows(&mut self, number: usize, tag: u8, body: &[u8]) {
        match tag {
            back::DATA_ROW => self.check_row(number, body),
            back::READY_FOR_QUERY => self.acknowledge(number),
            _ => {}
        }
    }

    /// Notes the time at which a client has asked for rows.
    pub(crate) fn note_asked(&mut self, number: usize, tags: Vec<String>) {
        let now = self.now;
        self.clients[number].asked.extend(tags.into_iter().map(|tag| (tag, now)));
    }

    fn check_row(&mut self, number: usize, body: &[u8]) {
        let mut texts = columns(body).flatten().map(String::from_utf8_lossy);
        let Some((row, version)) = texts.next().and_then(|text| rows::read(&text)) else { return };
        let asked = texts.next().and_then(|tag| self.clients[number].asked.remove(&*tag));
        let Some(asked) = asked else {
            return self.violate("versions", || format!("client {number} did not ask for {row:?}"));
        };
        let least = self.versions.least(&row, asked, number, self.plan.staleness);
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

/// Whether a tag is that of a client.
fn is_of(tag: &str, client: usize) -> bool {
    tag.strip_prefix('c').and_then(|rest| rest.split_once('-')).map(|(number, _)| number)
        == Some(client.to_string().as_str())
}
