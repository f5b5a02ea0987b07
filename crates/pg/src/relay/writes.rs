//! Writes, where replies are kept: a text that may write is noted when it is sent, and what it may
//! make wrong is void before its client hears that it has taken effect.
//!
//! A command of a transaction block takes effect when the block ends. Outside of blocks a query
//! string has taken effect when its last CommandComplete comes, and extended messages have when
//! their ReadyForQuery comes.

use refrain_config::PoolMode;
use refrain_sql::writes::may_write;
use refrain_sql::{Kind, Scan, Tag, Traits};
use refrain_wire::back::Status;

use crate::ground::schema::DEFINES;
use crate::relay::link::Link;
use crate::relay::pipe::Pipeline;
use crate::relay::texts::changing_text;
use crate::results::writing::{Touch, Writing};
use crate::statements::relations::Changes;
use crate::statements::statement::Statement;

/// Traits of texts that change more than rows.
const SCHEMA: Traits = DEFINES.union(Traits::DEFAULTS);

impl Link<'_> {
    /// Notes a query string that is sent now. One that has not arrived in full may do anything.
    #[inline]
    pub(crate) fn sends_text(&mut self, text: &[u8], scan: &Scan, is_whole: bool) {
        if self.pipe.pool().settings.cache.is_on {
            self.text_may_write(text, scan, is_whole);
        }
    }

    #[cold]
    fn text_may_write(&mut self, text: &[u8], scan: &Scan, is_whole: bool) {
        if !is_whole {
            return self.pipe.begins_to_write(Touch::Schema);
        }
        let backslash = self.client.session.settings.expected().reads.backslash;
        if may_write(text, scan, backslash) {
            let known = changing_text(self.pipe.core_state, self.client, text);
            let changes = known.map(|cached| self.changes(&cached.statement)).unwrap_or_default();
            self.begins_to_change(changes, scan);
        }
    }

    /// Notes a statement that is bound now.
    #[inline]
    pub(crate) fn sends_statement(&mut self, statement: &Statement) {
        if statement.writes && self.pipe.pool().settings.cache.is_on {
            self.writes_unless_read(statement);
        }
    }

    #[cold]
    fn writes_unless_read(&mut self, statement: &Statement) {
        let schema_changes = self.pipe.pool().shared.protocol.schema_changes();
        if !statement.is_read(schema_changes) {
            let changes = self.changes(statement);
            self.begins_to_change(changes, &statement.scan);
        }
    }

    /// Returns what a statement of the client may change.
    fn changes(&mut self, statement: &Statement) -> Changes {
        let session = &self.client.session;
        if statement.env != session.settings.env() || !session.names_are_certain() {
            return Changes::Anything;
        }
        let pool = self.pipe.pool();
        if pool.settings.options.pool_mode == PoolMode::Session {
            return Changes::Anything;
        }
        statement.relations.changes(pool.shared.protocol.schema_changes())
    }

    fn begins_to_change(&mut self, changes: Changes, scan: &Scan) {
        let rows_alone = !scan.traits.intersects(SCHEMA);
        let names_rows =
            matches!(scan.kind, Kind::Insert | Kind::Update | Kind::Delete | Kind::With);
        self.pipe.begins_to_write(match changes {
            Changes::Nothing if rows_alone => return,
            Changes::Tables(tables) if rows_alone => Touch::Tables(tables),
            _ if rows_alone && names_rows => Touch::Rows,
            _ => Touch::Schema,
        });
    }
}

impl Pipeline<'_> {
    /// Notes a request that is sent now and may do anything.
    pub(crate) fn sends_unknown(&mut self) {
        if self.pool().settings.cache.is_on {
            self.begins_to_write(Touch::Schema);
        }
    }

    #[cold]
    fn begins_to_write(&mut self, touch: Touch) {
        let segment = self.server.session.outstanding.segment();
        let store = self.core_state.shared.protocol.results.clone();
        let shared = self.pool().shared.clone();
        let (database, schema) = (shared.protocol.database(), shared.protocol.schema());
        let begin = || Writing::new(&store, database, schema, segment);
        self.server.session.transaction.write(begin).add(segment, touch);
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
