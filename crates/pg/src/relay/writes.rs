//! Writes, where replies are kept: a text that may write is noted when it is sent, and what it may
//! make wrong is void before its client hears that it has taken effect.
//!
//! A command of a transaction block takes effect when the block ends. Outside of blocks a query
//! string has taken effect when its last CommandComplete comes, and extended messages have when
//! their ReadyForQuery comes.

use refrain_sql::{Kind, Scan, Tag, Traits};
use refrain_wire::back::Status;

use crate::pipeline::schema::DEFINES;
use crate::relay::pipe::Pipeline;
use crate::results::writing::Writing;
use crate::statements::statement::Statement;

/// Traits of texts that change more than rows.
const SCHEMA: Traits = DEFINES.union(Traits::DEFAULTS);

impl Pipeline<'_> {
    /// Notes a query string that is sent now.
    #[inline]
    pub(crate) fn sends_text(&mut self, text: &[u8], scan: &Scan, backslash: bool) {
        if self.pool().settings.cache.is_on && refrain_sql::writes::may_write(text, scan, backslash)
        {
            self.begins_to_write(Some(scan));
        }
    }

    /// Notes a statement that is bound now.
    #[inline]
    pub(crate) fn sends_statement(&mut self, statement: &Statement) {
        if statement.writes && self.pool().settings.cache.is_on {
            self.writes_unless_read(statement);
        }
    }

    #[cold]
    fn writes_unless_read(&mut self, statement: &Statement) {
        let schema_changes = self.pool().shared.protocol.schema_changes();
        if !statement.is_read(schema_changes) {
            self.begins_to_write(Some(&statement.scan));
        }
    }

    /// Notes a request that is sent now and may do anything.
    pub(crate) fn sends_unknown(&mut self) {
        if self.pool().settings.cache.is_on {
            self.begins_to_write(None);
        }
    }

    #[cold]
    fn begins_to_write(&mut self, scan: Option<&Scan>) {
        let plain = scan.is_some_and(|scan| {
            matches!(scan.kind, Kind::Insert | Kind::Update | Kind::Delete | Kind::With)
                && !scan.traits.intersects(SCHEMA)
        });
        let segment = self.server.session.outstanding.segment();
        let store = self.core_state.shared.protocol.results.clone();
        let database = self.pool().shared.protocol.database().clone();
        let begin = || Writing::new(&store, &database, segment);
        self.server.session.transaction.write(begin).add(segment, !plain);
    }

    /// Voids what a command has made wrong that has taken effect.
    #[cold]
    pub(crate) fn command_takes_effect(&mut self, tag: Tag) {
        let session = &self.server.session;
        if session.outstanding.status() == Status::Idle || tag == Tag::Commit {
            session.transaction.void();
        }
    }
}
