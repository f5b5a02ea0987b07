//! Writes, where replies are kept: a text that may write is noted when it is sent, and what it may
//! make wrong is in doubt from the moment on when it may take effect.
//!
//! A command of a transaction block takes effect when the block ends. Outside of blocks a command
//! may take effect as soon as the server has it. Both ends with the ReadyForQuery behind it.

use refrain_config::PoolMode;
use refrain_sql::hidden::{Hides, Words};
use refrain_sql::shared::{Shared, shared_changes};
use refrain_sql::writes::{may_commit, may_read, may_write};
use refrain_sql::{Kind, Scan, Traits};

use crate::ground::schema::DEFINES;
use crate::reads::hidden::hidden_in;
use crate::relay::pipe::Pipeline;
use crate::relay::texts::statement_of_text;
use crate::results::writing::{Touch, Writing};
use crate::state::client::ClientSession;
use crate::statements::relations::Changes;
use crate::statements::statement::Statement;

/// Traits of texts that change more than rows.
const SCHEMA: Traits = DEFINES.union(Traits::DEFAULTS);

/// Notes a query string that is sent now. One that has not arrived in full may do anything.
#[inline]
pub(crate) fn sends_text(
    pipe: &mut Pipeline<'_>,
    session: &ClientSession,
    text: &[u8],
    scan: &Scan,
    is_whole: bool,
) {
    if pipe.pool().settings.cache.is_on {
        text_may_write(pipe, session, text, scan, is_whole);
    }
}

#[cold]
fn text_may_write(
    pipe: &mut Pipeline<'_>,
    session: &ClientSession,
    text: &[u8],
    scan: &Scan,
    is_whole: bool,
) {
    if !is_whole {
        return pipe.begins_to_do_anything();
    }
    let backslash = session.settings.reads_backslash();
    if may_write(text, scan, backslash) {
        let known = statement_of_text(pipe.core_state, pipe.server.pool(), &session.settings, text);
        let changes =
            known.map(|cached| changes(pipe, session, &cached.statement)).unwrap_or_default();
        begins_to_change(pipe, changes, scan, text, backslash);
    } else if !hides_nothing(pipe) && may_read(text, scan, backslash) {
        let known = statement_of_text(pipe.core_state, pipe.server.pool(), &session.settings, text);
        let known = known.filter(|cached| is_read(pipe, &cached.statement));
        if known.is_none() {
            may_hide_writes(pipe, |words| words.hidden(text, false));
        }
    }
    if may_commit(scan) {
        pipe.may_commit();
    }
}

/// Notes a statement that is bound now.
#[inline]
pub(crate) fn sends_statement(
    pipe: &mut Pipeline<'_>,
    session: &ClientSession,
    statement: &Statement,
) {
    if pipe.pool().settings.cache.is_on && (statement.writes || !hides_nothing(pipe)) {
        writes_unless_read(pipe, session, statement);
    }
}

#[cold]
fn writes_unless_read(pipe: &mut Pipeline<'_>, session: &ClientSession, statement: &Statement) {
    if is_read(pipe, statement) {
        return;
    }
    if statement.writes {
        let changes = changes(pipe, session, statement);
        begins_to_change(pipe, changes, &statement.scan, statement.text(), false);
    } else if may_read(statement.text(), &statement.scan, false) {
        may_hide_writes(pipe, |words| hidden_in(statement, words));
    }
}

/// Whether a statement is known to be a read that hides nothing. While words are not known,
/// verdicts may be of a time when nothing was kept, and nobody asked for words.
fn is_read(pipe: &mut Pipeline<'_>, statement: &Statement) -> bool {
    let shared = &pipe.pool().shared.protocol;
    let schema_changes = shared.schema_changes();
    statement.is_read(schema_changes) && shared.place().hidden.words(schema_changes).is_some()
}

/// True if it is certain that no text of the pool's database hides anything.
#[inline]
fn hides_nothing(pipe: &mut Pipeline<'_>) -> bool {
    pipe.pool().shared.protocol.place().hides_nothing()
}

/// Notes that a text is sent that does not write as far as it shows, unless it is certain that it
/// hides no function that does.
fn may_hide_writes(pipe: &mut Pipeline<'_>, hidden: impl FnOnce(&Words) -> Hides) {
    let pool = pipe.pool();
    let shared = pool.shared.clone();
    let place = shared.protocol.place();
    if !pool.settings.is_remote {
        return;
    }
    let words = place.hidden.words(shared.protocol.schema_changes());
    let sure = words.filter(|_| place.topics.schema.sure_word().is_some());
    match sure.map(|words| hidden(&words)) {
        Some(Hides::Nothing | Hides::Volatile) => {}
        Some(Hides::Writes) => pipe.may_have_written(),
        None => pipe.begins_to_write(Touch::Schema),
    }
}

/// Returns what a statement of the client may change.
fn changes(pipe: &mut Pipeline<'_>, session: &ClientSession, statement: &Statement) -> Changes {
    if statement.env != session.settings.env() || !session.names_are_certain() {
        return Changes::Anything;
    }
    let pool = pipe.pool();
    if pool.settings.options.pool_mode == PoolMode::Session {
        return Changes::Anything;
    }
    statement.relations().changes(pool.shared.protocol.schema_changes())
}

fn begins_to_change(
    pipe: &mut Pipeline<'_>,
    changes: Changes,
    scan: &Scan,
    text: &[u8],
    backslash: bool,
) {
    let rows_alone = !scan.traits.intersects(SCHEMA);
    let names_rows = matches!(scan.kind, Kind::Insert | Kind::Update | Kind::Delete | Kind::With);
    pipe.begins_to_write(match changes {
        Changes::Nothing if rows_alone => return,
        Changes::Tables(tables) if rows_alone => Touch::Tables(tables),
        _ if rows_alone && names_rows => Touch::Rows,
        _ => match shared_changes(text, scan, backslash) {
            Shared::Nothing => Touch::Schema,
            Shared::Rights => Touch::Cluster { databases: false },
            Shared::Databases => Touch::Cluster { databases: true },
        },
    });
}

impl Pipeline<'_> {
    /// Notes a request that is sent now and may do anything.
    pub(crate) fn sends_unknown(&mut self) {
        if self.pool().settings.cache.is_on {
            self.begins_to_do_anything();
        }
    }

    /// Notes that the transaction may have written anything.
    pub(crate) fn may_have_written(&mut self) {
        self.begins_to_write(Touch::Cluster { databases: false });
    }

    #[cold]
    fn begins_to_do_anything(&mut self) {
        self.begins_to_write(Touch::Cluster { databases: false });
        self.may_commit();
    }

    #[cold]
    fn begins_to_write(&mut self, touch: Touch) {
        let store = self.core_state.shared.protocol.results.clone();
        let shared = self.pool().shared.clone();
        let session = &mut self.server.session;
        let segment = session.outstanding.segment();
        // A text that ends the block says so itself.
        let stays = session.outstanding.stays_in_block();
        let begin = || Writing::new(&store, shared.protocol.place());
        session.transaction.write(begin).add(segment, touch, stays);
    }

    /// Notes that a text is sent now that may commit what the transaction has written.
    pub(crate) fn may_commit(&mut self) {
        let session = &mut self.server.session;
        session.outstanding.may_leave_block();
        session.transaction.may_commit(session.outstanding.segment());
    }
}
